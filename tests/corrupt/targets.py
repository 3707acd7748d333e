"""What is done with mutated bytes; and what must never be done, to test that the campaign notices it."""

from __future__ import annotations

import base64
import ctypes
import decimal
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import fastpq
from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import Column
from fastpq.arrow.hints import ArrowFields
from fastpq.arrow.ipc_schema import IpcSchema
from fastpq.schema.types import ColumnType, Decimal, String, Type
from fastpq.stats.geospatial import GeospatialBounds
from fastpq.variant import Shredded, ShreddedObject, Variant, VariantColumn
from fastpq.variant.shredded import BINARY
from fastpq.variant.shredding_schema import ShreddingSchema
from tests.corrupt.codec_corpus import codec_samples, codecs, mutate_stream
from tests.corrupt.corpus import corpus, nested_corpus
from tests.corrupt.kernel_corpus import KERNELS, kernels, same
from tests.corrupt.key_corpus import key_material, key_samples, keyring, keyring_samples, mutate_json, store_keys
from tests.corrupt.mutate import mutate
from tests.corrupt.paths import WrongValueError, mutate_seed, paths, references
from tests.corrupt.seeds import store
from tests.corrupt.stored import make_once
from tests.corrupt.value_corpus import described, geometries, schemas, split, variants

MIB = 1 << 20
BOUNDS: dict[str, Any] = {"max_allocation": 512 * MIB, "max_page_size": 128 * MIB, "max_dictionary_size": 128 * MIB}
LAYOUTS: tuple[Literal["views", "offsets", "dictionary"], ...] = ("views", "offsets", "dictionary")
BATCH_SIZE = 77
KEY = bytes(range(16))
OPS = ("==", "<=", ">", "!=")


def read(data: bytes, index: int) -> None:
    """Read all flat columns, in a way that depends on the index, and let pyarrow check every value of the result."""
    properties = fastpq.ReaderProperties(verify_checksums=index % 2 == 0, **BOUNDS)
    options: dict[str, Any] = {"strings": LAYOUTS[index % 3], "threads": 2 if index % 16 == 0 else 1, "properties": properties}
    with fastpq.ParquetFile(data, **options) as file:
        names = [column.name for column in file.schema.columns if column.is_flat]
        tables = file.iter_batches(BATCH_SIZE, names) if index % 5 == 0 else [file.read(names)]
        for count, table in enumerate(tables):
            validate(table)
            if count > 100:     # a number of rows that only a few bytes claim
                break


def nested(data: bytes, index: int) -> None:
    """Read all columns, nested ones too, in a way that depends on the index, and let pyarrow check the result."""
    properties = fastpq.ReaderProperties(verify_checksums=index % 2 == 0, **BOUNDS)
    with fastpq.ParquetFile(data, strings=LAYOUTS[index % 3], threads=1, properties=properties) as file:
        tables = file.iter_batches(BATCH_SIZE) if index % 5 == 0 else [file.read()]
        for count, table in enumerate(tables):
            for column in table.columns:
                try:
                    values = pa.array(column)
                except fastpq.SchemaError as error:
                    if "Arrow does not allow" not in str(error) and "fields" not in str(error):
                        raise
                    continue
                values.validate()
            if index % 7 == 0:
                table.slice(0, BATCH_SIZE).to_pylist()
            if count > 100:
                break


def kernel(data: bytes, index: int) -> None:
    """Decode a stream, encode what it holds and decode that: the values are the same."""
    if not data:
        raise fastpq.FormatError("no stream")
    chosen = KERNELS[data[0] % len(KERNELS)]
    values = chosen.decode(data[1:])
    again = chosen.decode(chosen.encode(values))
    if not same(values, again):
        raise AssertionError(f"kernel {data[0] % len(KERNELS)}: other values after a round trip")


def arrow_schema(data: bytes, index: int) -> None:
    """Let columns be what an ARROW:schema says of them, and let pyarrow check what is exported."""
    table, nodes = described()
    entry = base64.b64encode(data).decode()
    IpcSchema(entry)        # a typed error, or a schema
    found = ArrowFields(entry, nodes).restored(table, nodes)
    if not found.equals(table):
        raise AssertionError("an ARROW:schema changed values")
    for column in found.columns:
        try:
            values = pa.array(column)
        except (pa.ArrowException, ValueError, TypeError):      # an extension type or a name that pyarrow refuses
            continue
        values.validate(full=True)
        if values.null_count != column.null_count or len(values) != len(column):
            raise AssertionError(f"{values.null_count} nulls of {len(values)}")


def select(data: bytes, index: int) -> None:
    """Read the rows of a filter on some flat column, and ask for all that statistics and indexes tell."""
    properties = fastpq.ReaderProperties(verify_checksums=index % 2 == 0, **BOUNDS)
    with fastpq.ParquetFile(data, threads=1, properties=properties) as file:
        flat = [column for column in file.schema.columns if column.is_flat]
        if not flat:
            return
        column = flat[index % len(flat)]
        value = file.min_max(column.index)[index % 2]
        filters: Any = fastpq.Or((column.index, "is null"), (column.index, OPS[index % 4], value))
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


def sleep(data: bytes, index: int) -> None:
    if index == 3:
        time.sleep(3600)


def spin(data: bytes, index: int) -> None:
    while index == 3:
        pass


def greedy(data: bytes, index: int) -> None:
    if index == 3:
        bytearray(1 << 40)


def bare(data: bytes, index: int) -> None:
    if index == 3:
        raise IndexError("not a ParquetError")


def lie(data: bytes, index: int) -> None:
    if index == 3:
        raise WrongValueError("another value")


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
STORED = Path("build/campaign")     # seeds with random keys and nonces, stored: a number gives the same mutation in every run


def prepare(target: str, folder: Path | None) -> None:
    """Make the stored samples of a target, where these are missing; other targets have none."""
    if target == "paths":
        make_once(folder or STORED / "seeds", store)
    if target in ("key_material", "keyring"):
        make_once(folder or STORED / "keys", store_keys)


def samples_for(target: str, folder: Path | None) -> list[Any]:
    """What the mutations of a target begin with.

    Args:
        target: its name.
        folder: of the samples; None for the usual ones, which are made where they are missing.
    """
    prepare(target, folder)
    if target == "paths":
        return references(folder or STORED / "seeds")
    if target in ("key_material", "keyring"):
        return (key_samples if target == "key_material" else keyring_samples)(folder or STORED / "keys")
    makers = {
        "variant": variants, "wkb": geometries, "kernel": kernels, "codecs": codec_samples, "arrow_schema": schemas,
    }
    if folder is None and target in makers:
        return makers[target]()
    return nested_corpus() if folder is None and target == "nested" else corpus(folder)


def mutation_of(target: str) -> Callable[[Any, int, int], tuple[str, Any]]:
    """The function from samples, seed and number to a mutation's name and what the target takes."""
    if target == "paths":
        return mutate_seed
    if target == "codecs":
        return mutate_stream
    return mutate_json if target in ("key_material", "keyring") else mutate


def bytes_of(mutated: Any) -> bytes:
    """The mutated bytes."""
    return mutated if isinstance(mutated, bytes) else bytes(mutated.data)


TARGETS: dict[str, Callable[[Any, int], None]] = {
    target.__name__: target
    for target in (
        paths, read, nested, select, rewrite, kernel, codecs, variant, wkb, arrow_schema, key_material, keyring,
        crash, sleep, spin, greedy, bare, lie, refuse,
    )
}
