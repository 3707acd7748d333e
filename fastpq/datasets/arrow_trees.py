"""ArrowTree: a column's Arrow fields, which all batches from a dataset share."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fastpq.arrays.flat_column import DictionaryValues, fixed_values
from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn, Column, ListColumn, StructColumn

WIDE_INDEX = "i"        # Arrow's format of int32


class ArrowTree(NamedTuple):
    """A column's Arrow fields, as a file's ARROW:schema has them.

    Attributes:
        field: the column's own field, or None.
        inner: those inside it, by field name. A list's elements have the name "".
    """

    field: FieldNode | None
    inner: tuple[tuple[str, ArrowTree], ...] = ()

    @property
    def is_dictionary(self) -> bool:
        """Whether the values are dictionary-encoded in Arrow."""
        return self.field is not None and self.field.dictionary is not None

    @classmethod
    def of(cls, column: AnyColumn) -> ArrowTree:
        """Return the fields that a column has."""
        return cls(column.arrow, tuple((name, cls.of(each)) for name, each in _inner(column)))

    def with_wide_indices(self) -> ArrowTree:
        """Return the fields with int32 as the index type of each dictionary, because another file may have more entries."""
        field = self.field
        if field is not None and field.dictionary is not None:
            field = replace(field, format=WIDE_INDEX)
        return ArrowTree(field, tuple((name, each.with_wide_indices()) for name, each in self.inner))

    def applied_to(self, column: AnyColumn) -> AnyColumn:
        """Return a column with these fields. Durations keep theirs, which has their unit.

        Inner columns that the tree does not have lose their fields.
        """
        if ArrowTree.of(column) == self:
            return column
        if isinstance(column, Column) and not self.is_dictionary and ArrowTree.of(column).is_dictionary:
            column = _without_dictionary(column)
        trees = dict(self.inner)
        inner = tuple(trees.get(name, ArrowTree(None)).applied_to(each) for name, each in _inner(column))
        if not any(field is not None and field.is_duration for field in (self.field, column.arrow)):
            column = column.with_arrow(self.field)
        if isinstance(column, StructColumn):
            return column._with(children=inner)
        return column._with(elements=inner[0]) if isinstance(column, ListColumn) else column


def _without_dictionary(column: Column) -> Column:
    if not isinstance(column.values, DictionaryValues):
        return column
    return column.as_views() if column.type.is_variable else column._with(values=fixed_values(column))


def _inner(column: AnyColumn) -> list[tuple[str, AnyColumn]]:
    if isinstance(column, StructColumn):
        return [*zip([field.name for field in column.type.fields], column.children, strict=True)]
    return [("", column.elements)] if isinstance(column, ListColumn) else []
