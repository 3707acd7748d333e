"""Outputs: the caller's arrays that columns are read into (``out=``)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

import numpy as np

from fastpq.arrays.flat_column import fixed_values
from fastpq.arrays.layouts import Array
from fastpq.arrays.table import AnyColumn, Column, ListColumn
from fastpq.errors import SchemaError
from fastpq.read.plan import ReadPlan
from fastpq.schema.shape import ListShape, Shape, shape_of
from fastpq.schema.types import ColumnType


class Outputs:
    """Arrays to read columns into, by name.

    Args:
        arrays: shape (rows,) for a flat column whose values have a fixed width, or (rows, k, ...) for lists of k such values.
            They must be C-contiguous and writable, and must not share memory. The dtype is the one that the values have in
            memory, or the dtype of their NumPy array (datetime64, timedelta64) if it has the same width. A
            numpy.ma.MaskedArray takes nulls in its mask.
        plan: plan for the read.
        types: types that are different in memory than in the schema, by leaf number.

    Raises:
        SchemaError: an array does not fit its column.
    """

    def __init__(self, arrays: Mapping[str, Any], plan: ReadPlan, types: Mapping[int, ColumnType]) -> None:
        self._arrays = dict(arrays)
        columns_by_name = {column.name: column for column in plan.columns}
        names = [column.name for column in plan.columns]
        for name, array in self._arrays.items():
            if names.count(name) > 1:
                raise SchemaError("out has one array for several columns of this name: read one by its number", column=name)
            if name not in columns_by_name:
                raise SchemaError("out has an array for a column that is not read", column=name)
            flat = columns_by_name[name].flat
            if flat is None:
                leaves = [leaf.index for leaf, _ in columns_by_name[name].leaves]
                type_, levels = _list_values(shape_of(columns_by_name[name].node, leaves, types), name)
            else:
                type_, levels = types.get(flat[0].index, flat[0].type), 0
            _check(name, array, type_, plan.num_rows, levels)
        _check_apart(self._arrays)

    def memory(self, name: str) -> Array | None:
        """Return a uint8 view of the array that the caller gave for a column, or None if the caller gave none."""
        array = self._arrays.get(name)
        return None if array is None else np.ma.getdata(array).view(np.uint8)

    def settled(self, name: str, column: AnyColumn) -> AnyColumn:
        """Return a column that uses its array as memory. Lists are copied there, and nulls are set in the array's mask.

        Raises:
            SchemaError: nulls for an array without a mask, or lists that are longer or shorter than the array's.
        """
        array = self._arrays.get(name)
        if array is None:
            return column
        if isinstance(column, ListColumn):
            return _fill(array, column, name)
        if isinstance(array, np.ma.MaskedArray):
            _set_mask(array, ~column.validity_mask())
        elif column.null_count:
            raise SchemaError(f"{column.null_count} nulls in an array without a mask: pass a numpy.ma.MaskedArray", column=name)
        return column


def _check(name: str, array: Any, type_: ColumnType, num_rows: int, levels: int) -> None:
    if not isinstance(array, np.ndarray):
        raise SchemaError(f"out takes NumPy arrays, not a {type(array).__name__}", column=name)
    if array.ndim != 1 + levels or len(array) != num_rows:
        shape = ", ".join([str(num_rows), *["length"] * levels])
        lists = f" of lists: give an array of shape ({shape})" if levels else ""
        raise SchemaError(f"an array of shape {array.shape} for {num_rows} rows{lists}", column=name)
    if type_.dtype is None:
        raise SchemaError(f"a column of {type_} cannot be read into an array: its values have no fixed length", column=name)
    same_memory = type_.numpy_dtype.kind in "mM" and type_.numpy_dtype.itemsize == type_.dtype.itemsize
    if array.dtype != type_.dtype and not (same_memory and array.dtype == type_.numpy_dtype):
        reason = f"an array of {array.dtype} does not take a column of {type_}, which is held as {type_.dtype}"
        raise SchemaError(reason, column=name)
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise SchemaError("an array to read into must be contiguous and writable", column=name)


def _check_apart(arrays: Mapping[str, Any]) -> None:
    """Refuse arrays that share memory. Arrays are contiguous, so if any overlap, then two neighbours in address order do."""
    spans = sorted((array.__array_interface__["data"][0], array.nbytes, name) for name, array in arrays.items())
    for (start, size, name), (following, length, other) in pairwise(spans):
        if length and start + size > following:
            raise SchemaError(f"its array shares memory with that of {name!r}", column=other)


def _list_values(shape: Shape, name: str) -> tuple[ColumnType, int]:
    """Return the value type in a column of lists, and how deeply the lists are nested.

    Args:
        shape: the column's shape.
        name: its name, for errors.

    Raises:
        SchemaError: the column has structs or maps, or is flat.
    """
    levels = 0
    while isinstance(shape, ListShape) and not shape.is_map:
        shape, levels = shape.element, levels + 1
    if not levels or not isinstance(shape.type, ColumnType):
        raise SchemaError("a nested column cannot be read into an array, unless it has lists of one length", column=name)
    return shape.type, levels


def _fill(array: Array, column: ListColumn, name: str) -> ListColumn:
    """Copy a column's values into an array, and return the column with this memory. With null lists, return it as it was.

    Args:
        array: shape (number of lists, length of each list, ...). Its dtype is as wide as the values.
        column: lists that have this length.
        name: column name, for errors.

    Raises:
        SchemaError: a list has another length, or there are nulls and the array has no mask.
    """
    present: Array | None = None      # mask of the slots for which the column has a list or a value, or None for all
    lists: list[ListColumn] = []
    inner: AnyColumn = column
    for length in array.shape[1:]:
        inner = cast(ListColumn, inner)
        lists.append(inner)
        sizes = np.diff(inner.offsets)
        if inner.null_count:
            present, sizes = _narrowed(present, inner), sizes[inner.validity_mask()]
        if bool((sizes != length).any()):
            other = int(sizes[sizes != length][0])
            raise SchemaError(f"a list of {other} values for an array of shape {array.shape}", column=name)
        present, inner = None if present is None else np.repeat(present, length), inner.used_elements()
    leaf = cast(Column, inner)
    values = fixed_values(leaf)
    memory = np.ma.getdata(array, subok=False).reshape(-1).view(values.dtype)
    missing = len(memory) - len(values) + leaf.null_count
    if missing and not isinstance(array, np.ma.MaskedArray):
        raise SchemaError(f"{missing} nulls in an array without a mask: pass a numpy.ma.MaskedArray", column=name)
    memory[... if present is None else present] = values
    if isinstance(array, np.ma.MaskedArray):
        _set_mask(array, ~_narrowed(present, leaf).reshape(array.shape))
    return _over(lists, leaf._with(values=memory)) if present is None else column


def _narrowed(present: Array | None, column: AnyColumn) -> Array:
    """Return ``present`` without the slots where the column is null. None stands for a mask that is True everywhere."""
    if present is None:
        return column.validity_mask()
    remaining_slots = present.copy()
    remaining_slots[present] = column.validity_mask()
    return remaining_slots


def _over(lists: list[ListColumn], leaf: Column) -> ListColumn:
    """Return the nested lists with ``leaf`` as their values."""
    inner: Any = leaf
    for column in reversed(lists):
        inner = column._with(offsets=column.offsets - column.offsets[0], elements=inner)
    return cast(ListColumn, inner)


def _set_mask(array: np.ma.MaskedArray[Any, Any], mask: Array) -> None:
    """Set an array's mask. If the array already has a mask, that keeps its memory."""
    if array.mask is np.ma.nomask:
        array.mask = mask
    else:
        np.copyto(np.ma.getmaskarray(array), mask)     # getmaskarray returns the array's own mask
