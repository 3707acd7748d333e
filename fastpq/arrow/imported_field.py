"""ImportedField, the interface of the readers for the fields of a producer's Arrow schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn
from fastpq.arrow.capsules_in import ForeignArray
from fastpq.arrow.flat_import import Bitmap
from fastpq.arrow.hints import stored_field
from fastpq.errors import LimitError, ParquetError, SchemaError


class ImportedField(ABC):
    """A reader that converts the arrays of one field to columns.

    Args:
        node: the field.

    Attributes:
        name: the field's name.
        nullable: whether the field may hold nulls.
        arrow: the Arrow field of the columns, without the fields inside it, which belong to inner columns.
        needs_all_values: whether ``join`` decides the type by all values, so that one column from ``read`` needs it too.
    """

    __slots__ = ("arrow", "name", "needs_all_values", "nullable")

    def __init__(self, node: FieldNode) -> None:
        self.name, self.nullable, self.needs_all_values = node.name, node.nullable, True
        field = stored_field(node) if node.format.startswith("+") else node
        self.arrow = replace(field, children=()) if field.children else field

    def read(self, array: ForeignArray, start: int, length: int, parents: Bitmap | None = None) -> AnyColumn:
        """Return an array's values from ``start`` to ``start + length`` as a column.

        Args:
            array: the array.
            start: index of the first value.
            length: value count.
            parents: bitmap with a one for each value whose parents are not null, or None if no parent is null. There is no value
                under a null parent, so that the bytes there are not checked.
        """
        try:
            if length > array.length or start > array.length - length:
                raise SchemaError(f"rows {start} to {start + length} are outside an Arrow array of {array.length} values")
            return self._read(array, start, length, parents)
        except ParquetError as error:
            raise error.at(column=self.name or None) from None
        except MemoryError as error:
            raise LimitError(f"there is no memory for {length} values", column=self.name or None) from error

    def join(self, columns: list[Any]) -> AnyColumn:
        """Concatenate the columns from all batches. Without batches, return an empty column."""
        if not columns:
            return self.empty()
        try:
            return self._join(columns)
        except ParquetError as error:
            raise error.at(column=self.name or None) from None
        except MemoryError as error:
            raise LimitError(f"there is no memory to join {len(columns)} batches", column=self.name or None) from error

    @abstractmethod
    def empty(self) -> AnyColumn:
        """Return a column without values."""

    @abstractmethod
    def _read(self, array: ForeignArray, start: int, length: int, parents: Bitmap | None) -> AnyColumn: ...

    @abstractmethod
    def _join(self, columns: list[Any]) -> AnyColumn: ...
