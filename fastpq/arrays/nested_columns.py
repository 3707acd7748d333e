"""Nested columns in memory, in Arrow's layout: lists and maps as offsets into a column of elements, structs as columns side by
side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.bitmap import bitmap_size, count_zeros, slice_bitmap, unpack_bitmap
from fastpq.arrays.extensions import export, registered
from fastpq.arrays.layouts import Array, BinaryViews
from fastpq.arrays.numpy_output import Nulls, Strings
from fastpq.common.display import to_html
from fastpq.common.lazy import LazyModule
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import Field, ListType, MapType, StructType, element_of

if TYPE_CHECKING:
    from fastpq.arrays import nodes
    from fastpq.arrays import table as tables
else:       # types of annotations, which typing.get_type_hints finds
    tables = LazyModule("fastpq.arrays.table")
    nodes = LazyModule("fastpq.arrays.nodes")

# Values that a notebook shows of a column.
HTML_VALUES = 10


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListColumn:
    """Lists, or maps as lists of pairs.

    Attributes:
        type: a ListType or a MapType.
        offsets: shape (n + 1,), int32 or int64, ascending: list i is elements ``offsets[i]`` to ``offsets[i + 1] - 1``. The
            first need not be 0, and there may be elements after the last.
        elements: the values of all lists; of a map a StructColumn of keys and values.
        validity: bitmap, uint8, LSB first, or None when no list is null.
        null_count: number of null lists.
        nullable: whether the schema allows null lists.
        arrow: as in Column.

    Raises:
        SchemaError: sizes that do not agree.
    """

    type: ListType | MapType
    offsets: Array
    elements: tables.AnyColumn
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True
    arrow: nodes.FieldNode | None = None

    def __post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or not len(offsets) or offsets.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
            raise SchemaError(f"offsets of shape {offsets.shape} and dtype {offsets.dtype}")
        if int(offsets[0]) < 0 or int(offsets[-1]) > len(self.elements) or bool((offsets[1:] < offsets[:-1]).any()):
            raise SchemaError(f"offsets that are not ascending within {len(self.elements)} elements")
        if self.elements.type != element_of(self.type).type:
            raise SchemaError(f"elements of type {self.elements.type} in a {self.type}")
        _check_validity(self)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, those of the elements included."""
        return self.offsets.nbytes + self.elements.nbytes + _validity_bytes(self)

    def __repr__(self) -> str:
        from fastpq.arrays.preview import headline

        return headline(self, "ListColumn", "list")

    def __str__(self) -> str:
        from fastpq.arrays.preview import with_values

        return with_values(self, "ListColumn", "list")

    def _repr_html_(self) -> str:
        from fastpq.arrays.preview import column_view

        return to_html(column_view(self, "ListColumn", "list", HTML_VALUES))

    def validity_mask(self) -> NDArray[np.bool_]:
        """True where there is a list, False where null; shape (n,), new memory."""
        return _mask(self)

    def slice(self, start: int = 0, stop: int | None = None) -> ListColumn:
        """Lists ``start`` to ``stop - 1``, with Python's rules for what lies outside; elements are shared.

        Args:
            start: first value.
            stop: value behind the last; None for all that follow.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        validity, null_count = _sliced_validity(self, start, stop)
        return replace(self, offsets=self.offsets[start : stop + 1], validity=validity, null_count=null_count)

    def used_elements(self) -> tables.AnyColumn:
        """The elements from the first offset to the last."""
        return self.elements.slice(int(self.offsets[0]), int(self.offsets[-1]))

    def to_pylist(self) -> list[Any]:
        """A list for each list, of pairs for a map; None where null."""
        used = self.used_elements()
        if isinstance(self.type, MapType) and isinstance(used, StructColumn):
            elements: list[Any] = list(zip(*[child.to_pylist() for child in used.children], strict=True))
        else:
            elements = used.to_pylist()
        bounds = (self.offsets - self.offsets[0]).tolist()
        lists: list[Any] = [elements[start:stop] for start, stop in pairwise(bounds)]
        return _with_nones(self, lists)

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype") -> Array:
        """The lists as an object array of lists, None where null, whatever is asked for; offsets and elements are at hand

        Args:
            nulls: without effect.
            strings: without effect.
        without a copy."""
        return _object_array(self.to_pylist())

    def equals(self, other: object) -> bool:
        """Whether type, nulls and lists are equal; where the elements lie does not count.

        Args:
            other: another column; any other object is unequal.
        """
        if not isinstance(other, ListColumn) or not _same_slots(self, other):
            return False
        mine, theirs = without_hidden_elements(self), without_hidden_elements(other)
        if not np.array_equal(np.diff(mine.offsets), np.diff(theirs.offsets)):
            return False
        return mine.used_elements().equals(theirs.used_elements())

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: the type, nameless."""
        return export("schema", self)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Arrow PyCapsule interface: the type and the values."""
        capsules: tuple[object, object] = export("array", self, requested_schema)
        return capsules


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StructColumn:
    """Structs: a column for each field.

    Attributes:
        type: a StructType.
        children: the columns of the fields, all of one length; what they hold where the struct is null does not count.
        length: number of structs.
        validity: bitmap, uint8, LSB first, or None when no struct is null.
        null_count: number of null structs.
        nullable: whether the schema allows null structs.
        arrow: as in Column.

    Raises:
        SchemaError: sizes or types that do not agree.
    """

    type: StructType
    children: tuple[tables.AnyColumn, ...]
    length: int
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True
    arrow: nodes.FieldNode | None = None

    def __post_init__(self) -> None:
        if [child.type for child in self.children] != [field.type for field in self.type.fields]:
            raise SchemaError(f"fields of types {[str(child.type) for child in self.children]} in a {self.type}")
        for field, child in zip(self.type.fields, self.children, strict=True):
            if len(child) != self.length:
                raise SchemaError(f"{len(child)} values of field {field.name!r} in {self.length} structs")
        _check_validity(self)

    def __len__(self) -> int:
        return self.length

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of all fields."""
        return sum(child.nbytes for child in self.children) + _validity_bytes(self)

    def __repr__(self) -> str:
        from fastpq.arrays.preview import headline

        return headline(self, "StructColumn", "struct")

    def __str__(self) -> str:
        from fastpq.arrays.preview import with_values

        return with_values(self, "StructColumn", "struct")

    def _repr_html_(self) -> str:
        from fastpq.arrays.preview import column_view

        return to_html(column_view(self, "StructColumn", "struct", HTML_VALUES))

    def __getitem__(self, name: str) -> tables.AnyColumn:
        """The column of the one field of a name; nulls of the struct are not nulls of it."""
        found = [child for field, child in zip(self.type.fields, self.children, strict=True) if field.name == name]
        if len(found) != 1:
            raise SchemaError(f"{len(found)} fields are named {name!r} in {self.type}")
        return found[0]

    def validity_mask(self) -> NDArray[np.bool_]:
        """True where there is a struct, False where null; shape (n,), new memory."""
        return _mask(self)

    def slice(self, start: int = 0, stop: int | None = None) -> StructColumn:
        """Structs ``start`` to ``stop - 1``, with Python's rules for what lies outside.

        Args:
            start: first value.
            stop: value behind the last; None for all that follow.
        """
        start, stop, _ = slice(start, stop).indices(self.length)
        stop = max(start, stop)
        validity, null_count = _sliced_validity(self, start, stop)
        children = tuple(child.slice(start, stop) for child in self.children)
        return replace(self, children=children, length=stop - start, validity=validity, null_count=null_count)

    def to_pylist(self) -> list[Any]:
        """A dict for each struct, None where null; of fields of one name the last.

        Variants are what they hold (``fastpq.schema.variant_kinds``), and FILE values ``fastpq.file_reference.FileReference``.
        """
        annotated = None if self.type.annotation is None else registered(f"to_pylist {self.type.annotation}")
        if annotated is not None:
            values: list[Any] = annotated(self)
            return values
        names = [field.name for field in self.type.fields]
        columns = [child.to_pylist() for child in self.children]
        rows: list[Any] = (
            [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
            if columns
            else [{} for _ in range(self.length)]
        )
        return _with_nones(self, rows)

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype") -> Array:
        """The structs as an object array of dicts, None where null, whatever is asked for.

        Args:
            nulls: without effect.
            strings: without effect.
        """
        return _object_array(self.to_pylist())

    def equals(self, other: object) -> bool:
        """Whether type, nulls and, where a struct is not null, all fields are equal.

        Args:
            other: another column; any other object is unequal.
        """
        if not isinstance(other, StructColumn) or not _same_slots(self, other):
            return False
        if not self.null_count:
            return all(mine.equals(theirs) for mine, theirs in zip(self.children, other.children, strict=True))
        there = np.flatnonzero(self.validity_mask())
        return all(
            take(mine, there).equals(take(theirs, there))
            for mine, theirs in zip(self.children, other.children, strict=True)
        )

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: the type, nameless."""
        return export("schema", self)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Arrow PyCapsule interface: the type and the values."""
        capsules: tuple[object, object] = export("array", self, requested_schema)
        return capsules


NestedColumn: TypeAlias = ListColumn | StructColumn


def nested_field(name: str, column: tables.AnyColumn) -> Field:
    """The field under which a column stands in a struct or a list."""
    return Field(name, column.type, column.nullable)


def take(column: tables.AnyColumn, indices: Array) -> tables.AnyColumn:
    """The values of a column at some places.

    Args:
        indices: int64, each from 0 to ``len(column) - 1``.
    """
    if isinstance(column, StructColumn):
        validity, null_count = taken_validity(column, indices)
        children = tuple(take(child, indices) for child in column.children)
        return replace(column, children=children, length=len(indices), validity=validity, null_count=null_count)
    if isinstance(column, ListColumn):
        validity, null_count = taken_validity(column, indices)
        starts = column.offsets[:-1][indices].astype(np.int64)
        lengths = np.diff(column.offsets)[indices].astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
        if offsets[-1] <= np.iinfo(np.int32).max:
            offsets = offsets.astype(np.int32)
        return replace(
            column, offsets=offsets, elements=take(column.elements, places), validity=validity, null_count=null_count
        )
    return column.take(indices)


def without_hidden_elements(column: ListColumn) -> ListColumn:
    """The same lists with no elements under null lists."""
    if not column.null_count:
        return column
    lengths = np.diff(column.offsets)
    mask = column.validity_mask()
    if not bool(lengths[~mask].any()):
        return column
    there = np.flatnonzero(mask)
    packed = take(replace(column, validity=None, null_count=0), there)
    assert isinstance(packed, ListColumn)
    lengths = np.where(mask, lengths, 0)
    offsets = np.concatenate([np.zeros(1, column.offsets.dtype), np.cumsum(lengths, dtype=column.offsets.dtype)])
    return replace(column, offsets=offsets, elements=packed.elements)


def _check_validity(column: NestedColumn) -> None:
    if not 0 <= column.null_count <= len(column):
        raise SchemaError(f"{column.null_count} nulls among {len(column)} values")
    bits = column.validity
    if column.null_count if bits is None else bits.dtype != np.uint8 or len(bits) < bitmap_size(len(column)):
        raise SchemaError(f"{column.null_count} nulls and no validity bitmap of {len(column)} bits")


def used_bytes(column: tables.AnyColumn) -> int:
    """Bytes of a column's own values: of memory that it shares, what it refers to, each value as often as it does."""
    if isinstance(column, StructColumn):
        return sum(map(used_bytes, column.children)) + _validity_bytes(column)
    if isinstance(column, ListColumn):
        return column.offsets.nbytes + used_bytes(column.used_elements()) + _validity_bytes(column)
    if isinstance(column.values, BinaryViews):
        lengths = np.ascontiguousarray(column.values.views).view(np.int32)[::4]
        return column.values.views.nbytes + int(lengths.sum(dtype=np.int64)) + _validity_bytes(column)
    return column.nbytes


def _validity_bytes(column: tables.AnyColumn) -> int:
    return 0 if column.validity is None else column.validity.nbytes


def _mask(column: tables.AnyColumn) -> NDArray[np.bool_]:
    if column.validity is None or not column.null_count:
        return np.ones(len(column), np.bool_)
    return unpack_bitmap(column.validity, 0, len(column))


def _sliced_validity(column: NestedColumn, start: int, stop: int) -> tuple[Array | None, int]:
    if column.validity is None or not column.null_count:
        return None, 0
    validity = slice_bitmap(column.validity, start, stop - start)
    null_count = count_zeros(validity, stop - start)
    return (validity if null_count else None), null_count


def taken_validity(column: tables.AnyColumn, indices: Array) -> tuple[Array | None, int]:
    """Validity bitmap, or None, and number of nulls of the values at some places."""
    if column.validity is None or not column.null_count:
        return None, 0
    mask = _mask(column)[indices]
    null_count = len(mask) - int(np.count_nonzero(mask))
    return (np.packbits(mask, bitorder="little") if null_count else None), null_count


def _same_slots(left: NestedColumn, right: NestedColumn) -> bool:
    if left.type != right.type or len(left) != len(right) or left.null_count != right.null_count:
        return False
    return not left.null_count or np.array_equal(_mask(left), _mask(right))


def _with_nones(column: NestedColumn, values: list[Any]) -> list[Any]:
    if column.null_count:
        for i in np.flatnonzero(~_mask(column)).tolist():
            values[i] = None
    return values


def _object_array(values: list[Any]) -> Array:
    return np.fromiter(values, dtype=object, count=len(values))
