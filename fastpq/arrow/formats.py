"""Arrow's format strings and extension types, and the column types that imported arrays get.

| Arrow format             | column type                                        | conversion of values          |
| ------------------------ | -------------------------------------------------- | ----------------------------- |
| n                        | INT32 UNKNOWN                                      | all null                      |
| b                        | BOOLEAN                                            | bits to bytes                 |
| c, s                     | INT32 INTEGER(8 or 16, signed)                     |                               |
| C, S, I                  | INT32 INTEGER(8, 16 or 32, unsigned)               |                               |
| i, l, L                  | INT32, INT64, INT64 INTEGER(64, unsigned)          |                               |
| e, f, g                  | FIXED_LEN_BYTE_ARRAY(2) FLOAT16, FLOAT, DOUBLE     |                               |
| u, U, vu                 | BYTE_ARRAY STRING (JSON for arrow.json)            |                               |
| z, Z, vz                 | BYTE_ARRAY (GEOMETRY, GEOGRAPHY for geoarrow.wkb)  |                               |
| w:n                      | FIXED_LEN_BYTE_ARRAY(n) (UUID for arrow.uuid)      |                               |
| d:p,s,32 or d:p,s,64     | INT32 or INT64 DECIMAL(p, s)                       |                               |
| d:p,s or d:p,s,256       | FIXED_LEN_BYTE_ARRAY(fewest bytes) DECIMAL(p, s)   | 256: 16 bytes where p <= 38   |
| tdD, tdm                 | INT32 DATE                                         | tdm: milliseconds to days     |
| ttm, ttu, ttn, tts       | INT32 or INT64 TIME(ms, us, ns), not UTC           | tts: seconds to milliseconds  |
| tsm:, tsu:, tsn:, tss:   | INT64 TIMESTAMP(ms, us, ns), UTC with any timezone | tss: seconds to milliseconds  |
| tDs, tDm, tDu, tDn       | INT64                                              |                               |
| tiM, tiD, tin            | FIXED_LEN_BYTE_ARRAY(12) INTERVAL                  | to months, days, milliseconds |
| a dictionary of these    | its values' type                                   | decoded, except u to vz       |
| +s, +m                   | struct, map of these (fields.py)                   |                               |
| +l, +L, +w:n, +vl, +vL   | list of these (fields.py)                          |                               |
| +r                       | its values' type (runs_and_unions.py)              | expanded                      |
| +us, +ud                 | struct of type_id and members (runs_and_unions.py) |                               |

``Column.arrow`` keeps the rest of the Arrow type: the timezone name, units, widths, layouts, and other extension types, which
are imported as their storage types. A Parquet timestamp is either an instant (UTC) or a local time. Arrow counts ticks since
1970-01-01 00:00 UTC in every timezone, so that no value changes. A required field becomes a required column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal, cast

import numpy as np

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn
from fastpq.arrow import casts as convert
from fastpq.arrow import restoring
from fastpq.arrow.canonical import GEOARROW_WKB, PARQUET_VARIANT, geospatial_metadata, geospatial_type, is_sound
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.schema.types import (
    ColumnType,
    Date,
    Decimal,
    Float16,
    Geography,
    Geometry,
    Integer,
    Interval,
    Json,
    String,
    Time,
    Timestamp,
    TimeUnitName,
    Type,
    Unknown,
    Uuid,
)

EXTENSION_NAME = b"ARROW:extension:name"
EXTENSION_METADATA = b"ARROW:extension:metadata"


class FormatLayout(IntEnum):
    """The buffers that an Arrow array has after its validity bitmap."""

    NONE = 0        # no buffer
    BITS = 1
    FIXED = 2       # values
    OFFSETS = 3     # offsets, data
    VIEWS = 4       # views, data buffers, their sizes


@dataclass(frozen=True, slots=True)
class ArrowType:
    """A flat Arrow type that can be imported: its buffers and its column type.

    Attributes:
        type: the column type.
        layout: the buffers.
        dtype: dtype of the buffer's values, or of its offsets.
        convert: function that converts buffer values to column values, or None if both are equal.
    """

    type: ColumnType
    layout: FormatLayout
    dtype: np.dtype[Any]
    convert: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None = None


def _fixed(dtype: str, physical: Type, logical: Any = None, length: int | None = None) -> ArrowType:
    return ArrowType(ColumnType(physical, length, logical), FormatLayout.FIXED, np.dtype(dtype))


def _binary(layout: FormatLayout, dtype: str, *, text: bool) -> ArrowType:
    return ArrowType(ColumnType(Type.BYTE_ARRAY, logical=String() if text else None), layout, np.dtype(dtype))


_PLAIN = {
    "n": ArrowType(ColumnType(Type.INT32, logical=Unknown()), FormatLayout.NONE, np.dtype(np.int32)),
    "b": ArrowType(ColumnType(Type.BOOLEAN), FormatLayout.BITS, np.dtype(np.bool_)),
    "c": _fixed("i1", Type.INT32, Integer(8, signed=True)),
    "C": _fixed("u1", Type.INT32, Integer(8, signed=False)),
    "s": _fixed("i2", Type.INT32, Integer(16, signed=True)),
    "S": _fixed("u2", Type.INT32, Integer(16, signed=False)),
    "i": _fixed("i4", Type.INT32),
    "I": _fixed("u4", Type.INT32, Integer(32, signed=False)),
    "l": _fixed("i8", Type.INT64),
    "L": _fixed("u8", Type.INT64, Integer(64, signed=False)),
    "e": _fixed("f2", Type.FIXED_LEN_BYTE_ARRAY, Float16(), 2),
    "f": _fixed("f4", Type.FLOAT),
    "g": _fixed("f8", Type.DOUBLE),
    "u": _binary(FormatLayout.OFFSETS, "i4", text=True),
    "U": _binary(FormatLayout.OFFSETS, "i8", text=True),
    "vu": _binary(FormatLayout.VIEWS, "V16", text=True),
    "z": _binary(FormatLayout.OFFSETS, "i4", text=False),
    "Z": _binary(FormatLayout.OFFSETS, "i8", text=False),
    "vz": _binary(FormatLayout.VIEWS, "V16", text=False),
    "tdD": _fixed("i4", Type.INT32, Date()),
    "tdm": replace(_fixed("i8", Type.INT32, Date()), convert=convert.milliseconds_to_days),
    "tts": replace(_fixed("i4", Type.INT32, Time("ms")), convert=convert.seconds_to_milliseconds),
    "ttm": _fixed("i4", Type.INT32, Time("ms")),
    "ttu": _fixed("i8", Type.INT64, Time("us")),
    "ttn": _fixed("i8", Type.INT64, Time("ns")),
    **{f"tD{unit}": _fixed("i8", Type.INT64) for unit in "smun"},
    "tiM": replace(_fixed("i4", Type.FIXED_LEN_BYTE_ARRAY, Interval(), 12), convert=restoring.months_to_interval),
    "tiD": replace(_fixed("V8", Type.FIXED_LEN_BYTE_ARRAY, Interval(), 12), convert=restoring.day_time_to_interval),
    "tin": replace(_fixed("V16", Type.FIXED_LEN_BYTE_ARRAY, Interval(), 12), convert=restoring.month_day_nano_to_interval),
}

_TIMESTAMPS: dict[str, TimeUnitName] = {"tss:": "ms", "tsm:": "ms", "tsu:": "us", "tsn:": "ns"}

def arrow_type(node: FieldNode) -> ArrowType:
    """Return a field's ArrowType. For a dictionary-encoded field it is the dictionary type.

    Raises:
        UnsupportedError: the format is nested, or no Parquet type can hold its values without loss.
        SchemaError: the format string has a wrong syntax.
    """
    values = node if node.dictionary is None else node.dictionary
    arrow = _parse(values.format)
    if not (node.metadata or values.metadata):
        return arrow
    extension = (node.metadata or {}).get(EXTENSION_NAME) or (values.metadata or {}).get(EXTENSION_NAME)
    if extension == b"arrow.uuid" and values.format == "w:16":
        arrow = replace(arrow, type=replace(arrow.type, logical=Uuid()))
    elif extension == b"arrow.json" and isinstance(arrow.type.logical, String):
        arrow = replace(arrow, type=replace(arrow.type, logical=Json()))
    elif extension == GEOARROW_WKB and arrow.type == ColumnType(Type.BYTE_ARRAY):
        metadata = (node.metadata or {}).get(EXTENSION_METADATA) or (values.metadata or {}).get(EXTENSION_METADATA)
        arrow = replace(arrow, type=replace(arrow.type, logical=geospatial_type(metadata or b"")))
    return arrow


def extension_metadata(column_type: ColumnType) -> dict[bytes, bytes] | None:
    """Return the field metadata for a column type's extension type, or None if the column type has no extension type."""
    if isinstance(column_type.logical, Uuid):
        return {EXTENSION_NAME: b"arrow.uuid", EXTENSION_METADATA: b""}
    if isinstance(column_type.logical, Json):
        return {EXTENSION_NAME: b"arrow.json", EXTENSION_METADATA: b""}
    if isinstance(column_type.logical, Geometry | Geography):
        return {EXTENSION_NAME: GEOARROW_WKB, EXTENSION_METADATA: geospatial_metadata(column_type.logical)}
    return None


