"""Types of nested columns: lists, structs and maps, as Arrow has them (LogicalTypes.md, "Nested Types")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fastpq.schema.types import ColumnType

# Logical types of groups that are structs otherwise (LogicalTypes.md, "VARIANT" and "FILE").
Annotation = Literal["VARIANT", "FILE"]


@dataclass(frozen=True, slots=True)
class Field:
    """A named value of a type.

    Attributes:
        name: its name; that of a list's element is ``element``.
        type: its type.
        nullable: whether it may be null.
    """

    name: str
    type: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' required'}"


@dataclass(frozen=True, slots=True)
class ListType:
    """Any number of values of one type."""

    element: Field

    arrow_format = "+l"

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class StructType:
    """One value for each of some fields; names may repeat, as they may in a file.

    Attributes:
        fields: in their order.
        annotation: what the struct is as a whole, where it is more than its fields; they are then those of VariantShredding.md
            or of LogicalTypes.md, "FILE".
    """

    fields: tuple[Field, ...]
    annotation: Annotation | None = None

    arrow_format = "+s"

    def __str__(self) -> str:
        return f"{(self.annotation or 'struct').lower()}<{', '.join(map(str, self.fields))}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Any number of pairs; neither order nor uniqueness of keys is promised."""

    key: Field
    value: Field

    arrow_format = "+m"

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"

    @property
    def entry(self) -> Field:
        """A pair as the struct that stands in the list of pairs."""
        return Field("key_value", StructType((self.key, self.value)), nullable=False)


NestedType: TypeAlias = ListType | StructType | MapType
DataType: TypeAlias = ColumnType | NestedType


def element_of(type_: ListType | MapType) -> Field:
    """What the offsets of a list or a map count."""
    return type_.entry if isinstance(type_, MapType) else type_.element
