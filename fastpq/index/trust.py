"""Which writers' bounds and bloom filters are known to be wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from fastpq.index.bounds import order_of
from fastpq.index.statistics import Order
from fastpq.types import ColumnType, Decimal, Integer, Type

_CREATED_BY = re.compile(r"\s*([A-Za-z][\w-]*)(?:\s+(?:version\s+)?v?(\d+(?:\.\d+)*))?")
_BYTES = (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)


@dataclass(frozen=True, slots=True)
class _Mistake:
    """Bounds of some columns that a writer got wrong before a version, or in all versions (None)."""

    writer: str
    fixed: tuple[int, ...] | None
    concerns: Callable[[ColumnType], bool]


def _is_unsigned_or_bytes(column: ColumnType) -> bool:
    return column.physical in _BYTES or (isinstance(column.logical, Integer) and not column.logical.signed)


def _is_decimal(column: ColumnType) -> bool:
    return isinstance(column.logical, Decimal)


def _is_decimal_of_bytes(column: ColumnType) -> bool:
    return _is_decimal(column) and column.physical in _BYTES


_MISTAKES = (
    # compared bytes and unsigned numbers as if they were signed (PARQUET-251, PARQUET-1025)
    _Mistake("parquet-mr", (1, 10, 0), _is_unsigned_or_bytes),
    _Mistake("parquet-cpp", (1, 3, 0), _is_unsigned_or_bytes),
    # compared decimals as unsigned numbers (ClickHouse/ClickHouse#83754)
    _Mistake("clickhouse", (25, 8), _is_decimal),
    # merges the bounds of pages of decimals as unsigned bytes (pola-rs/polars#29347); the footer names no version
    _Mistake("polars", None, _is_decimal_of_bytes),
)
# inserts into memory that may be freed already (apache/arrow-go#525)
_BAD_BLOOM_FILTERS = {"parquet-go": (18, 5)}


@lru_cache(maxsize=64)
def _writer(created_by: str | None) -> tuple[str, tuple[int, ...]]:
    """Name, in small letters, and version of a writer; empty where they are not said."""
    match = _CREATED_BY.match(created_by or "")
    if match is None:
        return "", ()
    return match[1].lower(), tuple(map(int, match[2].split("."))) if match[2] else ()


def bounds_are_trusted(created_by: str | None, column: ColumnType) -> bool:
    """Whether min_value and max_value of a column, in statistics and in page indexes, are what they should be."""
    writer, version = _writer(created_by)
    return not any(
        mistake.writer == writer and mistake.concerns(column) and (mistake.fixed is None or version < mistake.fixed)
        for mistake in _MISTAKES
    )


def deprecated_bounds_are_trusted(column: ColumnType) -> bool:
    """Whether min and max, which were compared as signed numbers, are in the order of the column.

    Of bytes they are not, whoever wrote them.
    """
    return column.physical not in (*_BYTES, Type.INT96) and order_of(column) not in (
        Order.ORDER_NONE,
        Order.ORDER_UINT32,
        Order.ORDER_UINT64,
    )


def bloom_filters_are_trusted(created_by: str | None) -> bool:
    """Whether what a bloom filter does not find is not there."""
    writer, version = _writer(created_by)
    fixed = _BAD_BLOOM_FILTERS.get(writer)
    return fixed is None or version >= fixed
