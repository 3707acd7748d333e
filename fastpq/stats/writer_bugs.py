"""Known writer bugs in one table, by the writer's name and version (``created_by``), and what follows from them for readers.

A bug that the bytes alone show is not in the table. The code that meets it handles it for all writers. Such bugs are the
dictionary_page_offset 0, DELTA_BYTE_ARRAY prefixes that are shared across pages (PARQUET-246), and the null count -1
(apache/parquet-java#3585).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import ReaderProperties
from fastpq.schema.types import ColumnType, Decimal, Integer, Type
from fastpq.stats.bounds import FLOAT_ORDERS, order_of
from fastpq.stats.statistics import Order

_CREATED_BY = re.compile(r"\s*([A-Za-z][\w.-]*)(?:\s+(?:version\s+)?v?(\d+(?:\.\d+)*))?")
_BYTES = (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)

# Bytes that a dictionary page header has at most. Some writers leave it out of a chunk's total_compressed_size.
HEADER_SLACK = 100


class BugKind(Enum):
    """The part of a file that a writer got wrong."""

    BOUNDS = auto()             # min_value and max_value in statistics and the bounds in page indexes are wrong
    INFINITIES = auto()         # if a chunk or page has only infinities, a bound is the largest finite float
    NULL_COUNT = auto()         # null_count in statistics and null_counts in page indexes are wrong
    BLOOM_FILTER = auto()       # the bloom filter lacks values that the column has
    CHUNK_SIZE = auto()         # total_compressed_size does not count the dictionary page header
    CHECKSUM = auto()           # all page headers have the CRC-32 0
    ROW_COUNT = auto()          # the footer has the row count 0
    IS_COMPRESSED = auto()      # headers of data pages V2 have is_compressed False although the values are compressed


class _WriterBug(NamedTuple):
    """One writer's bug.

    Attributes:
        kind: the part of a file that is wrong.
        writer: the writer's name in ``created_by``, in lower case.
        fixed_version: the first version without the bug, or None if all versions have it.
        reference: where the bug is reported.
        concerns: returns whether a column is affected.
    """

    kind: BugKind
    writer: str
    fixed_version: tuple[int, ...] | None
    reference: str
    concerns: Callable[[ColumnType], bool] = lambda column: True


def _is_unsigned_or_bytes(column: ColumnType) -> bool:
    return column.physical in _BYTES or (isinstance(column.logical, Integer) and not column.logical.signed)


def _is_byte_array(column: ColumnType) -> bool:
    return column.physical is Type.BYTE_ARRAY


def _is_float(column: ColumnType) -> bool:
    return order_of(column) in FLOAT_ORDERS


def _is_decimal(column: ColumnType) -> bool:
    return isinstance(column.logical, Decimal)


def _is_decimal_of_bytes(column: ColumnType) -> bool:
    return _is_decimal(column) and column.physical in _BYTES


WRITER_BUGS = (
    # Bytes and unsigned numbers were compared as signed numbers. Bounds were overwritten in memory before the footer was written.
    _WriterBug(BugKind.BOUNDS, "parquet-mr", (1, 10, 0), "PARQUET-251, PARQUET-1025", _is_unsigned_or_bytes),
    _WriterBug(BugKind.BOUNDS, "parquet-cpp", (1, 3, 0), "PARQUET-1025", _is_unsigned_or_bytes),
    # Statistics of columns from Arrow dictionaries cover only the first batch. The footer does not mark these columns.
    _WriterBug(BugKind.BOUNDS, "parquet-cpp-arrow", (12,), "apache/arrow#15042, apache/arrow#34106", _is_byte_array),
    _WriterBug(BugKind.NULL_COUNT, "parquet-cpp-arrow", (12,), "ARROW-12513, apache/arrow#34106", _is_byte_array),
    _WriterBug(BugKind.NULL_COUNT, "parquet-cpp", None, "ARROW-12513", _is_byte_array),
    # Minimum and maximum began with the largest and the smallest finite number. Infinities alone changed only one of the two.
    _WriterBug(BugKind.INFINITIES, "parquet-cpp-arrow", (25,), "apache/arrow#50182", _is_float),
    # Nulls were counted only in a few pages. The only version that footers name is "latest".
    _WriterBug(BugKind.NULL_COUNT, "parquet-go", (0,), "xitongsys/parquet-go#540"),
    # Null counts of strings were not reset between row groups. Files that are this old name no version.
    _WriterBug(BugKind.NULL_COUNT, "duckdb", (0,), "observablehq/framework, examples/api/src/data", _is_byte_array),
    # Decimals were compared as unsigned numbers.
    _WriterBug(BugKind.BOUNDS, "clickhouse", (25, 8), "ClickHouse/ClickHouse#83754", _is_decimal),
    # The page bounds of decimals were merged as unsigned bytes. The footer names no version.
    _WriterBug(BugKind.BOUNDS, "polars", None, "pola-rs/polars#29347", _is_decimal_of_bytes),
    # Values were inserted into memory that was already freed.
    _WriterBug(BugKind.BLOOM_FILTER, "parquet-go", (18, 5), "apache/arrow-go#525"),
    _WriterBug(BugKind.CHUNK_SIZE, "parquet-mr", (1, 2, 9), "PARQUET-816"),
    # Version 1.0 computes the CRC-32.
    _WriterBug(BugKind.CHECKSUM, "parquet.jl", (1,), "JuliaIO/Parquet.jl, src/writer.jl, write_col_page"),
    _WriterBug(BugKind.CHECKSUM, "hawq", None, "apache/hawq, src/test/feature/ManagementTool/data/parquet200"),
    _WriterBug(BugKind.ROW_COUNT, "parquet-rs", (1,), "apache/parquet-testing, data/repeated_no_annotation.parquet"),
    # Later versions have the name parquet-cpp-arrow.
    _WriterBug(BugKind.IS_COMPRESSED, "parquet-cpp", None, "ARROW-10353"),
)

# Names of writers that write no created_by, by a key in their key-value metadata.
_KEYS_OF_WRITERS = {"hawq.schema": "hawq"}


def _writer(created_by: str | None) -> tuple[str, tuple[int, ...]]:
    """Return a writer's name, in lower case, and its version. Each is empty if ``created_by`` lacks it."""
    match = _CREATED_BY.match(created_by or "")
    if match is None:
        return "", ()
    return match[1].lower(), tuple(map(int, match[2].split("."))) if match[2] else ()


