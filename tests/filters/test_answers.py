"""Minimum and maximum from statistics: bounds of another length than the values are not values."""

from __future__ import annotations

import decimal
import io
import struct
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.index.forging import Forgery

COLUMNS: dict[str, pa.Array] = {
    "fixed": pa.array([struct.pack(">i", row) for row in range(100, 200)], pa.binary(4)),
    "decimal": pa.array([decimal.Decimal(row) * 10**20 for row in range(-50, 50)], pa.decimal128(30, 2)),
    "uuid": pa.array([uuid.UUID(int=row << 90).bytes for row in range(100)], pa.uuid()),
    "half": pa.array([float(row) for row in range(100)], pa.float16()),
    "number": pa.array(range(100), pa.int32()),
}
EXPECTED: dict[str, tuple[Any, Any]] = {
    "fixed": (struct.pack(">i", 100), struct.pack(">i", 199)),
    "decimal": (decimal.Decimal(-50) * 10**20, decimal.Decimal(49) * 10**20),
    "uuid": (uuid.UUID(int=0), uuid.UUID(int=99 << 90)),
    "half": (0.0, 99.0),
    "number": (0, 99),
}


def forged(name: str, low: bytes, high: bytes, exact: bool | None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({name: COLUMNS[name]}), sink, write_page_index=True, row_group_size=1000)
    forgery = Forgery(sink.getvalue())
    statistics = forgery.chunks[0].statistics
    statistics.min_value, statistics.max_value = low, high
    statistics.min = statistics.max = None
    statistics.is_min_value_exact = statistics.is_max_value_exact = exact
    return forgery.written()


@pytest.mark.parametrize("exact", [True, False, None])
@pytest.mark.parametrize(("short", "long"), [(0, 1), (1, 0), (3, 3), (-1, 1), (1, -1), (-1, -1), (40, 40)])
@pytest.mark.parametrize("name", COLUMNS)
def test_bounds_of_another_length(name: str, short: int, long: int, exact: bool | None) -> None:
    """Bounds may have bytes too few (short, long below 0) or too many."""
    width = COLUMNS[name].type.bit_width // 8 if name != "decimal" else 13
    data = forged(name, bytes(max(0, width + short)), b"\x7f" * max(0, width + long), exact)
    with fastpq.ParquetFile(data) as file:
        assert file.min_max(name) == EXPECTED[name]
        low, high = EXPECTED[name]
        assert file.count([(name, ">=", low)]) == 100
        assert file.count([(name, "in", [low, high])]) == 2


@pytest.mark.parametrize("name", COLUMNS)
def test_bounds_as_written(name: str) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({name: COLUMNS[name]}), sink)
    fields = fastpq.ParquetFile(sink.getvalue())
    assert fields.min_max(name) == EXPECTED[name]
