"""Files with two columns of one name: read whole, as pyarrow reads them, with both names."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import Table
from fastpq.errors import SchemaError
from tests.requirements import DATA, needs_data

ROWS = 20


def table() -> pa.Table:
    """Columns x, n, x, x: the first two of one type, with time zones of their own."""
    first = pa.array([i * 1000 if i % 4 else None for i in range(ROWS)], pa.timestamp("ms", "Asia/Tokyo"))
    second = pa.array([i * 2000 for i in range(ROWS)], pa.timestamp("ms", "Europe/Paris"))
    third = pa.array([[str(i), None] for i in range(ROWS)])
    return pa.table([first, pa.array(range(ROWS)), second, third], names=["x", "n", "x", "x"])


@pytest.fixture(scope="module")
def data() -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(), sink, row_group_size=7, write_page_index=True)
    return sink.getvalue()


def same(got: Table, truth: pa.Table) -> bool:
    """Whether names, order, time zones and values are equal."""
    handed = pa.table(got)
    handed.validate(full=True)
    if handed.column_names != truth.column_names or got.names != truth.column_names:
        return False
    zones = [getattr(field.type, "tz", None) for field in truth.schema]
    if zones != [getattr(field.type, "tz", None) for field in handed.schema]:
        return False
    return all(ours.to_pylist() == theirs.to_pylist() for ours, theirs in zip(handed.columns, truth.columns, strict=True))


READS: dict[str, Callable[[fastpq.ParquetFile], Table]] = {
    "whole": lambda file: file.read(),
    "row groups": lambda file: file.read(row_groups=[0, 1, 2]),
    "row ranges": lambda file: file.read(row_ranges=[(0, 3), (3, ROWS)]),
    "filter by name": lambda file: file.read(filters=("n", ">=", 0)),
    "filter by number": lambda file: file.read(filters=[[(2, ">=", np.datetime64(0, "ms"))]]),
    "filter of another order": lambda file: file.read(filters=[[(2, "is not null"), ("n", "<", ROWS)]]),
    "filter or": lambda file: file.read(filters=[[(0, "is null")], [(0, "is not null")]]),
    "take": lambda file: file.take(np.arange(ROWS)),
    "batches": lambda file: Table.concat([*file.iter_batches(6)]),
    "filtered batches": lambda file: Table.concat([*file.iter_batches(6, filters=[(2, ">=", np.datetime64(0, "ms"))])]),
}


@pytest.mark.parametrize("on_error", ["raise", "null", "skip"])
@pytest.mark.parametrize("how", READS)
def test_every_way_of_reading_keeps_both(data: bytes, how: str, on_error: Any) -> None:
    assert pq.ParquetFile(io.BytesIO(data)).read().equals(table())
    with fastpq.ParquetFile(data, on_error=on_error) as file:
        assert same(READS[how](file), table())


def test_filters_choose_rows_by_the_numbered_column(data: bytes) -> None:
    with fastpq.ParquetFile(data) as file:
        for number in (0, 2):
            values = table().column(number).cast(pa.int64()).to_pylist()
            kept = [row for row, value in enumerate(values) if value is not None and value > 9000]
            found = file.read(filters=(number, ">", np.datetime64(9000, "ms")))
            assert same(found, table().take(kept))
            assert file.count((number, ">", np.datetime64(9000, "ms"))) == len(kept)
        with pytest.raises(SchemaError, match="3 columns are named 'x': use the number of the column"):
            file.read(filters=("x", "is null"))


def test_columns_by_number_in_any_order(data: bytes) -> None:
    with fastpq.ParquetFile(data) as file:
        for chosen in ([2, 0], [3, 1, 2], [0]):
            assert same(file.read(chosen), table().select(chosen))
        with pytest.raises(SchemaError, match="use the number of the column"):
            file.read(["x"])
        array = np.zeros(ROWS, "M8[ms]")
        with pytest.raises(SchemaError, match="out has one array for several columns"):
            file.read([0, 2], out={"x": array})
        file.read([2], out={"x": array})
        assert array[-1] == np.datetime64(38_000, "ms")


def test_a_table_says_that_there_are_two(data: bytes) -> None:
    found = fastpq.read_table(data)
    for look_up in (found.__getitem__, found.get, found.flat, lambda name: found.select([name])):
        with pytest.raises(SchemaError, match=r"there are 3 columns 'x': take one from table.columns by its number"):
            look_up("x")
    for convert in (found.to_numpy, found.to_pylist, lambda: dict(found)):
        with pytest.raises(SchemaError, match="there are 3 columns 'x'"):
            convert()
    assert "x" in found
    assert list(found) == found.names == [name for name, _ in found.items()] == ["x", "n", "x", "x"]
    assert len(found) == len(found.values()) == 4
    assert found["n"].to_pylist() == list(range(ROWS))
    assert "x" in repr(found)
    assert found.slice(2, 5).names == found.names
    assert found == fastpq.read_table(data)


@pytest.mark.parametrize("options", [{}, {"sort_by": ["n"]}, {"encoding": "auto", "row_group_size": 6}], ids=str)
def test_written_back_and_read_by_pyarrow(data: bytes, options: dict[str, Any]) -> None:
    for given in (fastpq.read_table(data), table()):
        fastpq.write_table(given, sink := io.BytesIO(), arrow_schema=True, **options)
        assert same(fastpq.read_table(sink.getvalue()), table())
        theirs = pq.ParquetFile(io.BytesIO(sink.getvalue())).read()
        assert theirs.column_names == ["x", "n", "x", "x"]
        assert [column.to_pylist() for column in theirs.columns] == [column.to_pylist() for column in table().columns]


def test_encrypted_and_decrypted(data: bytes, tmp_path: Path) -> None:
    source, target, again = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    source.write_bytes(data)
    key = bytes(16)
    fastpq.encrypt_file(source, target, fastpq.FileEncryptionProperties(key))
    keys = fastpq.FileDecryptionProperties(key)
    assert same(fastpq.read_table(target, decryption_properties=keys), table())
    fastpq.decrypt_file(target, again, keys)
    assert same(fastpq.read_table(again), table())


def test_dataframes(data: bytes) -> None:
    ours, theirs = fastpq.read_pandas(data), table().to_pandas()
    assert list(ours.columns) == list(theirs.columns)
    for number in (0, 1, 2):
        assert ours.iloc[:, number].dropna().tolist() == theirs.iloc[:, number].dropna().tolist()


def test_structs_with_two_fields_of_one_name() -> None:
    fields = [pa.field("v", pa.int64()), pa.field("v", pa.string())]
    struct = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array(["a", None])], fields=fields)
    fastpq.write_table(pa.table({"s": struct}), sink := io.BytesIO())
    assert pa.table(fastpq.read_table(sink.getvalue()))["s"].chunk(0).field(1).to_pylist() == ["a", None]
    assert pq.ParquetFile(io.BytesIO(sink.getvalue())).read()["s"].chunk(0).flatten()[0].to_pylist() == [1, 2]


def test_datasets_need_names_of_their_own(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(SchemaError, match="there are 3 columns 'x'"):
        fastpq.read_dataset(tmp_path)


@needs_data
def test_a_strangers_file_with_a_repeated_name_is_written_back() -> None:
    path = DATA / "wild/files/risingwavelabs+risingwave/c94b32fe59-data.parquet"
    ours, theirs = fastpq.read_table(path), pq.ParquetFile(path).read()
    fastpq.write_table(ours, sink := io.BytesIO())
    assert fastpq.read_table(sink.getvalue()).equals(ours)
    again = pq.ParquetFile(io.BytesIO(sink.getvalue())).read()
    assert [str(column) for column in again.columns] == [str(column) for column in theirs.columns]    # of names, one dict has one
