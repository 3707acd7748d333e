"""Small seed files for campaigns: every encoding, codec, page version, nesting, logical type, index and encryption mode."""

from __future__ import annotations

import datetime
import decimal
import io
import itertools
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from fastpq.encryption.properties import Algorithm, ColumnEncryptionProperties
from fastpq.schema.types import ColumnType, Type
from fastpq.variant import VariantColumn
from fastpq.variant.shredding_schema import ShreddingSchema
from tests.corrupt.corpus import nested_table, sample
from tests.corrupt.mutate import Sample

ROWS = 20
LARGEST_WILD = 3000     # bytes of a file of the test data
FOOTER_KEY, COLUMN_KEY = bytes(range(16)), bytes(range(32, 64))
PREFIX = b"prefix"
MANIFEST = "manifest.json"
CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4", "lz4_hadoop")
VERSIONS = ("1.0", "2.0")
PAGES: dict[str, Any] = {"data_page_rows": 5, "row_group_size": 12}
ALGORITHMS: tuple[Algorithm, ...] = ("AES_GCM_V1", "AES_GCM_CTR_V1")

# Encryption modes: arguments of FileEncryptionProperties behind the footer key. COLUMN stands for a key of the first column.
MODES: dict[str, dict[str, Any]] = {
    "uniform": {},
    "column": {"column": True},
    "partly": {"column": True, "unlisted": "plaintext"},
    "signed": {"column": True, "plaintext_footer": True, "unlisted": "plaintext"},
    "prefix": {"aad_prefix": PREFIX, "store_aad_prefix": False},
    "ctr": {"algorithm": "AES_GCM_CTR_V1"},
    "java": {"v2_layout": "parquet-java"},
}
SEALED = ("uniform", "column", "prefix", "java")    # modes in which every value, and the whole footer, is authenticated


@dataclass(frozen=True)
class Seed:
    """A file to mutate.

    Attributes:
        name: name of the file.
        data: bytes of the file.
        mode: a key of MODES; None for a plaintext file.
        checked: whether every page has a checksum or a tag.
    """

    name: str
    data: bytes
    mode: str | None = None
    checked: bool = True

    @cached_property
    def sample(self) -> Sample:
        """The file with the places of its page headers, as far as they are in the clear."""
        # pyarrow 26 aborts the process on a plaintext footer with encrypted columns
        return sample(self.name, self.data) if self.mode is None else Sample(self.name, self.data, ())

    @property
    def keys(self) -> fastpq.FileDecryptionProperties | None:
        return None if self.mode is None else decryption(self.mode)


def encryption(mode: str, column: str) -> fastpq.FileEncryptionProperties:
    """Encryption properties of a mode, for a file with this first column."""
    options = dict(MODES[mode])
    named = ColumnEncryptionProperties(COLUMN_KEY, key_metadata=b"column key")
    keys = {column: named} if options.pop("column", False) else None
    return fastpq.FileEncryptionProperties(FOOTER_KEY, keys, **options)


def decryption(mode: str) -> fastpq.FileDecryptionProperties:
    """Decryption properties of a mode; column keys come from a retriever, which knows the key's name alone."""
    prefix = PREFIX if mode == "prefix" else None
    return fastpq.FileDecryptionProperties(
        FOOTER_KEY, key_retriever=lambda metadata: COLUMN_KEY, aad_prefix=prefix, allowed_algorithms=ALGORITHMS
    )


def write(table: Any, **options: Any) -> bytes:
    """A file of fastpq with small pages."""
    sink = io.BytesIO()
    fastpq.write_table(table, sink, **{**PAGES, **options})
    return sink.getvalue()


def rows(count: int = ROWS) -> range:
    return range(count)


