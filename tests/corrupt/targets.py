"""What is done with mutated bytes; and what must never be done, to test that the campaign notices it."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import pyarrow as pa

import fastpq

MIB = 1 << 20
BOUNDS = {"max_allocation": 512 * MIB, "max_page_size": 128 * MIB, "max_dictionary_size": 128 * MIB}
LAYOUTS = ("views", "offsets", "dictionary")
BATCH_SIZE = 77
OPS = ("==", "<=", ">", "!=")


def read(data: bytes, index: int) -> None:
    """Read all flat columns, in a way that depends on the index, and let pyarrow check every value of the result."""
    properties = fastpq.ReaderProperties(verify_checksums=index % 2 == 0, **BOUNDS)
    options = {"strings": LAYOUTS[index % 3], "threads": 2 if index % 16 == 0 else 1, "properties": properties}
    with fastpq.ParquetFile(data, **options) as file:
        names = [column.name for column in file.schema.columns if column.is_flat]
        tables = file.iter_batches(BATCH_SIZE, names) if index % 5 == 0 else [file.read(names)]
        for count, table in enumerate(tables):
            validate(table)
            if count > 100:     # a number of rows that only a few bytes claim
                break


def select(data: bytes, index: int) -> None:
    """Read the rows of a filter on some flat column, and ask for all that statistics and indexes tell."""
    properties = fastpq.ReaderProperties(verify_checksums=index % 2 == 0, **BOUNDS)
    with fastpq.ParquetFile(data, threads=1, properties=properties) as file:
        flat = [column for column in file.schema.columns if column.is_flat]
        if not flat:
            return
        column = flat[index % len(flat)]
        value = file.min_max(column.index)[index % 2]
        filters = fastpq.Or((column.index, "is null"), (column.index, OPS[index % 4], value))
        filters = (column.index, "is null") if value is None else filters
        names = [column.name for column in flat]
        file.explain(filters, names)
        validate(file.read(names, filters=filters))
        file.null_count(column.index)
        for group in range(min(file.num_row_groups, 10)):
            file.offset_index(group, column.index)
            file.column_index(group, column.index)
            file.bloom_filter(group, column.index)


def validate(table: fastpq.Table) -> None:
    """Let pyarrow check every offset, view and string; not the ranges of decimals and times, which a file may break."""
    for column in table.columns:
        values = pa.array(column)
        values.validate(full=not (pa.types.is_decimal(values.type) or pa.types.is_time(values.type)))


def crash(data: bytes, index: int) -> None:
    if index == 3:
        ctypes.string_at(1)


def hang(data: bytes, index: int) -> None:
    if index == 3:
        time.sleep(3600)


def greedy(data: bytes, index: int) -> None:
    if index == 3:
        bytearray(1 << 40)


def bare(data: bytes, index: int) -> None:
    if index == 3:
        raise IndexError("not a ParquetError")


def refuse(data: bytes, index: int) -> None:
    raise fastpq.FormatError("refused")


TARGETS: dict[str, Callable[[bytes, int], None]] = {
    target.__name__: target for target in (read, select, crash, hang, greedy, bare, refuse)
}
