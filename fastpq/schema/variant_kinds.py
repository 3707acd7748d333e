"""Variant types, and the matching types in Python and JSON (VariantEncoding.md, "Encoding types").

======================  ==========================================  =================================================
Variant                 Python                                      JSON
======================  ==========================================  =================================================
null                    None                                        null
boolean                 bool                                        true, false
int8 ... int64          int                                         number
decimal4, 8, 16         decimal.Decimal                             number, all digits of its scale, no exponent
float, double           float                                       shortest number that gives the value back,
                                                                    or "NaN", "Infinity", "-Infinity"
date                    datetime.date                               "2025-04-16"
time                    datetime.time                               "12:33:54.123456"
timestamp               datetime.datetime in UTC                    "2025-04-16 16:34:56.78+00:00"
timestamp_ntz           datetime.datetime without a zone            "2025-04-16 12:34:56.78"
timestamp_nanos         Primitive                                   "2024-11-07 12:33:54.123456789+00:00"
timestamp_ntz_nanos     Primitive                                   "2024-11-07 12:33:54.123456789"
binary                  bytes                                       base64 text
string                  str                                         text
uuid                    uuid.UUID                                   "f24f9b64-81fa-49d1-b74e-8c09a6e31c56"
array                   list                                        array
object                  dict, keys in the fields' order             object, keys in the fields' order
======================  ==========================================  =================================================

JSON follows Spark's ``to_json`` for the types that Spark has. Only equal numbers may look different: decimals keep trailing
zeros, and exponents are written in Python's form. Fractional seconds lose trailing zeros.

Reading: Python's dates are limited to the years 1 to 9999, and its times to one day. A value that is outside these ranges, or has
nanoseconds, becomes a ``Primitive`` with the type and the stored number.

Writing: an int takes the narrowest integer type. An int that int64 cannot hold becomes a decimal with scale 0. A Decimal takes
the narrowest decimal type that has room for its digits and scale. A float becomes a double. A ``Primitive`` names its type. NumPy
scalars become the matching Python values, except that float32 becomes a float, datetime64 becomes a timestamp_ntz (ns:
timestamp_ntz_nanos, days: date), and NaT becomes null.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from fastpq.errors import FormatError
from fastpq.schema.types import ColumnType, Date, Decimal, Integer, String, Time, Timestamp, Type, Uuid

MAX_DEPTH = 512     # largest number of levels that nested arrays and objects may have
MAX_DIGITS = 38     # largest decimal precision


class Kind(IntEnum):
    """Primitive types. The numbers are the type ids."""

    NULL = 0
    TRUE = 1
    FALSE = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT64 = 6
    DOUBLE = 7
    DECIMAL4 = 8
    DECIMAL8 = 9
    DECIMAL16 = 10
    DATE = 11
    TIMESTAMP = 12
    TIMESTAMP_NTZ = 13
    FLOAT = 14
    BINARY = 15
    STRING = 16
    TIME = 17
    TIMESTAMP_NANOS = 18
    TIMESTAMP_NTZ_NANOS = 19
    UUID = 20


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive value together with its type.

    Attributes:
        kind: the type.
        value: int for integers. For dates and times it is the day, microsecond or nanosecond count since the epoch or midnight.
            Other values are decimal.Decimal, float, bytes, str, uuid.UUID, None for null, and True or False.
    """

    kind: Kind
    value: Any


_PLAIN = {Type.BOOLEAN: Kind.TRUE, Type.INT32: Kind.INT32, Type.INT64: Kind.INT64, Type.FLOAT: Kind.FLOAT}
_PLAIN |= {Type.DOUBLE: Kind.DOUBLE, Type.BYTE_ARRAY: Kind.BINARY}
_INTEGERS = {8: Kind.INT8, 16: Kind.INT16, 32: Kind.INT32, 64: Kind.INT64}
_DECIMALS = {Type.INT32: Kind.DECIMAL4, Type.INT64: Kind.DECIMAL8}
_TIMESTAMPS = {
    ("us", True): Kind.TIMESTAMP,
    ("us", False): Kind.TIMESTAMP_NTZ,
    ("ns", True): Kind.TIMESTAMP_NANOS,
    ("ns", False): Kind.TIMESTAMP_NTZ_NANOS,
}


def kind_of(type_: ColumnType) -> Kind:
    """Return a primitive typed_value's variant type (VariantShredding.md, "Shredded Value Types").

    Args:
        type_: the typed_value column's type. For booleans, the variant type is TRUE.

    Raises:
        FormatError: a typed_value cannot have this type.
    """
    kind: Kind | None = None
    match type_.logical:
        case None:
            kind = _PLAIN.get(type_.physical)
        case Integer(width, signed=True):
            kind = _INTEGERS[width]
        case Decimal(precision) if precision <= MAX_DIGITS:
            kind = _DECIMALS.get(type_.physical, Kind.DECIMAL16)
        case Date():
            kind = Kind.DATE
        case Time("us", utc=False):
            kind = Kind.TIME
        case Timestamp(unit, utc):
            kind = _TIMESTAMPS.get((unit, utc))
        case String():
            kind = Kind.STRING
        case Uuid():
            kind = Kind.UUID
    if kind is None:
        raise FormatError(f"the typed_value of a shredded variant cannot be {type_}")
    return kind
