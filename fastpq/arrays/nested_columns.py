"""Nested columns in Arrow's layout: lists and maps are offsets into an element column, structs are columns side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np

from fastpq.arrays.bitmap import validity_of
from fastpq.arrays.column_base import ColumnBase
from fastpq.arrays.flat_column import Column, fixed_values
from fastpq.arrays.layouts import MAX_INT32, Array
from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.numpy_output import Nulls, Strings, complex_numbers, structured_array
from fastpq.common.display import ELLIPSIS
from fastpq.common.extensions import registered
from fastpq.common.stack import nesting_limit
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import ListType, MapType, StructType, element_of
from fastpq.schema.types import ColumnType


class NestedColumn(ColumnBase):
    """A column whose values contain other columns."""

    __slots__ = ()

    is_nested: ClassVar[Literal[True]] = True

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Array:
        """Return the values as an object array of lists or dicts, None where null. ``leaves`` gives the values without this copy.

        Args:
            nulls: has no effect.
            strings: has no effect.
            structured: has no effect.
        """
        values = self.to_pylist()
        return np.fromiter(values, dtype=object, count=len(values))

    def _with_nones(self, values: list[Any]) -> list[Any]:
        if self.null_count:
            for i in np.flatnonzero(~self.validity_mask()).tolist():
                values[i] = None
        return values


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListColumn(NestedColumn):
    """Lists, or maps as lists of pairs.

    Attributes:
        type: a ListType or a MapType.
        offsets: shape (n + 1,), int32 or int64, ascending. List i has elements ``offsets[i]`` to ``offsets[i + 1] - 1``. The
            first offset need not be 0, and there may be elements after the last offset.
        elements: all lists' values. For maps it is a StructColumn that has keys and values.
        validity: bitmap, uint8, LSB first, or None if no list is null.
        null_count: number of null lists.
        nullable: whether the schema allows null lists.
        arrow: as in Column.

    Raises:
        SchemaError: sizes or types do not agree.
    """

    NOUN: ClassVar[str] = "list"

    type: ListType | MapType
    offsets: Array
    elements: AnyColumn
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True
    arrow: FieldNode | None = None

    def __post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or not len(offsets) or offsets.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
            raise SchemaError(f"offsets cannot have the shape {offsets.shape} and the dtype {offsets.dtype}")
        if int(offsets[0]) < 0 or int(offsets[-1]) > len(self.elements) or bool((offsets[1:] < offsets[:-1]).any()):
            raise SchemaError(f"the offsets are not ascending within {len(self.elements)} elements")
        if self.elements.type != element_of(self.type).type:
            raise SchemaError(f"elements of type {self.elements.type} do not fit a {self.type}")
        self._check_validity()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Array:
        """Return the values as an object array of lists, None where null. Arrow's fixed-size lists give more dimensions.

        Args:
            nulls: as for ``Column.to_numpy``, only for fixed-size lists. ``"object"`` gives lists.
            strings: as for ``Column.to_numpy``, only for fixed-size lists.
            structured: whether structs in fixed-size lists are structured arrays, as for ``StructColumn.to_numpy``.

        Returns:
            Shape (n,), dtype object. If the lists came as fixed-size lists with k values (in Arrow data, in ARROW:schema or in a
            two-dimensional array), it is an array with the elements' dtype and shape (n, k). It is not a copy if no list is null.
        """
        size = None if self.arrow is None or nulls == "object" else self.arrow.list_size
        rows = None if size is None or self.pairs is not None else self._rows_of_one_size(size, nulls, strings, structured)
        return NestedColumn.to_numpy(self) if rows is None else rows

    def _rows_of_one_size(self, size: int, nulls: Nulls, strings: Strings, structured: bool) -> Array | None:
        """Return lists with ``size`` values as an array with two or more dimensions.

        Returns:
            None if a list has another size, or if ``nulls`` is ``"nan"`` and null lists have no NaN.
        """
        valid = self.validity_mask()
        if bool((np.diff(self.offsets)[valid] != size).any()):
            return None
        column, options = self.used_elements(), {"strings": "object", "structured": True} if structured else {"strings": strings}
        elements: Array = column.to_numpy(nulls=nulls, **options)
        shape = (len(self), size, *elements.shape[1:])
        if not self.null_count:
            rows = elements.reshape(shape)
            return cast(Array, np.ma.asarray(rows)) if self.nullable and nulls == "masked" else rows
        if nulls == "nan" and elements.dtype.kind not in "fmM":
            return None
        starts = self.offsets[:-1][valid] - self.offsets[0]
        result: Any = np.ma.zeros(shape, elements.dtype) if nulls == "masked" else np.zeros(shape, elements.dtype)
        result[valid] = elements[starts[:, None] + np.arange(size)]
        result[~valid] = np.ma.masked if nulls == "masked" else np.nan if elements.dtype.kind == "f" else np.datetime64("NaT")
        return cast(Array, result)

    def _array_bytes(self) -> int:
        return self.offsets.nbytes + self.elements.nbytes

    def used_bytes(self) -> int:
        bits = 0 if self.validity is None else self.validity.nbytes
        with nesting_limit:
            return bits + self.offsets.nbytes + self.used_elements().used_bytes()

    @property
    def pairs(self) -> StructColumn | None:
        """All maps' keys and values, or None if the values are lists."""
        return cast("StructColumn", self.elements) if isinstance(self.type, MapType) else None

    def used_elements(self) -> AnyColumn:
        """Return the elements from the first offset to the last."""
        return self.elements.slice(int(self.offsets[0]), int(self.offsets[-1]))

    def _sliced(self, start: int, stop: int, **nulls: Any) -> ListColumn:
        return self._with(offsets=self.offsets[start : stop + 1], **nulls)

    def _taken(self, indices: Array, **nulls: Any) -> ListColumn:
        starts = self.offsets[:-1][indices].astype(np.int64)
        lengths = np.diff(self.offsets)[indices].astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
        if offsets[-1] <= MAX_INT32:
            offsets = offsets.astype(np.int32)
        return self._with(offsets=offsets, elements=self.elements.take(places), **nulls)

    def leaves(self) -> Iterator[tuple[tuple[ColumnBase, ...], Column]]:
        """Yield each flat column in the elements, in schema order, with the columns above it, starting with this one."""
        elements = self.elements
        if self.pairs is not None:      # keys are required, even if the column's file says otherwise
            key, value = self.pairs.children
            elements = self.pairs._with(children=(key._with(nullable=False), value))
        for above, leaf in elements.leaves():
            yield (self, *above), leaf

    def leaf(self, path: Sequence[str]) -> Column:
        """Raise an error, because a list has no leaf with one value for each row.

        Args:
            path: field names.

        Raises:
            SchemaError: always.
        """
        raise SchemaError(f"a {self.type} column is repeated")

    def to_pylist(self) -> list[Any]:
        """Return a list for each list, or a list of pairs for each map. None where null."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        with nesting_limit:
            if self.pairs is None:
                elements = self.elements.slice(first, last).to_pylist()
            else:
                keys, values = (child.slice(first, last).to_pylist() for child in self.pairs.children)
                elements = list(zip(keys, values, strict=True))
        bounds = (self.offsets - self.offsets[0]).tolist()
        return self._with_nones([elements[start:stop] for start, stop in pairwise(bounds)])

    def _texts(self, levels: int) -> list[str]:
        return [self._text(number, levels) for number in range(len(self))]

    def _text(self, number: int, levels: int) -> str:
        from fastpq.arrays.preview import MOST_INNER, nested_text

        start, stop = int(self.offsets[number]), int(self.offsets[number + 1])
        if levels == 0:
            return ELLIPSIS
        end = min(stop, start + MOST_INNER)
        if self.pairs is None:
            return nested_text("[]", self.elements._value_texts(start, end, levels - 1), end < stop)
        keys, values = (child._value_texts(start, end, levels - 1) for child in self.pairs.children)
        return nested_text("{}", [f"{key}: {value}" for key, value in zip(keys, values, strict=True)], end < stop)

    def _equal_values(self, other: ListColumn) -> bool:
        mine, theirs = self._without_hidden_elements(), other._without_hidden_elements()
        if not np.array_equal(np.diff(mine.offsets), np.diff(theirs.offsets)):
            return False
        return mine.used_elements().equals(theirs.used_elements())

    def _without_hidden_elements(self) -> ListColumn:
        """Return the same lists without the elements that belong to null lists."""
        if not self.null_count:
            return self
        lengths = np.diff(self.offsets)
        mask = self.validity_mask()
        if not bool(lengths[~mask].any()):
            return self
        packed_lists = self._taken(np.flatnonzero(mask), validity=None, null_count=0)
        lengths = np.where(mask, lengths, 0)
        offsets = np.concatenate([np.zeros(1, self.offsets.dtype), np.cumsum(lengths, dtype=self.offsets.dtype)])
        return self._with(offsets=offsets, elements=packed_lists.elements)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StructColumn(NestedColumn):
    """Structs: one column for each field.

    Attributes:
        type: a StructType.
        children: the fields' columns, which are equally long. Their values under a null struct do not matter.
        length: number of structs.
        validity: bitmap, uint8, LSB first, or None if no struct is null.
        null_count: number of null structs.
        nullable: whether the schema allows null structs.
        arrow: as in Column.

    Raises:
        SchemaError: sizes or types do not agree.
    """

    NOUN: ClassVar[str] = "struct"

    type: StructType
    children: tuple[AnyColumn, ...]
    length: int
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True
    arrow: FieldNode | None = None

    def __post_init__(self) -> None:
        if [child.type for child in self.children] != [field.type for field in self.type.fields]:
            raise SchemaError(f"fields of the types {[str(child.type) for child in self.children]} do not fit a {self.type}")
        for field, child in zip(self.type.fields, self.children, strict=True):
            if len(child) != self.length:
                raise SchemaError(f"field {field.name!r} has {len(child)} values in {self.length} structs")
        self._check_validity()

    def __len__(self) -> int:
        return self.length

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Array:
        """Return the values as an object array of dicts, None where null, or as a structured array.

        Args:
            nulls: for structured arrays, as for ``Column.to_numpy`` in each field. A null struct's fields are null.
            strings: has no effect. Structured arrays hold text as objects.
            structured: whether to return a structured array. Structs are then structured fields, and fixed-size lists are
                subarrays. Structs with the fields ``real`` and ``imag``, both FLOAT or both DOUBLE, are complex numbers. Other
                lists, maps, variants and FILE values are objects.

        Raises:
            SchemaError: two fields have the same name, or nulls have no NaN.
        """
        if structured and self.type.annotation is None:
            with nesting_limit:
                return self._structured(nulls)
        return NestedColumn.to_numpy(self)

    def _structured(self, nulls: Nulls) -> Array:
        names = [field.name for field in self.type.fields]
        if len(set(names)) < len(names):
            raise SchemaError(f"two fields have the same name: {names}")
        if names == ["real", "imag"]:
            dtypes = {child.type.numpy_dtype if isinstance(child.type, ColumnType) else None for child in self.children}
            if len(dtypes) == 1 and dtypes & {np.dtype(np.float32), np.dtype(np.float64)}:
                return self._complex_numbers(nulls)
        children = self.children
        if self.null_count:
            children = tuple(child._with(**self._nulls_with(child)) for child in children)
        arrays = [child.to_numpy(nulls=nulls, strings="object", structured=True) for child in children]
        return structured_array(dict(zip(names, arrays, strict=True)), len(self))

    def _complex_numbers(self, nulls: Nulls) -> Array:
        """Return the structs as complex numbers, null where a part or the struct is null."""
        real, imaginary = (cast("Column", child) for child in self.children)
        valid = self.validity_mask() & real.validity_mask() & imaginary.validity_mask()
        is_nullable = self.nullable or real.nullable or imaginary.nullable
        return complex_numbers(fixed_values(real), fixed_values(imaginary), valid, nulls, is_nullable)

    def _array_bytes(self) -> int:
        return sum(child.nbytes for child in self.children)

    def used_bytes(self) -> int:
        bits = 0 if self.validity is None else self.validity.nbytes
        with nesting_limit:
            return bits + sum(child.used_bytes() for child in self.children)

    def __getitem__(self, name: Any) -> Any:
        """Return a field's column by its name. It does not have the struct's nulls.

        An index gives one value, and a slice gives a slice of the column.
        """
        if not isinstance(name, str):
            return ColumnBase.__getitem__(self, name)
        matches = [child for field, child in zip(self.type.fields, self.children, strict=True) if field.name == name]
        if len(matches) != 1:
            raise SchemaError(f"{len(matches)} fields are named {name!r} in {self.type}")
        return matches[0]

    def _sliced(self, start: int, stop: int, **nulls: Any) -> StructColumn:
        children = tuple(child.slice(start, stop) for child in self.children)
        return self._with(children=children, length=stop - start, **nulls)

    def _taken(self, indices: Array, **nulls: Any) -> StructColumn:
        return self._with(children=tuple(child.take(indices) for child in self.children), length=len(indices), **nulls)

    def leaves(self) -> Iterator[tuple[tuple[ColumnBase, ...], Column]]:
        """Yield each flat column in the fields, in schema order, with the columns above it, starting with this one."""
        for child in self.children:
            for above, leaf in child.leaves():
                yield (self, *above), leaf

    def leaf(self, path: Sequence[str]) -> Column:
        """Return the flat column at the end of a path through structs. It is also null where a struct on the path is null.

        Args:
            path: field names below this column.

        Raises:
            SchemaError: a field does not exist, the path goes through a list, or the path ends before a flat column.
        """
        if not path:
            raise SchemaError(f"a {self.type} column is not a leaf")
        leaf: Column = self[path[0]].leaf(path[1:])
        return leaf._with(**self._nulls_with(leaf)) if self.null_count else leaf

    def fields(self) -> Iterator[AnyColumn]:
        """Yield each field's column. A field that is a struct is also null where this struct is null.

        Otherwise a REQUIRED variant in a null struct would look like a value, although it has no bytes.
        """
        for child in self.children:
            yield child._with(**self._nulls_with(child)) if self.null_count and isinstance(child, StructColumn) else child

    def _nulls_with(self, child: ColumnBase) -> dict[str, Any]:
        """Return the column fields that make a child null where this struct or the child itself is null."""
        validity, null_count = validity_of(child.validity_mask() & self.validity_mask())
        return {"validity": validity, "null_count": null_count, "nullable": True}

    def to_pylist(self) -> list[Any]:
        """Return a dict for each struct, None where null. If two fields have the same name, the dict has the last one.

        A variant is the value inside it (``fastpq.schema.variant_kinds``). A FILE is a ``fastpq.file_reference.FileReference``.
        """
        converter = None if self.type.annotation is None else registered(f"to_pylist {self.type.annotation}")
        if converter is not None:
            values: list[Any] = converter(self)
            return values
        names = [field.name for field in self.type.fields]
        with nesting_limit:
            columns = [child.to_pylist() for child in self.fields()]
        if not columns:
            return self._with_nones([{} for _ in range(self.length)])
        return self._with_nones([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])

    def _texts(self, levels: int) -> list[str]:
        from fastpq.arrays.preview import MOST_INNER, nested_text

        if levels == 0:
            return [ELLIPSIS] * len(self)
        names = [field.name for field in self.type.fields][:MOST_INNER]
        inner = [child._value_texts(0, len(self), levels - 1) for child in self.children[:MOST_INNER]]
        rows = zip(*inner, strict=True) if inner else [()] * len(self)
        texts = [[f"{name}: {text}" for name, text in zip(names, row, strict=True)] for row in rows]
        return [nested_text("{}", text, len(self.children) > MOST_INNER) for text in texts]

    def _equal_values(self, other: StructColumn) -> bool:
        pairs = zip(self.children, other.children, strict=True)
        if not self.null_count:
            return all(mine.equals(theirs) for mine, theirs in pairs)
        there = np.flatnonzero(self.validity_mask())
        return all(mine.take(there).equals(theirs.take(there)) for mine, theirs in pairs)


AnyColumn: TypeAlias = Column | ListColumn | StructColumn


def map_leaves(function: Callable[[Column], Column], column: AnyColumn, *, variants: bool = True) -> AnyColumn:
    """Return a column whose flat columns, at every level of nesting, are replaced by the function's results.

    The function gets the flat columns in schema order. If it returns another type, the types around it follow.

    Args:
        function: takes and returns a flat column.
        column: the column.
        variants: whether the flat columns in VARIANT columns are replaced too.
    """
    match column:
        case StructColumn():
            if column.type.annotation == "VARIANT" and not variants:
                return column
            children = tuple(map_leaves(function, child, variants=variants) for child in column.children)
            pairs = zip(column.type.fields, children, strict=True)
            fields = tuple(replace(field, type=child.type) for field, child in pairs)
            return column._with(type=replace(column.type, fields=fields), children=children)
        case ListColumn():
            elements = map_leaves(function, column.elements, variants=variants)
            field = replace(element_of(column.type), type=elements.type)
            is_map = isinstance(column.type, MapType)
            return column._with(
                type=MapType(*cast(StructType, field.type).fields) if is_map else ListType(field), elements=elements)
    return function(column)
