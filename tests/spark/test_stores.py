"""Datasets in object stores, written from Spark: batches and streams, overwritten, encrypted, cleaned up."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import fastpq
import fastpq.spark
from fastpq.datasets import records
from fastpq.io.location import Remote
from fastpq.io.object_store import store_at, url_of
from fastpq.spark.options import read_options, write_options
from fastpq.spark.streams.file_streams import StreamReader
from fastpq.spark.streams.store_streams import StoreStreamWriter
from fastpq.spark.tables.listing import list_files, located
from fastpq.spark.write.store_writer import StoreWriter, require_store
from tests.io.object_stores import Store, unfinished
from tests.spark.conftest import CLIENT

KEYS: dict[str, Any] = {"parquet.encryption.uniform.key": "kf", "kms.client": CLIENT}


@pytest.fixture
def store(object_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """The folder of a new dataset, in a new bucket; this process finds the server as Spark's workers do."""
    for name, value in object_store.environment().items():
        monkeypatch.setenv(name, value)
    url = f"{object_store.scheme}://{object_store.new_bucket()}/set"
    place = located(url)
    assert isinstance(place, Remote)
    yield Remote(place.filesystem, place.path, url)
    type(place.filesystem).clear_instance_cache()


def save(frame: Any, store: Remote, mode: str = "append", **options: Any) -> None:
    frame.write.format("fastpq").mode(mode).options(**options).save(store.name)


def ids(spark: Any, store: Remote, **options: Any) -> list[int]:
    return sorted(row.id for row in spark.read.format("fastpq").options(**options).load(store.name).collect())


def objects(store: Remote) -> list[str]:
    """Names of all data files, visible or not."""
    store.filesystem.invalidate_cache()
    return [path for path in store.filesystem.find(store.path) if path.endswith(".parquet") and "/." not in path]


def test_from_spark(source: Any, store: Remote, object_store: Store) -> None:
    """Through Spark's own calls, encrypted; and a stranger's reader of the files."""
    rows = source.range(0, 10, 1, 2).selectExpr("id", "id % 2 as part")
    save(rows, store, partitionBy="part")
    few = source.range(100, 101).selectExpr("id", "1L as part")
    save(few, store, "overwrite", partitionBy="part", partitionOverwriteMode="dynamic")
    assert ids(source, store) == [0, 2, 4, 6, 8, 100]
    assert fastpq.spark.read(source, store.name, ["id"], [("part", "==", 1)]).collect()[0].id == 100
    if object_store.kind == "s3":
        url = object_store.url
        arrow = pa_fs.S3FileSystem(access_key="test", secret_key="test", endpoint_override=url, region="us-east-1")
        found = (x for path in objects(store) for x in pq.ParquetFile(path, filesystem=arrow).read()["id"].to_pylist())
        assert sorted(found) == [0, 2, 4, 6, 8, 100]
    save(source.range(5), store, "overwrite", **KEYS)
    assert ids(source, store, **{"kms.client": CLIENT}) == list(range(5))
    assert len(objects(store)) == 2
    assert unfinished(store) == []


def test_key_material_beside_files_is_refused(store: Remote) -> None:
    options = {**KEYS, "parquet.encryption.key.material.store.internally": "false"}
    with pytest.raises(fastpq.UnsupportedError, match="key material beside files"):
        StoreWriter(SCHEMA, write_options({"path": store.name, **options}), False)


SCHEMA = st.StructType([st.StructField("id", st.LongType())])
PARTED = st.StructType([*SCHEMA.fields, st.StructField("part", st.LongType())])


