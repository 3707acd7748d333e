"""Forged files, read and handed to Arrow libraries: run by test_arrow_validity.py in a child process, for a library may abort.

Each file is written with bare physical types; then one leaf of its footer gets an annotation. Each case is printed before it is
tried, so that the last line of a dead process names the case.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import fastpq
from fastpq import format as fmt
from fastpq.arrays.nodes import KEYS_SORTED, NULLABLE, ORDERED, FieldNode
from fastpq.arrow.hints import arrow_schema_entry
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.schema.nested_types import ListType, MapType, StructType

# Values of each physical type: zeros, all bits set, small numbers, and bytes other than UTF-8.
PHYSICAL: dict[str, tuple[pa.DataType, list[Any]]] = {
    "BOOLEAN": (pa.bool_(), [True, False, True]),
    "INT32": (pa.int32(), [0, -1, 1000]),
    "INT64": (pa.int64(), [0, -1, 1 << 62]),
    "small INT64": (pa.int64(), [0, 1, 1000]),
    "FLOAT": (pa.float32(), [0.0, float("nan"), 1.5]),
    "DOUBLE": (pa.float64(), [0.0, float("nan"), 1.5]),
    "BYTE_ARRAY": (pa.binary(), [b"", b"\xff" * 20, b"{}"]),
    "text BYTE_ARRAY": (pa.binary(), [b"", b"a text longer than a view", b"null"]),
    "FIXED(2)": (pa.binary(2), [bytes(2), b"\xff" * 2, b"\x01\x3c"]),
    "FIXED(12)": (pa.binary(12), [bytes(12), b"\xff" * 12, b"\x01" * 12]),
    "FIXED(16)": (pa.binary(16), [bytes(16), b"\xff" * 16, b"\x01" * 16]),
}
UNITS = {
    "MILLIS": fmt.TimeUnit(MILLIS=fmt.MilliSeconds()),
    "MICROS": fmt.TimeUnit(MICROS=fmt.MicroSeconds()),
    "NANOS": fmt.TimeUnit(NANOS=fmt.NanoSeconds()),
}
DECIMALS = ((0, 1), (2, 9), (2, 18), (0, 38), (0, 76), (0, 77), (5, 4), (-1, 4), (0, 0))


def leaf_annotations() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every annotation of a leaf, valid and not, as fields of a SchemaElement."""
    yield "none", {}
    for number in range(23):
        yield f"converted {number}", {"converted_type": number}
    for scale, precision in DECIMALS:
        yield f"converted DECIMAL({precision}, {scale})", {"converted_type": 5, "precision": precision, "scale": scale}
        yield f"DECIMAL({precision}, {scale})", _logical(DECIMAL=fmt.DecimalType(scale=scale, precision=precision))
    for member, value in {
        "STRING": fmt.StringType(), "ENUM": fmt.EnumType(), "DATE": fmt.DateType(), "UNKNOWN": fmt.NullType(),
        "JSON": fmt.JsonType(), "BSON": fmt.BsonType(), "UUID": fmt.UUIDType(), "FLOAT16": fmt.Float16Type(),
        "MAP": fmt.MapType(), "LIST": fmt.ListType(), "GEOMETRY": fmt.GeometryType(crs='{"a": [}'),
        "GEOGRAPHY": fmt.GeographyType(crs="srid:x", algorithm=fmt.EdgeInterpolationAlgorithm.KARNEY),
    }.items():
        yield member, _logical(**{member: value})
    for name, unit in UNITS.items():
        for utc in (True, False):
            yield f"TIME {name} {utc}", _logical(TIME=fmt.TimeType(isAdjustedToUTC=utc, unit=unit))
            yield f"TIMESTAMP {name} {utc}", _logical(TIMESTAMP=fmt.TimestampType(isAdjustedToUTC=utc, unit=unit))
    for width in (8, 16, 32, 64, 7):
        for signed in (True, False):
            yield f"INTEGER({width}, {signed})", _logical(INTEGER=fmt.IntType(bitWidth=width, isSigned=signed))


def _logical(**member: Any) -> dict[str, Any]:
    return {"logicalType": fmt.LogicalType(**member)}


