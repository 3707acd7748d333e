"""Nested column types: lists, structs and maps, as Arrow has them (LogicalTypes.md, "Nested Types")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fastpq.schema.types import ColumnType

# Logical types for groups. In memory their values are structs (LogicalTypes.md, "VARIANT" and "FILE").
Annotation = Literal["VARIANT", "FILE"]


@dataclass(frozen=True, slots=True)
class Field:
    """Name, type and nullability of a column, a struct field, a list element, a map key or a map value.

    Attributes:
        name: field name. A list element is called ``element``.
        type: value type.
        nullable: whether values may be null.
    """

    name: str
    type: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' required'}"


@dataclass(frozen=True, slots=True)
class ListType:
    """A list type. A list has any number of values, which all have the same type."""

    element: Field

    arrow_format = "+l"

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct type. A struct has one value for each field. Field names may repeat, as in a file.

    Attributes:
        fields: the fields, in order.
        annotation: VARIANT (fields as in VariantShredding.md), FILE (fields as in LogicalTypes.md, "FILE"), or None for a plain
            struct.
    """

    fields: tuple[Field, ...]
    annotation: Annotation | None = None

    arrow_format = "+s"

    def __str__(self) -> str:
        return f"{(self.annotation or 'struct').lower()}<{', '.join(map(str, self.fields))}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map type. A map has any number of key-value pairs, in any order. Keys may repeat."""

    key: Field
    value: Field

    arrow_format = "+m"

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"

    @property
    def entry(self) -> Field:
        """Field for a key-value struct. In memory, a map is a list of such structs."""
        return Field("key_value", StructType((self.key, self.value)), nullable=False)


NestedType: TypeAlias = ListType | StructType | MapType
DataType: TypeAlias = ColumnType | NestedType


def holds_map(type_: DataType) -> bool:
    """Return whether a type is a map or contains one."""
    match type_:
        case MapType():
            return True
        case ListType(element):
            return holds_map(element.type)
        case StructType(fields, None):
            return any(holds_map(field.type) for field in fields)
    return False


def element_of(type_: ListType | MapType) -> Field:
    """Return the item field: a list's element, or a map's key-value struct."""
    return type_.entry if isinstance(type_, MapType) else type_.element
