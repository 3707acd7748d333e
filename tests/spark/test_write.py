"""Writing datasets: every type, partitions, modes, and what failing tasks and drivers leave."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
import fastpq.spark
from fastpq.spark.tables import journal
from tests.spark.test_read import EVERY_TYPE


def files_in(path: Path) -> list[str]:
    return sorted(os.path.relpath(file, path) for file in path.rglob("*") if file.is_file())


def write(frame: Any, path: Path, mode: str = "append", **options: Any) -> None:
    frame.write.format("fastpq").mode(mode).options(**options).save(str(path))


def ids(spark: Any, path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.format("fastpq").load(str(path)).collect())


def test_every_type_of_spark(source: Any, tmp_path: Path) -> None:
    frame = source.sql(f"select {EVERY_TYPE}, interval 1 second * id as span, time '01:02:03.000004' as clock from range(50)")
    write(frame, tmp_path / "t", compression="zstd", rowGroupSize=20)
    native = source.read.parquet(str(tmp_path / "t"))
    assert native.dtypes == frame.dtypes
    assert sorted(map(repr, native.collect())) == sorted(map(repr, frame.collect()))
    shown = fastpq.spark.read(source, str(tmp_path / "t"), schema=native.schema)
    assert sorted(map(repr, shown.collect())) == sorted(map(repr, frame.collect()))
    assert files_in(tmp_path / "t") == [name for name in files_in(tmp_path / "t") if name.startswith("part-")]
    chunk = pq.ParquetFile(tmp_path / "t" / files_in(tmp_path / "t")[0]).metadata.row_group(0).column(0)
    assert chunk.compression == "ZSTD"


def test_refused_before_a_task_starts(source: Any, tmp_path: Path) -> None:
    for frame, options, message in (
        (source.sql("select 1 as a, interval '1' month as b"), {}, "column b"),
        (source.sql("select 1 as a"), {"partitionBy": "c"}, "partitionBy names columns"),
        (source.sql("select 1 as a"), {"partitionBy": "a"}, "files need one"),
        (source.sql("select 1 as a"), {"compresion": "zstd"}, "there is no option 'compresion'"),
    ):
        with pytest.raises(Exception, match=message):
            write(frame, tmp_path / "t", **options)
    assert files_in(tmp_path) == []


def test_partitions_and_modes(source: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    frame = source.range(100, numPartitions=3).selectExpr(
        "id", "id % 3 as k", "if(id % 4 = 0, null, concat('a=/%', id % 4)) as s"
    )
    write(frame, table, partitionBy="k,s", maxOpenFiles=2)
    native = source.read.parquet(str(table))
    assert sorted(native.select("id", "k", "s").collect()) == sorted(frame.select("id", "k", "s").collect())
    assert ids(source, table) == list(range(100))
    write(frame.where("id < 10"), table, partitionBy="k,s")
    assert len(ids(source, table)) == 110
    write(frame.where("id = 1"), table, "overwrite", partitionBy="k,s", partitionOverwriteMode="dynamic")
    assert len(ids(source, table)) == 110 - sum(number % 3 == 1 and number % 4 == 1 for number in [*range(100), *range(10)]) + 1
    write(frame.where("id = 1"), table, "overwrite", partitionBy="k,s", partitionOverwriteMode="static")
    assert ids(source, table) == [1]
    write(source.range(0), tmp_path / "empty")
    assert source.read.parquet(str(tmp_path / "empty")).collect() == []
    assert fastpq.spark.clean(str(table)) == []


def test_a_task_that_fails(source: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(source.range(10), table)
    before = files_in(table)

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if 15 in batch["id"].to_pylist():
                raise OSError(28, "No space left on device")

    broken = source.range(10, 20, numPartitions=2).mapInArrow(fail, "id long")
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match="No space left"):
            write(broken, table, mode)
        assert files_in(table) == before
        assert ids(source, table) == list(range(10))


@pytest.mark.parametrize("step", range(4))
def test_a_driver_killed_in_its_commit(source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """The commit stops before, and after each rename; fastpq reads old or new, and cleaning makes it so for all."""
    table = tmp_path / "t"
    write(source.range(10, numPartitions=2), table)
    old = files_in(table)
    folder = table / journal.TEMPORARY / "job"
    folder.mkdir(parents=True)
    moves = {}
    for number in range(2):
        fastpq.write_table({"id": [100 + number]}, folder / f"{number}.parquet")
        moves[f"{journal.TEMPORARY}/job/{number}.parquet"] = f"new-{number}.parquet"
    calls = 0

    def dying(work: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def do(one: Any, other: Any) -> None:
            nonlocal calls
            if calls == step:
                raise KeyboardInterrupt
            calls += 1
            work(one, other)

        return do

    monkeypatch.setattr(journal, "replace_json", dying(journal.replace_json))
    monkeypatch.setattr(os, "replace", dying(os.replace))
    if step < 3:
        with pytest.raises(KeyboardInterrupt):
            journal.commit(str(table), "job", moves, old)
    else:
        journal.commit(str(table), "job", moves, old)
    monkeypatch.undo()
    expected = list(range(10)) if step == 0 else [100, 101]
    assert ids(source, table) == expected
    fastpq.spark.clean(str(table))
    assert ids(source, table) == expected
    assert sorted(row.id for row in source.read.parquet(str(table)).collect()) == expected
    assert all(name.endswith(".parquet") and journal.TEMPORARY not in name for name in files_in(table))


def test_orphans_are_cleaned_by_the_next_job(source: Any, tmp_path: Path) -> None:
    orphan = tmp_path / "t" / journal.TEMPORARY / "dead" / "task-0-0"
    orphan.mkdir(parents=True)
    (orphan / "part.parquet").write_bytes(b"torn")
    write(source.range(3), tmp_path / "t")
    assert orphan.exists()      # it might be at work still
    write(source.range(3), tmp_path / "t", orphanSeconds=0)
    assert not (tmp_path / "t" / journal.TEMPORARY).exists()
    assert ids(source, tmp_path / "t") == [0, 0, 1, 1, 2, 2]


def test_spark_finds_its_own_types_in_the_footer(source: Any, tmp_path: Path) -> None:
    write(source.range(1).selectExpr("id", "'a' as s"), tmp_path / "t", keyValueMetadata=json.dumps({"who": "us"}))
    metadata = pq.read_metadata(next((tmp_path / "t").glob("*.parquet"))).metadata
    assert metadata[b"who"] == b"us"
    assert json.loads(metadata[b"org.apache.spark.sql.parquet.row.metadata"])["fields"][1]["name"] == "s"


@pytest.mark.parametrize("partitioned", [False, True])
def test_one_of_two_overwrites_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitioned: bool) -> None:
    """Both jobs list the present files before either commits, unless the one waits for the other."""
    from pyspark.sql import types as st

    from fastpq.spark.options import write_options
    from fastpq.spark.write import folder_writer as writer

    root = tmp_path / "t"
    root.mkdir()
    list_files = writer.files_of

    def slowly(*arguments: Any) -> list[str]:
        found = list_files(*arguments)
        time.sleep(0.3)
        return found

    monkeypatch.setattr(writer, "files_of", slowly)
    schema = st.StructType([st.StructField("id", st.LongType()), st.StructField("k", st.StringType())])
    options = {"path": str(root)} | ({"partitionBy": "k", "partitionOverwriteMode": "dynamic"} if partitioned else {})

    def overwrite(number: int) -> None:
        job = writer.Writer(schema, write_options(options), overwrite=True)
        job.commit([job.write(iter([pa.record_batch({"id": [number] * 3, "k": ["a"] * 3})]))])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(overwrite, range(4)))
    found = fastpq.read_dataset(root)["id"].to_pylist()
    assert len(found) == 3
    assert len(set(found)) == 1
    assert journal.LOCK not in os.listdir(root)


def test_folders_of_jobs_while_others_end(tmp_path: Path) -> None:
    """The folder of all jobs vanishes whenever the last job ends."""
    def work(_: int) -> None:
        for number in range(200):
            job = f"{threading.get_ident()}-{number}"
            assert os.path.isdir(journal.make_job_folder(str(tmp_path), job))
            journal.abandon(str(tmp_path), job)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))


def test_locks_that_were_tampered_with(tmp_path: Path) -> None:
    """A removed lock is no error, a new holder's lock stays, and a link in its place is not followed."""
    lock = tmp_path / journal.LOCK
    with journal.one_overwrite(str(tmp_path)):
        lock.unlink()
        lock.touch()
    assert lock.exists()
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), journal.one_overwrite(str(tmp_path)):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_the_lock_of_overwrites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock of a dead process is free; a lock that is held ends in an error."""
    (tmp_path / journal.LOCK).touch()
    with journal.one_overwrite(str(tmp_path)):
        monkeypatch.setattr(journal, "LOCK_SECONDS", 0.1)
        with pytest.raises(TimeoutError, match="another job"), journal.one_overwrite(str(tmp_path)):
            pass
    assert os.listdir(tmp_path) == []