def positions(values: list[Any], type_: pa.DataType) -> Iterator[tuple[str, pa.Array]]:
    """The values, and a null where allowed, at every place of a schema."""
    plain, nulls = pa.array(values, type_), pa.array([*values[:2], None], type_)
    number = pa.array([1, 2, 3], pa.int32())
    offsets = pa.array([0, 1, 1, 3], pa.int32())
    yield "column", nulls
    yield "list", pa.ListArray.from_arrays(offsets, nulls)
    yield "list of lists", pa.ListArray.from_arrays(offsets, pa.ListArray.from_arrays(offsets, nulls))
    yield "struct", pa.StructArray.from_arrays([nulls, number], ["leaf", "other"], mask=pa.array([False, True, False]))
    yield "list of structs", pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([nulls], ["leaf"]))
    yield "key", pa.MapArray.from_arrays(offsets, plain, number)
    yield "value", pa.MapArray.from_arrays(offsets, number, nulls)
    yield "key in a struct", pa.MapArray.from_arrays(offsets, pa.StructArray.from_arrays([plain], ["leaf"]), number)
    yield "key of a map in a list", pa.ListArray.from_arrays(offsets, pa.MapArray.from_arrays(offsets, plain, number))
    yield "key of a list", pa.MapArray.from_arrays(offsets, pa.ListArray.from_arrays(offsets, plain), number)


def forged(data: bytes, leaf: int, fields: dict[str, Any], optional: bool = False, entry: str | None = None) -> bytes:
    """The file with fields of a leaf of the schema replaced, and an ARROW:schema entry."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = fmt.decode(fmt.FileMetaData, data[-8 - length : -8])[0]
    element = [element for element in footer.schema if element.type is not None][leaf]
    for name, value in fields.items():
        setattr(element, name, value)
    if optional:
        element.repetition_type = fmt.FieldRepetitionType.OPTIONAL
    if entry is not None:
        footer.key_value_metadata = [fmt.KeyValue(key=ARROW_KEY, value=entry)]
    stored = fmt.encode(footer)
    return data[: -8 - length] + stored + len(stored).to_bytes(4, "little") + b"PAR1"


def annotated_files() -> Iterator[tuple[str, bytes]]:
    for physical, (type_, values) in PHYSICAL.items():
        for position, array in positions(values, type_):
            sink = io.BytesIO()
            fastpq.write_table(pa.table({"c": array}), sink, compression=None)
            leaf = 1 if position == "value" else 0
            for name, fields in leaf_annotations():
                yield f"{name} on {physical} as {position}", forged(sink.getvalue(), leaf, fields)


FORMATS = (
    "n", "b", "c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "z", "Z", "vz", "u", "U", "vu", "w:2", "w:12", "w:16",
    "tdD", "tdm", "tts", "ttm", "ttu", "ttn", "tss:", "tsm:Mars/Crater", "tsu:UTC", "tsn:+25:99", "tDs", "tDn",
    "tiM", "tiD", "tin",
    "d:9,2", "d:9,2,32", "d:18,2,64", "d:38,0", "d:76,0,256", "+s", "+l", "+L", "+vl", "+vL", "+w:1", "+w:0", "+w:2", "+m",
)
EXTENSIONS = (
    b"arrow.uuid", b"arrow.json", b"arrow.bool8", b"arrow.opaque", b"arrow.fixed_shape_tensor", b"arrow.variable_shape_tensor",
    b"arrow.parquet.variant", b"geoarrow.wkb", b"arrow.timestamp_with_offset", b"unknown",
)


def hinted_files() -> Iterator[tuple[str, bytes]]:
    """Files whose ARROW:schema gives a leaf another Arrow type: a format, dictionaries, an extension type or flags."""
    flags = NULLABLE | ORDERED | KEYS_SORTED
    for physical in ("BOOLEAN", "INT32", "small INT64", "text BYTE_ARRAY", "FIXED(16)"):
        type_, values = PHYSICAL[physical]
        for position, array in positions(values, type_):
            table = pa.table({"c": array})
            sink = io.BytesIO()
            fastpq.write_table(table, sink, compression=None)
            own = fastpq.read_table(sink.getvalue(), strings="offsets")
            whole, leaf = _schema_of(own)
            for text, field in _hints(leaf, flags):
                entry = arrow_schema_entry(_replaced(whole, leaf, field), {})
                yield f"{text} over {physical} as {position}", forged(sink.getvalue(), 0, {}, entry=entry)


def _hints(leaf: FieldNode, flags: int) -> Iterator[tuple[str, FieldNode]]:
    for text in FORMATS:
        children = (replace(leaf, name="item"),) if text.startswith("+") else ()
        yield f"hint {text}", replace(leaf, format=text, flags=flags, children=children)
    for index in "cCsSiIlL":
        for text in FORMATS:
            if index in "cL" or text in ("u", leaf.format):
                yield f"hint {index} of {text}", replace(leaf, format=index, flags=flags, dictionary=FieldNode(text))
    for name in EXTENSIONS:
        for metadata in (b"", b"{}", b"[", b'{"shape": [2], "type_name": 1}', b"\xff"):
            pairs = {b"ARROW:extension:name": name, b"ARROW:extension:metadata": metadata}
            yield f"hint {name!r} {metadata!r}", replace(leaf, metadata=pairs)
            yield f"hint dictionary of {name!r} {metadata!r}", replace(leaf, format="i", metadata=pairs, dictionary=leaf)


def _schema_of(table: fastpq.Table) -> tuple[FieldNode, FieldNode]:
    """The schema of a table, and its first leaf."""
    from fastpq.arrow.exporting import table_schema

    whole = table_schema(table)
    leaf = whole
    while leaf.children:
        leaf = leaf.children[0]
    return whole, leaf


def _replaced(node: FieldNode, old: FieldNode, new: FieldNode) -> FieldNode:
    return new if node is old else replace(node, children=tuple(_replaced(child, old, new) for child in node.children))


def nullable_keys() -> Iterator[tuple[str, bytes]]:
    """Maps whose keys a footer calls optional, with and without null keys, and maps of other forms than Arrow's."""
    keys = pa.array(["a", None, "c"])
    for name, nulls in (("without", pa.array(["a", "b", "c"])), ("with", keys)):
        pairs = pa.StructArray.from_arrays([nulls, pa.array([1, 2, 3])], ["key", "value"])
        element = pa.list_(pa.field("element", pairs.type, nullable=False))
        lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), pairs, type=element)
        for strings in ("views", "dictionary"):
            sink = io.BytesIO()
            fastpq.write_table(pa.table({"c": lists}), sink, compression=None)
            data = sink.getvalue()
            length = int.from_bytes(data[-8:-4], "little")
            footer = fmt.decode(fmt.FileMetaData, data[-8 - length : -8])[0]
            del footer.schema[3]        # the list's element becomes the repeated group of key and value
            footer.schema[1].logicalType, footer.schema[1].converted_type = fmt.LogicalType(MAP=fmt.MapType()), None
            footer.schema[2].num_children = 2
            stored = fmt.encode(footer)
            yield f"{name} null keys, {strings}", data[: -8 - length] + stored + len(stored).to_bytes(4, "little") + b"PAR1"


