"""Short texts that display types and values. A display is cheap even if columns and values are long, and it never fails."""

from __future__ import annotations

from collections.abc import Sequence

from fastpq.common.display import ELLIPSIS, HTML_WIDTH, shorten
from fastpq.schema.nested_types import DataType, ListType, MapType
from fastpq.schema.types import ColumnType, Decimal, Float16, Integer, Time, Timestamp, Type

# Number of list elements or struct fields that one value's text shows.
MOST_INNER = 6
# Number of nesting levels that a type's text shows.
TYPE_LEVELS = 16
# Length of the longest text for a string (in bytes) and for a nested value (in characters).
MOST_BYTES = 256


def type_text(type_: DataType, levels: int = TYPE_LEVELS) -> str:
    """Return a type in a few words, down to some nesting levels. A logical type is named instead of its physical type."""
    if levels == 0:
        return ELLIPSIS
    match type_:
        case ColumnType(logical=None):
            return str(type_)
        case ColumnType(logical=Timestamp(unit, utc) | Time(unit, utc)):
            return f"{type(type_.logical).__name__}({unit}{', UTC' if utc else ''})"
        case ColumnType(logical=Decimal(precision, scale)):
            return f"Decimal({precision}, {scale})"
        case ColumnType():
            return repr(type_.logical).removesuffix("()")
        case ListType(element):
            return f"list<{type_text(element.type, levels - 1)}>"
        case MapType(key, value):
            return f"map<{type_text(key.type, levels - 1)}, {type_text(value.type, levels - 1)}>"
    inner = [f"{field.name}: {type_text(field.type, levels - 1)}" for field in type_.fields[:MOST_INNER]]
    inner += [ELLIPSIS] * (len(type_.fields) > MOST_INNER)
    return f"{(type_.annotation or 'struct').lower()}<{', '.join(inner)}>"


def is_number(type_: DataType) -> bool:
    """Return whether the values are numbers, which displays align to the right."""
    if not isinstance(type_, ColumnType):
        return False
    is_numeric = type_.physical not in (Type.BOOLEAN, Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
    return isinstance(type_.logical, Decimal | Integer | Float16) or (type_.logical is None and is_numeric)


def object_text(value: object) -> str:
    """Return a Python object's short text: ``repr`` for texts, bytes and tuples, ``str`` for others."""
    return shorten(repr(value) if isinstance(value, str | bytes | tuple) else str(value), HTML_WIDTH)


def bytes_text(first_bytes: bytes, length: int, is_text: bool) -> str:
    """Return a short text for a string or binary value.

    Args:
        first_bytes: the value's first bytes.
        length: the whole value's length in bytes.
        is_text: whether the bytes are text.
    """
    tail = ELLIPSIS if len(first_bytes) < length else ""
    if not is_text:
        return f"{first_bytes!r}{tail}"
    text = first_bytes.decode(errors="replace")
    if tail:      # the cut may be inside a character
        text = text.rstrip("\ufffd")
    return f"{text!r}{tail}"


def nested_text(brackets: str, inner: Sequence[str], is_cut: bool) -> str:
    """Return a short text for a list, a map or a struct.

    Args:
        brackets: the opening and the closing bracket.
        inner: texts for the first elements or fields.
        is_cut: whether there are more elements or fields.
    """
    return shorten(f"{brackets[0]}{', '.join([*inner, *[ELLIPSIS] * is_cut])}{brackets[1]}", MOST_BYTES)
