"""Readers for the fields of a producer's Arrow schema: flat values, structs, lists and maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.concat import concat_offsets, concat_validity
from fastpq.arrays.nodes import ORDERED, FieldNode
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import AnyColumn, Column, DictionaryValues, ListColumn, StructColumn
from fastpq.arrow.batches import concat_batches
from fastpq.arrow.canonical import PARQUET_VARIANT
from fastpq.arrow.capsules_in import ForeignArray
from fastpq.arrow.flat_import import (
    checked_list_views,
    checked_offsets,
    empty_values,
    read_dictionary,
    read_validity,
    read_values,
)
from fastpq.arrow.formats import EXTENSION_NAME, FormatLayout, arrow_type, fixed_list_size, index_dtype
from fastpq.errors import LimitError, ParquetError, SchemaError
from fastpq.schema.nested_types import Annotation, ListType, MapType, StructType
from fastpq.schema.types import ColumnType, Geography, Geometry, Type


class ImportedField(ABC):
    """A reader for one field of a producer's schema: converts the field's arrays to columns."""

    name: str
    nullable: bool

    def read(self, array: ForeignArray, start: int, length: int) -> AnyColumn:
        """A column of the ``length`` values of ``array`` from ``start`` on."""
        try:
            if length > array.length or start > array.length - length:
                raise SchemaError(f"rows {start} to {start + length} of an Arrow array of {array.length} values")
            return self._read(array, start, length)
        except ParquetError as error:
            raise error.at(column=self.name or None) from None
        except MemoryError as error:
            raise LimitError(f"no memory for {length} values", column=self.name or None) from error

    def joined(self, columns: list[Any]) -> AnyColumn:
        """The columns of all batches concatenated; an empty column for no batches."""
        if not columns:
            return self.empty()
        try:
            return self._joined(columns)
        except ParquetError as error:
            raise error.at(column=self.name or None) from None
        except MemoryError as error:
            raise LimitError(f"no memory to join {len(columns)} chunks", column=self.name or None) from error

    @abstractmethod
    def empty(self) -> AnyColumn:
        """A column without values."""

    @abstractmethod
    def _read(self, array: ForeignArray, start: int, length: int) -> AnyColumn: ...

    @abstractmethod
    def _joined(self, columns: list[Any]) -> AnyColumn: ...


def field_of(node: FieldNode) -> ImportedField:
    """The reader for a field of a schema."""
    if node.dictionary is None:
        if node.format == "+s":
            return _StructField(node)
        if node.format in ("+l", "+L", "+m", "+vl", "+vL") or node.format.startswith("+w:"):
            return _ListField(node)
        if node.format == "+r" or node.format[:4] in ("+us:", "+ud:"):
            from fastpq.arrow.runs_and_unions import RunEndField, UnionField

            return RunEndField(node) if node.format == "+r" else UnionField(node)
    return _LeafField(node)


class _StructField(ImportedField):
    def __init__(self, node: FieldNode) -> None:
        self.name, self.nullable = node.name, node.nullable
        self._fields = [field_of(child) for child in node.children]
        is_variant = (node.metadata or {}).get(EXTENSION_NAME) == PARQUET_VARIANT
        self._annotation: Annotation | None = "VARIANT" if is_variant else None

    def empty(self) -> StructColumn:
        return self._column([field.empty() for field in self._fields], 0, None, 0)

    def _read(self, array: ForeignArray, start: int, length: int) -> StructColumn:
        if array.n_buffers != 1:
            raise SchemaError(f"an Arrow struct has 1 buffer, not {array.n_buffers}")
        start += array.offset
        validity, null_count = read_validity(array, start, length) if length else (None, 0)
        if array.n_children != len(self._fields):
            raise SchemaError(f"an Arrow struct of {len(self._fields)} fields has {array.n_children} children")
        children = [field.read(array.child(index), start, length) for index, field in enumerate(self._fields)]
        return self._column(children, length, validity, null_count)

    def _joined(self, columns: list[StructColumn]) -> StructColumn:
        validity, null_count = _joined_validity(columns)
        children = [
            field.joined(list(parts))
            for field, parts in zip(self._fields, zip(*[column.children for column in columns], strict=True), strict=True)
        ]
        return self._column(children, sum(map(len, columns)), validity, null_count)

    def _column(self, children: list[AnyColumn], length: int, validity: Any, null_count: int) -> StructColumn:
        fields = zip(self._fields, children, strict=True)
        type_ = StructType(tuple(child.as_field(field.name) for field, child in fields), self._annotation)
        return StructColumn(type_, tuple(children), length, validity, null_count, self.nullable)


class _ListField(ImportedField):
    def __init__(self, node: FieldNode) -> None:
        self.name, self.nullable = node.name, node.nullable
        if len(node.children) != 1:
            raise SchemaError(f"an Arrow list has 1 child, not {len(node.children)}", column=node.name or None)
        self._element = field_of(node.children[0])
        self._dtype = np.dtype(np.int64 if node.format in ("+L", "+vL") else np.int32)
        self._views = node.format.startswith("+v")
        self._size = fixed_list_size(node.format) if node.format.startswith("+w:") else None
        self._is_map = node.format == "+m"
        if self._is_map and not (isinstance(self._element, _StructField) and len(node.children[0].children) == 2):
            raise SchemaError("the pairs of an Arrow map are structs of two fields", column=node.name or None)

    def empty(self) -> ListColumn:
        return self._column(np.zeros(1, self._dtype), self._element.empty(), None, 0)

    def _read(self, array: ForeignArray, start: int, length: int) -> ListColumn:
        buffers = 3 if self._views else 2 if self._size is None else 1
        if array.n_buffers != buffers or array.n_children != 1:
            raise SchemaError(
                f"an Arrow list has {buffers} buffers and 1 child, not {array.n_buffers} and {array.n_children}"
            )
        if length == 0:
            return self.empty()
        start += array.offset
        if self._views:
            return self._read_views(array, start, length)
        if self._size is None:
            offsets = checked_offsets(array, self._dtype, start, length)
        else:
            offsets = np.arange(start, start + length + 1, dtype=np.int64) * self._size
        first, last = int(offsets[0]), int(offsets[-1])
        elements = self._element.read(array.child(0), first, last - first)
        return self._column(offsets - offsets[0], elements, *read_validity(array, start, length))

    def _read_views(self, array: ForeignArray, start: int, length: int) -> ListColumn:
        validity, null_count = read_validity(array, start, length)
        starts, sizes = checked_list_views(array, self._dtype, start, length, validity)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        elements = self._element.read(array.child(0), 0, array.child(0).length).take(places)
        return self._column(offsets, elements, validity, null_count)

    def _joined(self, columns: list[ListColumn]) -> ListColumn:
        validity, null_count = _joined_validity(columns)
        elements = self._element.joined([column.used_elements() for column in columns])
        return self._column(concat_offsets([column.offsets for column in columns]), elements, validity, null_count)

    def _column(self, offsets: Any, elements: AnyColumn, validity: Any, null_count: int) -> ListColumn:
        type_: ListType | MapType
        if self._is_map:
            entries = cast(StructColumn, elements)      # of a _StructField
            key, value = entries.type.fields
            key, value = replace(key, name="key"), replace(value, name="value")
            elements = entries._with(type=StructType((key, value)), nullable=False)
            type_ = MapType(key, value)
        else:
            type_ = ListType(elements.as_field("element"))
        return ListColumn(type_, offsets, elements, validity, null_count, self.nullable)


def _joined_validity(columns: Sequence[AnyColumn]) -> tuple[NDArray[np.uint8] | None, int]:
    parts = [column.validity if column.null_count else None for column in columns]
    return concat_validity(parts, [*map(len, columns)]), sum(column.null_count for column in columns)


class _LeafField(ImportedField):
    """A reader for flat values, dictionary-encoded or not."""

    def __init__(self, node: FieldNode) -> None:
        self.name = node.name
        try:
            self.values = arrow_type(node)
            self.indices = None if node.dictionary is None else index_dtype(node)
        except ParquetError as error:
            raise error.at(column=self.name or None) from None
        self._is_ordered = bool(node.flags & ORDERED)
        # A field of the null type is nullable, even where the producer denies this.
        self.nullable = node.nullable or self.values.layout is FormatLayout.NONE

    def _read(self, array: ForeignArray, start: int, length: int) -> Column:
        if array.n_children != 0:
            raise SchemaError(f"a flat Arrow array has {array.n_children} children")
        if self.indices is None:
            column = read_values(array, self.values, start, length)
        else:
            column = read_dictionary(array, self.indices, self.values, start, length, is_ordered=self._is_ordered)
        return column._with(nullable=self.nullable)

    def empty(self) -> Column:
        empty = empty_values(self.values)
        if self.indices is not None and self.values.type.is_variable:
            empty = DictionaryValues(
                np.zeros(0, np.int32), Column(self.values.type, empty, nullable=False), self._is_ordered
            )
        return Column(self.values.type, empty, nullable=self.nullable)

    def _joined(self, columns: list[Column]) -> Column:
        column = concat_batches(columns)
        return _as_bytes(column) if isinstance(column.type.logical, Geometry | Geography) else column


def _as_bytes(column: Column) -> Column:
    """A column of geometries as plain BYTE_ARRAY where a value is no WKB; other columns unchanged."""
    from fastpq.stats.geospatial import are_geometries

    if are_geometries(SliceReader(column.values, column.validity if column.null_count else None)):
        return column
    values, plain = column.values, ColumnType(Type.BYTE_ARRAY)
    if isinstance(values, DictionaryValues):
        values = DictionaryValues(values.codes, values.dictionary._with(type=plain), values.is_ordered)
    return column._with(type=plain, values=values)
