"""Decimals of INT32 and INT64 that are read with 16 bytes (``decimals="decimal128"``)."""

from __future__ import annotations

import pickle
from decimal import Decimal as Dec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.adapters import scan_polars
from fastpq.arrays.table import AnyColumn, Column
from fastpq.errors import FormatError
from fastpq.schema.types import ColumnType, Decimal, Type
from fastpq.variant import VariantColumn

ROWS = 3000
VALUES = [None if row % 5 == 0 else Dec((row - 1500) * 7) / 100 for row in range(ROWS)]
KEY, OTHER_KEY = b"0123456789012345", b"1234567890123456"
WIDE = np.dtype("V16")


def table_of(rows: int = ROWS) -> pa.Table:
    structs = [None if value is None else {"x": value, "y": [value, None]} for value in VALUES]
    return pa.table({
        "int32": pa.array(VALUES, pa.decimal128(7, 2)),
        "int64": pa.array(VALUES, pa.decimal128(15, 2)),
        "fixed": pa.array(VALUES, pa.decimal128(25, 2)),
        "required": pa.array([Dec(row) for row in range(ROWS)], pa.decimal128(9, 0)),
        "nested": pa.array(structs, pa.struct([("x", pa.decimal128(8, 2)), ("y", pa.list_(pa.decimal128(12, 2)))])),
        "number": pa.array(range(ROWS)),
    }).slice(0, rows)


def dtypes_of(column: AnyColumn) -> set[Any]:
    """Return the dtypes of all decimals in a column."""
    leaves = [leaf for _, leaf in column.leaves() if isinstance(leaf.type.logical, Decimal)]
    return {leaf.values.dtype for leaf in leaves if isinstance(leaf.values, np.ndarray)}


def check(table: fastpq.Table, expected: pa.Table) -> None:
    """Compare a table with pyarrow's, and check that all decimals in it have 16 bytes."""
    assert all(dtypes_of(column) <= {WIDE} for column in table.columns)
    assert table.to_arrow().equals(expected)
    assert pl.DataFrame(table).equals(pl.DataFrame(expected))
    assert table.to_pylist() == expected.to_pylist()


LAYOUTS: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "PLAIN": {"use_dictionary": False},
    "uncompressed": {"use_dictionary": False, "compression": "none"},
    "encoded": {"use_dictionary": False, "column_encoding": {
        "int32": "DELTA_BINARY_PACKED", "int64": "BYTE_STREAM_SPLIT", "required": "PLAIN"}},
    "row groups": {"row_group_size": 700},
    "dictionary given up": {"dictionary_pagesize_limit": 2000, "data_page_size": 1000},
    "V2": {"data_page_version": "2.0", "data_page_size": 1000},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", [{}, {"strings": "dictionary"}, {"memory_map": "keep"}, {"threads": 1}], ids=str)
def test_reads_are_those_of_pyarrow(tmp_path: Path, layout: str, options: Any) -> None:
    pq.write_table(table_of(), tmp_path / "x", store_decimal_as_integer=True, **LAYOUTS[layout])
    expected = pq.read_table(tmp_path / "x")
    with fastpq.ParquetFile(tmp_path / "x", decimals="decimal128", **options) as file:
        assert [file.schema.column(name).type.physical for name in ("int32", "int64")] == [Type.INT32, Type.INT64]
        check(file.read(), expected)
        check(file.read(row_ranges=[(5, 10), (1990, 2100)]), pa.concat_tables([expected.slice(5, 5), expected.slice(1990, 110)]))
        check(file.take([5, 3, 2999]), expected.take([5, 3, 2999]))
        check(file.head(10), expected.slice(0, 10))
        batches = [*file.iter_batches(333)]
        assert all(dtypes_of(column) <= {WIDE} for batch in batches for column in batch.columns)
        check(fastpq.Table.concat(batches), expected)


