"""Shredded variants in memory: column trees in Arrow's layout, with value and typed_value columns.

Leaves are flat Columns. Inner nodes are groups and lists, with their validity and offsets. Shredding returns these trees,
reassembly takes them, and ``fastpq.variant.storage`` converts them to and from the struct columns that files use.
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
    """The typed_value for objects, which is a group with one pair per field.

    Attributes:
        length: row count.
        fields: each field's pair, in schema order. Each pair has ``length`` rows.
        validity: group bitmap, or None if every row is an object.
    """

    length: int
    fields: Mapping[str, Shredded]
    validity: Array | None = None

    def __len__(self) -> int:
        return self.length


@dataclass(frozen=True, slots=True, eq=False)
class ShreddedArray:
    """The typed_value for arrays, which is a LIST.

    Attributes:
        offsets: shape (n + 1,), int32 or int64. Row i has the elements ``offsets[i]`` to ``offsets[i + 1] - 1``.
        elements: the pair for all lists' elements.
        validity: list bitmap, or None if every row is a list.
    """

    offsets: Array
    elements: Shredded
    validity: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1


TypedValue = Column | ShreddedObject | ShreddedArray


@dataclass(frozen=True, slots=True, eq=False)
class Shredded:
    """A value column and a typed_value column. The pair holds whole variants, one object field, or array elements.

    Attributes:
        length: row count.
        value: values in the Variant encoding, a BYTE_ARRAY column. None if the pair does not have this column.
        typed_value: shredded values. None if the pair does not have this column.
        validity: bitmap for the group that has both columns, or None. A 0 bit means that the pair is missing. The specification
            says that such a group is REQUIRED for fields and elements, but DuckDB before 2.0 writes OPTIONAL groups.

    Raises:
        SchemaError: the pair has neither column, or a column does not have ``length`` rows.
    """

    length: int
    value: Column | None = None
    typed_value: TypedValue | None = None
    validity: Array | None = field(default=None)

    def __post_init__(self) -> None:
        for part in (self.value, self.typed_value):
            if part is not None and len(part) != self.length:
                raise SchemaError(f"a column of a shredded variant has {len(part)} rows, not {self.length}")
        if self.value is None and self.typed_value is None:
            raise SchemaError("a shredded variant needs a value or a typed_value")
        if self.validity is not None and len(self.validity) < bitmap_size(self.length):
            raise SchemaError(f"the validity bitmap of a shredded variant does not have {self.length} bits")
