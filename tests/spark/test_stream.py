"""Streams that read and write each file and batch once."""

from __future__ import annotations

import base64
import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import types as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles

import fastpq
import fastpq.spark
from fastpq.spark.options import ReadOptions, WriteOptions
from fastpq.spark.scan.file_scan import ScanPartition
from fastpq.spark.streams.file_streams import StreamReader, StreamWriter
from fastpq.spark.streams.stream_log import KEPT_BATCHES, StreamLog
from fastpq.spark.tables import journal
from fastpq.spark.write.write_task import Written


def test_stream(source: Any, tmp_path: Path) -> None:
    """A query that restarts reads what is new alone, and the file whose time is old all the same."""
    (tmp_path / "in").mkdir()
    fastpq.write_table({"id": np.arange(5)}, tmp_path / "in" / "b.parquet")
    for expected in (5, 8, 8):
        stream = source.readStream.format("fastpq").schema("id bigint").load(str(tmp_path / "in"))
        started = stream.writeStream.format("fastpq").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = started.trigger(availableNow=True).start(str(tmp_path / "out"))
        assert query.awaitTermination(120)
        assert source.read.format("fastpq").load(str(tmp_path / "out")).count() == expected
        if expected == 5:
            fastpq.write_table({"id": np.arange(3)}, tmp_path / "in" / "a.parquet")
    assert not (tmp_path / "out" / journal.TEMPORARY).exists()


def test_a_batch_that_is_tried_again(source: Any, tmp_path: Path) -> None:
    schema = source.range(0).schema
    for batch, expected in ((0, 1), (0, 1), (1, 2), (0, 2), (1, 2)):
        writer = StreamWriter(schema, WriteOptions(str(tmp_path), stream_id="s"), False)
        place = tmp_path / journal.TEMPORARY / writer.job / "task" / "x.parquet"
        place.parent.mkdir(parents=True)
        fastpq.write_table({"id": [batch]}, place)
        writer.commit([Written(writer.job, {str(place.relative_to(tmp_path)): f"{writer.job}.parquet"}), None], batch)
        assert len(list(tmp_path.rglob("*.parquet"))) == expected
    with pytest.raises(fastpq.SchemaError, match="checkpointLocation"):
        StreamWriter(schema, WriteOptions(str(tmp_path)), False)


IDS = st.StructType([st.StructField("id", st.LongType())])


def old_offset(paths: list[str]) -> dict[str, str]:
    """An offset as earlier versions wrote it."""
    return {"files": base64.b64encode(zlib.compress("\n".join(sorted(paths)).encode())).decode()}


def reader_of(folder: Path, **options: Any) -> StreamReader:
    return StreamReader(IDS, ReadOptions((str(folder),), **options))


