"""Arrow's format strings and extension types, and the column types of imported arrays.

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
| d:p,s,32; d:p,s,64       | INT32; INT64 DECIMAL(p, s)                         |                               |
| d:p,s; d:p,s,256         | FIXED_LEN_BYTE_ARRAY(fewest bytes) DECIMAL(p, s)   | 256: 16 bytes where p <= 38   |
| tdD, tdm                 | INT32 DATE                                         | tdm: milliseconds to days     |
| ttm, ttu, ttn, tts       | INT32 or INT64 TIME(ms, us, ns; not UTC)           | tts: seconds to milliseconds  |
| tsm:, tsu:, tsn:, tss:   | INT64 TIMESTAMP(ms, us, ns; UTC with any timezone) | tss: seconds to milliseconds  |
| tDs, tDm, tDu, tDn       | INT64                                              |                               |
| tiM, tiD, tin            | FIXED_LEN_BYTE_ARRAY(12) INTERVAL                  | to months, days, milliseconds |
| a dictionary of these    | the type of its values                             | decoded, save u to vz         |
| +s; +m                   | struct; map of these (fields.py)                   |                               |
| +l, +L, +w:n, +vl, +vL   | list of these (fields.py)                          |                               |
| +r                       | the type of its values (runs_and_unions.py)        | expanded                      |
| +us, +ud                 | struct of type_id and members (runs_and_unions.py) |                               |

``Column.arrow`` keeps the rest of the Arrow type: the name of a timezone, units, widths, layouts, and other extension types,
imported as their storage. A Parquet timestamp is either an instant (UTC) or a local time. Arrow counts ticks since 1970-01-01
00:00 UTC for every timezone, so no value changes. A required field becomes a required column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal, cast

import numpy as np

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn
from fastpq.arrow import casts as convert
from fastpq.arrow import restoring
from fastpq.arrow.canonical import PARQUET_VARIANT, is_sound
from fastpq.arrow.geoarrow import GEOARROW_WKB, geospatial_metadata, geospatial_type
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


class FormatLayout(Enum):
    """The buffers of an Arrow array after its validity bitmap."""

    NONE = "none"
    BITS = "bits"
    FIXED = "values"
    OFFSETS = "offsets, data"
    VIEWS = "views, data buffers, their sizes"


@dataclass(frozen=True, slots=True)
class ArrowType:
    """An importable flat Arrow type: its buffers and its column type.

    Attributes:
        type: the column type.
        layout: the buffers.
        dtype: dtype of the values in the buffer, or of the offsets.
        convert: converts buffer values to column values; None where both are equal.
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
    """The ArrowType of a field; for a dictionary-encoded field, of its dictionary.

    Raises:
        UnsupportedError: the format is nested, or no Parquet type holds its values without loss.
        SchemaError: the format string breaks its syntax.
    """
    values = node if node.dictionary is None else node.dictionary
    found = _parse(values.format)
    extension = (node.metadata or {}).get(EXTENSION_NAME) or (values.metadata or {}).get(EXTENSION_NAME)
    if extension == b"arrow.uuid" and values.format == "w:16":
        found = replace(found, type=replace(found.type, logical=Uuid()))
    elif extension == b"arrow.json" and isinstance(found.type.logical, String):
        found = replace(found, type=replace(found.type, logical=Json()))
    elif extension == GEOARROW_WKB and found.type == ColumnType(Type.BYTE_ARRAY):
        metadata = (node.metadata or {}).get(EXTENSION_METADATA) or (values.metadata or {}).get(EXTENSION_METADATA)
        found = replace(found, type=replace(found.type, logical=geospatial_type(metadata or b"")))
    return found


def extension_metadata(column_type: ColumnType) -> dict[bytes, bytes] | None:
    """Field metadata for the canonical extension type of a column type; None without one."""
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
    """The field metadata of an exported column.

    These are the metadata of the column's earlier Arrow field, if any, and the metadata of the column type's extension type.
    The earlier field's extension type is dropped where the format has changed, or where format and extension metadata are not
    those of the extension type: pyarrow refuses the whole table then.

    Args:
        column: the column.
        text: the exported format; for a dictionary, the format of its indices.
        own: metadata of the column type's extension type; None without an extension type.
        is_dictionary: whether the column is exported as a dictionary.
    """
    found: dict[bytes, bytes] = {}
    if column.arrow is not None and column.arrow.metadata:
        found = dict(column.arrow.metadata)
        name = found.get(EXTENSION_NAME)
        if name is not None:
            storage = "a dictionary" if is_dictionary else text
            if column.arrow.format != text or not is_sound(name, storage, found.get(EXTENSION_METADATA, b"")):
                found = {key: value for key, value in found.items() if key not in (EXTENSION_NAME, EXTENSION_METADATA)}
    return {**found, **(own or {})} or None


def index_dtype(node: FieldNode) -> np.dtype[Any]:
    """The dtype of the indices of a dictionary-encoded field."""
    found = _PLAIN.get(node.format)
    if found is None or found.layout is not FormatLayout.FIXED or node.format not in "cCsSiIlL":
        raise SchemaError(f"the Arrow format {node.format!r} is not of dictionary indices")
    return found.dtype


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
        found = _fixed("i8", Type.INT64, logical)
        return replace(found, convert=convert.seconds_to_milliseconds) if text[:3] == "tss" else found
    raise UnsupportedError(f"the Arrow format {text!r} is not known")


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.partition(":")[2].split(",")]
    except ValueError:
        raise SchemaError(f"the Arrow format {text!r} breaks its syntax") from None


def _fixed_size_binary(text: str) -> ArrowType:
    width = _numbers(text)
    if len(width) != 1 or not 0 <= width[0] < 2**31:
        raise SchemaError(f"the Arrow format {text!r} breaks its syntax")
    if width[0] == 0:
        raise UnsupportedError("fixed-size binary of 0 bytes (Arrow format 'w:0') is not supported")
    return _fixed(f"V{width[0]}", Type.FIXED_LEN_BYTE_ARRAY, length=width[0])


def fixed_list_size(text: str) -> int:
    """The number of elements in each list of a format "+w:n"."""
    size = _numbers(text)
    if len(size) != 1 or not 0 <= size[0] < 2**31:
        raise SchemaError(f"the Arrow format {text!r} breaks its syntax")
    return size[0]


_MAX_PRECISION = {32: 9, 64: 18, 128: 38, 256: 76}      # decimal digits by width in bits


def _decimal(text: str) -> ArrowType:
    precision, scale, bits = (*_numbers(text), 128)[:3] if text.count(",") in (1, 2) else (0, 0, 0)
    if not 1 <= precision <= _MAX_PRECISION.get(bits, 0):
        raise SchemaError(f"the Arrow format {text!r} is not of a decimal")
    if not 0 <= scale <= precision:
        raise UnsupportedError(f"Parquet's DECIMAL({precision}, {scale}) needs a scale from 0 to its precision")
    logical = Decimal(precision, scale)
    if bits <= 64:
        width = cast(Literal[32, 64], bits)
        return _fixed(f"i{width // 8}", Type.INT32 if width == 32 else Type.INT64, logical)
    found = _fixed(f"V{bits // 8}", Type.FIXED_LEN_BYTE_ARRAY, logical, decimal_length(precision))
    return replace(found, convert=convert.narrow_decimals) if bits == 256 and precision <= 38 else found


def decimal_length(precision: int) -> int:
    """The least number of bytes for two's complement integers of ``precision`` decimal digits."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8
