"""Writes docs/pages/format-support.md: features of the format, and their support by fastpq and by other libraries.

The column of fastpq is determined here: from the package's tables of encodings, codecs and algorithms, and by writing and reading
a small file with each feature. The other columns are data in tools/peer_support.py; tests/tools/test_format_support.py checks the
data against the installed libraries.
"""

from __future__ import annotations

import datetime
import io
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

import fastpq
from fastpq import encryption
from fastpq import format as fmt
from fastpq.catalogs import iceberg
from fastpq.codecs.catalogue import codec_for_read, codec_for_write
from fastpq.encodings.encoding_table import WRITABLE
from fastpq.encodings.registry import check_readable, check_writable
from fastpq.encryption.properties import ALGORITHMS, V2Layout
from fastpq.errors import FormatError, ParquetError
from fastpq.file_reference import FileReference, file_column
from fastpq.schema import types
from fastpq.schema.types import ColumnType, Type
from fastpq.variant import VariantColumn
from tools import peer_support
from tools.peer_support import NO, PEERS, READS, WRITES_TOO, YES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "pages" / "format-support.md"
COMMAND = "python -m tools.format_support"
KEY_BITS = (128, 192, 256)

HEAD = f"""# Format support

This page says which features of Parquet fastpq reads and writes, beside five other libraries.

RW: reads and writes. R: reads. –: neither. ?: not known. yes: done.

A cell of another library comes from the
[implementation status](https://parquet.apache.org/docs/file-format/implementationstatus/) of Apache Parquet. A mark shows another
source:

- †: our tests show it with the version below, and the status page has something else or no such row.
- ‡: the documentation or an issue of the project says it; the link leads there.

{{sources}}

fastpq's column is made from the code: `{COMMAND}` writes this page, and tests fail when the page is not up to date.
"""


@dataclass(frozen=True)
class Feature:
    """A row of a table.

    Attributes:
        name: name of the feature in tools.peer_support.
        ours: RW, R, – or yes.
        note: a sentence below the table.
    """

    name: str
    ours: str
    note: str = ""


def written(data: Any, schema: Any = None, **options: Any) -> bytes:
    """A Parquet file of the data, in memory."""
    out = io.BytesIO()
    fastpq.write_table(data, out, schema=schema, **options)
    return out.getvalue()


# ---- types


def _of(physical: Type, logical: types.LogicalType, length: int | None = None) -> ColumnType:
    return ColumnType(physical, length, logical)