FILTERS = {
    "flat": ([("int64", ">", Dec("3.50"))], lambda row: row["int64"] is not None and row["int64"] > Dec("3.50")),
    "other": ([("number", "<", 100)], lambda row: row["number"] < 100),
    "both": ([("number", "<", 2000), ("int32", "<=", Dec(0))],
             lambda row: row["number"] < 2000 and row["int32"] is not None and row["int32"] <= 0),
    "in a struct": ([("nested.x", "==", Dec("0.07"))],
                    lambda row: row["nested"] is not None and row["nested"]["x"] == Dec("0.07")),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("layout", ["dictionary", "PLAIN", "row groups"])
def test_filters(tmp_path: Path, name: str, layout: str) -> None:
    filters, holds = FILTERS[name]
    pq.write_table(table_of(), tmp_path / "x", store_decimal_as_integer=True, write_page_index=True, **LAYOUTS[layout])
    expected = pq.read_table(tmp_path / "x").filter(pa.array(map(holds, table_of().to_pylist())))
    with fastpq.ParquetFile(tmp_path / "x", decimals="decimal128") as file:
        check(file.read(filters=filters), expected)
        check(fastpq.Table.concat([*file.iter_batches(100, filters=filters)]), expected)


def test_an_export_copies_nothing(tmp_path: Path) -> None:
    pq.write_table(table_of(), tmp_path / "x", store_decimal_as_integer=True)
    table = fastpq.read_table(tmp_path / "x", ["int32", "int64"], decimals="decimal128")
    for name, array in zip(table.names, table.to_arrow().columns, strict=True):
        column = table[name]
        assert isinstance(column, Column)
        assert isinstance(column.values, np.ndarray)
        assert array.chunk(0).buffers()[1].address == column.values.ctypes.data
    assert dtypes_of(fastpq.read_table(tmp_path / "x", ["int64"])["int64"]) == {np.dtype(np.int64)}      # without the option


def test_streams_have_the_same_values(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    pq.write_table(table_of(), tmp_path / "folder/x.parquet", store_decimal_as_integer=True)
    expected = pq.read_table(tmp_path / "folder/x.parquet")
    with fastpq.ParquetFile(tmp_path / "folder/x.parquet") as file:
        assert pa.table(file).equals(expected)
        assert pa.table(file.read()).equals(expected)
    assert pa.table(fastpq.ParquetDataset(tmp_path / "folder")).equals(expected)


def test_decimals_that_were_narrow_in_arrow(tmp_path: Path) -> None:
    values = [Dec("1.25"), None]
    narrow = pa.table({"x": pa.array(values, pa.decimal32(5, 2)), "y": pa.array(values, pa.decimal64(12, 2))})
    fastpq.write_table(narrow, tmp_path / "x")
    table = fastpq.read_table(tmp_path / "x", decimals="decimal128")
    assert table.to_arrow().equals(narrow)
    assert pa.table(table).schema.types == [pa.decimal128(5, 2), pa.decimal128(12, 2)]


def test_a_written_table_has_the_type_of_arrows_decimals(tmp_path: Path) -> None:
    pq.write_table(table_of(), tmp_path / "x", store_decimal_as_integer=True)
    fastpq.write_table(fastpq.read_table(tmp_path / "x", decimals="decimal128"), tmp_path / "y")
    assert pq.read_table(tmp_path / "y").equals(table_of())
    assert fastpq.read_schema(tmp_path / "y").column("int64").type.physical is Type.FIXED_LEN_BYTE_ARRAY


def test_out_takes_16_bytes_a_value(tmp_path: Path) -> None:
    pq.write_table(table_of().select(["required"]), tmp_path / "x", store_decimal_as_integer=True)
    array = np.ma.MaskedArray(np.zeros(ROWS, WIDE), np.zeros(ROWS, bool))
    fastpq.ParquetFile(tmp_path / "x", decimals="decimal128").read(out={"required": array})
    assert np.ma.getdata(array).view(np.int64)[::2].tolist() == [*range(ROWS)]


def test_encrypted_columns_and_missing_keys(tmp_path: Path) -> None:
    pq.write_table(table_of(), tmp_path / "plain", store_decimal_as_integer=True)
    expected = pq.read_table(tmp_path / "plain")
    stored = fastpq.read_table(tmp_path / "plain")
    keys = fastpq.FileEncryptionProperties(KEY, {"int64": OTHER_KEY})
    fastpq.write_table(stored, tmp_path / "x", encryption_properties=keys, row_group_size=1000)
    all_keys, one_key = fastpq.FileDecryptionProperties(KEY, {"int64": OTHER_KEY}), fastpq.FileDecryptionProperties(KEY)
    check(fastpq.read_table(tmp_path / "x", decryption_properties=all_keys, decimals="decimal128"), expected)
    table = fastpq.read_table(tmp_path / "x", decryption_properties=one_key, on_missing_key="null", decimals="decimal128")
    assert dtypes_of(table["int64"]) == {WIDE}
    assert table["int64"].null_count == ROWS
    assert table["int32"].to_pylist() == expected["int32"].to_pylist()


def test_damaged_files(tmp_path: Path) -> None:
    pq.write_table(table_of(), tmp_path / "x", store_decimal_as_integer=True, row_group_size=1000, write_page_checksum=True)
    where = pq.read_metadata(tmp_path / "x").row_group(1).column(1).data_page_offset
    data = bytearray((tmp_path / "x").read_bytes())
    data[where + 10 : where + 300] = b"\xff" * 290
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(FormatError):
        fastpq.read_table(tmp_path / "x", decimals="decimal128")
    table = fastpq.read_table(tmp_path / "x", decimals="decimal128", on_error="null")
    assert all(dtypes_of(column) <= {WIDE} for column in table.columns)
    assert table["int64"].to_pylist() == [*VALUES[:1000], *[None] * 1000, *VALUES[2000:]]


def test_variants_keep_their_decimals(tmp_path: Path) -> None:
    values = [Dec("1.25"), Dec("-2.50"), None, "text"]
    type_ = ColumnType(Type.INT32, None, Decimal(9, 2))
    fastpq.write_table({"v": VariantColumn.from_pylist(values), "n": np.arange(4)}, tmp_path / "x", shred={"v": type_})
    with fastpq.ParquetFile(tmp_path / "x", decimals="decimal128") as file:
        assert Type.INT32 in {leaf.type.physical for leaf in file.schema.columns}
        assert file.read()["v"].to_pylist() == values
        assert file.read(filters=[("n", "<", 3)])["v"].to_pylist() == values[:3]


# ---- datasets


def write_files(folder: Path, tables: list[pa.Table]) -> None:
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number:03}.parquet", store_decimal_as_integer=True)


@pytest.mark.parametrize("filters", [None, [("price", ">", Dec(-100))], [("number", "<", 7)]], ids=str)
def test_datasets_with_several_types(tmp_path: Path, filters: Any) -> None:
    types = [pa.decimal128(7 + 3 * number, 2) for number in range(4)]
    tables = [pa.table({"price": pa.array(VALUES[:100], type_), "number": range(100)}) for type_ in types]
    tables[2] = tables[2].drop(["price"])
    write_files(tmp_path / "folder", tables)
    expected = fastpq.ParquetDataset(tmp_path / "folder").read(filters=filters)
    dataset = fastpq.ParquetDataset(tmp_path / "folder", decimals="decimal128")
    assert dataset.schema == fastpq.ParquetDataset(tmp_path / "folder").schema
    check(dataset.read(filters=filters), expected.to_arrow())
    check(fastpq.Table.concat([*dataset.iter_batches(30, filters=filters)]), expected.to_arrow())
    check(dataset.head(5, filters=filters), expected[:5].to_arrow())
    check(pickle.loads(pickle.dumps(dataset)).read(filters=filters), expected.to_arrow())
    assert scan_polars(tmp_path / "folder").collect()["price"].to_list() == fastpq.read_dataset(
        tmp_path / "folder")["price"].to_pylist()


def test_small_files_of_one_schema(tmp_path: Path) -> None:
    table = table_of().select(["int32", "int64", "number"])
    write_files(tmp_path / "folder", [table.slice(10 * number, 10) for number in range(40)])
    dataset = fastpq.ParquetDataset(tmp_path / "folder", decimals="decimal128")
    for _ in range(2):      # the second read stacks the files
        check(dataset.read(), table.slice(0, 400))
    check(dataset.take([399, 5]), table.take([399, 5]))


def test_wide_tables_of_small_columns(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(200)]
    types = [pa.decimal128(7 if number % 2 else 15, 2) for number in range(200)]
    table = pa.table([pa.array(VALUES[:3], type_) for type_ in types], names)
    pq.write_table(table, tmp_path / "x", store_decimal_as_integer=True)
    check(fastpq.read_table(tmp_path / "x", decimals="decimal128"), table)


def test_another_word_is_refused(tmp_path: Path) -> None:
    pq.write_table(table_of(3), tmp_path / "x")
    with pytest.raises(ValueError, match='decimals must be "stored" or "decimal128"'):
        fastpq.read_table(tmp_path / "x", decimals="decimal64")      # type: ignore[arg-type]
