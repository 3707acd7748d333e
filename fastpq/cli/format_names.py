"""Names of the format's numbers, as the specification spells them, and of the types of columns as the schema shows them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

from fastpq import format as fmt
from fastpq.errors import ParquetError

if TYPE_CHECKING:
    from fastpq.schema.parquet_schema import ColumnDescriptor

DICTIONARY_ENCODINGS = (fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY)


def _name(kind: type[IntEnum], number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return f"unknown {number}"


def codec_name(number: int) -> str:
    """Return the name of a compression codec."""
    return _name(fmt.CompressionCodec, number)


def encoding_name(number: int) -> str:
    """Return the name of an encoding."""
    return _name(fmt.Encoding, number)


def column_type_text(column: ColumnDescriptor) -> str:
    """Return a column's physical and logical type, for example ``INT64 TIMESTAMP(us, UTC)``."""
    element = column.element
    physical = _name(fmt.Type, element.type if element.type is not None else -1)
    length = f"({element.type_length})" if column.type_length is not None else ""
    try:
        logical = column.logical_type
    except ParquetError as error:
        return f"{physical}{length} (not understood: {error.message})"
    return f"{physical}{length}" + ("" if logical is None else f" {logical_text(logical)}")


def logical_text(logical: object) -> str:
    """Return a logical type in short, for example ``DECIMAL(9, 2)``."""
    name = type(logical).__name__.upper()
    values = [getattr(logical, each) for each in getattr(logical, "__dataclass_fields__", {})]
    flags = {"utc": ("UTC", "local"), "signed": ("signed", "unsigned")}
    words = []
    for field, value in zip(getattr(logical, "__dataclass_fields__", {}), values, strict=True):
        words.append(flags[field][not value] if field in flags else str(value))
    return f"{name}({', '.join(words)})" if words else name


def join_names(names: Iterable[str]) -> str:
    """Return different names, each once, in their order."""
    return " + ".join(dict.fromkeys(names))