def plain_values() -> dict[str, pa.Array]:
    """An array of each physical type, with nulls where the name says so."""
    return {
        "bool": pa.array([i % 3 == 0 for i in rows()]),
        "int32": pa.array([i * 7 - 30 for i in rows()], pa.int32()),
        "int64": pa.array([i // 3 << 33 for i in rows()], pa.int64()),
        "float": pa.array([i / 4 for i in rows()], pa.float32()),
        "double": pa.array([None if i % 4 == 1 else i / 8 - 1 for i in rows()], pa.float64()),
        "binary": pa.array([b"prefix %d more than twelve" % (i // 4) for i in rows()], pa.binary()),
        "string": pa.array([None if i % 5 == 2 else f"text {i % 6} é" for i in rows()]),
        "fixed": pa.array([bytes([i, 1, 2, 3, i // 2]) for i in rows()], pa.binary(5)),
    }


ENCODED = {
    "PLAIN": ("bool", "int32", "int64", "float", "double", "binary", "string", "fixed"),
    "RLE": ("bool",),
    "DELTA_BINARY_PACKED": ("int32", "int64"),
    "BYTE_STREAM_SPLIT": ("int32", "int64", "float", "double", "fixed"),
    "DELTA_LENGTH_BYTE_ARRAY": ("binary", "string"),
    "DELTA_BYTE_ARRAY": ("binary", "string", "fixed"),
    "ALP": ("float", "double"),
    "RLE_DICTIONARY": ("int32", "int64", "float", "double", "binary", "string", "fixed"),
}


def encoded() -> Iterator[Seed]:
    """Each encoding of each type, with codecs and page versions in turn, and an index."""
    values = plain_values()
    turns = itertools.cycle(itertools.product(CODECS, VERSIONS))
    for encoding, names in ENCODED.items():
        for name in names:
            for _ in range(2):
                codec, version = next(turns)
                dictionary = encoding == "RLE_DICTIONARY"
                options: dict[str, Any] = {"use_dictionary": dictionary, "compression": codec, "data_page_version": version}
                options["column_encoding"] = {} if dictionary else {name: encoding}
                made = f"{encoding} {name} {codec} {version}"
                yield Seed(made, write(pa.table({name: values[name], "second": values["int32"]}), **options))


def logical() -> Iterator[Seed]:
    """Each logical type, with a bloom filter where there can be one."""
    day, moment = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)
    number = list(rows())
    integers = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    types: dict[str, pa.Array] = {
        **{str(kind): pa.array(number, kind) for kind in integers},
        "date": pa.array([day + datetime.timedelta(i) for i in number]),
        **{f"time {unit}": pa.array(number, pa.time32(unit) if unit == "ms" else pa.time64(unit)) for unit in ("ms", "us", "ns")},
        **{f"stamp {unit}": pa.array([moment] * ROWS, pa.timestamp(unit, "UTC")) for unit in ("ms", "us", "ns")},
        "local": pa.array([moment, None] * (ROWS // 2), pa.timestamp("us")),
        **{f"decimal{p}": pa.array([decimal.Decimal(i).scaleb(-2) for i in number], pa.decimal128(p, 2)) for p in (7, 15, 30)},
        "decimal256": pa.array([decimal.Decimal(i) for i in number], pa.decimal256(50, 2)),
        "half": pa.array([np.float16(i) for i in number], pa.float16()),
        "uuid": pa.array([uuid.UUID(int=i).bytes for i in number], pa.uuid()),
        "json": pa.array(['{"a": 1}'] * ROWS, pa.json_()),
        "null": pa.nulls(ROWS),
        "duration": pa.array(number, pa.duration("ms")),
        "category": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
    }
    for place, (name, values) in enumerate(types.items()):
        arrow = name in ("duration", "category")
        filtered = {} if name in ("null", "half") else {name: True}
        options: dict[str, Any] = {"compression": CODECS[place % 6], "data_page_version": VERSIONS[place % 2]}
        yield Seed(f"logical {name}", write(pa.table({name: values}), arrow_schema=arrow, bloom_filter=filtered, **options))
    sink = io.BytesIO()
    stamps = pa.table({"int96": pa.array([moment, None] * (ROWS // 2), pa.timestamp("ns"))})
    pq.write_table(stamps, sink, use_deprecated_int96_timestamps=True, compression="none", store_schema=False)
    yield Seed("logical int96", sink.getvalue(), checked=False)


def nested() -> Iterator[Seed]:
    """Each kind of nesting in both page versions, and variants."""
    table = nested_table(ROWS)
    for place, name in enumerate(table.column_names):
        for version in VERSIONS:
            codec = CODECS[(place + int(version[0])) % 6]
            yield Seed(f"nested {name} {version}", write(table.select([name]), data_page_version=version, compression=codec))
        sink = io.BytesIO()
        options: dict[str, Any] = {"compression": "none", "data_page_size": 60, "write_batch_size": 4, "write_page_index": True}
        pq.write_table(table.select([name]), sink, store_schema=False, write_page_checksum=True, **options)
        yield Seed(f"nested {name} pyarrow", sink.getvalue())
    documents = VariantColumn.from_pylist([{"a": i, "b": [f"text {i}", None]} for i in rows(6)])
    shapes: list[ShreddingSchema] = [None, {"a": ColumnType(Type.INT64)}]
    for place, shape in enumerate(shapes):
        yield Seed(f"variant {place}", write({"v": documents.to_struct(shape)}))


def special() -> Iterator[Seed]:
    """Sort orders, total order of floats, checkpoints, no statistics, no rows."""
    values = plain_values()
    flat = pa.table({name: values[name] for name in ("int32", "double", "string")})
    yield Seed("sorted", write(flat, sort_by=["string", "int32"], bloom_filter={"string": True}))
    yield Seed("total order", write(flat, float_order="total"))
    yield Seed("checkpoints", write(flat, checkpoint_every=1))
    yield Seed("no statistics", write(flat, write_statistics=False, write_page_index=False))
    yield Seed("no checksums", write(flat, write_page_checksum=False), checked=False)
    yield Seed("empty", write(flat.slice(0, 0)))
    yield Seed("categories", write(pa.table({"c": values["string"].dictionary_encode()}), arrow_schema=True))


def encrypted() -> Iterator[Seed]:
    """Each encryption mode, flat and nested, in both page versions."""
    values = plain_values()
    flat = pa.table({name: values[name] for name in ("int64", "string")})
    lists = nested_table(ROWS).select(["list"])
    for mode, version in itertools.product(MODES, VERSIONS):
        options: dict[str, Any] = {"data_page_version": version, "compression": "snappy"}
        bloom = {"bloom_filter": {"string": True}}
        plain = write(flat, encryption_properties=encryption(mode, "int64"), **bloom, **options)
        checked = mode not in ("ctr",)
        yield Seed(f"encrypted {mode} {version}", plain, mode, checked)
        sealed = write(lists, encryption_properties=encryption(mode, "list"), **options)
        yield Seed(f"encrypted nested {mode} {version}", sealed, mode, checked)


def wild() -> Iterator[Seed]:
    """Small valid files of the test data."""
    if data := os.environ.get("FASTPQ_TEST_DATA"):
        folder = Path(data) / "wild"
        for entry in json.loads((folder / "manifest.json").read_text()):
            path = folder / entry["file"]
            if entry["class"] == "valid" and path.stat().st_size <= LARGEST_WILD:
                yield Seed(f"wild {entry['file']}", path.read_bytes(), checked=False)


def seeds() -> list[Seed]:
    """All seeds; keys and nonces of encrypted ones are new in every call."""
    return [*encoded(), *logical(), *nested(), *special(), *encrypted(), *wild()]


def store(folder: Path) -> None:
    """Write the seeds to a new folder."""
    entries = []
    for number, seed in enumerate(seeds()):
        file = f"{number:04}.parquet"
        (folder / file).write_bytes(seed.data)
        entries.append({"file": file, "name": seed.name, "mode": seed.mode, "checked": seed.checked})
    (folder / MANIFEST).write_text(json.dumps(entries, indent=1))


def load(folder: Path) -> list[Seed]:
    """The seeds of a folder."""
    entries = json.loads((folder / MANIFEST).read_text())
    return [Seed(entry["name"], (folder / entry["file"]).read_bytes(), entry["mode"], entry["checked"]) for entry in entries]