VARIANT_METADATA = {EXTENSION_NAME: PARQUET_VARIANT, EXTENSION_METADATA: b""}


def exported_metadata(
    column: AnyColumn, text: str, own: dict[bytes, bytes] | None = None, *, is_dictionary: bool = False
) -> dict[bytes, bytes] | None:
    """Return an exported column's field metadata.

    It consists of the metadata from the column's Arrow field and the metadata for its own extension type. The Arrow field's
    extension type is dropped if the format has changed, or if format and metadata do not fit the extension type. pyarrow would
    otherwise refuse the whole table.

    Args:
        column: the column.
        text: the exported format. For a dictionary it is the index format.
        own: metadata for the extension type that belongs to the column type, or None.
        is_dictionary: whether the column is exported as a dictionary.
    """
    metadata: dict[bytes, bytes] = {}
    if column.arrow is not None and column.arrow.metadata:
        metadata = dict(column.arrow.metadata)
        name = metadata.get(EXTENSION_NAME)
        if name is not None:
            storage = "a dictionary" if is_dictionary else text
            if column.arrow.format != text or not is_sound(name, storage, metadata.get(EXTENSION_METADATA, b"")):
                metadata = {key: value for key, value in metadata.items() if key not in (EXTENSION_NAME, EXTENSION_METADATA)}
    return {**metadata, **(own or {})} or None


