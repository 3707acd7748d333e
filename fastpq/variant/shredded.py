"""Shredded variants in memory: value and typed_value columns in Arrow's layout, and the types that typed_value may have.

This is the seam to whoever reads and writes nested columns: it hands over leaves as flat Columns with the validity and the
offsets of the groups around them, and takes the same back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastpq.errors import FormatError, SchemaError
from fastpq.table import Column
from fastpq.types import ColumnType, Date, Decimal, Integer, String, Time, Timestamp, Type, Uuid
from fastpq.values.bitmap import bitmap_size
from fastpq.values.layouts import Array
from fastpq.variant.kinds import MAX_DIGITS, Kind

BINARY = ColumnType(Type.BYTE_ARRAY)


@dataclass(frozen=True, slots=True, eq=False)
class ShreddedObject:
    """A typed_value that is a group of fields.

    Attributes:
        length: number of rows.
        fields: the pair of each field, in the order of the schema, as many rows each.
        validity: bitmap of the group, or None where every row is an object.
    """

    length: int
    fields: Mapping[str, Shredded]
    validity: Array | None = None

    def __len__(self) -> int:
        return self.length


@dataclass(frozen=True, slots=True, eq=False)
class ShreddedArray:
    """A typed_value that is a LIST.

    Attributes:
        offsets: shape (n + 1,), int32 or int64: row i has the elements ``offsets[i]`` to ``offsets[i + 1] - 1``.
        elements: the pairs of all elements.
        validity: bitmap of the lists, or None where every row is one.
    """

    offsets: Array
    elements: Shredded
    validity: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1


TypedValue = Column | ShreddedObject | ShreddedArray


@dataclass(frozen=True, slots=True, eq=False)
class Shredded:
    """A pair of value and typed_value: of a variant, of a field of an object, or of the elements of an array.

    Attributes:
        length: number of rows.
        value: BYTE_ARRAY column of variant values, or None where the file has no such column.
        typed_value: what was shredded, or None where the file has no such column.
        validity: bitmap of the group that holds the pair, or None; where it is 0 the pair is missing. The specification
            has the groups of fields and elements REQUIRED, and DuckDB before 2.0 writes them OPTIONAL.

    Raises:
        SchemaError: neither column is there, or they have not as many rows.
    """

    length: int
    value: Column | None = None
    typed_value: TypedValue | None = None
    validity: Array | None = field(default=None)

    def __post_init__(self) -> None:
        for part in (self.value, self.typed_value):
            if part is not None and len(part) != self.length:
                raise SchemaError(f"{len(part)} rows of a shredded variant's column, not {self.length}")
        if self.value is None and self.typed_value is None:
            raise SchemaError("a shredded variant has a value or a typed_value")
        if self.validity is not None and len(self.validity) < bitmap_size(self.length):
            raise SchemaError(f"no validity bitmap of {self.length} bits")


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
    """The variant type of a primitive typed_value (VariantShredding.md, "Shredded Value Types").

    Args:
        type_: of the column; booleans are of kind TRUE.

    Raises:
        FormatError: a type that no variant may be shredded as.
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
        raise FormatError(f"{type_} is no type of a shredded variant's typed_value")
    return kind
