"""write_dataset of streams: bounded memory, most rows of a file, files that stay; and the first matching rows of a dataset."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.datasets import open_writers, partitioning

ROWS = 10_000


def batches(rows: int = ROWS, size: int = 700) -> Iterator[dict[str, Any]]:
    for start in range(0, rows, size):
        number = np.arange(start, min(start + size, rows))
        yield {"id": number, "text": [f"text {one}" for one in number], "part": number % 3}


def whole(rows: int = ROWS) -> pa.Table:
    number = np.arange(rows)
    return pa.table({"id": number, "text": [f"text {one}" for one in number], "part": number % 3})


STREAMS: dict[str, Callable[[Path], Any]] = {
    "generator": lambda folder: batches(),
    "frames": lambda folder: (pd.DataFrame(batch) for batch in batches()),
    "arrow": lambda folder: pa.RecordBatchReader.from_batches(whole().schema, whole().to_batches(max_chunksize=700)),
    "file": lambda folder: fastpq.ParquetFile(folder / "whole"),
    "dataset": lambda folder: fastpq.ParquetDataset(folder / "whole"),
    "tables": lambda folder: fastpq.ParquetFile(folder / "whole").iter_batches(700),
    "table": lambda folder: whole(),
}


@pytest.mark.parametrize("max_rows", [None, 999])
@pytest.mark.parametrize("partition_by", [[], ["part"]])
@pytest.mark.parametrize("name", STREAMS)
def test_same_rows(name: str, partition_by: list[str], max_rows: int | None, tmp_path: Path) -> None:
    pq.write_table(whole(), tmp_path / "whole")
    root = tmp_path / "root"
    told: list[tuple[int, int]] = []
    written = fastpq.write_dataset(
        STREAMS[name](tmp_path), root, partition_by=partition_by, max_rows_per_file=max_rows, compression=None,
        progress=lambda *now: told.append(now),
    )
    assert told[-1] == (ROWS, ROWS)
    assert sorted(written) == sorted(str(path) for path in root.rglob("*") if path.is_file())
    partitions = 3 if partition_by else 1
    assert len(written) == partitions * (1 if max_rows is None else -(-(ROWS // partitions) // max_rows))
    assert max_rows is None or max(pq.read_metadata(path).num_rows for path in written) == max_rows
    theirs = ds.dataset(root, format="parquet", partitioning="hive").to_table().select(["id", "text", "part"]).sort_by("id")
    assert theirs.column("id").to_pylist() == list(range(ROWS))
    assert theirs.column("text").to_pylist() == whole().column("text").to_pylist()
    assert theirs.column("part").to_pylist() == whole().column("part").to_pylist()
    polars = pl.scan_parquet(root / "**" / "*.parquet", hive_partitioning=bool(partition_by)).sort("id").collect()
    assert polars["text"].to_list() == whole().column("text").to_pylist()
    again = fastpq.write_dataset(STREAMS[name](tmp_path), root, partition_by=partition_by)
    assert not set(again) & set(written)
    assert fastpq.ParquetDataset(root).num_rows == 2 * ROWS


def test_one_type_in_all_files(tmp_path: Path) -> None:
    data = [
        {"x": np.array([None, None], object), "part": [0, 1]},
        {"x": np.array([1.5]), "part": [1]},
        {"x": np.array([2, 3], np.int32), "part": [0, 2]},
    ]
    written = fastpq.write_dataset(iter(data), tmp_path, partition_by=["part"])
    assert {str(pq.read_schema(path).field("x").type) for path in written} == {"double"}
    read = pd.read_parquet(tmp_path).sort_values(["part", "x"])
    assert read["x"].fillna(-1).tolist() == [2.0, -1.0, 1.5, -1.0, 3.0] or read["x"].dropna().tolist() == [2.0, 1.5, 3.0]
    with pytest.raises(fastpq.SchemaError):
        fastpq.write_dataset(iter([{"x": [1]}, {"x": ["text"]}]), tmp_path / "b")
    assert not [path for path in (tmp_path / "b").rglob("*") if path.is_file()]


def test_metadata_of_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": pd.array([1, None, 3], "Int64"), "part": [0, 0, 1]}, index=pd.Index([7, 8, 9], name="i"))
    written = fastpq.write_dataset((frame for _ in range(2)), tmp_path, partition_by=["part"], key_value_metadata={"k": "v"})
    read = fastpq.read_pandas(written[0])
    assert read.index.name == "i"
    assert str(read["x"].dtype) == "Int64"
    assert all(fastpq.read_metadata(path).key_value("k") == "v" for path in written)


def test_many_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioning, "MOST_OPEN", 4)
    data = ({"x": np.arange(20) + 100 * number, "part": np.arange(20) % 10} for number in range(3))
    written = fastpq.write_dataset(data, tmp_path, partition_by=["part"])
    assert Counter(Path(path).parent.name for path in written) == {f"part={number}": 3 for number in range(10)}
    assert sorted(fastpq.read_table(tmp_path)["x"].to_pylist()) == sorted(n + 100 * k for n in range(20) for k in range(3))


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_writers, "MOST_WAITING", 4 << 20)
    random = np.random.default_rng(1)
    stream = ({"x": random.random(50_000), "part": random.integers(0, 8, 50_000)} for _ in range(100))      # 80 MB
    tracemalloc.start()
    written = fastpq.write_dataset(stream, tmp_path, partition_by=["part"], compression=None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 << 20
    assert len(written) == 8
    assert sum(pq.read_metadata(path).num_rows for path in written) == 5_000_000
    assert min(pq.read_metadata(path).num_row_groups for path in written) > 3


def test_empty_streams(tmp_path: Path) -> None:
    schema = pa.schema({"a": pa.int64(), "b": pa.string()})
    (path,) = fastpq.write_dataset(pa.RecordBatchReader.from_batches(schema, []), tmp_path / "a")
    assert pq.read_schema(path).names == ["a", "b"]
    assert fastpq.write_dataset(pa.RecordBatchReader.from_batches(schema, []), tmp_path / "b", partition_by=["b"]) == []


def test_a_failure_leaves_complete_files_alone(tmp_path: Path) -> None:
    def failing() -> Iterator[Any]:
        yield from batches(3000)
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        fastpq.write_dataset(failing(), tmp_path, max_rows_per_file=1000)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [pq.read_metadata(path).num_rows for path in files] == [1000] * 3


WRONG_ROWS = [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError), ("5", TypeError)]


@pytest.mark.parametrize(("value", "kind"), WRONG_ROWS)
def test_wrong_most_rows(value: Any, kind: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(kind, match="max_rows_per_file"):
        fastpq.write_dataset({"a": [1]}, tmp_path, max_rows_per_file=value)
    assert not list(tmp_path.iterdir())


def test_heads_of_files_of_other_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Converted columns come in tables of many rows, not in one for each row of the head."""
    fastpq.write_table({"x": np.arange(20_000)}, tmp_path / "a.parquet")
    fastpq.write_table({"x": np.arange(20_000) + 0.5}, tmp_path / "b.parquet")
    tables: list[int] = []
    batches = fastpq.ParquetDataset._tables

    def counted(*arguments: Any, **options: Any) -> Iterator[fastpq.Table]:
        for table in batches(*arguments, **options):
            tables.append(table.num_rows)
            yield table

    monkeypatch.setattr(fastpq.ParquetDataset, "_tables", counted)
    found = fastpq.ParquetDataset(tmp_path).head(1, filters=[("x", ">", 19_998.7)])
    assert found["x"].to_pylist() == [19_999.0]
    assert len(tables) < 50


