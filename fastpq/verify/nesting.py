"""Repetition and definition levels: whether they can follow each other, and whether columns that share a group agree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.format import FieldRepetitionType
from fastpq.schema.parquet_schema import ColumnDescriptor, GroupNode, ParquetSchema, SchemaNode

Array: TypeAlias = NDArray[Any]


def _ancestors(column: ColumnDescriptor) -> Iterator[SchemaNode]:
    """Yield a column and the groups around it, without the root."""
    node: SchemaNode | None = column
    while node is not None and node.parent is not None:
        yield node
        node = node.parent


class LevelRules:
    """Check of one column's levels, page after page.

    Args:
        column: the column.

    Attributes:
        least_definition: the definition level of the repeated node for each repetition level. A value with this repetition level
            continues a list of that node, so that it has at least this definition level, and so has the value before it.
    """

    def __init__(self, column: ColumnDescriptor) -> None:
        self.least_definition = np.zeros(column.max_repetition_level + 1, np.uint8)
        for node in _ancestors(column):
            if node.repetition is FieldRepetitionType.REPEATED:
                self.least_definition[node.max_repetition_level] = node.max_definition_level
        self._last_definition: int | None = None        # of the page before

    def is_broken(self, repetition: Array, definition: Array) -> bool:
        """Return whether a list continues that has no element. The levels of the page before count."""
        if not len(repetition):
            return False
        least = self.least_definition[repetition]
        before = np.empty_like(definition)
        before[1:] = definition[:-1]
        before[0] = least[0] if self._last_definition is None else self._last_definition
        self._last_definition = int(definition[-1])
        return bool(((definition < least) | (before < least)).any())


class _SharedGroup(NamedTuple):
    """A group above several columns, and the highest levels that it has itself."""

    node: GroupNode
    definition: int
    repetition: int


class _Digest:
    """Hashes of the levels that a column has for one group."""

    def __init__(self) -> None:
        self._repetition, self._definition = hashlib.blake2b(), hashlib.blake2b()

    def add(self, repetition: Array | None, definition: Array) -> None:
        if repetition is not None:
            self._repetition.update(repetition.data)
        self._definition.update(definition.data)

    def finish(self) -> bytes:
        return self._repetition.digest() + self._definition.digest()


class SharedLevels:
    """Comparison of the levels that the columns of one row group have for the groups that they share.

    The levels themselves are not kept, only hashes of them, so that memory does not grow with the file.

    Args:
        schema: the schema of the file.
    """

    def __init__(self, schema: ParquetSchema) -> None:
        self._groups = {column.index: list(_shared_groups(column)) for column in schema.columns}
        self._digests: dict[tuple[int, int], _Digest] = {}
        self._whole_columns: set[int] = set()

    def begin_row_group(self) -> None:
        """Forget the levels of the row group before."""
        self._digests.clear()
        self._whole_columns.clear()

    def add(self, column: ColumnDescriptor, repetition: Array | None, definition: Array | None) -> None:
        """Add the levels of a column's next page."""
        if definition is None:
            return
        for group in self._groups[column.index]:
            own_definition = np.minimum(definition, group.definition)
            own_repetition = None
            if repetition is not None and column.max_repetition_level:
                is_own = repetition <= group.repetition     # the others are further elements inside of one of the group's values
                own_definition, own_repetition = own_definition[is_own], np.ascontiguousarray(repetition[is_own])
            digest = self._digests.setdefault((id(group.node), column.index), _Digest())
            digest.add(own_repetition if group.repetition else None, np.ascontiguousarray(own_definition))

    def finish_column(self, column: ColumnDescriptor) -> None:
        """Mark a column all of whose pages were added."""
        self._whole_columns.add(column.index)

    def disagreements(self, schema: ParquetSchema) -> Iterator[tuple[GroupNode, ColumnDescriptor, ColumnDescriptor]]:
        """Yield a group, and two columns below it that have other levels for it."""
        first: dict[int, tuple[bytes, ColumnDescriptor]] = {}
        for column in schema.columns:
            if column.index not in self._whole_columns:
                continue
            for group in self._groups[column.index]:
                own = self._digests.get((id(group.node), column.index), _Digest()).finish()
                digest, other = first.setdefault(id(group.node), (own, column))
                if digest != own:
                    yield group.node, other, column


def _shared_groups(column: ColumnDescriptor) -> Iterator[_SharedGroup]:
    for node in _ancestors(column):
        if isinstance(node, GroupNode) and node.last - node.first > 1 and node.max_definition_level:
            yield _SharedGroup(node, node.max_definition_level, node.max_repetition_level)
