"""Import of Arrow types that Parquet does not have: run-end encoded arrays become their values, and unions become structs.

A union's struct has the field ``type_id`` (INT8), and a nullable field for each union member. Each row has its value in the
field of its own member, and null in the other members' fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.bitmap import pack_bitmap, unpack_bitmap
from fastpq.arrays.flat_column import DictionaryValues
from fastpq.arrays.layouts import BinaryOffsets, BinaryViews
from fastpq.arrays.nodes import NULLABLE, TYPE_ID, FieldNode
from fastpq.arrays.table import AnyColumn, Column, ListColumn, StructColumn
from fastpq.arrow.capsules_in import ForeignArray
from fastpq.arrow.flat_import import Bitmap
from fastpq.arrow.hints import TYPE_ID_FIELD
from fastpq.arrow.imported_field import ImportedField
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import StructType
from fastpq.schema.types import ColumnType, Integer, Type

ReaderOf = Callable[[FieldNode], ImportedField]

_RUN_ENDS: dict[str, np.dtype[Any]] = {"s": np.dtype(np.int16), "i": np.dtype(np.int32), "l": np.dtype(np.int64)}
_INT8 = ColumnType(Type.INT32, None, Integer(8, signed=True))


class RunEndField(ImportedField):
    """A reader for run-end encoded values, which it expands.

    Args:
        node: the field, whose format is ``+r``. Its children are the run ends and the values.
        reader_of: function that returns a field's reader. It is called for the values.
    """

    def __init__(self, node: FieldNode, reader_of: ReaderOf) -> None:
        super().__init__(node)
        if len(node.children) != 2 or node.children[0].format not in _RUN_ENDS:
            raise SchemaError("an Arrow run-end encoded array must have run ends and values", column=node.name or None)
        self._ends = _RUN_ENDS[node.children[0].format]
        self._values = reader_of(node.children[1])

    def empty(self) -> AnyColumn:
        return self._values.empty()._with(nullable=self.nullable, arrow=self.arrow)

    def _read(self, array: ForeignArray, start: int, length: int, parents: Bitmap | None) -> AnyColumn:
        if array.n_children != 2:
            raise SchemaError(f"an Arrow run-end encoded array must have 2 children, not {array.n_children}")
        if length == 0:
            return self.empty()
        start += array.offset
        ends, values = array.child(0), array.child(1)
        stops = ends.values(1, self._ends, ends.offset, ends.length).astype(np.int64)
        if len(stops) == 0 or int(stops[0]) < 1 or bool((np.diff(stops) < 1).any()) or int(stops[-1]) < start + length:
            raise SchemaError(f"the run ends of an Arrow array do not ascend to {start + length}, the end of its values")
        first, last = (int(place) for place in np.searchsorted(stops, [start, start + length - 1], side="right"))
        lengths: Any = np.diff(np.clip(stops[first : last + 1], start, start + length), prepend=np.int64(start))
        runs = self._values.read(values, first, last + 1 - first)
        return runs.take(np.repeat(np.arange(last + 1 - first), lengths))._with(nullable=self.nullable, arrow=self.arrow)

    def _join(self, columns: list[Any]) -> AnyColumn:
        return self._values.join(columns)._with(nullable=self.nullable, arrow=self.arrow)


class UnionField(ImportedField):
    """A reader for union values, which it converts to structs.

    Args:
        node: the field. Its format is ``+us:`` (sparse) or ``+ud:`` (dense), followed by the type codes.
        reader_of: function that returns a field's reader. It is called for each member.
    """

    def __init__(self, node: FieldNode, reader_of: ReaderOf) -> None:
        super().__init__(node)
        kind, _, codes = node.format.partition(":")
        self._is_dense = kind == "+ud"
        try:
            self._codes = [int(code) for code in codes.split(",") if code]
        except ValueError:
            raise SchemaError(f"the Arrow format {node.format!r} has a wrong syntax", column=node.name or None) from None
        names = [child.name for child in node.children]
        if len(self._codes) != len(names) or len({*self._codes} & {*range(128)}) < len(names):
            raise SchemaError(f"the Arrow format {node.format!r} needs one type code for each member", column=node.name or None)
        if len({TYPE_ID, *names}) <= len(names):
            reason = f"a union becomes a struct with the field {TYPE_ID}, so that its members {names} need different names"
            raise SchemaError(reason, column=node.name or None)
        self._members = [reader_of(child) for child in node.children]

    def empty(self) -> StructColumn:
        return self._column(np.zeros(0, np.int8), [field.empty() for field in self._members])

    def _read(self, array: ForeignArray, start: int, length: int, parents: Bitmap | None) -> StructColumn:
        buffers = 2 if self._is_dense else 1
        if array.n_buffers != buffers or array.n_children != len(self._members):
            raise SchemaError(
                f"an Arrow union of {len(self._members)} members has {array.n_buffers} buffers and {array.n_children} children"
            )
        if length == 0:
            return self.empty()
        start += array.offset
        codes = array.values(0, np.dtype(np.int8), start, length)
        exists = np.True_ if parents is None else unpack_bitmap(parents, 0, length)
        if not bool((np.isin(codes, self._codes) | ~exists).all()):
            raise SchemaError("an Arrow union has a type code that belongs to no member")
        places = array.values(1, np.dtype(np.int32), start, length) if self._is_dense else None
        members = []
        for index, (field, code) in enumerate(zip(self._members, self._codes, strict=True)):
            child, is_member = array.child(index), (codes == code) & exists
            if places is None:
                members.append(_only(field.read(child, start, length, pack_bitmap(is_member)), is_member))
            else:
                members.append(_placed(field.read(child, 0, child.length), is_member, places))
        return self._column(codes.copy(), members)

    def _join(self, columns: list[StructColumn]) -> StructColumn:
        codes = np.concatenate([column.children[0].values for column in columns])      # type: ignore[union-attr]
        members = zip(*(column.children[1:] for column in columns), strict=True)
        return self._column(codes, [field.join([*parts]) for field, parts in zip(self._members, members, strict=True)])

    def _column(self, codes: NDArray[Any], members: list[AnyColumn]) -> StructColumn:
        columns = [Column(_INT8, codes.astype(_INT8.dtype), nullable=False, arrow=TYPE_ID_FIELD), *map(_nullable, members)]
        names = [TYPE_ID, *(field.name for field in self._members)]
        type_ = StructType(tuple(column.as_field(name) for name, column in zip(names, columns, strict=True)))
        return StructColumn(type_, tuple(columns), len(codes), nullable=self.nullable, arrow=self.arrow)


def _nullable(member: AnyColumn) -> AnyColumn:
    """Return a union member's column, in which other members' rows are null."""
    field = member.arrow
    return member._with(nullable=True, arrow=None if field is None else replace(field, flags=field.flags | NULLABLE))


def _placed(values: AnyColumn, is_member: NDArray[np.bool_], places: NDArray[np.int32]) -> AnyColumn:
    """Return a column with a dense union member's values in this member's rows, and null in all other rows."""
    own_places = places[is_member]
    if len(own_places) and (int(own_places.min()) < 0 or int(own_places.max()) >= len(values)):
        raise SchemaError(f"an offset of an Arrow union is outside the {len(values)} values of a member")
    if len(values) == 0:
        return _nulls(values, len(is_member))
    return _only(values.take(np.where(is_member, places, 0)), is_member)


def _only(column: AnyColumn, rows: NDArray[np.bool_]) -> AnyColumn:
    """Return a column that is null outside of ``rows``. The values under these nulls are zero."""
    valid = column.validity_mask() & rows
    count = len(valid) - int(np.count_nonzero(valid))
    if not count:
        return column._with(nullable=True)
    if isinstance(column, Column):
        match column.values:
            case BinaryViews(views, buffers):
                column = column._with(values=BinaryViews(_zeroed(views, valid), buffers))
            case DictionaryValues(codes):
                column = column._with(values=replace(column.values, codes=_zeroed(codes, valid)))
            case np.ndarray():
                column = column._with(values=_zeroed(column.values, valid))
    return column._with(validity=pack_bitmap(valid), null_count=count, nullable=True)


def _zeroed(values: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[Any]:
    values = values.copy()
    values[~valid] = np.zeros((), values.dtype)
    return values


def _nulls(empty: AnyColumn, count: int) -> AnyColumn:
    """Return a column with ``count`` nulls, whose type and layout are those of an empty column."""
    validity = np.zeros((count + 7) // 8, np.uint8) if count else None
    nulls: dict[str, Any] = {"validity": validity, "null_count": count, "nullable": True}
    if isinstance(empty, StructColumn):
        children = tuple(_nulls(child, count)._with(nullable=child.nullable) for child in empty.children)
        return empty._with(children=children, length=count, **nulls)
    if isinstance(empty, ListColumn):
        return empty._with(offsets=np.zeros(count + 1, empty.offsets.dtype), **nulls)
    match empty.values:
        case BinaryOffsets(offsets, data):
            return empty._with(values=BinaryOffsets(np.zeros(count + 1, offsets.dtype), data), **nulls)
        case BinaryViews(views):
            return empty._with(values=BinaryViews(np.zeros(count, views.dtype)), **nulls)
        case DictionaryValues():
            return empty._with(values=replace(empty.values, codes=np.zeros(count, np.int32)), **nulls)
    return empty._with(values=np.zeros(count, empty.type.dtype), **nulls)
