"""``_metadata`` of datasets: written for other readers, read from other writers, and never a reason for other rows."""

from __future__ import annotations

import logging
import os
import pickle
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import fastparquet
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import FormatError, SchemaError, UnsupportedError
from fastpq.datasets import metadata_writing, opened_files
from fastpq.io.file_version import FileVersion
from fastpq.metadata import footer as footers
from fastpq.metadata.file_metadata import FileMetaData

ROWS = 90


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the files whose footers were read."""
    found: list[int] = []
    read = footers.read_footer

    def counted(size: int, *arguments: Any, **options: Any) -> FileMetaData:
        found.append(size)
        return read(size, *arguments, **options)

    monkeypatch.setattr(footers, "read_footer", counted)
    return found


def table_of(rows: int = ROWS, first: int = 0) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": [None if number % 7 == 0 else f"text {number % 11}" for number in numbers],
            "list": [[number, None] for number in numbers],
            "span": pa.array(numbers, pa.duration("ms")),
            "zoned": pa.array(numbers, pa.timestamp("us", "Asia/Tokyo")),
            "bucket": [f"b {number % 3}/%" for number in numbers],
        }
    )


def written(folder: Path, **options: Any) -> Path:
    fastpq.write_dataset(table_of(), folder, partition_by=["bucket"], write_metadata_file=True, row_group_size=8, **options)
    return folder


def answers(folder: Any) -> list[Any]:
    """The answers of a dataset to questions of every kind."""
    dataset = fastpq.ParquetDataset(folder)
    filters = [("id", ">", 40), ("text", "==", "text 3")]
    return [
        dataset.files, dataset.num_rows, dataset.schema, dataset.read().to_arrow(), dataset.read(filters=filters).to_pylist(),
        dataset.count([("bucket", "==", "b 1/%")]), dataset.min_max("id"), dataset.head(5).to_pylist(),
        [batch.to_pylist() for batch in dataset.iter_batches(7)], dataset.explain(filters).bytes_read,
        dataset.read(["text"], filters=[("bucket", "==", "b 2/%"), ("id", "<", 9)]).to_pylist(),
        [batch.metadata for batch in dataset.iter_batches()],
    ]


def answers_without(folder: Path) -> list[Any]:
    """The answers of the dataset while ``_metadata`` is away."""
    hidden = folder / ".away"
    (folder / "_metadata").rename(hidden)
    found = answers(folder)
    hidden.rename(folder / "_metadata")
    return found


def test_one_footer_is_read(tmp_path: Path, opened: list[int]) -> None:
    folder = written(tmp_path)
    truth = answers_without(folder)
    opened.clear()
    dataset = fastpq.ParquetDataset(folder)
    assert dataset.read().num_rows == dataset.num_rows == ROWS
    assert opened == [(folder / "_metadata").stat().st_size]
    assert answers(folder) == truth
    assert len(opened) == 2
    restored = pickle.loads(pickle.dumps(dataset))
    assert restored.read() == dataset.read()


def test_each_file_has_its_own_footer(tmp_path: Path) -> None:
    folder = written(tmp_path)
    dataset = fastpq.ParquetDataset(folder)
    for number, path in enumerate(dataset.files):
        with dataset._open_files.opened(number) as file:
            assert file._source.footer is not None
            assert file.metadata == fastpq.read_metadata(path)


def test_appended_frames(tmp_path: Path, opened: list[int]) -> None:
    """Each file keeps its own description of the DataFrame; an append reads the new footers alone."""
    for rows in (5, 7):
        fastpq.write_dataset(pd.DataFrame({"x": np.arange(rows) * 0.5}), tmp_path, write_metadata_file=True)
    opened.clear()
    fastpq.write_dataset(pd.DataFrame({"x": [0.25]}), tmp_path)
    assert len(opened) == 3         # of a file to compare with, of _metadata, and of the new file
    truth = answers_of_frames(tmp_path)
    assert fastpq.ParquetDataset(tmp_path)._open_files._footers is not None
    (tmp_path / "_metadata").unlink()
    assert answers_of_frames(tmp_path) == truth


def answers_of_frames(folder: Path) -> list[Any]:
    dataset = fastpq.ParquetDataset(folder)
    return [dict(batch.metadata) for batch in dataset.iter_batches()] + [fastpq.read_pandas(folder).to_dict()]


def test_files_without_rows(tmp_path: Path, opened: list[int]) -> None:
    for values in ([], [1, 2], []):
        fastpq.write_dataset({"x": np.array(values, "i8")}, tmp_path, write_metadata_file=True)
    opened.clear()
    assert sorted(fastpq.read_table(tmp_path)["x"]) == [1, 2]
    assert len(opened) == 1


def test_other_readers_take_ours(tmp_path: Path) -> None:
    folder = written(tmp_path)
    truth = sorted(table_of()["id"].to_pylist())
    theirs = ds.parquet_dataset(str(folder / "_metadata"), partitioning="hive")
    assert sorted(theirs.to_table()["id"].to_pylist()) == truth
    assert len(list(theirs.get_fragments(filter=ds.field("bucket") == "b 1/%"))) == 1
    assert sorted(theirs.to_table(filter=ds.field("id") > 80)["id"].to_pylist()) == truth[81:]
    assert theirs.schema.field("zoned").type == pa.timestamp("us", "Asia/Tokyo")
    groups = sum(fastpq.read_metadata(path).num_row_groups for path in folder.glob("*/*.parquet"))
    query = f"SELECT count(DISTINCT row_group_id) FROM parquet_metadata('{folder}/_metadata')"
    assert duckdb.connect().execute(query).fetchone() == (groups,)
    assert pl.scan_parquet(f"{folder}/**/*.parquet").select(pl.len()).collect().item() == ROWS
    schema = pq.read_schema(folder / "_common_metadata")
    assert schema.equals(table_of().drop(["bucket"]).schema)
    assert fastpq.read_table(folder / "_metadata").num_rows == ROWS


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")      # fastparquet leaves files open
def test_fastparquet_takes_ours(tmp_path: Path) -> None:
    fastpq.write_dataset({"id": np.arange(9), "p": np.arange(9) % 2}, tmp_path, partition_by=["p"], write_metadata_file=True)
    frame = fastparquet.ParquetFile(str(tmp_path))
    assert frame.fn.endswith("_metadata")
    assert sorted(frame.to_pandas()["id"]) == [*range(9)]


def by_pyarrow(folder: Path) -> None:
    collected: list[Any] = []
    table = table_of().drop(["list"])
    pq.write_to_dataset(table, folder, partition_cols=["bucket"], metadata_collector=collected)
    time.sleep(0.03)
    pq.write_metadata(pq.read_schema(next(folder.glob("*/*.parquet"))), folder / "_metadata", collected)


def by_fastparquet(folder: Path) -> None:
    frame = table_of().select(["id", "text"]).to_pandas()
    fastparquet.write(str(folder), frame, file_scheme="hive", row_group_offsets=20)


OTHERS: dict[str, Callable[[Path], None]] = {"pyarrow": by_pyarrow, "fastparquet": by_fastparquet}


@pytest.mark.parametrize("writer", OTHERS)
def test_those_of_others_are_read(tmp_path: Path, opened: list[int], writer: str) -> None:
    OTHERS[writer](tmp_path)
    time.sleep(0.03)
    (tmp_path / "_metadata").write_bytes((tmp_path / "_metadata").read_bytes())
    truth = fastpq.read_table(sorted(tmp_path.glob("**/*.parquet"))).to_arrow()
    opened.clear()
    assert fastpq.read_table(tmp_path).to_arrow().select(truth.column_names).equals(truth)
    assert len(opened) == 2         # of _metadata, and of the first file, which must agree


def overwrite(path: Path, first: int) -> None:
    """A file of other values in the place of a file, in as many bytes where the values allow it."""
    rows = pq.ParquetFile(path).read()
    rows = rows.set_column(0, "id", pa.array(range(first, first + len(rows)), pa.int64()))
    if b"fastpq" in path.read_bytes():
        fastpq.write_table(rows, path, row_group_size=8)
    else:
        pq.write_table(rows, path)


def rewritten_in_the_same_size(folder: Path) -> None:
    path = sorted(folder.glob("*/*.parquet"))[1]
    size, about = path.stat().st_size, path.stat()
    for first in range(1000, 1400):
        overwrite(path, first)
        if path.stat().st_size == size:
            break
    assert path.stat().st_size == size
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def swapped(folder: Path) -> None:
    one, other, _ = sorted(folder.glob("*/*.parquet"))
    away = folder / ".away"
    for source, target in ((one, away), (other, one), (away, other)):
        source.rename(target)


def copied_older(folder: Path) -> None:
    """An older state of _metadata comes back, with its time."""
    kept = folder / ".kept"
    shutil.copy2(folder / "_metadata", kept)
    overwrite(sorted(folder.glob("*/*.parquet"))[0], 5000)
    time.sleep(0.03)
    shutil.copy2(kept, folder / "_metadata")


CHANGES: dict[str, Callable[[Path], Any]] = {
    "a file more": lambda folder: shutil.copy(sorted(folder.glob("*/*.parquet"))[0], folder / "bucket=x" / "more"),
    "a file less": lambda folder: sorted(folder.glob("*/*.parquet"))[0].unlink(),
    "another file": lambda folder: overwrite(sorted(folder.glob("*/*.parquet"))[2], 7000),
    "another file of the same size and time": rewritten_in_the_same_size,
    "files swapped": swapped,
    "an older _metadata": copied_older,
    "a copy of the folder": lambda folder: None,
    "a touched file": lambda folder: os.utime(sorted(folder.glob("*/*.parquet"))[0]),
    "an empty _metadata": lambda folder: (folder / "_metadata").write_bytes(b""),
    "a _metadata of text": lambda folder: (folder / "_metadata").write_text("no footer at all"),
    "the _metadata of a file": lambda folder: shutil.copy(sorted(folder.glob("*/*.parquet"))[0], folder / "_metadata"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("of_others", [False, True], ids=["ours", "theirs"])
def test_a_changed_dataset_reads_its_files(tmp_path: Path, change: str, of_others: bool) -> None:
    folder = tmp_path / "set"
    if of_others:
        by_pyarrow(folder)
    else:
        written(folder)
    (folder / "bucket=x").mkdir()
    assert fastpq.read_table(folder).num_rows == ROWS
    CHANGES[change](folder)
    if change == "a copy of the folder":
        shutil.copytree(folder, tmp_path / "copy")
        folder = tmp_path / "copy"
    assert answers(folder) == answers_without(folder)


def test_a_file_replaced_while_the_dataset_is_open(tmp_path: Path) -> None:
    folder = written(tmp_path)
    dataset = fastpq.ParquetDataset(folder)
    path = sorted(folder.glob("*/*.parquet"))[1]
    overwrite(path, 9000)
    assert dataset.read(["id"], filters=[("id", ">=", 9000)]).num_rows == 30


def test_broken_bytes_change_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Any byte of _metadata may be another one: the answers stay those of the files."""
    folder = written(tmp_path)
    path, truth = folder / "_metadata", answers(folder)
    stored = path.read_bytes()
    chance = random.Random(7)
    places = {0, 4, len(stored) - 1, len(stored) - 6, *(chance.randrange(len(stored)) for _ in range(120))}
    with caplog.at_level(logging.WARNING, "fastpq.datasets"):
        for place in sorted(places):
            damaged = bytearray(stored)
            damaged[place] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
            assert answers(folder) == truth, place
        for length in (0, 3, 8, 100, len(stored) // 2, len(stored) - 1):
            path.write_bytes(stored[:length])
            assert answers(folder) == truth
    assert "is ignored, and the footers of all files are read" in caplog.text


def test_options_that_pass_it_over(tmp_path: Path, opened: list[int]) -> None:
    folder = written(tmp_path)
    files = sorted(map(str, folder.glob("*/*.parquet")))
    for where, options in (
        (folder, {"on_error": "null"}), (files, {}), (f"{folder}/*/*.parquet", {}),
        (folder, {"decryption_properties": fastpq.FileDecryptionProperties(b"0123456789012345", allow_plaintext_files=True)}),
    ):
        opened.clear()
        assert fastpq.ParquetDataset(where, **options)._open_files._footers is None
        assert (folder / "_metadata").stat().st_size not in opened


SECRET = b"0123456789012345"


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_encrypted_files_are_refused(tmp_path: Path, plaintext_footer: bool) -> None:
    keys = fastpq.FileEncryptionProperties(
        SECRET, column_keys={"secret": SECRET[::-1]}, plaintext_footer=plaintext_footer, unlisted="plaintext"
    )
    data = {"open": [1, 2], "secret": ["a hidden value", "another hidden value"]}
    with pytest.raises(UnsupportedError, match="statistics of encrypted files"):
        fastpq.write_dataset(data, tmp_path, encryption_properties=keys, write_metadata_file=True)
    assert not list(tmp_path.iterdir())
    fastpq.write_dataset(data, tmp_path, encryption_properties=keys)
    with pytest.raises(UnsupportedError, match="the file is encrypted, and _metadata would have its statistics in plaintext"):
        fastpq.write_dataset_metadata(tmp_path)
    assert not (tmp_path / "_metadata").exists()
    assert not any(b"hidden" in path.read_bytes() for path in tmp_path.iterdir())


def test_encrypted_files_beside_plaintext_ones(tmp_path: Path) -> None:
    """_metadata of plaintext files goes when encrypted files come, and keys pass it over."""
    data = {"x": [1, 2], "text": ["a", "b"]}
    fastpq.write_dataset(data, tmp_path, write_metadata_file=True)
    fastpq.write_dataset(data, tmp_path, encryption_properties=fastpq.FileEncryptionProperties(SECRET))
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("_")]


