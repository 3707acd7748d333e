"""Columns taken apart into leaves; a leaf of a nested column is levels, and values without nulls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fastpq.arrays.bitmap import count_zeros
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.column.input import ColumnInput
from fastpq.column.layout import Layout
from fastpq.column.leaf_entries import Levels
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import MapType

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn, Column


class LeafToWrite:
    """A leaf of a column.

    Args:
        path: the columns from the outermost to the leaf itself; the leaf alone for a flat column.

    Raises:
        SchemaError: a validity bitmap against its column's number of nulls.
    """

    def __init__(self, path: list[AnyColumn]) -> None:
        self._path = path
        for column in path:
            if column.validity is not None and column.null_count:
                zeros = count_zeros(column.validity, len(column))
                if zeros != column.null_count:
                    raise SchemaError(f"a validity bitmap with {zeros} of the column's {column.null_count} nulls")

    def rows(self, layout: Layout, start: int, stop: int) -> ColumnInput:
        """The rows [start, stop), as an input for one thread.

        Raises:
            LimitError: too many levels for one column chunk.
            SchemaError: a null in a required field, without a null above.
        """
        outermost = self._path[0]
        if not isinstance(outermost, ListColumn | StructColumn):
            return ColumnInput(outermost.slice(start, stop), layout)
        values, levels = shred_column(self._path, start, stop)
        return ColumnInput(values, layout, levels)


def leaves_to_write(column: AnyColumn, nullable: bool) -> list[LeafToWrite]:
    """The leaves of a column, in the order of the schema; nullable says whether the schema allows nulls in the column."""
    return [LeafToWrite(path) for path in _paths(replace(column, nullable=nullable))]


def _paths(column: AnyColumn) -> Iterator[list[AnyColumn]]:
    for path in _paths_below(column):
        yield [column, *path]


def _paths_below(column: AnyColumn) -> Iterator[list[AnyColumn]]:
    if isinstance(column, StructColumn):
        for child in column.children:
            yield from _paths(child)
    elif isinstance(column, ListColumn) and isinstance(column.type, MapType):
        assert isinstance(column.elements, StructColumn)
        key, value = column.elements.children
        # the keys of a map are required, even if the source of the column said otherwise
        for child in (replace(key, nullable=False), value):
            yield from ([column.elements, *path] for path in _paths(child))
    elif isinstance(column, ListColumn):
        yield from _paths(column.elements)
    else:
        yield []


def shred_column(path: list[AnyColumn], start: int, stop: int) -> tuple[Column, Levels]:
    """The rows [start, stop) of one leaf.

    Args:
        path: the columns from the outermost to the leaf itself.

    Returns:
        The values of the leaf, without nulls and without values under a null; and the levels of all entries.

    Raises:
        LimitError: too many levels for one column chunk.
        SchemaError: a null in a required field, without a null above.
    """
    levels = Levels(start, stop)
    definition = repetition = 0
    for column in path:
        if column.nullable or column.null_count:
            levels.enter_value(column.validity if column.null_count else None, column.nullable)
            definition += column.nullable
        if isinstance(column, ListColumn):
            definition += 1
            repetition += 1
            levels.enter_list(np.ascontiguousarray(column.offsets), repetition)
    leaf = path[-1]
    assert not isinstance(leaf, ListColumn | StructColumn)
    return _values(leaf, levels.finish(definition)), levels


def _values(leaf: Column, slots: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Column:
    count = len(slots)
    first = int(slots[0]) if count else 0
    if count and int(slots[-1]) - first + 1 == count:
        found = leaf.slice(first, first + count)
    else:
        found = leaf.take(slots)
    return replace(found, validity=None, null_count=0)