def _named_by_key(metadata: FileMetaData) -> str | None:
    """Return the writer of a file without created_by, by a key in its key-value metadata, or None if it is unknown."""
    return next((writer for key, writer in _KEYS_OF_WRITERS.items() if metadata.key_value(key) is not None), None)


@lru_cache(maxsize=64)
def bugs_of(created_by: str | None) -> tuple[_WriterBug, ...]:
    """Return the rows in WRITER_BUGS that a file's writer has."""
    writer, version = _writer(created_by)
    bugs = (bug for bug in WRITER_BUGS if bug.writer == writer)
    return tuple(bug for bug in bugs if bug.fixed_version is None or version < bug.fixed_version)


def _has_bug(kind: BugKind, created_by: str | None, column: ColumnType | None = None) -> bool:
    """Return whether a writer has this kind of bug. If a column is given, the bug must affect it."""
    bugs = bugs_of(created_by)
    return bool(bugs) and any(bug.kind is kind and (column is None or bug.concerns(column)) for bug in bugs)


def bounds_are_trusted(created_by: str | None, column: ColumnType) -> bool:
    """Return whether this writer writes right bounds for a column, in statistics and in page indexes."""
    return not _has_bug(BugKind.BOUNDS, created_by, column)


def infinities_are_trusted(created_by: str | None, column: ColumnType) -> bool:
    """Return whether a minimum that is the largest finite float, or a maximum that is its negative, is a value in the column."""
    return not _has_bug(BugKind.INFINITIES, created_by, column)


def null_counts_are_trusted(created_by: str | None, column: ColumnType) -> bool:
    """Return whether this writer writes right null counts for a column, in statistics and in page indexes."""
    return not _has_bug(BugKind.NULL_COUNT, created_by, column)


def deprecated_bounds_are_trusted(column: ColumnType) -> bool:
    """Return whether the deprecated bounds min and max, which are compared as signed numbers, follow the column's order.

    The deprecated bounds of byte arrays never do.
    """
    return column.physical not in (*_BYTES, Type.INT96) and order_of(column) not in (
        Order.ORDER_NONE,
        Order.ORDER_UINT32,
        Order.ORDER_UINT64,
    )


def bloom_filters_are_trusted(created_by: str | None) -> bool:
    """Return whether a value that is missing from this writer's bloom filter is certainly missing from the column."""
    return not _has_bug(BugKind.BLOOM_FILTER, created_by)


def row_count_is_trusted(created_by: str | None) -> bool:
    """Return whether the row count that this writer stores in the footer is the sum over the row groups."""
    return not _has_bug(BugKind.ROW_COUNT, created_by)


def for_writer(properties: ReaderProperties, metadata: FileMetaData) -> ReaderProperties:
    """Return the reader properties for one file: without verify_checksums if its writer wrote wrong checksums, else unchanged.

    Only files whose writer is in WRITER_BUGS, or which name no writer, need this call.
    """
    if properties.verify_checksums and _has_wrong_checksums(metadata.created_by or _named_by_key(metadata)):
        return replace(properties, verify_checksums=False)
    return properties


@lru_cache(maxsize=64)
def _has_wrong_checksums(writer: str | None) -> bool:
    return _has_bug(BugKind.CHECKSUM, writer)


@lru_cache(maxsize=64)
def chunk_slack(created_by: str | None) -> int:
    """Return how many bytes a column chunk may have beyond its total_compressed_size. It is 0 if the writer writes right sizes.

    A chunk with such slack is read page by page until its values are complete.
    """
    return HEADER_SLACK if _has_bug(BugKind.CHUNK_SIZE, created_by) else 0


@lru_cache(maxsize=64)
def v2_is_always_compressed(created_by: str | None) -> bool:
    """Return whether this writer's data pages V2 are compressed although is_compressed in their headers is False."""
    return _has_bug(BugKind.IS_COMPRESSED, created_by)
