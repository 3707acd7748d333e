"""Bounds of floats in IEEE 754 total order (parquet.thrift, ColumnOrder): exact in the sign of zero, and of NaNs alone too."""

from __future__ import annotations

import io
import math
import struct
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.stats.total_order import is_nan, total_extreme, total_key
from tests.requirements import peer

duckdb = peer("duckdb")

NAN, INF = math.nan, math.inf
CODES = {np.float16: "<e", np.float32: "<f", np.float64: "<d"}


def written(values: Any, dtype: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table({"x": np.array(values, dtype)}, sink, float_order="total", data_page_rows=2, **options)
    return sink.getvalue()


def signed(value: float) -> tuple[float, float]:
    return value, math.copysign(1.0, value)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize(
    ("values", "low", "high", "nans"),
    [
        ([0.0, 0.0], 0.0, 0.0, 0),
        ([-0.0, -0.0], -0.0, -0.0, 0),
        ([0.0, -0.0, NAN], -0.0, 0.0, 1),
        ([1.0, 0.0, -0.0, 2.0], -0.0, 2.0, 0),
        ([-1.0, -0.0], -1.0, -0.0, 0),
        ([NAN, NAN, 3.0, -INF], -INF, 3.0, 2),
        ([0.0, 5.0, NAN, NAN], 0.0, 5.0, 2),
    ],
)
def test_bounds_of_numbers(values: list[float], low: float, high: float, nans: int, dtype: Any, dictionary: bool) -> None:
    data = written(values, dtype, use_dictionary=dictionary)
    with fastpq.ParquetFile(data) as file:
        assert file.metadata.column_orders[0].IEEE_754_TOTAL_ORDER is not None
        statistics = file.metadata.row_group(0).column(0).metadata.statistics
        assert statistics is not None
        bounds = statistics.min_value or b"", statistics.max_value or b""
        (found_low,), (found_high,) = (struct.unpack(CODES[dtype], bound) for bound in bounds)
        assert (signed(found_low), signed(found_high), statistics.nan_count) == (signed(low), signed(high), nans)
        index = file.column_index(0, "x")
        assert index is not None
        assert len(index.min_values) == (len(values) + 1) // 2
        for value in (-1.0, 0.0, 3.0):
            expected = sum(each == value for each in values)
            assert file.count([("x", "==", value)]) == expected
    assert np.array_equal(pq.read_table(io.BytesIO(data))["x"].to_numpy(), np.array(values, dtype), equal_nan=True)


@pytest.mark.parametrize("dtype", CODES)
def test_bounds_of_nans(dtype: Any) -> None:
    width = np.dtype(dtype).itemsize
    bits = f"<u{width}"
    quiet = int(np.array(NAN, dtype).view(bits))
    sign = 1 << (8 * width - 1)
    patterns = np.array([quiet | 1, quiet | sign, quiet | 3, quiet | sign | 5], bits)
    data = written(patterns.view(dtype), dtype, use_dictionary=False)
    with fastpq.ParquetFile(data) as file:
        statistics = file.metadata.row_group(0).column(0).metadata.statistics
        assert statistics is not None
        low, high = (int.from_bytes(bound or b"", "little") for bound in (statistics.min_value, statistics.max_value))
        assert (low, high, statistics.nan_count) == (quiet | sign | 5, quiet | 3, 4)
        index = file.column_index(0, "x")      # in the order of the type there could be none
        assert index is not None
        assert not index.null_pages.any()
        assert all(is_nan(bound) for bound in (*index.min_values, *index.max_values))
        assert file.count([("x", ">", 1.0)]) == 4       # NaNs are the largest values
        assert file.count([("x", "<=", 1.0)]) == 0


def test_pages_of_nans_beside_numbers(tmp_path: Any) -> None:
    values = [1.0, 2.0, NAN, NAN, 3.0, 4.0]
    data = written(values, np.float64, use_dictionary=False)
    with fastpq.ParquetFile(data) as file:
        assert file.read(filters=[("x", ">=", 4.0)])["x"].to_pylist()[-1] == 4.0
        assert file.read(filters=[("x", "<", 3.0)])["x"].to_pylist() == [1.0, 2.0]
        index = file.column_index(0, "x")
        assert index is not None
        assert index.boundary_order.name == "UNORDERED"
    path = tmp_path / "nans.parquet"
    path.write_bytes(data)
    assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE x < 3").fetchall() == [(2,)]


def test_the_order() -> None:
    ascending = [-NAN, -INF, -1.5, -0.0, 0.0, 1.5, INF, NAN]
    for code in CODES.values():
        bounds = [struct.pack(code, value) for value in ascending]
        keys = [total_key(bound) for bound in bounds]
        assert keys == sorted(keys)
        assert total_extreme([None, *bounds], -1) == struct.pack(code, -INF)
        assert total_extreme([bounds[-1], bounds[0]], 1) == bounds[-1]
    assert total_extreme([None], 1) is None
    with pytest.raises(ValueError, match="float_order"):
        fastpq.write_table({"x": np.zeros(1)}, io.BytesIO(), float_order="ieee")    # type: ignore[arg-type]
