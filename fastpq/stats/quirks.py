"""Mistakes of known writers, by the name and version that ``created_by`` gives: one table for all of them.

Mistakes that every reader can see through without knowing the writer are handled where they occur, whoever made them: a
dictionary_page_offset of 0, prefixes of DELTA_BYTE_ARRAY values that go on over pages (PARQUET-246), null counts of -1
(apache/parquet-java#3585).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from fastpq.schema.types import ColumnType, Decimal, Integer, Type
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order

_CREATED_BY = re.compile(r"\s*([A-Za-z][\w-]*)(?:\s+(?:version\s+)?v?(\d+(?:\.\d+)*))?")
_BYTES = (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)

# Bytes of a dictionary page's header that a chunk's total_compressed_size may leave out.
HEADER_SLACK = 100


class Quirk(Enum):
    """What a writer got wrong."""

    BOUNDS = auto()             # min_value, max_value, and those of page indexes
    NULL_COUNT = auto()         # in statistics
    BLOOM_FILTER = auto()       # does not find what is there
    CHUNK_SIZE = auto()         # total_compressed_size leaves out the header of the dictionary page
    IS_COMPRESSED = auto()      # False in the headers of data pages V2 whose values are compressed


class _Mistake(NamedTuple):
    """A mistake that a writer made before a version, or in all versions (None), in some columns."""

    quirk: Quirk
    writer: str
    fixed: tuple[int, ...] | None
    reference: str
    concerns: Callable[[ColumnType], bool] = lambda column: True


def _is_unsigned_or_bytes(column: ColumnType) -> bool:
    return column.physical in _BYTES or (isinstance(column.logical, Integer) and not column.logical.signed)


def _is_byte_array(column: ColumnType) -> bool:
    return column.physical is Type.BYTE_ARRAY


def _is_decimal(column: ColumnType) -> bool:
    return isinstance(column.logical, Decimal)


def _is_decimal_of_bytes(column: ColumnType) -> bool:
    return _is_decimal(column) and column.physical in _BYTES


MISTAKES = (
    # bytes and unsigned numbers compared as if they were signed, and bytes that were overwritten before they were written
    _Mistake(Quirk.BOUNDS, "parquet-mr", (1, 10, 0), "PARQUET-251, PARQUET-1025", _is_unsigned_or_bytes),
    _Mistake(Quirk.BOUNDS, "parquet-cpp", (1, 3, 0), "PARQUET-1025", _is_unsigned_or_bytes),
    # of columns from Arrow dictionaries, which the footer does not tell from others: of the first batch alone
    _Mistake(Quirk.BOUNDS, "parquet-cpp-arrow", (12,), "apache/arrow#15042, apache/arrow#34106", _is_byte_array),
    _Mistake(Quirk.NULL_COUNT, "parquet-cpp-arrow", (12,), "ARROW-12513, apache/arrow#34106", _is_byte_array),
    _Mistake(Quirk.NULL_COUNT, "parquet-cpp", None, "ARROW-12513", _is_byte_array),
    # decimals compared as unsigned numbers
    _Mistake(Quirk.BOUNDS, "clickhouse", (25, 8), "ClickHouse/ClickHouse#83754", _is_decimal),
    # bounds of pages of decimals merged as unsigned bytes; the footer names no version
    _Mistake(Quirk.BOUNDS, "polars", None, "pola-rs/polars#29347", _is_decimal_of_bytes),
    # inserts into memory that may be freed already
    _Mistake(Quirk.BLOOM_FILTER, "parquet-go", (18, 5), "apache/arrow-go#525"),
    _Mistake(Quirk.CHUNK_SIZE, "parquet-mr", (1, 2, 9), "PARQUET-816"),
    # later versions call themselves parquet-cpp-arrow
    _Mistake(Quirk.IS_COMPRESSED, "parquet-cpp", None, "ARROW-10353"),
)


def _writer(created_by: str | None) -> tuple[str, tuple[int, ...]]:
    """Name, in small letters, and version of a writer; empty where they are not said."""
    match = _CREATED_BY.match(created_by or "")
    if match is None:
        return "", ()
    return match[1].lower(), tuple(map(int, match[2].split("."))) if match[2] else ()


@lru_cache(maxsize=64)
def _mistakes(created_by: str | None) -> tuple[_Mistake, ...]:
    """Those that the writer of a file made."""
    writer, version = _writer(created_by)
    return tuple(
        mistake
        for mistake in MISTAKES
        if mistake.writer == writer and (mistake.fixed is None or version < mistake.fixed)
    )


def _made(quirk: Quirk, created_by: str | None, column: ColumnType | None = None) -> bool:
    mistakes = _mistakes(created_by)
    return bool(mistakes) and any(
        mistake.quirk is quirk and (column is None or mistake.concerns(column)) for mistake in mistakes
    )


def bounds_are_trusted(created_by: str | None, column: ColumnType) -> bool:
    """Whether min_value and max_value of a column, in statistics and in page indexes, are what they should be."""
    return not _made(Quirk.BOUNDS, created_by, column)


def null_counts_are_trusted(created_by: str | None, column: ColumnType) -> bool:
    """Whether null_count in the statistics of a column is what it should be."""
    return not _made(Quirk.NULL_COUNT, created_by, column)


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
    return not _made(Quirk.BLOOM_FILTER, created_by)


def chunk_slack(created_by: str | None) -> int:
    """Bytes that a column chunk may have behind its total_compressed_size; pages are read until the values are complete."""
    return HEADER_SLACK if _made(Quirk.CHUNK_SIZE, created_by) else 0


def v2_is_always_compressed(created_by: str | None) -> bool:
    """Whether data pages V2 are compressed with the chunk's codec, whatever their headers say."""
    return _made(Quirk.IS_COMPRESSED, created_by)