_FIXED = Type.FIXED_LEN_BYTE_ARRAY
_POINT = bytes.fromhex("0101000000") + np.array([1.0, 2.0]).tobytes()      # ISO WKB
# Column type and sample values by annotation of parquet.thrift; an annotation of several physical types names one of them.
LEAVES: dict[str, tuple[ColumnType, Any]] = {
    "STRING": (_of(Type.BYTE_ARRAY, types.String()), ["a"]),
    "ENUM": (_of(Type.BYTE_ARRAY, types.Enum()), ["a"]),
    "JSON": (_of(Type.BYTE_ARRAY, types.Json()), ["{}"]),
    "BSON": (_of(Type.BYTE_ARRAY, types.Bson()), [b"\x05\0\0\0\0"]),
    "UUID": (_of(_FIXED, types.Uuid(), 16), [uuid.UUID(int=7)]),
    "INTEGER": (_of(Type.INT32, types.Integer(8, False)), np.array([200], np.uint8)),
    "DECIMAL on INT32": (_of(Type.INT32, types.Decimal(9, 2)), [Decimal("1.25")]),
    "DECIMAL on INT64": (_of(Type.INT64, types.Decimal(18, 2)), [Decimal("1.25")]),
    "DECIMAL on BYTE_ARRAY": (_of(Type.BYTE_ARRAY, types.Decimal(30, 2)), [Decimal("1.25")]),
    "DECIMAL on FIXED_LEN_BYTE_ARRAY": (_of(_FIXED, types.Decimal(30, 2), 13), [Decimal("1.25")]),
    "FLOAT16": (_of(_FIXED, types.Float16(), 2), np.array([1.5], np.float16)),
    "DATE": (_of(Type.INT32, types.Date()), [datetime.date(2024, 1, 1)]),
    "TIME on INT32": (_of(Type.INT32, types.Time("ms")), [datetime.time(1, 2, 3)]),
    "TIME on INT64": (_of(Type.INT64, types.Time("us")), [datetime.time(1, 2, 3)]),
    "TIMESTAMP": (_of(Type.INT64, types.Timestamp("us")), [datetime.datetime(2024, 1, 1)]),
    "INTERVAL": (_of(_FIXED, types.Interval(), 12), np.zeros(1, "V12")),
    "GEOMETRY": (_of(Type.BYTE_ARRAY, types.Geometry()), [_POINT]),
    "GEOGRAPHY": (_of(Type.BYTE_ARRAY, types.Geography()), [_POINT]),
    "UNKNOWN": (_of(Type.INT32, types.Unknown()), np.ma.masked_all(1, np.int32)),
}
GROUPS: dict[str, Callable[[], Any]] = {
    "LIST": lambda: pa.table({"x": [[1, 2]]}),
    "MAP": lambda: pa.table({"x": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}),
    "VARIANT": lambda: {"x": VariantColumn.from_pylist([{"a": 1}])},
    "FILE": lambda: {"x": file_column([FileReference(uri="a")])},
}


def _round_trip(data: Any, annotation: str, type_: ColumnType | None = None) -> str:
    """RW for a column read back unchanged from a file with the annotation in parquet.thrift's spelling.

    Raises:
        AssertionError: another annotation in the file, or other values.
    """
    file = written(data, None if type_ is None else {"x": type_})
    element = fastpq.read_metadata(file).schema_elements[1]
    if getattr(element.logicalType, annotation, None) is None and element.converted_type != fmt.ConvertedType[annotation]:
        raise AssertionError(f"not annotated {annotation}: {element}")
    # a second file written from the values read
    table = fastpq.read_table(file)
    if table.to_pylist() != fastpq.read_table(written(table)).to_pylist() or table.num_rows != 1:
        raise AssertionError(f"other values of {annotation}: {table.to_pylist()}")
    return WRITES_TOO


def logical_types() -> Iterator[Feature]:
    """Support of logical types; fails if a member of LogicalType has no probe."""
    probed = {name.partition(" ")[0] for name in [*LEAVES, *GROUPS]}
    if missing := set(fmt.LogicalType.__annotations__) - probed:
        raise AssertionError(f"no probe for {', '.join(sorted(missing))}")
    for name, (type_, values) in LEAVES.items():
        yield Feature(name, _round_trip({"x": values}, name.partition(" ")[0], type_), peer_support.NOTES.get(name, ""))
    for name, make in GROUPS.items():
        yield Feature(name, _round_trip(make(), name), peer_support.NOTES.get(name, ""))


def physical_types() -> Iterator[Feature]:
    for type_ in Type:
        yield Feature(type_.name, _encoding("PLAIN", [type_]), peer_support.NOTES.get(type_.name, ""))


# ---- encodings, codecs, pages


def _encoding(name: str, physical: Sequence[Type]) -> str:
    reads = writes = bool(physical)
    for type_ in physical:
        try:
            check_readable(fmt.Encoding[name], type_)
        except ParquetError:
            reads = False
        try:
            check_writable(name, type_)
        except ParquetError:
            writes = False
    return WRITES_TOO if reads and writes else READS if reads else NO