def test_head_with_filters(tmp_path: Path) -> None:
    fastpq.write_dataset(batches(), tmp_path, partition_by=["part"], max_rows_per_file=500)
    dataset = fastpq.ParquetDataset(tmp_path)
    for filters in ([("id", ">", 5000)], [("part", "==", 2), ("id", "<", 100)], [("id", "<", 0)]):
        expected = dataset.read(["id"], filters=filters)
        for n in (0, 1, 5, 700, 20_000):
            assert dataset.head(n, ["id"], filters=filters) == expected[:n]
    with pytest.raises(fastpq.SchemaError):
        dataset.head(1, filters=[("none", "==", 1)])


def test_columns_of_other_types_hinder_only_themselves(tmp_path: Path) -> None:
    fastpq.write_dataset({"a": [1], "b": ["text"]}, tmp_path)
    fastpq.write_dataset({"a": [2], "b": [1.5]}, tmp_path, check_schema=False)
    dataset = fastpq.ParquetDataset(tmp_path)
    assert dataset.num_rows == 2
    assert sorted(dataset.read(["a"])["a"].to_pylist()) == [1, 2]
    assert sorted(fastpq.read_table(tmp_path, ["a"], filters=[("a", ">", 1)])["a"].to_pylist()) == [2]
    assert [batch.names for batch in dataset.iter_batches(columns=["a"])] == [["a"]]
    wrong: list[Callable[[], Any]] = [
        dataset.read,
        lambda: dataset.read(["a", "b"]),
        lambda: dataset.head(1),
        dataset.iter_batches,
        lambda: dataset.schema,
        lambda: dataset.read(["a"], filters=[("b", "is not null")]),
        lambda: dataset.count([("b", "is null")]),
        lambda: pa.table(dataset),
    ]
    for call in wrong:
        with pytest.raises(fastpq.SchemaError, match=r"here is .* in .*column b"):
            call()
    fastpq.write_dataset({"a": [1], "b": ["text"], "p": [1]}, tmp_path / "x", partition_by=["p"])
    assert fastpq.ParquetDataset(tmp_path / "x", schema={"a": "int64"}).read()["a"].to_pylist() == [1]