def memory_tables() -> Iterator[tuple[str, fastpq.Table]]:
    """Tables made in memory, whose columns contradict themselves in ways that no file has."""
    from fastpq.arrays.table import Column, ListColumn, StructColumn
    from fastpq.schema.nested_types import Field
    from fastpq.schema.types import ColumnType, Type, Unknown

    number = Column(ColumnType(Type.INT32), np.arange(3, dtype=np.int32))
    for name, key in {
        "unknown": Column(ColumnType(Type.INT32, logical=Unknown()), np.zeros(3, np.int32), nullable=False),
        "null": Column(ColumnType(Type.INT32), np.zeros(3, np.int32), np.array([5], np.uint8), 1),
    }.items():
        for start in (0, 1):
            fields = (Field("key", key.type, key.nullable), Field("value", number.type))
            pairs = StructColumn(StructType(fields), (key, number), 3, nullable=False)
            maps = ListColumn(MapType(*fields), np.array([start, 3], np.int32), pairs)
            yield f"{name} keys from {start}", fastpq.Table({"c": maps})
            lists = ListColumn(ListType(Field("element", maps.type)), np.array([0, 1], np.int32), maps)
            yield f"{name} keys from {start} in a list", fastpq.Table({"c": lists})
        sparse = pairs._with(validity=np.array([6], np.uint8), null_count=1, nullable=True)
        yield f"null pairs, {name} keys", fastpq.Table({"c": ListColumn(MapType(*fields), np.array([0, 3], np.int32), sparse)})
        none = ListColumn(MapType(*fields), np.array([0, 0], np.int32), pairs.slice(0, 0))
        yield f"no {name} keys", fastpq.Table({"c": none})


def checked(table: fastpq.Table, peers: bool) -> str:
    """How Arrow libraries took a table: "valid", or the reason against it."""
    try:
        read = pa.table(table)
        read.validate(full=True)
    except fastpq.ParquetError as error:
        return f"refused: {error}"
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, NotImplementedError) as error:
        return f"invalid: {type(error).__name__} {error}"
    if peers:
        try:
            duckdb.from_arrow(read).fetchall()
            pl.from_arrow(table)
        except (duckdb.Error, pl.exceptions.PolarsError, ValueError, NotImplementedError, pl.exceptions.PanicException) as error:
            return f"peer: {type(error).__name__} {error}"
    return "valid"


def main(battery: str, strings: Any) -> None:
    if battery == "memory":
        for name, table in memory_tables():
            print(name, end=": ", flush=True)
            print(checked(table, peers=False), flush=True)
        return
    files = {"annotated": annotated_files, "hinted": hinted_files, "keys": nullable_keys}[battery]
    for number, (name, data) in enumerate(files()):
        print(name, end=": ", flush=True)
        try:
            table = fastpq.read_table(data, strings=strings)
        except fastpq.ParquetError as error:
            print("refused:", str(error).replace("\n", " "), flush=True)
            continue
        print(checked(table, peers=number % 20 == 0).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