def encodings() -> Iterator[Feature]:
    for encoding in fmt.Encoding:
        name, physical = encoding.name, sorted(WRITABLE.get(encoding, ()))
        if encoding == fmt.Encoding.BIT_PACKED:
            yield Feature("BIT_PACKED", READS, "deprecated, and for levels alone.")
            continue
        note = peer_support.NOTES.get(name, "")
        if name in peer_support.BY_TYPE:
            for part, those in peer_support.BY_TYPE[name].items():
                yield Feature(part, _encoding(name, [type_ for type_ in physical if type_.name in those]), note)
                note = ""
        else:
            yield Feature(name, _encoding(name, physical), note)


def codecs() -> Iterator[Feature]:
    for codec in fmt.CompressionCodec:
        try:
            codec_for_write(codec_for_read(codec).name)
        except ParquetError:
            ours = NO
        else:
            ours = WRITES_TOO
        yield Feature(codec.name, ours, peer_support.NOTES.get(codec.name, ""))


def pages() -> Iterator[Feature]:
    for version, name in (("1.0", "data page V1"), ("2.0", "data page V2")):
        file = written({"x": np.arange(10)}, data_page_version=version)
        yield Feature(name, WRITES_TOO if fastpq.read_table(file).num_rows == 10 else NO)
    altered = bytearray(written({"x": np.arange(10)}, compression=None))
    altered[60] ^= 1
    try:
        fastpq.read_table(altered)
    except FormatError:
        yield Feature("page CRC-32", WRITES_TOO)


# ---- statistics and indexes


def indexes() -> Iterator[Feature]:
    place, points = LEAVES["GEOMETRY"]
    data = {"id": np.arange(1), "x": np.ones(1), "place": points}
    options: dict[str, Any] = {"bloom_filter": {"id": True}, "sort_by": ["id"], "float_order": "total"}
    with fastpq.ParquetFile(written(data, {"place": place}, **options)) as file:
        group = file.metadata.row_group(0)
        chunk, floats, places = map(group.column, range(3))
        assert chunk.statistics is not None
        assert floats.statistics is not None
        found = {
            "statistics: min_value, max_value": chunk.statistics.raw.min_value is not None,
            "statistics: nan_count": floats.statistics.nan_count is not None,
            "size statistics": places.metadata.size_statistics is not None,
            "geospatial statistics": places.geospatial_statistics is not None,
            "page index": None not in (file.offset_index(0, "id"), file.column_index(0, "id")),
            "bloom filters": file.bloom_filter(0, "id") is not None,
            "sorting columns": bool(group.sorting_columns),
            "IEEE 754 total order": getattr(file.metadata.column_order(1), "IEEE_754_TOTAL_ORDER", None) is not None,
        }
    for name, there in found.items():
        yield Feature(name, WRITES_TOO if there else NO, peer_support.NOTES.get(name, ""))


def selection() -> Iterator[Feature]:
    """Parts of a file skipped by reads, according to ``explain``."""
    rows = np.arange(20_000)
    data = {"id": rows, "name": rows * 2 % 20_011}
    file = written(data, row_group_size=10_000, data_page_rows=1_000, bloom_filter={"name": True})
    with fastpq.ParquetFile(file) as opened:
        by_bounds, by_bloom = opened.explain([("id", "<", 500)], ["id"]), opened.explain([("name", "==", 20_001)], ["name"])
        found = {
            "single columns": [column.column for column in by_bounds.row_groups[0].columns] == ["id"],
            "row groups left out by statistics": len([group for group in by_bounds.row_groups if group.rows]) == 1,
            "row groups left out by bloom filters": not any(group.rows for group in by_bloom.row_groups),
            "pages left out by the page index": by_bounds.row_groups[0].columns[0].pages == 1,
            "column chunks in other files": hasattr(fastpq.ReaderProperties(), "allow_outside_files"),
        }
    for name, done in found.items():
        yield Feature(name, YES if done else NO, peer_support.NOTES.get(name, ""))


# ---- encryption


