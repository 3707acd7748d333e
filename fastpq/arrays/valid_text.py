"""Treatment of text that is not valid UTF-8. It is refused, repaired, or returned as bytes.

Parquet's STRING is UTF-8 (LogicalTypes.md). Some writers do not check it. Arrow does not check it either
when data pass from one library to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from fastpq.arrays.binary import first_invalid_utf8
from fastpq.arrays.flat_column import Column, DictionaryValues
from fastpq.arrays.layouts import BinaryOffsets, CodedViews
from fastpq.arrays.nested_columns import map_leaves
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.strings import to_objects
from fastpq.arrays.table import Table
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Type

TextChoice: TypeAlias = Literal["error", "replace", "binary"]
BINARY = ColumnType(Type.BYTE_ARRAY)


def first_invalid_text(column: Column) -> int:
    """Return the index of the first value that is not valid UTF-8. Nulls are not checked.

    If there is no such value, or if the column is not text, return -1.
    """
    if not column.type.is_text:
        return -1
    match column.values:
        case DictionaryValues(_, dictionary):
            entries: Any = dictionary.values
        case CodedViews(_, views):
            entries = views
        case _:
            entries = None
    if entries is not None and first_invalid_utf8(SliceReader(entries)) < 0:
        return -1
    return int(first_invalid_utf8(_reader(column)))


def repaired_leaf(column: Column) -> Column:
    """Return a flat column with its text repaired: U+FFFD replaces each byte sequence that is not UTF-8.

    A column of valid text, or of other values, is returned as it is.
    """
    return column if first_invalid_text(column) < 0 else _repaired(column)


def as_binary(column: Column) -> Column:
    """Return a text column's stored bytes as a column of bytes."""
    values = column.values
    if isinstance(values, DictionaryValues):
        values = replace(values, dictionary=as_binary(values.dictionary))
    return column._with(type=BINARY, values=values, arrow=None)


def refuse_invalid_text(readers: Sequence[SliceReader]) -> NoReturn:
    """Raise the error for text in which a value, or an entry in the dictionary, is not UTF-8.

    Args:
        readers: the readers for the column's values, one after the other.

    Raises:
        SchemaError: always. It names the first such value, or else the dictionary.
    """
    subject, first = "an entry in the dictionary", 0
    for reader in readers:
        place = first_invalid_utf8(reader)
        if place >= 0:
            subject = f"value {first + place}"
            break
        first += reader.count
    raise SchemaError(f'{subject} is not UTF-8: invalid_utf8="replace" repairs such text, "binary" writes its bytes')


def with_repaired_text(table: Table) -> Table:
    """Return a table with its text repaired: U+FFFD replaces each byte sequence that is not UTF-8."""
    return table._of(map_leaves(repaired_leaf, column) for column in table.columns)


def with_invalid_text_as_binary(table: Table) -> Table:
    """Return a table in which each text leaf that has invalid UTF-8 becomes a leaf of bytes."""
    def converted(leaf: Column) -> Column:
        return leaf if first_invalid_text(leaf) < 0 else as_binary(leaf)

    return table._of(map_leaves(converted, column) for column in table.columns)


def _reader(column: Column) -> SliceReader:
    return SliceReader(column.values, column.validity if column.null_count else None)


def _repaired(column: Column) -> Column:
    if isinstance(column.values, DictionaryValues):
        dictionary = column.values.dictionary
        return column._with(values=replace(column.values, dictionary=_repaired(dictionary)))
    stored_values = to_objects(_reader(column), False).tolist()
    texts = [b"" if value is None else value.decode("utf-8", "replace").encode() for value in stored_values]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    return column._with(values=BinaryOffsets(offsets, np.frombuffer(b"".join(texts), np.uint8)))
