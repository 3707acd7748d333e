"""Rows appended to a dataset: other columns are refused before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import SchemaError

FIRST = {
    "id": np.arange(3), "small": np.arange(3, dtype="i4"), "text": ["a", None, "c"], "span": np.arange(3).astype("m8[ms]"),
    "list": [[1], [], None],
}


def names_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def stream_of(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield data


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "another type": ({**FIRST, "id": [0.5, 1.5, 2.5]}, "id", "DOUBLE is not the INT64 of the dataset"),
    "a wider type": ({**FIRST, "small": np.arange(3)}, "small", "INT64 is not the INT32 of the dataset"),
    "another sign": ({**FIRST, "id": np.arange(3, dtype="u8")}, "id", "is not the INT64 of the dataset"),
    "text": ({**FIRST, "id": ["1", "2", "3"]}, "id", "is not the INT64"),
    "numbers for durations": ({**FIRST, "span": np.arange(3)}, "span", "INT64 is not the durations"),
    "another unit": ({**FIRST, "span": np.arange(3).astype("m8[us]")}, "span", "durations .us. is not the durations .ms."),
    "another element": ({**FIRST, "list": [[0.5], [], None]}, "list", "is not the"),
    "no list": ({**FIRST, "list": [1, 2, 3]}, "list", "is not the"),
    "a column less": ({name: FIRST[name] for name in ("id", "small", "span", "list")}, "text", "lack a column of the dataset"),
    "a column more": ({**FIRST, "more": [1, 2, 3]}, "more", "has no column of this name"),
    "another case": ({"ID" if name == "id" else name: values for name, values in FIRST.items()}, "id", "lack a column"),
}


@pytest.mark.parametrize("as_stream", [False, True], ids=["table", "stream"])
@pytest.mark.parametrize("case", REFUSED)
def test_other_columns_are_refused(tmp_path: Path, case: str, as_stream: bool) -> None:
    data, column, message = REFUSED[case]
    (path,) = fastpq.write_dataset(FIRST, tmp_path)
    before = names_below(tmp_path)
    with pytest.raises(SchemaError, match=rf"{message}.*check_schema=False") as caught:
        fastpq.write_dataset(stream_of(data) if as_stream else data, tmp_path)
    assert caught.value.context["column"] == column
    assert caught.value.context["path"] == path
    assert names_below(tmp_path) == before
    fastpq.write_dataset(stream_of(data) if as_stream else data, tmp_path, check_schema=False)
    assert len(names_below(tmp_path)) == 2


SAME: dict[str, tuple[Any, Any]] = {
    "nulls": ({"a": np.arange(3)}, {"a": [1, None]}),
    "no nulls": ({"a": [1, None]}, {"a": np.arange(3)}),
    "another order": ({"a": [1], "b": ["x"]}, {"b": ["y"], "a": [2]}),
    "a column without values": ({"a": [1], "b": ["x"]}, {"a": [2], "b": [None]}),
    "a first column without values": ({"a": [1], "b": [None]}, {"a": [2], "b": ["x"]}),
    "lists without elements": ({"a": [[1]]}, {"a": [[], None]}),
    "maps": (pa.table({"m": pa.array([[("k", 1)]], pa.map_("string", "int64"))}),) * 2,
    "structs with nulls": ({"s": [{"x": 1}]}, {"s": [{"x": None}, None]}),
    "another layout": (pa.table({"t": ["x"]}), pa.table({"t": pa.array(["x"]).dictionary_encode()})),
    "another zone": (
        pa.table({"t": pa.array([0], pa.timestamp("us", "UTC"))}),
        pa.table({"t": pa.array([0], pa.timestamp("us", "Asia/Tokyo"))}),
    ),
    "decimals": (pa.table({"d": pa.array([Decimal("1.5")])}), {"d": [Decimal("2.5")]}),
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_columns_are_appended(tmp_path: Path, case: str) -> None:
    first, more = SAME[case]
    fastpq.write_dataset(first, tmp_path)
    fastpq.write_dataset(more, tmp_path)
    dataset = fastpq.ParquetDataset(tmp_path)
    assert len(dataset.files) == 2
    assert dataset.read().num_rows == dataset.num_rows


def test_files_of_others(tmp_path: Path) -> None:
    """Files of pyarrow and Polars, which write whole numbers and decimals in other forms, are appended to as well."""
    values = pa.table({"n": pa.array([1], pa.int32()), "d": pa.array([Decimal("1.5")], pa.decimal128(9, 2)), "t": ["x"]})
    pq.write_table(values, tmp_path / "a.parquet")
    fastpq.write_dataset(values, tmp_path)
    (tmp_path / "a.parquet").unlink()
    pl.DataFrame(values).write_parquet(tmp_path / "a.parquet")
    fastpq.write_dataset(values, tmp_path)
    assert fastpq.read_table(tmp_path).num_rows == 3
    with pytest.raises(SchemaError, match="column n"):
        fastpq.write_dataset(values.cast(pa.schema([("n", "int64"), ("d", pa.decimal128(9, 2)), ("t", "string")])), tmp_path)


def test_schemas_cast(tmp_path: Path) -> None:
    data = {"id": np.arange(4), "part": [0, 1, 0, 1]}
    fastpq.write_dataset(data, tmp_path, partition_by=["part"])
    more = {"id": [5.0, 6.0], "part": [2, 0]}
    with pytest.raises(SchemaError, match="column id"):
        fastpq.write_dataset(more, tmp_path, partition_by=["part"])
    schema = fastpq.ParquetDataset(tmp_path).schema
    for given in (schema, {"id": "int64"}, {"id": "int64", "part": "int64"}, pa.schema([("id", "int64"), ("part", "int32")])):
        fastpq.write_dataset(more, tmp_path, partition_by=["part"], schema=given)
        fastpq.write_dataset(stream_of(more), tmp_path, partition_by=["part"], schema=given)
    before = names_below(tmp_path)
    with pytest.raises(SchemaError, match=r"5\.5.*column id"):
        fastpq.write_dataset({"id": [5.5], "part": [2]}, tmp_path, partition_by=["part"], schema=schema)
    assert {name for name in names_below(tmp_path) - before if name.endswith(".parquet")} == set()
    with pytest.raises(SchemaError, match=r"String.*column id"):
        fastpq.write_dataset({"id": ["x"], "part": [2]}, tmp_path, partition_by=["part"], schema={"id": "string"})
    assert fastpq.read_table(tmp_path)["id"].to_numpy().dtype == np.int64
    assert fastpq.read_table(tmp_path).num_rows == 4 + 4 * 2 * 2


@pytest.mark.parametrize("partition_by", [[], ["other"], ["part", "other"], ["other", "part"]])
def test_other_partition_columns_are_refused(tmp_path: Path, partition_by: list[str]) -> None:
    data = {"id": np.arange(4), "part": [0, 1, 0, 1], "other": [0] * 4}
    fastpq.write_dataset({name: data[name] for name in ("id", "part")}, tmp_path, partition_by=["part"])
    before = names_below(tmp_path)
    with pytest.raises(SchemaError, match=r"partitioned by \['part'\]"):
        fastpq.write_dataset(data, tmp_path, partition_by=partition_by)
    assert names_below(tmp_path) == before


def test_an_empty_file_of_a_schema(tmp_path: Path) -> None:
    fastpq.write_dataset({"id": [1]}, tmp_path)
    fastpq.write_dataset(iter(()), tmp_path, schema={"id": "int64"})
    with pytest.raises(SchemaError, match="column id"):
        fastpq.write_dataset(iter(()), tmp_path, schema={"id": "string"})
    assert len(names_below(tmp_path)) == 2


def test_only_data_files_are_compared(tmp_path: Path) -> None:
    (tmp_path / "README.txt").write_text("no table")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".part.parquet").write_text("a file of a writer")
    fastpq.write_dataset({"id": [1]}, tmp_path)
    (tmp_path / "a.parquet").write_text("no table either")
    with pytest.raises(fastpq.FormatError, match="not a Parquet file"):
        fastpq.write_dataset({"id": [1]}, tmp_path)


def test_encrypted_files(tmp_path: Path) -> None:
    """The columns of encrypted footers are unknown to a writer, those of signed ones in plaintext are not."""
    keys = fastpq.FileEncryptionProperties(b"0123456789012345")
    fastpq.write_dataset({"id": [1]}, tmp_path / "sealed", encryption_properties=keys)
    fastpq.write_dataset({"id": ["x"]}, tmp_path / "sealed", encryption_properties=keys)
    signed = fastpq.FileEncryptionProperties(b"0123456789012345", plaintext_footer=True)
    fastpq.write_dataset({"id": [1]}, tmp_path / "signed", encryption_properties=signed)
    fastpq.write_dataset({"id": [2]}, tmp_path / "signed", encryption_properties=signed)
    with pytest.raises(SchemaError, match="column id"):
        fastpq.write_dataset({"id": ["x"]}, tmp_path / "signed", encryption_properties=signed)


def test_remote_datasets() -> None:
    memory = fsspec.filesystem("memory")
    try:
        fastpq.write_dataset({"id": [1]}, "memory://appended")
        fastpq.write_dataset({"id": [2]}, "memory://appended")
        with pytest.raises(SchemaError, match="column id"):
            fastpq.write_dataset({"id": ["x"]}, "memory://appended")
        assert len(memory.find("/appended")) == 2
    finally:
        memory.rm("/appended", recursive=True)
