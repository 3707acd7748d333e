"""Decimals with at most 18 digits are written by way of int64. Other readers read the values and their bounds."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.errors import SchemaError

ROWS = 3000
RANDOM = np.random.default_rng(8)
NULLS = RANDOM.random(ROWS) < 0.2
PRECISIONS = (1, 2, 3, 5, 8, 9, 10, 12, 15, 16, 17, 18, 19, 25, 38)


def decimals(numbers: np.ndarray[Any, Any], precision: int, nulls: np.ndarray[Any, Any] | None = None) -> pa.Array:
    """An array of decimal128 with these unscaled int64 values. Under a null stands a number that no type can hold."""
    words = np.stack([numbers, numbers >> 63], axis=1)
    if nulls is not None:
        words[nulls] = 1 << 62
    bitmap = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(precision, 0), len(numbers), [bitmap, pa.py_buffer(words)])


def columns() -> dict[str, pa.Array]:
    arrays = {}
    for precision in PRECISIONS:
        most = 10 ** min(precision, 18) - 1
        few = RANDOM.integers(-min(most, 20), min(most, 20), ROWS, endpoint=True)
        many = RANDOM.integers(-most, most, ROWS, endpoint=True)
        many[:2] = most, -most
        arrays[f"few {precision}"] = decimals(few, precision)
        arrays[f"many {precision}"] = decimals(many, precision)
        arrays[f"nulls {precision}"] = decimals(many, precision, NULLS)
    return arrays


OPTIONS: list[dict[str, Any]] = [
    {}, {"use_dictionary": False}, {"dictionary_page_size": 600}, {"data_page_version": "2.0", "data_page_rows": 250},
    {"column_encoding": {f"many {precision}": "BYTE_STREAM_SPLIT" for precision in PRECISIONS}},
    {"bloom_filter": dict.fromkeys(("few 5", "many 18"), True), "row_group_size": 1100},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_other_readers_read_decimals(options: dict[str, Any], tmp_path: Path) -> None:
    table = pa.table(columns())
    target = tmp_path / "decimals.parquet"
    fastpq.write_table(table, target, **options)
    read = pq.read_table(target, page_checksum_verification=True)
    for name in table.column_names:
        assert read[name].equals(table[name]), name
    if "column_encoding" in options:        # Polars and DuckDB read no decimals in BYTE_STREAM_SPLIT
        return
    frame = pl.read_parquet(target)
    sums = ", ".join(f'min("{name}"), max("{name}"), count("{name}")' for name in table.column_names)
    with duckdb.connect() as connection:
        facts = connection.execute(f"SELECT {sums} FROM '{target}'").fetchone()
    expected: list[Any] = []
    for name in table.column_names:
        values = [value for value in table[name].to_pylist() if value is not None]
        expected += [min(values), max(values), len(values)]
        assert frame[name].to_list() == table[name].to_pylist(), name
    assert list(facts or ()) == expected


def test_bounds_and_distinct_counts() -> None:
    table, target = pa.table(columns()), io.BytesIO()
    fastpq.write_table(table, target, row_group_size=ROWS)
    group = pq.ParquetFile(target).metadata.row_group(0)
    for number, name in enumerate(table.column_names):
        statistics, values = group.column(number).statistics, [value for value in table[name].to_pylist() if value is not None]
        assert (statistics.min, statistics.max) == (min(values), max(values)), name
        assert statistics.null_count == ROWS - len(values)
        if statistics.has_distinct_count:
            assert statistics.distinct_count == len(set(values)), name


@pytest.mark.parametrize("make", [pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256])
def test_widths_of_arrow(make: Callable[[int, int], pa.DataType]) -> None:
    values = [Decimal(number % 13 - 6).scaleb(-2) if number % 7 else None for number in range(500)]
    table, target = pa.table({"c": pa.array(values, make(7, 2))}), io.BytesIO()
    fastpq.write_table(table, target)
    assert pq.read_table(target)["c"].to_pylist() == values


@pytest.mark.parametrize("use_dictionary", [False, True])
@pytest.mark.parametrize("word", [10**5, -(10**5), 1 << 40, 1 << 62])
def test_values_that_need_more_bytes_than_the_type_has(word: int, use_dictionary: bool) -> None:
    numbers = np.arange(100)
    numbers[77] = word
    with pytest.raises(SchemaError, match=r"cannot hold|more than 4 digits"):
        fastpq.write_table(pa.table({"c": decimals(numbers, 4)}), io.BytesIO(), use_dictionary=use_dictionary)


@pytest.mark.parametrize("use_dictionary", [False, True])
def test_high_halves_that_do_not_extend_the_sign(use_dictionary: bool) -> None:
    words = np.array([[1, 0], [2, 1], [3, 0]])
    array = pa.Array.from_buffers(pa.decimal128(9, 0), 3, [None, pa.py_buffer(words)])
    with pytest.raises(SchemaError, match="cannot hold"):
        fastpq.write_table(pa.table({"c": array}), io.BytesIO(), use_dictionary=use_dictionary)


def test_decimals_of_lists_and_chunks() -> None:
    values = decimals(RANDOM.integers(-99, 99, ROWS), 12, NULLS)
    lists = pa.ListArray.from_arrays(pa.array(range(0, ROWS + 1, 3), pa.int32()), values)
    table = pa.table({"list": lists, "flat": values[:1000]})
    chunks, target = pa.concat_tables([table[:1], table[1:450], table[450:]]), io.BytesIO()
    fastpq.write_table(chunks, target, row_group_size=600)
    read = pq.read_table(target)
    assert read["list"].to_pylist() == table["list"].to_pylist()
    assert read["flat"].to_pylist() == table["flat"].to_pylist()
