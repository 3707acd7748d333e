"""The first values of a column as short texts for displays. A display is cheap with long columns and values, and never fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastpq.arrays.layouts import BinaryOffsets, BinaryViews, CodedViews, DictionaryValues, Values
from fastpq.common.display import ELLIPSIS, HTML_WIDTH, NULL, TEXT_WIDTH, Grid, Heading, View, counted, more, shorten, to_text
from fastpq.errors import ParquetError
from fastpq.schema.nested_types import DataType, ListType, MapType
from fastpq.schema.types import ColumnType, Decimal, Float16, Integer, Time, Timestamp, Type

if TYPE_CHECKING:
    from fastpq.arrays.column_base import ColumnBase
    from fastpq.arrays.flat_column import Column
    from fastpq.arrays.nested_columns import ListColumn, StructColumn

# Values of a list, fields of a struct, levels of nesting and bytes of a string in one text.
MOST_INNER = 6
MOST_LEVELS = 4
MOST_BYTES = 256
# Values in the text of a column.
MOST_IN_A_LINE = 10
# Text of a broken value: bytes outside of their memory, for example.
BROKEN = "<broken>"


def type_text(type_: DataType) -> str:
    """A type in a word or a few: the logical type where there is one."""
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
            return f"list<{type_text(element.type)}>"
        case MapType(key, value):
            return f"map<{type_text(key.type)}, {type_text(value.type)}>"
    inner = [f"{field.name}: {type_text(field.type)}" for field in type_.fields[:MOST_INNER]]
    inner += [ELLIPSIS] * (len(type_.fields) > MOST_INNER)
    return f"{(type_.annotation or 'struct').lower()}<{', '.join(inner)}>"


def column_view(column: ColumnBase, most: int) -> View:
    """Display of one column: its type, the number of values, and the first of the values."""
    noun = column.NOUN
    shown = min(len(column), most)
    facts = [type_text(column.type), counted(len(column), noun)]
    facts += [counted(column.null_count, "null")] if column.null_count else []
    heading = Heading("value", is_number=is_number(column))
    rows = [(text,) for text in value_texts(column, 0, shown)]
    return View(type(column).__name__, facts, Grid([heading], rows, more(len(column), shown, noun)) if rows else None)


def headline(column: ColumnBase) -> str:
    """The type of a column and its length, in one line without values."""
    return to_text(View(type(column).__name__, [type_text(column.type), counted(len(column), column.NOUN)]))


def with_values(column: ColumnBase) -> str:
    """Type, length, nulls and first values of a column, in two lines."""
    view = column_view(column, MOST_IN_A_LINE)
    texts = [] if view.grid is None else [shorten(str(row[0]), TEXT_WIDTH) for row in view.grid.rows]
    texts += [ELLIPSIS] * (len(column) > len(texts))
    return to_text(View(view.name, view.facts, lines=[", ".join(texts)] if texts else ()))


def is_number(column: ColumnBase) -> bool:
    """Whether a column holds numbers, shown at the right."""
    if not isinstance(column.type, ColumnType):
        return False
    logical = column.type.logical
    numeric = column.type.physical not in (Type.BOOLEAN, Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
    return isinstance(logical, Decimal | Integer | Float16) or (logical is None and numeric)


def value_texts(column: ColumnBase, start: int, stop: int, levels: int = MOST_LEVELS) -> list[str]:
    """Values ``start`` to ``stop - 1`` of a column, a short text each."""
    part = column.slice(start, stop)
    mask = part.validity_mask().tolist()
    try:
        texts = part._texts(levels)
    except (ParquetError, ValueError, IndexError, OverflowError):
        texts = [BROKEN] * len(part)
    return [text if there else NULL for text, there in zip(texts, mask, strict=True)]


def flat_texts(column: Column) -> list[str]:
    """A short text for each value of a flat column."""
    if column.type.is_variable:
        return [_variable_text(column, number) for number in range(len(column))]
    return [shorten(_spelled(value), HTML_WIDTH) for value in column.to_pylist()]


def _spelled(value: object) -> str:
    """Numbers and times by str, texts, bytes and tuples by repr."""
    return repr(value) if isinstance(value, str | bytes | tuple) else str(value)


def list_texts(column: ListColumn, levels: int) -> list[str]:
    """A short text for each list or map, down to some levels of nesting."""
    return [_list_text(column, number, levels) for number in range(len(column))]


def _list_text(column: ListColumn, number: int, levels: int) -> str:
    start, stop = int(column.offsets[number]), int(column.offsets[number + 1])
    if levels == 0:
        return ELLIPSIS
    end = min(stop, start + MOST_INNER)
    tail = [ELLIPSIS] * (end < stop)
    if column.pairs is None:
        return shorten(f"[{', '.join(value_texts(column.elements, start, end, levels - 1) + tail)}]", MOST_BYTES)
    keys, values = (value_texts(child, start, end, levels - 1) for child in column.pairs.children)
    inner = [f"{key}: {value}" for key, value in zip(keys, values, strict=True)]
    return shorten(f"{{{', '.join(inner + tail)}}}", MOST_BYTES)


def struct_texts(column: StructColumn, levels: int) -> list[str]:
    """A short text for each struct, down to some levels of nesting."""
    if levels == 0:
        return [ELLIPSIS] * len(column)
    names = [field.name for field in column.type.fields][:MOST_INNER]
    inner = [value_texts(child, 0, len(column), levels - 1) for child in column.children[:MOST_INNER]]
    tail = [ELLIPSIS] * (len(column.children) > MOST_INNER)
    rows = zip(*inner, strict=True) if inner else [()] * len(column)
    pairs = [[f"{name}: {text}" for name, text in zip(names, row, strict=True)] + tail for row in rows]
    return [shorten(f"{{{', '.join(texts)}}}", MOST_BYTES) for texts in pairs]


def _variable_text(column: Column, number: int) -> str:
    if column.null_count and not column.slice(number, number + 1).validity_mask()[0]:
        return NULL
    try:
        stored, length = _first_bytes(column.values, number)
    except IndexError:
        return BROKEN
    is_cut = len(stored) < length
    if not column.type.is_text:
        return f"{stored!r}{ELLIPSIS if is_cut else ''}"
    text = stored.decode(errors="replace")
    if is_cut:      # perhaps within a character
        text = text.rstrip("\ufffd")
    return f"{text!r}{ELLIPSIS if is_cut else ''}"


def _first_bytes(values: Values, number: int) -> tuple[bytes, int]:
    """The first bytes of a value, and how many there are."""
    match values:
        case BinaryOffsets(offsets, data):
            start, stop = int(offsets[number]), int(offsets[number + 1])
            return data[start : min(stop, start + MOST_BYTES)].tobytes(), stop - start
        case CodedViews(codes, entries):
            return _first_bytes(entries, int(codes[number]))
        case BinaryViews(views, buffers):
            view = np.ascontiguousarray(views[number : number + 1]).view(np.int32).tolist()
            length = view[0]
            if length <= 12:
                return np.ascontiguousarray(views[number : number + 1]).view(np.uint8)[4 : 4 + length].tobytes(), length
            return buffers[view[2]][view[3] : view[3] + min(length, MOST_BYTES)].tobytes(), length
        case DictionaryValues(codes, dictionary):
            return _first_bytes(dictionary.values, int(codes[number]))
    raise ValueError("values of fixed width")
