"""Takes columns apart into leaves. A leaf in a nested column becomes levels, and values without nulls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from fastpq.arrays.bitmap import count_zeros
from fastpq.arrays.concat import concat_columns, require_one_type
from fastpq.arrays.flat_column import Column, DictionaryValues
from fastpq.arrays.nested_columns import ListColumn
from fastpq.column.input import ColumnInput
from fastpq.column.layout import Conversion, Layout, layout_of
from fastpq.column.leaf_entries import Levels
from fastpq.errors import SchemaError
from fastpq.format.slots import untracked

if TYPE_CHECKING:
    from fastpq.arrays.column_base import ColumnBase
    from fastpq.arrays.table import AnyColumn, Table
    from fastpq.schema.parquet_schema import ParquetSchema


# An unordered dictionary with at most this many entries is written whole, even if there are fewer rows.
_MOST_UNUSED = 1000
_TIMESTAMP96 = Conversion.TIMESTAMP96       # an enum's member takes longer to look up


class LeafToWrite:
    """A leaf that will be written.

    Args:
        above: the columns above the leaf, the outermost first. A flat column has none.
        leaf: the leaf.

    Raises:
        SchemaError: a validity bitmap contradicts its column's null count.
    """

    __slots__ = ("_above", "_leaf")

    def __init__(self, above: Sequence[ColumnBase], leaf: Column) -> None:
        self._above, self._leaf = above, leaf
        for column in (*above, leaf) if above else (leaf,):
            if column.null_count and column.validity is not None:
                zeros = count_zeros(column.validity, len(column))
                if zeros != column.null_count:
                    raise SchemaError(f"a validity bitmap with {zeros} nulls, in a column with {column.null_count}")

    @property
    def is_dictionary(self) -> bool:
        """Whether the values are dictionary-encoded, or were so in Arrow."""
        arrow = self._leaf.arrow
        return isinstance(self._leaf.values, DictionaryValues) or (arrow is not None and arrow.dictionary is not None)

    def converted(self, convert: Callable[[Column], Column]) -> LeafToWrite:
        """Return the leaf with values that a function makes from its values. It must keep their number and their nulls."""
        return LeafToWrite(self._above, convert(self._leaf))

    def entries(self, layout: Layout, rows: int) -> ColumnInput | None:
        """Return the dictionary entries, if the dictionary is written whole and in its order. Otherwise return None.

        An unordered dictionary with many entries is not written whole: the file gets a dictionary with only the values in use.

        Args:
            layout: the column's layout in the file.
            rows: how many rows are written.
        """
        values = self._leaf.values
        if not isinstance(values, DictionaryValues):
            return None
        if not values.is_ordered and len(values.dictionary) > max(rows, _MOST_UNUSED):
            return None
        return ColumnInput(values.dictionary, layout)

    def rows_with(self, values: int, num_bytes: int, num_rows: int) -> int:
        """Return about how many rows have so many values, and not more than so many bytes: at least 1.

        Args:
            values: how many values.
            num_bytes: most bytes of the values, if they were all equally large.
            num_rows: how many rows the leaf has.
        """
        rows = values * num_rows // max(num_rows, len(self._leaf)) if self._above else values
        return max(1, min(rows, num_bytes * num_rows // max(self._used_bytes(), 1)))

    def _used_bytes(self) -> int:
        """Return the size of the leaf's values in bytes."""
        return self._leaf.used_bytes()

    def rows(self, layout: Layout, start: int, stop: int) -> ColumnInput:
        """Return the rows [start, stop) as an input for one thread.

        Args:
            layout: the column's layout in the file. For INT96, the leaf's unit in memory is used instead.
            start, stop: the rows.

        Raises:
            LimitError: there are too many levels for one column chunk.
            SchemaError: a required field is null, and no layer above it is.
        """
        leaf = self._leaf
        if layout.conversion is _TIMESTAMP96:
            layout = layout_of(leaf.type)
        if not self._above or self._is_like_flat():
            is_whole = start == 0 and stop == len(leaf.values)
            return ColumnInput(leaf if is_whole else leaf.slice(start, stop), layout)
        values, levels = shred_column(self._above, leaf, start, stop)
        return ColumnInput(values, layout, levels)

    def _is_like_flat(self) -> bool:
        """Whether all entries have the same levels: there are structs above the leaf, but neither lists nor nulls."""
        return not self._leaf.null_count and not any(
            column.null_count or isinstance(column, ListColumn) for column in self._above
        )


