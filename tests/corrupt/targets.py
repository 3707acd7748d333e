"""What is done with mutated bytes; and what must never be done, to test that the campaign notices it."""

from __future__ import annotations

import ctypes
import decimal
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fastpq
from fastpq.index.geospatial import GeospatialBounds
from fastpq.table import Column
from fastpq.types import ColumnType, Decimal, String, Type
from fastpq.values.layouts import BinaryOffsets
from fastpq.values.slices import SliceReader
from fastpq.variant import Shredded, ShreddedObject, Variant, VariantColumn
from fastpq.variant.shredded import BINARY
from fastpq.variant.shredding_schema import ShreddingSchema
from tests.corrupt.corpus import corpus
from tests.corrupt.mutate import Sample
from tests.corrupt.value_corpus import geometries, split, variants

MIB = 1 << 20
BOUNDS = {"max_allocation": 512 * MIB, "max_page_size": 128 * MIB, "max_dictionary_size": 128 * MIB}
LAYOUTS = ("views", "offsets", "dictionary")
BATCH_SIZE = 77
KEY = bytes(range(16))
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


def rewrite(data: bytes, index: int) -> None:
    """Encrypt it page by page; what comes of it is read as the file itself is."""
    out = io.BytesIO()
    fastpq.encrypt_file(data, out, fastpq.FileEncryptionProperties(KEY), properties=fastpq.ReaderProperties(**BOUNDS))
    keys = fastpq.FileDecryptionProperties(KEY)
    with fastpq.ParquetFile(out.getvalue(), decryption_properties=keys, properties=fastpq.ReaderProperties(**BOUNDS)) as file:
        for table in file.iter_batches(BATCH_SIZE, [column.name for column in file.schema.columns if column.is_flat][:3]):
            validate(table)
            break


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


def variant(data: bytes, index: int) -> None:
    """Decode a variant in every way, and split and reassemble it by a schema that depends on the index."""
    metadata, value = split(data)
    found = Variant(metadata, value)
    found.to_json()
    found.to_python(typed=True)
    column = VariantColumn(binary_column([metadata]), binary_column([value]))
    shredded = column.shred(SCHEMAS[index % len(SCHEMAS)])
    back = VariantColumn.from_shredded(column.metadata, shredded)
    if numbers_alike(back.to_json()) != numbers_alike(column.to_json()):
        raise AssertionError(f"{back.to_json()} was {column.to_json()}")
    elements = Shredded(1, column.value, ShreddedObject(1, {"a": Shredded(1, column.value), "b": Shredded(1, column.value)}))
    VariantColumn.from_shredded(column.metadata, elements).to_pylist()


def numbers_alike(documents: list[str | None]) -> list[Any]:
    """JSON in which 1 and 1.00 are equal: exact numbers may change their type where they are shredded."""
    return [json.loads(text or "", parse_int=decimal.Decimal, parse_float=decimal.Decimal) for text in documents]


def wkb(data: bytes, index: int) -> None:
    """Take a geometry into bounds."""
    column = binary_column([data])
    bounds = GeospatialBounds(index % 2 == 0)
    bounds.observe(SliceReader(column.values), 0, 1)
    if bounds.statistics() is None:
        raise AssertionError("a geometry without statistics")


def binary_column(values: list[bytes]) -> Column:
    ends = np.cumsum([0, *map(len, values)])
    return Column(BINARY, BinaryOffsets(ends.astype(np.int64), np.frombuffer(b"".join(values), np.uint8)), nullable=False)


NUMBER, TEXT = ColumnType(Type.INT64), ColumnType(Type.BYTE_ARRAY, logical=String())
SCHEMAS: list[ShreddingSchema] = [
    None,
    NUMBER,
    {"a": NUMBER, "b": TEXT, "id": NUMBER},
    [NUMBER],
    {"species": {"name": TEXT}, "observation": None, "c": [TEXT]},
    ColumnType(Type.INT64, logical=Decimal(18, 4)),
]
FUZZED = ("read", "select", "rewrite", "variant", "wkb")


def samples_for(target: str, folder: Path | None) -> list[Sample]:
    """What the mutations of a target begin with."""
    if folder is None and target == "variant":
        return variants()
    if folder is None and target == "wkb":
        return geometries()
    return corpus(folder)


TARGETS: dict[str, Callable[[bytes, int], None]] = {
    target.__name__: target for target in (read, select, rewrite, variant, wkb, crash, hang, greedy, bare, refuse)
}
