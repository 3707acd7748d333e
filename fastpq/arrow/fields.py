"""Readers for the fields of a producer's Arrow schema. They convert flat values, structs, lists and maps to columns.

The values of a stream's batches become one column, and their dictionaries become one dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.bitmap import pack_bitmap, unpack_bitmap
from fastpq.arrays.concat import concat_offsets, concat_validity, concat_values
from fastpq.arrays.nodes import ORDERED, FieldNode
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import AnyColumn, Column, DictionaryValues, ListColumn, StructColumn
from fastpq.arrow.canonical import PARQUET_VARIANT
from fastpq.arrow.capsules_in import ForeignArray
from fastpq.arrow.flat_import import (
    Bitmap,
    both_valid,
    checked_list_views,
    checked_offsets,
    empty_values,
    read_dictionary,
    read_validity,
    read_values,
)
from fastpq.arrow.formats import EXTENSION_NAME, FormatLayout, arrow_type, fixed_size, index_dtype
from fastpq.arrow.imported_field import ImportedField
from fastpq.errors import ParquetError, SchemaError
from fastpq.schema.nested_types import Annotation, ListType, MapType, StructType
from fastpq.schema.types import ColumnType, Geography, Geometry, Type

_NO_VALUES, _FIXED = FormatLayout.NONE, FormatLayout.FIXED      # an enum's members take longer to look up


def field_of(node: FieldNode) -> ImportedField:
    """Return the reader for a schema field."""
    if node.dictionary is None and node.format.startswith("+"):
        if node.format == "+s":
            return _StructField(node)
        if node.format in ("+l", "+L", "+m", "+vl", "+vL") or node.format.startswith("+w:"):
            return _ListField(node)
        if node.format == "+r" or node.format[:4] in ("+us:", "+ud:"):
            from fastpq.arrow.runs_and_unions import RunEndField, UnionField

            return RunEndField(node, field_of) if node.format == "+r" else UnionField(node, field_of)
    return _LeafField(node)


class _StructField(ImportedField):
    def __init__(self, node: FieldNode) -> None:
        super().__init__(node)
        self._fields = [field_of(child) for child in node.children]
        is_variant = (node.metadata or {}).get(EXTENSION_NAME) == PARQUET_VARIANT
        self._annotation: Annotation | None = "VARIANT" if is_variant else None

    def empty(self) -> StructColumn:
        return self._column([field.empty() for field in self._fields], 0, None, 0)

    def _read(self, array: ForeignArray, start: int, length: int, parents: Bitmap | None) -> StructColumn:
        if array.n_buffers != 1:
            raise SchemaError(f"an Arrow struct must have 1 buffer, not {array.n_buffers}")
        start += array.offset
        validity, null_count = read_validity(array, start, length) if length else (None, 0)
        if array.n_children != len(self._fields):
            raise SchemaError(f"an Arrow struct of {len(self._fields)} fields has {array.n_children} children")
        parents = both_valid(validity, parents)
        children = [field.read(array.child(index), start, length, parents) for index, field in enumerate(self._fields)]
        return self._column(children, length, validity, null_count)

    def _join(self, columns: list[StructColumn]) -> StructColumn:
        validity, null_count = _join_validity(columns)
        children = [
            field.join(list(parts))
            for field, parts in zip(self._fields, zip(*[column.children for column in columns], strict=True), strict=True)
        ]
        return self._column(children, sum(map(len, columns)), validity, null_count)

    def _column(self, children: list[AnyColumn], length: int, validity: Any, null_count: int) -> StructColumn:
        fields = zip(self._fields, children, strict=True)
        type_ = StructType(tuple(child.as_field(field.name) for field, child in fields), self._annotation)
        return StructColumn(type_, tuple(children), length, validity, null_count, self.nullable, self.arrow)


class _ListField(ImportedField):
    def __init__(self, node: FieldNode) -> None:
        super().__init__(node)
        if len(node.children) != 1:
            raise SchemaError(f"an Arrow list must have 1 child, not {len(node.children)}", column=node.name or None)
        self._element = field_of(node.children[0])
        self._dtype = np.dtype(np.int64 if node.format in ("+L", "+vL") else np.int32)
        self._views = node.format.startswith("+v")
        self._size = fixed_size(node.format) if node.format.startswith("+w:") else None
        self._is_map = node.format == "+m"
        if self._is_map and not (isinstance(self._element, _StructField) and len(node.children[0].children) == 2):
            raise SchemaError("the pairs of an Arrow map must be structs of two fields", column=node.name or None)

    def empty(self) -> ListColumn:
        return self._column(np.zeros(1, self._dtype), self._element.empty(), None, 0)

    def _read(self, array: ForeignArray, start: int, length: int, parents: Bitmap | None) -> ListColumn:
        buffers = 3 if self._views else 2 if self._size is None else 1
        if array.n_buffers != buffers or array.n_children != 1:
            raise SchemaError(
                f"an Arrow list must have {buffers} buffers and 1 child, not {array.n_buffers} and {array.n_children}"
            )
        if length == 0:
            return self.empty()
        start += array.offset
        if self._views:
            return self._read_views(array, start, length, parents)
        if self._size is None:
            offsets = checked_offsets(array, self._dtype, start, length)
        else:
            offsets = np.arange(start, start + length + 1, dtype=np.int64) * self._size
        first, last = int(offsets[0]), int(offsets[-1])
        validity, null_count = read_validity(array, start, length)
        lists = _parents_of_elements(both_valid(validity, parents), np.diff(offsets))
        elements = self._element.read(array.child(0), first, last - first, lists)
        return self._column(offsets - offsets[0], elements, validity, null_count)

    def _read_views(self, array: ForeignArray, start: int, length: int, parents: Bitmap | None) -> ListColumn:
        validity, null_count = read_validity(array, start, length)
        starts, sizes = checked_list_views(array, self._dtype, start, length, both_valid(validity, parents))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        elements = self._element.read(array.child(0), 0, array.child(0).length).take(places)
        return self._column(offsets, elements, validity, null_count)

    def _join(self, columns: list[ListColumn]) -> ListColumn:
        validity, null_count = _join_validity(columns)
        elements = self._element.join([column.used_elements() for column in columns])
        return self._column(concat_offsets([column.offsets for column in columns]), elements, validity, null_count)

    def _column(self, offsets: Any, elements: AnyColumn, validity: Any, null_count: int) -> ListColumn:
        type_: ListType | MapType
        if self._is_map:
            entries = cast(StructColumn, elements)      # the reader is a _StructField
            key, value = entries.type.fields
            key, value = replace(key, name="key"), replace(value, name="value")
            elements = entries._with(type=StructType((key, value)), nullable=False)
            type_ = MapType(key, value)
        else:
            type_ = ListType(elements.as_field("element"))
        return ListColumn(type_, offsets, elements, validity, null_count, self.nullable, self.arrow)


def _parents_of_elements(lists: Bitmap | None, lengths: NDArray[Any]) -> Bitmap | None:
    """Return a bitmap with a one for each element whose list exists, or None if all lists exist."""
    if lists is None:
        return None
    exists = unpack_bitmap(lists, 0, len(lengths))
    return pack_bitmap(np.repeat(exists, lengths)) if lengths[~exists].any() else None


def _join_validity(columns: Sequence[AnyColumn]) -> tuple[NDArray[np.uint8] | None, int]:
    parts = [column.validity if column.null_count else None for column in columns]
    return concat_validity(parts, [*map(len, columns)]), sum(column.null_count for column in columns)


class _LeafField(ImportedField):
    """A reader for flat values, with or without a dictionary."""

    __slots__ = ("_is_ordered", "_kept_dtype", "indices", "values")

    def __init__(self, node: FieldNode) -> None:
        super().__init__(node)
        try:
            self.values = arrow_type(node)
            self.indices = None if node.dictionary is None else index_dtype(node)
        except ParquetError as error:
            raise error.at(column=self.name or None) from None
        self.needs_all_values = isinstance(self.values.type.logical, (Geometry, Geography))
        is_kept = self.values.layout is _FIXED and self.values.convert is None
        self._kept_dtype = self.values.dtype if is_kept else None       # if a column holds the values without conversion
        self._is_ordered = bool(node.flags & ORDERED)
        # A field of the null type is nullable, even if its producer says otherwise.
        self.nullable = self.nullable or self.values.layout is _NO_VALUES

    def _read(self, array: ForeignArray, start: int, length: int, parents: Bitmap | None) -> Column:
        if array.n_children != 0:
            raise SchemaError(f"a flat Arrow array has {array.n_children} children, but must have none")
        if self.indices is None:
            if self._kept_dtype is not None:
                values = array.plain_values(self._kept_dtype, start, length)
                if values is not None:
                    return Column._made(self.values.type, values, nullable=self.nullable, arrow=self.arrow)
            return read_values(array, self.values, start, length, parents, nullable=self.nullable, field=self.arrow)
        column = read_dictionary(
            array, self.indices, self.values, start, length, parents, is_ordered=self._is_ordered, nullable=self.nullable
        )
        return column._with(nullable=self.nullable, arrow=self.arrow)

    def empty(self) -> Column:
        values = empty_values(self.values)
        if self.indices is not None and self.values.type.is_variable:
            dictionary = Column(self.values.type, values, nullable=False)
            values = DictionaryValues(np.zeros(0, np.int32), dictionary, self._is_ordered)
        return Column(self.values.type, values, nullable=self.nullable, arrow=self.arrow)

    def _join(self, columns: list[Column]) -> Column:
        column = concat_batches(columns)
        return _as_bytes(column) if self.needs_all_values else column


def _as_bytes(column: Column) -> Column:
    """Return a geometry column as plain BYTE_ARRAY if a value is not WKB, else unchanged."""
    from fastpq.stats.geospatial import are_geometries

    if are_geometries(SliceReader(column.values, column.validity if column.null_count else None)):
        return column
    values, plain = column.values, ColumnType(Type.BYTE_ARRAY)
    if isinstance(values, DictionaryValues):
        values = DictionaryValues(values.codes, values.dictionary._with(type=plain), values.is_ordered)
    return column._with(type=plain, values=values)


def concat_batches(columns: Sequence[Column]) -> Column:
    """Concatenate columns.

    Args:
        columns: one or more columns of equal type and layout. A single column is returned unchanged.

    Returns:
        One column. Offsets become int64 if int32 is too small. Views keep every buffer. Different dictionaries are merged.

    Raises:
        LimitError: there are more dictionary entries than int32 codes can count.
    """
    if len(columns) == 1:
        return columns[0]
    values = [column.values for column in columns]
    dictionaries = [value for value in values if isinstance(value, DictionaryValues)]
    validity = concat_validity([column.validity if column.null_count else None for column in columns], [*map(len, columns)])
    return Column._made(
        columns[0].type,
        concat_values(_with_one_dictionary(dictionaries) if dictionaries else values, validity),
        validity=validity,
        null_count=sum(column.null_count for column in columns),
        nullable=any(column.nullable for column in columns),
        arrow=columns[0].arrow,
    )


def _with_one_dictionary(parts: Sequence[DictionaryValues]) -> list[DictionaryValues]:
    """Recode the parts to one dictionary: the first one if all are equal, else a merged dictionary without an order."""
    first = parts[0].dictionary
    if all(part.dictionary is first or part.dictionary.equals(first) for part in parts):
        return [DictionaryValues(part.codes, first, part.is_ordered) for part in parts]
    entries = concat_values([part.dictionary.as_views().values for part in parts])
    merged_values = Column._made(first.type, entries, nullable=False).as_dictionary().values
    assert isinstance(merged_values, DictionaryValues)
    recoded_parts = []
    start = 0
    for part in parts:
        stop = start + len(part.dictionary)
        # A part without dictionary entries has only nulls, whose codes are 0.
        codes = merged_values.codes[start:stop][part.codes] if stop > start else part.codes
        recoded_parts.append(DictionaryValues(codes, merged_values.dictionary))
        start = stop
    return recoded_parts