def test_directories_of_partitions_in_a_list(tmp_path: Path) -> None:
    fastpq.write_dataset({"a": np.arange(4), "p": [0, 1, 2, 2]}, tmp_path, partition_by=["p"])
    listed = [tmp_path / "p=1", str(tmp_path / "p=2")]
    assert fastpq.read_table(listed).to_pylist() == [{"a": 1, "p": 1}, {"a": 2, "p": 2}, {"a": 3, "p": 2}]
    assert fastpq.read_table(listed, filters=[("p", "==", 1)])["a"].to_pylist() == [1]
    assert fastpq.read_table(tmp_path / "p=1").names == ["a"]
    assert fastpq.read_dataset(listed, partitioning=None).names == ["a"]


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("partition_by", [[], ["part"]])
def test_values_of_encrypted_columns_stay_out_of_footers(tmp_path: Path, plaintext_footer: bool, partition_by: list[str]) -> None:
    """Metadata of a stream may hold values of its columns, as those of a table; entries that the caller gives are written."""
    metadata = {"PANDAS_ATTRS": '{"first": "secret place"}'}
    schema = pa.schema([("place", pa.string()), ("part", pa.int64())], metadata)
    pq.write_table(pa.table({"place": ["a", "b"], "part": [1, 2]}, schema=schema), tmp_path / "source")
    keys = fastpq.FileEncryptionProperties(
        b"sixteen bytes k!", {"place": b"key of a column!"}, plaintext_footer=plaintext_footer, unlisted="plaintext")
    for number, data in enumerate([fastpq.ParquetFile(tmp_path / "source"), fastpq.read_table(tmp_path / "source")]):
        written = fastpq.write_dataset(
            data, tmp_path / f"set{number}", partition_by=partition_by, encryption_properties=keys,
            key_value_metadata={"given": "by the caller"})
        for path in written:
            with fastpq.ParquetFile(path, decryption_properties=fastpq.FileDecryptionProperties(b"sixteen bytes k!")) as file:
                found = file.metadata.key_value_metadata
            assert "PANDAS_ATTRS" not in found
            assert found["given"] == "by the caller"
            assert b"secret place" not in Path(path).read_bytes()


@pytest.mark.parametrize("kind", ["flat", "list"])
def test_batches_have_one_index_type(tmp_path: Path, kind: str) -> None:
    few = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", "b"]))
    many = pa.array([f"v{number}" for number in range(300)]).dictionary_encode()
    for name, values in {"0.parquet": few, "1.parquet": many}.items():
        column = values if kind == "flat" else pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        pq.write_table(pa.table({"x": column}), tmp_path / name)
    batches = [pa.table(batch) for batch in fastpq.ParquetDataset(tmp_path).iter_batches(100)]
    assert len({batch.schema for batch in batches}) == 1
    values = pa.concat_tables(batches)["x"].to_pylist()
    texts = ["a", "b", *(f"v{number}" for number in range(300))]
    assert values == (texts if kind == "flat" else [texts[:2], texts[2:]])