class LeafInParts(LeafToWrite):
    """A flat leaf whose rows are in several columns. They are encoded from there, without being joined.

    Args:
        parts: columns of the same type, at least one.
        name: column name, for errors.

    Raises:
        SchemaError: a validity bitmap contradicts its column's null count.
    """

    __slots__ = ("_name", "_parts", "_starts")

    def __init__(self, parts: Sequence[Column], name: str) -> None:
        self._name = name
        self._parts = [LeafToWrite((), part) for part in parts]
        self._starts = [*accumulate(map(len, parts), initial=0)]
        super().__init__((), parts[0])

    def _used_bytes(self) -> int:
        return sum(part._used_bytes() for part in self._parts)

    def rows(self, layout: Layout, start: int, stop: int) -> ColumnInput:
        pieces = [
            (part, max(start, first) - first, min(stop, behind) - first)
            for part, (first, behind) in zip(self._parts, pairwise(self._starts), strict=True)
            if max(start, first) < min(stop, behind)
        ]
        if len(pieces) <= 1:
            part, first, behind = pieces[0] if pieces else (self._parts[0], 0, 0)
            return part.rows(layout, first, behind)
        if layout.conversion is _TIMESTAMP96:
            layout = layout_of(self._leaf.type)
        first_column, *following = [part._leaf.slice(first, behind) for part, first, behind in pieces]
        require_one_type([first_column, *following], self._name)
        return ColumnInput(first_column, layout, following=following)


def table_leaves(tables: Sequence[Table], schema: ParquetSchema) -> list[LeafToWrite]:
    """Return all columns' leaves for the rows of some tables.

    Args:
        tables: tables with the same columns, at least one.
        schema: the file's schema. It has a column for each column in the tables.

    Raises:
        SchemaError: a nested or dictionary-encoded column has other types or duration units in another table.
    """
    leaves: list[LeafToWrite] = []
    for node, parts in zip(schema.root.children, zip(*[table.columns for table in tables], strict=True), strict=True):
        if len(parts) == 1:
            leaves += leaves_to_write(parts[0], node.nullable)
            continue
        flat = [part for part in parts if isinstance(part, Column) and not isinstance(part.values, DictionaryValues)]
        if len(parts) == len(flat):
            leaves.append(LeafInParts(flat, node.element.name))
        else:
            leaves += leaves_to_write(concat_columns(parts, node.element.name), node.nullable)
    return leaves


def leaves_to_write(column: AnyColumn, nullable: bool) -> list[LeafToWrite]:
    """Return a column's leaves in schema order. nullable: whether the schema allows nulls in the column."""
    if not column.is_nested:
        return [untracked(LeafToWrite((), column))]
    column = column if column.nullable == nullable else column._with(nullable=nullable)
    return [untracked(LeafToWrite(above, leaf)) for above, leaf in column.leaves()]


def shred_column(above: Sequence[ColumnBase], leaf: Column, start: int, stop: int) -> tuple[Column, Levels]:
    """Take one leaf's rows [start, stop) apart.

    Args:
        above: the columns above the leaf, the outermost first.
        leaf: the leaf.
        start, stop: the rows.

    Returns:
        The leaf's values, without nulls and without values under a null. Then the levels for all entries.

    Raises:
        LimitError: there are too many levels for one column chunk.
        SchemaError: a required field is null, and no layer above it is.
    """
    levels = Levels(start, stop)
    definition = repetition = 0
    for column in (*above, leaf):
        if column.nullable or column.null_count:
            levels.enter_value(column.validity if column.null_count else None, column.nullable)
            definition += column.nullable
        if isinstance(column, ListColumn):
            definition += 1
            repetition += 1
            levels.enter_list(np.ascontiguousarray(column.offsets), repetition)
    slots = levels.finish(definition)
    values = leaf.slice(slots.start, slots.stop) if isinstance(slots, slice) else leaf.take(slots)
    return values if values.validity is None else values._with(validity=None, null_count=0), levels
