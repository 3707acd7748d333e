"""Shredded variants in memory: trees of value and typed_value columns in Arrow's layout.

Leaves are flat Columns; inner nodes have the validity and offsets of groups and lists. Shredding returns these trees, reassembly
takes them, and ``fastpq.variant.storage`` converts between trees and the struct columns of files.
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
    """The typed_value of objects: a group of fields.

    Attributes:
        length: number of rows.
        fields: the pair of each field, in the order of the schema, each of length rows.
        validity: bitmap of the group, or None where every row is an object.
    """

    length: int
    fields: Mapping[str, Shredded]
    validity: Array | None = None

    def __len__(self) -> int:
        return self.length


@dataclass(frozen=True, slots=True, eq=False)
class ShreddedArray:
    """The typed_value of arrays: a LIST.

    Attributes:
        offsets: shape (n + 1,), int32 or int64: row i has the elements ``offsets[i]`` to ``offsets[i + 1] - 1``.
        elements: the pair of the elements of all lists.
        validity: bitmap of the lists, or None where every row is a list.
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
        value: BYTE_ARRAY column of values in Variant encoding, or None for a pair without a value column.
        typed_value: shredded values, or None for a pair without a typed_value column.
        validity: bitmap of the pair's group, or None; a 0 bit stands for a missing pair. In the specification, the groups of
            fields and elements are REQUIRED; DuckDB before 2.0 writes OPTIONAL groups.

    Raises:
        SchemaError: both columns are absent, or a column's length differs from length.
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
