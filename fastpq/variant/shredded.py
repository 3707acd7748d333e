"""Shredded variants in memory: value and typed_value columns in Arrow's layout, and the types that typed_value may have.

This is the seam to whoever reads and writes nested columns: it hands over leaves as flat Columns with the validity and the
offsets of the groups around them, and takes the same back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastpq.arrays.bitmap import bitmap_size
from fastpq.arrays.layouts import Array
from fastpq.arrays.table import Column
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Type

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