def batch(*ids: int, part: int | None = None) -> pa.RecordBatch:
    columns = {"id": pa.array(ids, pa.int64())}
    if part is not None:
        columns["part"] = pa.array([part] * len(ids), pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def written(store: Remote, *batches: pa.RecordBatch, overwrite: bool = False, **options: Any) -> None:
    """A write of one task for each batch, in this process."""
    schema = PARTED if "part" in batches[0].schema.names else SCHEMA
    writer = StoreWriter(schema, write_options({"path": store.name, **options}), overwrite)
    messages = []
    for number, one in enumerate(batches):
        context = SimpleNamespace(partitionId=lambda number=number: number, taskAttemptId=lambda number=number: number)
        with mock.patch("fastpq.spark.write.write_task.TaskContext", SimpleNamespace(get=lambda context=context: context)):
            messages.append(pickle.loads(pickle.dumps(writer.write(iter([one])))))
    writer.commit(messages)


def listed(store: Remote) -> list[int]:
    """The rows of the files that fastpq.spark lists, which are those of read_dataset."""
    paths = sorted(file.path for file in list_files([store.name]))
    assert paths == sorted(url_of(store.filesystem, file) for file in fastpq.ParquetDataset(store.name).files)
    return sorted(row for path in paths for row in fastpq.read_table(path)["id"].to_pylist())


def test_writes_of_several_tasks(store: Remote) -> None:
    written(store, batch(1, 2), batch(3), batch())
    assert listed(store) == [1, 2, 3]
    written(store, batch(4), batch(5))
    assert listed(store) == [1, 2, 3, 4, 5]
    written(store, batch(6), overwrite=True)
    assert listed(store) == [6]
    assert len(objects(store)) == 1
    assert unfinished(store) == []


def test_partitions_that_are_overwritten(store: Remote) -> None:
    written(store, batch(1, part=1), batch(2, part=2), partitionBy="part")
    with pytest.raises(fastpq.SchemaError, match="partitionOverwriteMode"):
        written(store, batch(3, part=1), overwrite=True, partitionBy="part")
    written(store, batch(3, part=1), overwrite=True, partitionBy="part", partitionOverwriteMode="dynamic")
    assert listed(store) == [2, 3]
    written(store, batch(4, part=1), overwrite=True, partitionBy="part", partitionOverwriteMode="static")
    assert listed(store) == [4]
    assert [file.partition for file in list_files([store.name])] == [(("part", "1"),)]


def test_a_failed_task_and_an_aborted_job_leave_nothing(store: Remote) -> None:
    written(store, batch(1))
    writer = StoreWriter(SCHEMA, write_options({"path": store.name}), True)

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(2)
        raise OSError("bad luck")

    message = writer.write(iter([batch(3)]))
    assert len(unfinished(store)) == store_at(store.filesystem).aborts
    with pytest.raises(OSError, match="bad luck"):
        writer.write(failing())
    writer.abort([message, None])
    assert unfinished(store) == []
    assert listed(store) == [1]
    assert len(objects(store)) == 1


def test_batches_of_a_stream(store: Remote) -> None:
    """Once each, also of a restarted query, whose writer is another one; and batches in the place of all earlier ones."""
    options = write_options({"path": store.name, "checkpointLocation": "here"})
    for number in (0, 1, 1, 0, 2):
        writer = StoreStreamWriter(SCHEMA, options, False)
        writer.commit([writer.write(iter([batch(number)]))], number)
    assert listed(store) == [0, 1, 2]
    writer = StoreStreamWriter(SCHEMA, options, True)
    writer.abort([writer.write(iter([batch(8)]))], 3)
    writer.commit([writer.write(iter([batch(9)]))], 3)
    assert listed(store) == [9]
    assert unfinished(store) == []
    with pytest.raises(fastpq.SchemaError, match="streamId"):
        StoreStreamWriter(SCHEMA, write_options({"path": store.name}), False)


def test_a_driver_that_dies_before_its_record(store: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its objects are complete, and no reader of fastpq sees them; clean removes them."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")     # moto answers 500 for a finished upload: ten seconds of attempts
    written(store, batch(1))
    writer = StoreWriter(SCHEMA, write_options({"path": store.name}), True)
    message = writer.write(iter([batch(7, 8)]))

    def died(*_: Any) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(records, "_put_record", died)
        writer.commit([message])
    assert len(objects(store)) == 2
    assert listed(store) == [1]
    assert writer.job in fastpq.spark.clean(store.name)
    assert len(objects(store)) == 1
    assert listed(store) == [1]
    with pytest.raises(OSError, match=r".+"):        # moto has another error for aborted uploads than S3
        writer.commit([message])
    writer.abort([message])
    written(store, batch(3), overwrite=True)
    assert listed(store) == [3]


@pytest.mark.parametrize("object_store", ["s3"], indirect=True)      # its parts are tested with all stores
def test_a_stream(source: Any, store: Remote, tmp_path: Path) -> None:
    """Each batch once: also when Spark forgets that it was committed, and runs it again before the next one."""
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    folder.mkdir()

    def run() -> None:
        frame = source.readStream.format("fastpq").schema("id long").load(str(folder))
        writer = frame.writeStream.format("fastpq").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(store.name)
        query.awaitTermination()

    fastpq.write_table({"id": [0]}, folder / "0.parquet")
    run()
    assert ids(source, store) == [0]
    for commit in (checkpoint / "commits").glob("*0*"):
        commit.unlink()
    fastpq.write_table({"id": [1]}, folder / "1.parquet")
    run()
    assert {path.name for path in (checkpoint / "commits").glob("[0-9]*")} == {"0", "1"}
    assert ids(source, store) == [0, 1]
    assert unfinished(store) == []


def test_a_stream_from_a_store(store: Remote, tmp_path: Path) -> None:
    """Each file once, the oldest ones first; what no record has committed is not read, and what was removed is an error."""
    reader = StreamReader(SCHEMA, read_options({"path": store.name, "checkpointLocation": str(tmp_path)}))
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start      # no folder yet

    def rows(begin: Any, end: Any) -> list[int]:
        batches = [one for partition in reader.partitions(begin, end) for one in reader.read(partition)]
        return sorted(row for one in batches for row in one["id"].to_pylist())

    written(store, batch(1, 2))
    time.sleep(1.1)     # the store tells seconds
    written(store, batch(3))
    first = reader.latestOffset(start, ReadMaxFiles(1))
    assert rows(start, first) == [1, 2]
    writer = StoreWriter(SCHEMA, write_options({"path": store.name}), False)
    message = writer.write(iter([batch(4)]))
    second = reader.latestOffset(first, ReadAllAvailable())
    assert rows(first, second) == [3]
    writer.commit([message])
    again = StreamReader(SCHEMA, read_options({"path": store.name, "checkpointLocation": str(tmp_path)}))
    third = again.latestOffset(second, ReadAllAvailable())
    assert rows(second, third) == [4]
    assert again.latestOffset(third, ReadAllAvailable()) == third
    written(store, batch(5), overwrite=True)
    with pytest.raises(FileNotFoundError, match="ignoreMissingFiles"):
        again.partitions(second, third)
    with pytest.raises(fastpq.SchemaError, match="checkpointLocation"):
        StreamReader(SCHEMA, read_options({"path": store.name}))


@pytest.mark.parametrize("object_store", ["azure"], indirect=True)
def test_a_stream_between_stores(source: Any, store: Remote, tmp_path: Path) -> None:
    source_of_stream = Remote(store.filesystem, f"{store.path}-in", f"{store.name}-in")
    checkpoint = str(tmp_path)
    for number in range(2):
        written(source_of_stream, batch(number))
        reading = source.readStream.format("fastpq").schema("id long").option("checkpointLocation", checkpoint)
        writer = reading.load(source_of_stream.name).writeStream.format("fastpq").option("checkpointLocation", checkpoint)
        assert writer.trigger(availableNow=True).start(store.name).awaitTermination(120)
        assert ids(source, store) == list(range(number + 1))


def test_other_stores_are_refused(store: Remote) -> None:
    with pytest.raises(fastpq.SchemaError, match="folder of a partition"):
        require_store(f"{store.name}/part=1")
    with pytest.raises(fastpq.UnsupportedError, match="writing to memory:// from Spark"):
        require_store("memory://bucket/set")
    with pytest.raises(fastpq.UnsupportedError, match="a folder in"):
        require_store("/tmp")
