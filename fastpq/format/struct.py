"""What a declarative Thrift table is made of: fields, structs and unions."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, NamedTuple


class WireKind(IntEnum):
    """Types of fields, as the compact protocol tells them apart."""

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
    """A kind, and the class of a struct or enum or the FieldType of a list's elements."""

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
    """One line of a struct's table."""

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
    """A field that must be there: its id, and its type, struct, enum or ``[element]``."""
    return ThriftField(id, _type_of(declared), True)


def optional(id: int, declared: Any) -> Any:
    """A field that is None where it is absent."""
    return ThriftField(id, _type_of(declared), False)


class Struct:
    """Base of the tables; an absent field is None.

    ``FIELDS`` is the table by field id. Fields of the wire that the table does not have are kept in ``unknown``, as
    (id, wire type, encoded value), and written again.
    """

    FIELDS: ClassVar[dict[int, tuple[str, ThriftField]]] = {}
    ORDERED: ClassVar[list[tuple[str, ThriftField]]] = []
    unknown: tuple[tuple[int, int, bytes], ...] = ()

    def __init_subclass__(cls) -> None:
        declared = [(name, value) for name, value in vars(cls).items() if isinstance(value, ThriftField)]
        cls.ORDERED = sorted(declared, key=lambda entry: entry[1].id)
        cls.FIELDS = {field.id: (name, field) for name, field in cls.ORDERED}
        for name, _ in declared:
            setattr(cls, name, None)

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            if not any(name == known for known, _ in self.ORDERED):
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
            if value is not None:
                self.__dict__[name] = value

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
    """Exactly one member is there; it may be one that the table does not have."""

    @property
    def member(self) -> str | None:
        """Name of the member, or None where it is unknown."""
        return next((name for name, _ in self.ORDERED if getattr(self, name) is not None), None)


def _shown(value: object) -> str:
    """The repr of a field; bytes and floats may be bounds of encrypted values, and logs take the repr."""
    match value:
        case bytes():
            return f"<{len(value)} bytes>"
        case float():
            return "<float>"
        case list():
            return f"[{', '.join(map(_shown, value))}]"
    return repr(value)