def test_different_schemas(tmp_path: Path) -> None:
    fastpq.write_dataset({"a": [1], "x": np.array([1, 2])[:1]}, tmp_path, write_metadata_file=True)
    fastpq.write_dataset({"a": [2], "x": [None]}, tmp_path, schema={"a": "int64", "x": "int64"})
    assert not (tmp_path / "_metadata").exists()
    assert not (tmp_path / "_common_metadata").exists()
    with pytest.raises(SchemaError, match=r"nullability.*column x"):
        fastpq.write_dataset_metadata(tmp_path)
    zones = tmp_path / "zones"
    for zone in ("UTC", "Asia/Tokyo"):
        fastpq.write_dataset(pa.table({"t": pa.array([0], pa.timestamp("us", zone))}), zones)
    with pytest.raises(SchemaError, match="Arrow types"):
        fastpq.write_dataset_metadata(zones)


def test_written_kept_and_removed(tmp_path: Path) -> None:
    both = {"_metadata", "_common_metadata"}

    def there() -> set[str]:
        return {path.name for path in tmp_path.iterdir() if path.name.startswith("_")}

    fastpq.write_dataset({"x": [1]}, tmp_path)
    assert there() == set()
    assert fastpq.write_dataset_metadata(tmp_path) == [str(tmp_path / "_metadata"), str(tmp_path / "_common_metadata")]
    assert there() == both
    fastpq.write_dataset({"x": [2]}, tmp_path)
    assert there() == both
    assert pq.read_metadata(tmp_path / "_metadata").num_rows == 2
    (tmp_path / "_metadata").write_bytes(b"broken")
    fastpq.write_dataset({"x": [3]}, tmp_path)
    assert pq.read_metadata(tmp_path / "_metadata").num_rows == 3
    fastpq.write_dataset({"x": [4]}, tmp_path, write_metadata_file=False)
    assert there() == set()
    stream = tmp_path / "stream"
    for number in range(3):
        fastpq.write_dataset(iter([{"x": [number]}]), stream, write_metadata_file=number == 0 or None)
    assert pq.read_metadata(stream / "_metadata").num_rows == 3