def index_dtype(node: FieldNode) -> np.dtype[Any]:
    """Return a dictionary-encoded field's index dtype."""
    arrow = _PLAIN.get(node.format)
    if arrow is None or arrow.layout is not FormatLayout.FIXED or node.format not in "cCsSiIlL":
        raise SchemaError(f"the Arrow format {node.format!r} is not a format of dictionary indices")
    return arrow.dtype


def _parse(text: str) -> ArrowType:
    plain = _PLAIN.get(text)
    if plain is not None:
        return plain
    if text.startswith("w:"):
        return _fixed_size_binary(text)
    if text.startswith("d:"):
        return _decimal(text)
    if text[:4] in _TIMESTAMPS:
        logical = Timestamp(_TIMESTAMPS[text[:4]], utc=len(text) > 4)
        arrow = _fixed("i8", Type.INT64, logical)
        return replace(arrow, convert=convert.seconds_to_milliseconds) if text[:3] == "tss" else arrow
    raise UnsupportedError(f"the Arrow format {text!r} is not supported")


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.partition(":")[2].split(",")]
    except ValueError:
        raise SchemaError(f"the Arrow format {text!r} has a wrong syntax") from None


def _fixed_size_binary(text: str) -> ArrowType:
    width = fixed_size(text)
    if width == 0:
        raise UnsupportedError("fixed-size binary of 0 bytes (Arrow format 'w:0') is not supported")
    return _fixed(f"V{width}", Type.FIXED_LEN_BYTE_ARRAY, length=width)


def fixed_size(text: str) -> int:
    """Return n from a format "w:n" (bytes in each value) or "+w:n" (elements in each list)."""
    size = _numbers(text)
    if len(size) != 1 or not 0 <= size[0] < 2**31:
        raise SchemaError(f"the Arrow format {text!r} has a wrong syntax")
    return size[0]


def _decimal(text: str) -> ArrowType:
    precision, scale, bits = (*_numbers(text), 128)[:3] if text.count(",") in (1, 2) else (0, 0, 0)
    if not 1 <= precision <= restoring.DECIMAL_PRECISIONS.get(bits, 0):
        raise SchemaError(f"the Arrow format {text!r} is not a format of decimals")
    if not 0 <= scale <= precision:
        raise UnsupportedError(f"DECIMAL({precision}, {scale}) is not supported: Parquet needs a scale from 0 to the precision")
    logical = Decimal(precision, scale)
    if bits <= 64:
        width = cast(Literal[32, 64], bits)
        return _fixed(f"i{width // 8}", Type.INT32 if width == 32 else Type.INT64, logical)
    arrow = _fixed(f"V{bits // 8}", Type.FIXED_LEN_BYTE_ARRAY, logical, decimal_length(precision))
    return replace(arrow, convert=convert.narrow_decimals) if bits == 256 and precision <= 38 else arrow


def decimal_length(precision: int) -> int:
    """Return the fewest bytes that can hold two's complement integers with ``precision`` decimal digits."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8