def names_between(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    parts = [part for part in reader.partitions(start, end) if isinstance(part, ScanPartition)]
    return sorted(os.path.basename(split.file.path) for part in parts for split in part.splits)


def test_offsets_stay_small(tmp_path: Path) -> None:
    """10,000 files in 100 batches, each by a restarted query: every offset is small, and a batch has its own files."""
    start, batches = StreamLog.empty(), []
    for batch in range(100):
        seen = StreamLog(str(tmp_path))
        paths = {f"/a/folder/of/files/part-{batch:05}-{number:05}.parquet" for number in range(100)}
        end = json.loads(json.dumps(seen.added(start, paths)))
        assert StreamLog(str(tmp_path)).between(start, end) == paths
        assert len(json.dumps(end)) < 500
        start = end
        batches.append(end)
    assert len(StreamLog(str(tmp_path)).paths(start)) == 10_000
    assert len(StreamLog(str(tmp_path)).between(batches[10], batches[90])) == 8_000


def test_the_log_of_files_stays_small(tmp_path: Path) -> None:
    """Segments that no offset of the last batches names are removed, and Spark may go back to any of these batches."""
    seen, offsets = StreamLog(str(tmp_path)), [StreamLog.empty()]
    for batch in range(3 * KEPT_BATCHES):
        offsets.append(seen.added(offsets[-1], [f"/{batch}"]))
        if batch == 2 * KEPT_BATCHES:
            seen = StreamLog(str(tmp_path))
        seen.forget(offsets[-1])
    assert len(list(tmp_path.rglob("*-*-*"))) < KEPT_BATCHES + 20
    for number in range(2 * KEPT_BATCHES + 1, 3 * KEPT_BATCHES):
        back = StreamLog(str(tmp_path))
        assert len(back.paths(offsets[number])) == number
        assert back.between(offsets[number], offsets[number + 1]) == {f"/{number}"}


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxFiles(2)])
def test_each_file_once(tmp_path: Path, limit: ReadLimit) -> None:
    """Late files, whose times are old, are read, and files rewritten under their names are not; also by restarted queries."""
    read: list[str] = []
    offset = reader_of(tmp_path / "in").initialOffset()
    assert reader_of(tmp_path / "in").latestOffset(offset, limit) == offset
    (tmp_path / "in").mkdir()
    for batch in range(12):
        if batch < 8:
            for number in range(3):
                fastpq.write_table({"id": [batch]}, tmp_path / "in" / f"{batch}-{number}.parquet")
                os.utime(tmp_path / "in" / f"{batch}-{number}.parquet", (1000 - batch, 1000 - batch))
            fastpq.write_table({"id": [-1, -1]}, tmp_path / "in" / "0-0.parquet")
        reader = reader_of(tmp_path / "in")
        end = json.loads(json.dumps(reader.latestOffset(offset, limit)))
        names = names_between(reader_of(tmp_path / "in"), offset, end)
        assert names == names_between(reader, offset, end)      # the same batch, tried again
        reader.commit(end)
        read, offset = read + names, end
    assert sorted(read) == [f"{batch}-{number}.parquet" for batch in range(8) for number in range(3)]