def test_a_failure_after_the_files_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows are written: an error would make callers write them again."""
    fastpq.write_dataset({"x": [1]}, tmp_path, write_metadata_file=True)

    def fail(*_: Any) -> None:
        raise ConnectionError("the store is gone")

    monkeypatch.setattr(metadata_writing, "_write_footer", fail)
    assert len(fastpq.write_dataset({"x": [2]}, tmp_path)) == 1
    assert "_metadata of a dataset may be out of date: the store is gone" in caplog.text
    assert sorted(fastpq.read_table(tmp_path)["x"]) == [1, 2]
    with pytest.raises(ConnectionError):
        fastpq.write_dataset({"x": [3]}, tmp_path, write_metadata_file=True)


def test_refused_places(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="belongs to a directory"):
        fastpq.write_dataset_metadata(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        fastpq.write_dataset_metadata(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"no file of Parquet")
    with pytest.raises(FormatError, match=r"a\.parquet"):
        fastpq.write_dataset_metadata(tmp_path)


@pytest.fixture
def memory() -> Iterator[Any]:
    filesystem = fsspec.filesystem("memory")
    yield filesystem
    for name in ("known",):
        if filesystem.exists(f"/{name}"):
            filesystem.rm(f"/{name}", recursive=True)


def test_remote_datasets(memory: Any, opened: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    fastpq.write_dataset(table_of(), "memory://known", partition_by=["bucket"], write_metadata_file=True)
    truth = fastpq.read_table("memory://known/**/*.parquet").to_arrow()
    opened.clear()
    reads: list[str] = []
    cat_file = type(memory).cat_file

    def counted(self: Any, path: str, *rest: Any, **more: Any) -> Any:
        reads.append(path)
        return cat_file(self, path, *rest, **more)

    monkeypatch.setattr(type(memory), "cat_file", counted)
    dataset = fastpq.ParquetDataset("memory://known")
    assert reads == ["/known/_metadata"]
    assert dataset.read().to_arrow().equals(truth)
    assert len(opened) == 1
    assert dataset.read(["id"], filters=[("id", "==", 4)]).num_rows == 1
    assert len(opened) == 1
    monkeypatch.setattr(opened_files, "KEPT_SECONDS", 0.0)
    assert dataset.read().to_arrow().equals(truth)
    assert len(opened) == 4
    first = dataset.files[0]
    other = fastpq.read_table(f"memory://{first}").to_arrow()
    fastpq.write_table(other.slice(1), f"memory://{first}")
    assert fastpq.read_table("memory://known").num_rows == ROWS - 1
    fastpq.write_dataset(table_of(3, 500), "memory://known", partition_by=["bucket"])
    assert fastpq.read_table("memory://known/_metadata").num_rows == ROWS + 2
    fastpq.write_dataset(table_of(3, 600), "memory://known", partition_by=["bucket"], write_metadata_file=False)
    assert not memory.exists("/known/_metadata")


def test_file_versions() -> None:
    made = FileVersion(1, 100)
    assert FileVersion(5, 50).proves(FileVersion(5, 50), made)
    for now, recorded in (
        ((6, 50), (5, 50)), ((5, 51), (5, 50)), ((5, 100), (5, 100)), ((None, 50), (None, 50)), ((5, None), (5, None)),
        ((5, 50, "b"), (5, 50, "a")), ((5, 50), (5, 50, "a")), ((5, 50, "a"), (5, 50)), ((5, 50, None, 100), (5, 50)),
    ):
        assert not FileVersion(*now).proves(FileVersion(*recorded), made)
    assert FileVersion(5, 500, "a").proves(FileVersion(5, 400, "a"), made)
    about = {"size": 3, "LastModified": "2024-01-01T00:00:01+00:00", "ETag": "x"}
    assert FileVersion.from_information(about) == FileVersion(3, 1_704_067_201 * 10**9, "x")
    assert FileVersion.from_information({"size": 3, "mtime": 1.5}) == FileVersion(3, 1_500_000_000)
    assert FileVersion.from_information({"name": "x"}) == FileVersion(None, None)
