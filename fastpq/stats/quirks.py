"""Mistakes of known writers in files, in one table by name and version of the writer (``created_by``); and their consequences.

Mistakes evident from the bytes alone are not in the table. They are handled in place, for all writers: a dictionary_page_offset
of 0, prefixes of DELTA_BYTE_ARRAY values shared across pages (PARQUET-246), null counts of -1 (apache/parquet-java#3585).
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
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order

_CREATED_BY = re.compile(r"\s*([A-Za-z][\w.-]*)(?:\s+(?:version\s+)?v?(\d+(?:\.\d+)*))?")
_BYTES = (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)

# Greatest size of the dictionary page's header, in bytes, left out of a chunk's total_compressed_size by some writers.
HEADER_SLACK = 100


class Quirk(Enum):
    """Kinds of mistakes: the part of a file written wrongly."""

    BOUNDS = auto()             # wrong min_value and max_value of statistics, and bounds of page indexes
    NULL_COUNT = auto()         # wrong null_count of statistics, and null_counts of page indexes
    BLOOM_FILTER = auto()       # values of the column missing from the bloom filter
    CHUNK_SIZE = auto()         # total_compressed_size without the header of the dictionary page
    CHECKSUM = auto()           # a CRC-32 of 0 in the headers of all pages
    ROW_COUNT = auto()          # a number of rows of 0 in the footer
    IS_COMPRESSED = auto()      # is_compressed False in headers of data pages V2 with compressed values


class _Mistake(NamedTuple):
    """A mistake of one writer.

    Attributes:
        quirk: the kind of mistake.
        writer: the writer's name in ``created_by``, in lower case.
        fixed: first version without the mistake; None for a mistake of all versions.
        reference: issues about the mistake.
        concerns: whether a column is affected.
    """

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
    # Bytes and unsigned numbers were compared as signed numbers; bytes of bounds were overwritten before the footer was written.
    _Mistake(Quirk.BOUNDS, "parquet-mr", (1, 10, 0), "PARQUET-251, PARQUET-1025", _is_unsigned_or_bytes),
    _Mistake(Quirk.BOUNDS, "parquet-cpp", (1, 3, 0), "PARQUET-1025", _is_unsigned_or_bytes),
    # Statistics of columns from Arrow dictionaries cover the first batch alone; the footer does not mark these columns.
    _Mistake(Quirk.BOUNDS, "parquet-cpp-arrow", (12,), "apache/arrow#15042, apache/arrow#34106", _is_byte_array),
    _Mistake(Quirk.NULL_COUNT, "parquet-cpp-arrow", (12,), "ARROW-12513, apache/arrow#34106", _is_byte_array),
    _Mistake(Quirk.NULL_COUNT, "parquet-cpp", None, "ARROW-12513", _is_byte_array),
    # Nulls were counted in few of the pages; the only version in the footer is "latest".
    _Mistake(Quirk.NULL_COUNT, "parquet-go", (0,), "xitongsys/parquet-go#540"),
    # Null counts of strings run on from row group to row group; files of this age name no version.
    _Mistake(Quirk.NULL_COUNT, "duckdb", (0,), "observablehq/framework, examples/api/src/data", _is_byte_array),
    # Decimals were compared as unsigned numbers.
    _Mistake(Quirk.BOUNDS, "clickhouse", (25, 8), "ClickHouse/ClickHouse#83754", _is_decimal),
    # Bounds of pages of decimals were merged as unsigned bytes; the footer names no version.
    _Mistake(Quirk.BOUNDS, "polars", None, "pola-rs/polars#29347", _is_decimal_of_bytes),
    # Values were inserted into memory already freed.
    _Mistake(Quirk.BLOOM_FILTER, "parquet-go", (18, 5), "apache/arrow-go#525"),
    _Mistake(Quirk.CHUNK_SIZE, "parquet-mr", (1, 2, 9), "PARQUET-816"),
    # Version 1.0 computes the CRC-32.
    _Mistake(Quirk.CHECKSUM, "parquet.jl", (1,), "JuliaIO/Parquet.jl, src/writer.jl, write_col_page"),
    _Mistake(Quirk.CHECKSUM, "hawq", None, "apache/hawq, src/test/feature/ManagementTool/data/parquet200"),
    _Mistake(Quirk.ROW_COUNT, "parquet-rs", (1,), "apache/parquet-testing, data/repeated_no_annotation.parquet"),
    # Later versions have the name parquet-cpp-arrow.
    _Mistake(Quirk.IS_COMPRESSED, "parquet-cpp", None, "ARROW-10353"),
)

# Names of writers without a created_by, by a key of their key-value metadata.
_KEYS_OF_WRITERS = {"hawq.schema": "hawq"}


def _writer(created_by: str | None) -> tuple[str, tuple[int, ...]]:
    """Name, in lower case, and version of a writer; empty where ``created_by`` lacks a name or version."""
    match = _CREATED_BY.match(created_by or "")
    if match is None:
        return "", ()
    return match[1].lower(), tuple(map(int, match[2].split("."))) if match[2] else ()


def _named_by_key(metadata: FileMetaData) -> str | None:
    """The writer of a file without created_by, by a key of its key-value metadata; None for an unknown writer."""
    return next((writer for key, writer in _KEYS_OF_WRITERS.items() if metadata.key_value(key) is not None), None)


@lru_cache(maxsize=64)
def mistakes_of(created_by: str | None) -> tuple[_Mistake, ...]:
    """The rows of MISTAKES for the writer of a file."""
    writer, version = _writer(created_by)
    return tuple(
        mistake
        for mistake in MISTAKES
        if mistake.writer == writer and (mistake.fixed is None or version < mistake.fixed)
    )


def _made(quirk: Quirk, created_by: str | None, column: ColumnType | None = None) -> bool:
    mistakes = mistakes_of(created_by)
    return bool(mistakes) and any(
        mistake.quirk is quirk and (column is None or mistake.concerns(column)) for mistake in mistakes
    )


def bounds_are_trusted(created_by: str | None, column: ColumnType) -> bool:
    """Whether bounds of a column, in statistics and in page indexes, can be relied on for this writer."""
    return not _made(Quirk.BOUNDS, created_by, column)


def null_counts_are_trusted(created_by: str | None, column: ColumnType) -> bool:
    """Whether null counts of a column, in statistics and in page indexes, can be relied on for this writer."""
    return not _made(Quirk.NULL_COUNT, created_by, column)


def deprecated_bounds_are_trusted(column: ColumnType) -> bool:
    """Whether the deprecated bounds min and max, compared as signed numbers, are in the order of the column.

    The deprecated bounds of byte arrays are not, for any writer.
    """
    return column.physical not in (*_BYTES, Type.INT96) and order_of(column) not in (
        Order.ORDER_NONE,
        Order.ORDER_UINT32,
        Order.ORDER_UINT64,
    )


def bloom_filters_are_trusted(created_by: str | None) -> bool:
    """Whether a value not found in a bloom filter is certainly missing from the column, for this writer."""
    return not _made(Quirk.BLOOM_FILTER, created_by)


def row_count_is_trusted(created_by: str | None) -> bool:
    """Whether the number of rows in the footer is the number of rows of its row groups, for this writer."""
    return not _made(Quirk.ROW_COUNT, created_by)


def for_writer(properties: ReaderProperties, metadata: FileMetaData) -> ReaderProperties:
    """Reader properties for one file: without verify_checksums if its writer made wrong checksums, else unchanged.

    Needed for writers of MISTAKES alone, and for files without a name of their writer.
    """
    if properties.verify_checksums and _has_wrong_checksums(metadata.created_by or _named_by_key(metadata)):
        return replace(properties, verify_checksums=False)
    return properties


@lru_cache(maxsize=64)
def _has_wrong_checksums(writer: str | None) -> bool:
    return _made(Quirk.CHECKSUM, writer)


@lru_cache(maxsize=64)
def chunk_slack(created_by: str | None) -> int:
    """Greatest number of bytes of a column chunk beyond its total_compressed_size; 0 for writers of right sizes.

    Pages of a chunk with slack are read until the values are complete.
    """
    return HEADER_SLACK if _made(Quirk.CHUNK_SIZE, created_by) else 0


@lru_cache(maxsize=64)
def v2_is_always_compressed(created_by: str | None) -> bool:
    """Whether data pages V2 are compressed with the chunk's codec even where is_compressed of their headers is False."""
    return _made(Quirk.IS_COMPRESSED, created_by)