def test_what_is_available_now(source: Any, tmp_path: Path) -> None:
    """Batches of ``maxFilesPerTrigger`` files, up to the files that were there at the start."""
    (tmp_path / "in").mkdir()
    for number in range(3):
        fastpq.write_table({"id": [number]}, tmp_path / "in" / f"{number}.parquet")
    reader = reader_of(tmp_path / "in", max_files_per_trigger=2)
    reader.prepareForTriggerAvailableNow()
    fastpq.write_table({"id": [3]}, tmp_path / "in" / "3.parquet")
    found, start = [], reader.initialOffset()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        found.append(names_between(reader, start, end))
        start = end
    assert list(map(len, found)) == [2, 1]
    assert sorted(name for names in found for name in names) == ["0.parquet", "1.parquet", "2.parquet"]
    stream = source.readStream.format("fastpq").schema("id bigint").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
    started = stream.writeStream.format("fastpq").option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert started.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination(120)
    assert {path.name for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")} == {"0", "1", "2", "3"}
    assert source.read.format("fastpq").load(str(tmp_path / "out")).count() == 4


def test_offsets_of_earlier_versions(tmp_path: Path) -> None:
    for name in "abc":
        fastpq.write_table({"id": [1]}, tmp_path / f"{name}.parquet")
    start, middle = old_offset([]), old_offset([str(tmp_path / "a.parquet")])
    both = old_offset([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
    reader = reader_of(tmp_path)
    assert names_between(reader, start, middle) == ["a.parquet"]
    assert names_between(reader, middle, both) == ["b.parquet"]
    reader.commit(both)
    everything = old_offset([str(path) for path in tmp_path.glob("*.parquet")])
    assert reader.latestOffset(everything, ReadAllAvailable()) == everything
    end = reader.latestOffset(both, ReadAllAvailable())
    assert names_between(reader_of(tmp_path), both, end) == ["c.parquet"]
    assert reader_of(tmp_path).latestOffset(end, ReadAllAvailable()) == end


def test_the_place_of_the_log(tmp_path: Path) -> None:
    data, checkpoint = tmp_path / "data", tmp_path / "checkpoint"
    data.mkdir()
    fastpq.write_table({"id": [1]}, data / "a.parquet")
    reader = reader_of(data, stream_log=str(checkpoint))
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert sorted(path.name for path in data.iterdir()) == ["a.parquet"]
    with pytest.raises(fastpq.FormatError, match=r"missing: paths or checkpointLocation .* changed"):
        reader_of(data).latestOffset(end, ReadAllAvailable())
    (segment,) = (path for path in checkpoint.rglob("*") if path.is_file())
    segment.write_bytes(segment.read_bytes()[:-5])
    with pytest.raises(fastpq.FormatError, match="damaged"):
        reader_of(data, stream_log=str(checkpoint)).latestOffset(end, ReadAllAvailable())


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fastpq.write_table({"id": [1]}, tmp_path / "a.parquet")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    reader = reader_of(tmp_path)
    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.raises(fastpq.SchemaError, match=r"Permission denied.*set the option checkpointLocation"):
        reader.latestOffset(reader.initialOffset(), ReadAllAvailable())


def test_every_batch_by_a_new_process(tmp_path: Path) -> None:
    """Of the segments to be looked at, the replaced ones are looked at, and removed, before their successors."""
    offset = StreamLog.empty()
    for batch in range(KEPT_BATCHES + 60):
        offset = StreamLog(str(tmp_path)).added(offset, {f"/in/{batch}.parquet"})
        StreamLog(str(tmp_path)).forget(offset)
        assert len(StreamLog(str(tmp_path)).paths(offset)) == batch + 1


@pytest.mark.parametrize("glob", [False, True])
def test_a_stream_before_its_folder(tmp_path: Path, glob: bool) -> None:
    """The log stays where it began when the folder comes."""
    folder = tmp_path / "in"
    watched = folder / "*.parquet" if glob else folder
    first = reader_of(watched)
    start = first.initialOffset()
    assert first.latestOffset(start, ReadAllAvailable()) == start
    folder.mkdir()
    fastpq.write_table({"id": [1]}, folder / "a.parquet")
    middle = first.latestOffset(start, ReadAllAvailable())
    fastpq.write_table({"id": [2]}, folder / "b.parquet")
    second = reader_of(watched)
    end = second.latestOffset(middle, ReadAllAvailable())
    assert names_between(second, middle, end) == ["b.parquet"]


@pytest.mark.parametrize("times", [1, 1000])
def test_files_that_go_away_during_a_listing(tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a batch are never taken for gone because another file went away."""
    for name in "abc":
        fastpq.write_table({"id": [1]}, tmp_path / f"{name}.parquet")
    reader = reader_of(tmp_path, ignore_missing_files=True)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    size, vanished = os.path.getsize, iter(range(times))

    def vanishing(path: Any) -> int:
        if str(path).endswith("b.parquet") and next(vanished, None) is not None:
            raise FileNotFoundError(path)
        return size(path)

    monkeypatch.setattr(os.path, "getsize", vanishing)
    if times == 1:
        assert names_between(reader, start, end) == ["a.parquet", "b.parquet", "c.parquet"]
    else:
        with pytest.raises(FileNotFoundError, match="go away"):
            reader.partitions(start, end)


def test_one_of_two_folders_is_missing(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    fastpq.write_table({"id": [1]}, tmp_path / "one" / "a.parquet")
    reader = StreamReader(IDS, ReadOptions((str(tmp_path / "one"), str(tmp_path / "two"))))
    start = reader.initialOffset()
    assert names_between(reader, start, reader.latestOffset(start, ReadAllAvailable())) == ["a.parquet"]


def test_a_first_batch_of_an_earlier_version(tmp_path: Path) -> None:
    fastpq.write_table({"id": [1]}, tmp_path / "a.parquet")
    reader = reader_of(tmp_path)
    assert names_between(reader, reader.initialOffset(), old_offset([str(tmp_path / "a.parquet")])) == ["a.parquet"]
