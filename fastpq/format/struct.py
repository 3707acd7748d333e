"""Struct and Union, from which the structs in fastpq.format.parquet inherit, and their field types."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Self

from fastpq.format.slots import FilledStruct, copy_instance, place_of


class WireKind(IntEnum):
    """Field kinds: the compact protocol's wire types, and in addition STRING and ENUM."""

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
    """A field's type.

    Attributes:
        kind: the field's kind.
        argument: the class for a STRUCT or an ENUM, the elements' FieldType for a LIST. None for other kinds.
    """

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
    """The declaration of one field in a struct."""

    id: int
    type: FieldType
    required: bool


def _type_of(declared_type: Any) -> FieldType:
    if isinstance(declared_type, FieldType):
        return declared_type
    if isinstance(declared_type, list):
        return FieldType(WireKind.LIST, _type_of(declared_type[0]))
    return FieldType(WireKind.ENUM if issubclass(declared_type, IntEnum) else WireKind.STRUCT, declared_type)


def required(id: int, declared_type: Any) -> Any:
    """Declare a required field. Its type is a FieldType, a struct or enum class, or ``[element type]``."""
    return ThriftField(id, _type_of(declared_type), True)


def optional(id: int, declared_type: Any) -> Any:
    """Declare an optional field. Its type is given as in ``required``. If a struct lacks the field, its value is None."""
    return ThriftField(id, _type_of(declared_type), False)


class StructMeta(type):
    """Metaclass for structs. It turns each declared field into a slot, so that structs need no dict."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        fields = {name: value for name, value in namespace.items() if isinstance(value, ThriftField)}
        others = {name: value for name, value in namespace.items() if name not in fields}
        new_class: Any = super().__new__(cls, name, bases, {**others, "__slots__": (*others.get("__slots__", ()), *fields)})
        new_class.ORDERED = sorted(fields.items(), key=lambda entry: entry[1].id)
        new_class.FIELDS = {field.id: (name, field) for name, field in new_class.ORDERED}
        new_class.PLACES = {name: place_of(getattr(new_class, name)) for name in fields}
        return new_class


class Struct(FilledStruct, metaclass=StructMeta):
    """Base class for structs. An absent field is None.

    ``FIELDS`` maps ids to the declared fields. ``ORDERED`` lists the declared fields by ascending id. ``PLACES`` maps field names
    to places in memory. Decoding keeps fields that are not declared in ``unknown_fields``, each as (id, wire type,
    encoded value). Encoding writes them again.
    """

    FIELDS: ClassVar[dict[int, tuple[str, ThriftField]]]
    ORDERED: ClassVar[list[tuple[str, ThriftField]]]
    PLACES: ClassVar[dict[str, int]]
    __slots__ = ("unknown_fields",)
    unknown_fields: tuple[tuple[int, int, bytes], ...]

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> Self:
        twin = copy_instance(self, self.PLACES, {})
        twin.unknown_fields = self.unknown_fields
        return twin

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            setattr(self, "unknown_fields" if name == "unknown" else name, value)      # older pickles have the name "unknown"

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name, _ in self.ORDERED)
        return f"{type(self).__name__}({', '.join(f'{name}={_repr_of(value)}' for name, value in values if value is not None)})"


class Union(Struct):
    """Base class for unions. A union has exactly one field, its member.

    A member that is not declared is kept in ``unknown_fields``.
    """


def _repr_of(value: object) -> str:
    """Return a field's repr, but hide bytes and floats.

    These may be bounds of encrypted values, and a repr may end up in a log.
    """
    match value:
        case bytes():
            return f"<{len(value)} bytes>"
        case float():
            return "<float>"
        case list():
            return f"[{', '.join(map(_repr_of, value))}]"
    return repr(value)