def modes() -> dict[str, tuple[fastpq.FileEncryptionProperties, fastpq.FileDecryptionProperties]]:
    """For each mode of encryption, the properties to write with and the properties to read with."""
    footer_key, key = bytes(range(16)), bytes(range(16, 32))
    columns, written_with, read_with = {"id": key}, fastpq.FileEncryptionProperties, fastpq.FileDecryptionProperties
    found = {
        "any encryption": (written_with(footer_key), read_with(footer_key)),
        "one key for footer and columns": (written_with(footer_key), read_with(footer_key)),
        "keys of single columns": (written_with(footer_key, columns), read_with(footer_key, columns)),
        "signed plaintext footer": (written_with(footer_key, columns, plaintext_footer=True), read_with(footer_key, columns)),
        "AAD prefix": (
            written_with(footer_key, aad_prefix=b"a", store_aad_prefix=False),
            read_with(footer_key, aad_prefix=b"a"),
        ),
    }
    for algorithm in ALGORITHMS:
        found[algorithm] = (
            written_with(footer_key, algorithm=algorithm),
            read_with(footer_key, allowed_algorithms=[algorithm]),
        )
    for bits in KEY_BITS:
        long_key = bytes(range(bits // 8))
        found[f"keys of {bits} bits"] = (written_with(long_key), read_with(long_key))
    return found


def modes_of_encryption() -> Iterator[Feature]:
    for name, (encrypt, decrypt) in modes().items():
        file = written({"id": np.arange(10)}, encryption_properties=encrypt)
        ours = WRITES_TOO if fastpq.read_table(file, decryption_properties=decrypt).num_rows == 10 else NO
        yield Feature(name, ours, peer_support.NOTES.get(name, ""))
    for layout in get_args(V2Layout):
        name = f"pages V2, layout of {layout}"
        yield Feature(name, WRITES_TOO, peer_support.NOTES.get(name, ""))
    clients = [name for name in encryption.__all__ if name.endswith("KmsClient") and name != "KmsClient"]
    note = f"fastpq has the clients {', '.join(clients)} and Keyring. pyarrow and parquet-java have an interface for clients."
    yield Feature("keys in a key service", WRITES_TOO, note)
    name = "data files of encrypted Iceberg tables"
    yield Feature(name, WRITES_TOO if hasattr(iceberg, "file_properties") else NO, peer_support.NOTES[name])


# ---- the page

SECTIONS: tuple[tuple[str, str, Callable[[], Iterator[Feature]]], ...] = (
    ("Physical types", "Type", physical_types),
    ("Logical types", "Type", logical_types),
    ("Encodings", "Encoding", encodings),
    ("Codecs", "Codec", codecs),
    ("Pages", "Feature", pages),
    ("Statistics and indexes", "Feature", indexes),
    ("What a reader can leave out", "A reader takes", selection),
    ("Encryption", "Feature", modes_of_encryption),
)


def cell(feature: str, peer: str) -> str:
    """A library's support of a feature, with the mark of the source."""
    known, source = peer_support.cell(feature, peer)
    return known if source is None else f"{known} †" if source == "tested" else f"{known} [‡]({source})"


def markdown() -> str:
    """The whole page."""
    lines = [HEAD.format(sources=sources())]
    for title, kind, features in SECTIONS:
        lines += [f"## {title}", "", f"| {kind} | fastpq | {' | '.join(PEERS)} |", "| --- |" + " :-: |" * (len(PEERS) + 1)]
        notes = []
        for feature in features():
            lines.append(f"| {feature.name} | {feature.ours} | {' | '.join(cell(feature.name, peer) for peer in PEERS)} |")
            notes += [f"- {feature.name}: {feature.note}"] if feature.note else []
        lines += ["", *notes, *([""] if notes else [])]
    return "\n".join(lines).rstrip("\n") + "\n"


def sources() -> str:
    """The table with status date and tested version of each library."""
    lines = ["| Library | Status page: project, date | Version in our tests |", "| --- | --- | --- |"]
    lines += [f"| {peer} | {source.status} | {source.tested} |" for peer, source in PEERS.items()]
    return "\n".join(lines)


def main() -> int:
    PAGE.write_text(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
