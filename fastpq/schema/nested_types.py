"""Types of nested columns: lists, structs and maps in the model of Arrow (LogicalTypes.md, "Nested Types")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fastpq.schema.types import ColumnType

# Logical types of groups held as structs (LogicalTypes.md, "VARIANT" and "FILE").
Annotation = Literal["VARIANT", "FILE"]


@dataclass(frozen=True, slots=True)
class Field:
    """A name, a type and nullability: of a column, of a struct's field, of a list's element, of a map's key or value.

    Attributes:
        name: name of the field; ``element`` for a list's element.
        type: type of the values.
        nullable: whether values may be null.
    """

    name: str
    type: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' required'}"


@dataclass(frozen=True, slots=True)
class ListType:
    """The type of lists: any number of values of one type."""

    element: Field

    arrow_format = "+l"

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class StructType:
    """The type of structs: one value for each field; names of fields may repeat, as in a file.

    Attributes:
        fields: the fields, in their order.
        annotation: VARIANT, with the fields of VariantShredding.md; FILE, with the fields of LogicalTypes.md, "FILE"; None for a
            plain struct.
    """

    fields: tuple[Field, ...]
    annotation: Annotation | None = None

    arrow_format = "+s"

    def __str__(self) -> str:
        return f"{(self.annotation or 'struct').lower()}<{', '.join(map(str, self.fields))}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """The type of maps: any number of pairs of key and value, in any order; keys may repeat."""

    key: Field
    value: Field

    arrow_format = "+m"

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"

    @property
    def entry(self) -> Field:
        """The struct of key and value; a map is held as a list of these structs."""
        return Field("key_value", StructType((self.key, self.value)), nullable=False)


NestedType: TypeAlias = ListType | StructType | MapType
DataType: TypeAlias = ColumnType | NestedType


def holds_map(type_: DataType) -> bool:
    """Whether a type is a map, or has one inside."""
    match type_:
        case MapType():
            return True
        case ListType(element):
            return holds_map(element.type)
        case StructType(fields, None):
            return any(holds_map(field.type) for field in fields)
    return False


def element_of(type_: ListType | MapType) -> Field:
    """The field of the items of a list or map: a list's element, a map's struct of key and value."""
    return type_.entry if isinstance(type_, MapType) else type_.element
