"""Struct and Union, base classes of the declarations in fastpq.format.parquet, and the types of their fields."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from fastpq.format.slots import FilledStruct, place_of


class WireKind(IntEnum):
    """Types of fields: the wire types of the compact protocol, and STRING and ENUM."""

    BOOL = 1
    I8 = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    STRUCT = 12
    STRING = 20
    ENUM = 21


class FieldType(NamedTuple):
    """The type of a field: a kind; and as argument the class of a struct or enum, or the FieldType of a list's elements."""

    kind: WireKind
    argument: Any = None


BOOL = FieldType(WireKind.BOOL)
I8 = FieldType(WireKind.I8)
I16 = FieldType(WireKind.I16)
I32 = FieldType(WireKind.I32)
I64 = FieldType(WireKind.I64)
DOUBLE = FieldType(WireKind.DOUBLE)
BINARY = FieldType(WireKind.BINARY)
STRING = FieldType(WireKind.STRING)


class ThriftField(NamedTuple):
    """The declaration of one field of a struct."""

    id: int
    type: FieldType
    required: bool


def _type_of(declared: Any) -> FieldType:
    if isinstance(declared, FieldType):
        return declared
    if isinstance(declared, list):
        return FieldType(WireKind.LIST, _type_of(declared[0]))
    return FieldType(WireKind.ENUM if issubclass(declared, IntEnum) else WireKind.STRUCT, declared)


def required(id: int, declared: Any) -> Any:
    """Declare a required field by its id and type: a FieldType, the class of a struct or enum, or ``[element type]``."""
    return ThriftField(id, _type_of(declared), True)


def optional(id: int, declared: Any) -> Any:
    """Declare an optional field, as ``required`` does; None in a struct without the field."""
    return ThriftField(id, _type_of(declared), False)


class StructMeta(type):
    """Metaclass of structs: each declared field is a slot, and no struct has a dict."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        declared = {name: value for name, value in namespace.items() if isinstance(value, ThriftField)}
        left = {name: value for name, value in namespace.items() if name not in declared}
        made: Any = super().__new__(cls, name, bases, {**left, "__slots__": (*left.get("__slots__", ()), *declared)})
        made.ORDERED = sorted(declared.items(), key=lambda entry: entry[1].id)
        made.FIELDS = {field.id: (name, field) for name, field in made.ORDERED}
        made.PLACES = {name: place_of(getattr(made, name)) for name in declared}
        return made


class Struct(FilledStruct, metaclass=StructMeta):
    """Base class of structs; an absent field is None.

    ``FIELDS`` has the declared fields by id, ``ORDERED`` has them in the order of ids, ``PLACES`` has their places in memory by
    name. Undeclared fields of a decoded struct are kept in ``unknown``, as (id, wire type, encoded value), and encoded again.
    """

    FIELDS: ClassVar[dict[int, tuple[str, ThriftField]]]
    ORDERED: ClassVar[list[tuple[str, ThriftField]]]
    PLACES: ClassVar[dict[str, int]]
    __slots__ = ("unknown",)
    unknown: tuple[tuple[int, int, bytes], ...]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.unknown == other.unknown and all(
            getattr(self, name) == getattr(other, name) for name, _ in self.ORDERED
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ((name, getattr(self, name)) for name, _ in self.ORDERED)
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in given if value is not None)})"


class Union(Struct):
    """Base class of unions: structs with exactly one field, the member; an undeclared member is kept in ``unknown``."""


def _shown(value: object) -> str:
    """The repr of a field without bytes and floats: these may be bounds of encrypted values, and a repr may end in a log."""
    match value:
        case bytes():
            return f"<{len(value)} bytes>"
        case float():
            return "<float>"
        case list():
            return f"[{', '.join(map(_shown, value))}]"
    return repr(value)
