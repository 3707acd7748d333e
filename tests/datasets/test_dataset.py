"""Datasets beside pyarrow, Polars and DuckDB, both ways."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.convert.caller_input import table_from
from fastpq.datasets.dataset import ParquetDataset
from fastpq.datasets.loading import read_dataset
from fastpq.datasets.partitioning import write_dataset
from tests.requirements import peer

duckdb = peer("duckdb")

YEARS = [2023, 2024, None, 2024, 2023, 2024]
PLACES = ["a/b", "ü x", "a/b", None, "a/b", "ü x"]
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None, dt.date(2024, 1, 2), dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "year": pa.array(YEARS, pa.int32()),
        "place": PLACES,
        "day": pa.array(DAYS, pa.date32()),
        "tags": [["x"], [], None, ["y", None], ["z"], []],
    }
)
KEYS = ["year", "place", "day"]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({name: row[name] for name in ROWS.column_names} for row in rows), key=lambda row: row["id"])


def test_peers_read_what_we_write(tmp_path: Path) -> None:
    paths = write_dataset(ROWS, tmp_path, partition_by=KEYS)
    assert len(paths) == len(set(paths)) == 4
    schema = pa.schema([ROWS.schema.field(name) for name in KEYS])
    arrow = ds.dataset(tmp_path, partitioning=ds.partitioning(schema, flavor="hive")).to_table()
    polars = pl.read_parquet(f"{tmp_path}/**/*.parquet", hive_partitioning=True, try_parse_hive_dates=True)
    with duckdb.connect() as connection:
        duck = connection.sql(f"FROM read_parquet('{tmp_path}/**/*.parquet', hive_partitioning=true)").to_arrow_table()
    for rows in (arrow.to_pylist(), polars.to_dicts(), duck.to_pylist(), read_dataset(tmp_path).to_pylist()):
        assert in_order(rows) == ROWS.to_pylist()


def test_we_read_what_pyarrow_writes(tmp_path: Path) -> None:
    ds.write_dataset(ROWS, tmp_path, format="parquet", partitioning=KEYS, partitioning_flavor="hive")
    for strings in ("views", "offsets", "dictionary"):
        dataset = ParquetDataset(tmp_path, strings=strings)
        assert dataset.partition_names == KEYS
        assert dataset.num_rows == 6
        assert in_order(dataset.read().to_pylist()) == ROWS.to_pylist()


FILTERS = [
    [("year", "==", 2024)],
    [("year", ">", 2023), ("id", "<", 4)],
    [[("place", "is null")], [("id", "in", [0, 4])]],
    [("day", "<=", dt.date(2024, 1, 1))],
    [("year", "not in", [2023])],
    [("place", "starts with", "ü"), ("day", "==", dt.date(2024, 1, 2))],
    [("year", "==", 1999)],
    fastpq.Or(("year", "is null"), fastpq.And(("id", ">=", 3), ("place", "==", "a/b"))),
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_do_as_on_one_file(tmp_path: Path, filters: Any) -> None:
    pq.write_table(ROWS, tmp_path / "one")
    write_dataset(ROWS, tmp_path / "many", partition_by=KEYS)
    wanted = fastpq.read_table(tmp_path / "one", filters=filters).to_pylist()
    dataset = ParquetDataset(tmp_path / "many")
    assert in_order(dataset.read(filters=filters).to_pylist()) == wanted
    assert in_order([row for batch in dataset.iter_batches(1, filters=filters) for row in batch.to_pylist()]) == wanted
    assert dataset.count(filters) == len(wanted)


def test_other_partitions_are_not_opened(tmp_path: Path) -> None:
    paths = write_dataset(ROWS, tmp_path, partition_by=["year"])
    dataset = ParquetDataset(tmp_path)
    (wanted,) = [path for path in paths if "year=2024" in path]
    for path in paths:
        if path != wanted:
            os.unlink(path)
    seen: list[tuple[int, int]] = []
    table = dataset.read(["id"], filters=[("year", "==", 2024)], progress=lambda *place: seen.append(place))
    assert table["id"].to_pylist() == [1, 3, 5]
    assert seen == [(2, 6), (5, 6), (6, 6)]     # rows of 2023, 2024 and of no year


def test_schemas_are_unified(tmp_path: Path) -> None:
    first = {"a": np.arange(2, dtype=np.int32), "b": ["x", "y"]}
    second = {"a": np.array([1 << 40]), "c": [[{"d": 1}, None]]}
    for name, data in (("1", first), ("2", second)):
        fastpq.write_table(data, tmp_path / name)
    table = read_dataset(tmp_path)
    assert table.to_pylist() == [
        {"a": 0, "b": "x", "c": None},
        {"a": 1, "b": "y", "c": None},
        {"a": 1 << 40, "b": None, "c": [{"d": 1}, None]},
    ]
    assert pa.table(table).to_pylist() == table.to_pylist()
    assert read_dataset(tmp_path, filters=[("b", "is null")])["a"].to_pylist() == [1 << 40]
    fastpq.write_table({"a": ["text"]}, tmp_path / "3")
    with pytest.raises(fastpq.SchemaError, match=r"in .*1"):
        ParquetDataset(tmp_path).read()


def test_append_globs_lists_and_hidden_files(tmp_path: Path) -> None:
    (first,) = write_dataset({"a": np.arange(3)}, tmp_path)
    (second,) = write_dataset({"a": np.arange(3, 5)}, tmp_path)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / ".hidden").write_bytes(b"no Parquet")
    assert sorted(read_dataset(tmp_path)["a"].to_pylist()) == [0, 1, 2, 3, 4]
    assert sorted(read_dataset(f"{tmp_path}/part-*.parquet")["a"].to_pylist()) == [0, 1, 2, 3, 4]
    assert read_dataset([second, first])["a"].to_pylist() == [3, 4, 0, 1, 2]
    with pytest.raises(FileNotFoundError):
        read_dataset(tmp_path / "nothing")


def test_remote(tmp_path: Path) -> None:
    root = f"memory://{tmp_path.name}"
    write_dataset(ROWS, root, partition_by=["place"])
    assert in_order(read_dataset(root).to_pylist()) == ROWS.to_pylist()
    assert read_dataset(f"{root}/*/*.parquet", ["id"], filters=[("place", "is null")])["id"].to_pylist() == [3]
    fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


def test_keys_by_path(tmp_path: Path) -> None:
    keys: dict[str, bytes] = {}

    def encrypt(path: str) -> fastpq.FileEncryptionProperties:
        keys[path] = os.urandom(16)
        return fastpq.FileEncryptionProperties(keys[path])

    write_dataset(ROWS, tmp_path, partition_by=["year"], encryption_properties=encrypt)
    assert len(set(keys.values())) == 3
    read = read_dataset(tmp_path, decryption_properties=lambda path: fastpq.FileDecryptionProperties(footer_key=keys[path]))
    assert in_order(read.to_pylist()) == ROWS.to_pylist()
    with pytest.raises(fastpq.KeyAccessError):
        ParquetDataset(tmp_path)


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(fastpq.SchemaError, match="not a partition column"):
        write_dataset({"a": [1]}, tmp_path, partition_by=["a"])
    with pytest.raises(fastpq.SchemaError, match="directory"):
        write_dataset({"a": [1], "b": [""]}, tmp_path, partition_by=["b"])
    assert not list(tmp_path.iterdir())
    write_dataset({"a": [1], "b": ["x"]}, tmp_path, partition_by=["b"])
    write_dataset({"a": [1], "b": ["x"]}, tmp_path, check_schema=False)
    with pytest.raises(fastpq.SchemaError, match="partitions"):
        ParquetDataset(tmp_path)


def test_filters_on_leaves_of_structs(tmp_path: Path) -> None:
    points = pa.table({"i": range(6), "p": [{"x": i % 4, "y": i} for i in range(6)], "part": [i % 2 for i in range(6)]})
    write_dataset(points, tmp_path, partition_by=["part"])
    for filters, expected in (([("p.x", "==", 3)], [3]), ([("p.x", "<", 2), ("part", "==", 1)], [1, 5])):
        found = ParquetDataset(tmp_path).read(["i"], filters=filters)
        assert sorted(found["i"].to_pylist()) == expected


def test_dataframes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"v": [1.5, None, 3.0], "part": [1, 1, 1], "c": pd.Categorical(["b", "a", "b"])}, index=[10, 20, 30])
    [path] = write_dataset(frame, tmp_path, partition_by=["part"])
    pd.testing.assert_frame_equal(fastpq.read_pandas(path), frame.drop(columns="part"), check_categorical=False)


def test_partition_columns_have_no_key(tmp_path: Path) -> None:
    keys = fastpq.FileEncryptionProperties(b"k" * 16, {"year": b"c" * 16})
    with pytest.raises(fastpq.SchemaError, match="a partition column cannot have a key"):
        write_dataset(ROWS, tmp_path / "out", partition_by=["year"], encryption_properties=keys)
    assert not list(tmp_path.iterdir())


def test_partitions_of_every_type(tmp_path: Path) -> None:
    """Numbers, dates and timestamps in paths come back with their types; pyarrow and Polars find the same files and rows."""
    columns: dict[str, Any] = {
        "whole": np.array([1, 2, 2]),
        "single": np.array([0.1, 1e20, np.nan], np.float32),
        "double": np.array([1e16, -np.inf, 1.5]),
        "day": np.array(["2020-01-01", "NaT", "2020-01-02"], "M8[D]"),
        "moment": np.array(["2020-01-01T00:00:00.5", "2020-01-01T00:00:01", "1969-12-31T23:59:59.999999"], "M8[us]"),
        "digits": [Decimal("12345678901234567890"), Decimal(7), None],
        "text": ["K\u00f6ln", "a/b=c:d", "00501x"],
    }
    fastpq.write_dataset({"row": np.arange(3), **columns}, tmp_path, partition_by=list(columns))
    table = fastpq.read_dataset(tmp_path)
    order = np.argsort(table["row"].to_numpy())
    given = table_from(columns)
    for name in columns:
        found = table[name].take(order).to_pylist()
        for one, other in zip(found, given[name].to_pylist(), strict=True):
            assert one == other or np.float32(one) == np.float32(other) or (one != one and other != other), (name, one, other)
    assert fastpq.read_dataset(tmp_path, filters=[("digits", "=", Decimal("12345678901234567890"))])["row"].to_pylist() == [0]
    assert fastpq.read_dataset(tmp_path, filters=[("moment", "<", np.datetime64("1970-01-01"))])["row"].to_pylist() == [2]
    assert pq.read_table(tmp_path).num_rows == 3
    assert sorted(pl.read_parquet(tmp_path / "**/*.parquet", hive_partitioning=True)["text"]) == sorted(columns["text"])


def test_places_without_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    fastpq.write_table({"a": [1]}, tmp_path / "b.txt")
    for nothing in (f"{tmp_path}/none/", f"{tmp_path}/none*/", f"{tmp_path}/*.parquet", "memory://none/"):
        for read in (read_dataset, fastpq.read_table):
            with pytest.raises(FileNotFoundError):
                read(nothing)
    assert read_dataset(f"{tmp_path}/b*.txt")["a"].to_pylist() == [1]


def test_the_first_rows_have_one_int96_unit(tmp_path: Path) -> None:
    for number, year in enumerate((2020, 3020)):
        table = pa.table({"t": pa.array([dt.datetime(year, 1, 1)], pa.timestamp("us"))})
        pq.write_table(table, tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=True)
    found = ParquetDataset(tmp_path).head(2)["t"].to_pylist()
    assert found == [dt.datetime(2020, 1, 1), dt.datetime(3020, 1, 1)]
