"""Outputs: arrays of the caller as the memory of read columns (``out=``)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from fastpq.arrays.layouts import Array
from fastpq.arrays.table import AnyColumn, ListColumn
from fastpq.errors import SchemaError
from fastpq.read.matrices import filled, lists_of, set_mask
from fastpq.read.plan import ReadPlan
from fastpq.schema.shape import shape_of
from fastpq.schema.types import ColumnType


class Outputs:
    """Arrays to read columns into, by name.

    Args:
        arrays: shape (rows of the read,), each for a flat column of a fixed width, or (rows, k, ...) for a column of lists of k
            values of a fixed width; C-contiguous and writable, without memory in common. The dtype is the dtype of the values in
            memory, or of their NumPy array (datetime64, timedelta64) if of equal width. A numpy.ma.MaskedArray takes nulls in its
            mask.
        plan: plan of the read.
        types: types in memory other than the schema's, by the number of the leaf.

    Raises:
        SchemaError: an array does not fit its column.
    """

    def __init__(self, arrays: Mapping[str, Any], plan: ReadPlan, types: Mapping[int, ColumnType]) -> None:
        self._arrays = dict(arrays)
        planned = {column.name: column for column in plan.columns}
        names = [column.name for column in plan.columns]
        for name, array in self._arrays.items():
            if names.count(name) > 1:
                raise SchemaError("one array in out for several columns of one name: read one column by its number", column=name)
            if name not in planned:
                raise SchemaError("out has an array for a column that is not read", column=name)
            flat = planned[name].flat
            if flat is None:
                leaves = [leaf.index for leaf, _ in planned[name].leaves]
                type_, levels = lists_of(shape_of(planned[name].node, leaves, types), name)
            else:
                type_, levels = types.get(flat[0].index, flat[0].type), 0
            _check(name, array, type_, plan.num_rows, levels)
        _check_apart(self._arrays)

    def memory(self, name: str) -> Array | None:
        """The array of a column as bytes; None for a column without an array."""
        array = self._arrays.get(name)
        return None if array is None else np.ma.getdata(array).view(np.uint8)

    def settled(self, name: str, column: AnyColumn) -> AnyColumn:
        """A read column over its array: lists are copied there, and nulls into the mask of the array.

        Raises:
            SchemaError: a column with nulls, and an array without a mask, or lists of another length than the array.
        """
        array = self._arrays.get(name)
        if array is None:
            return column
        if isinstance(column, ListColumn):
            return filled(array, column, name)
        if isinstance(array, np.ma.MaskedArray):
            set_mask(array, ~column.validity_mask())
        elif column.null_count:
            raise SchemaError(f"{column.null_count} nulls in an array without a mask: pass a numpy.ma.MaskedArray", column=name)
        return column


def _check(name: str, array: Any, type_: ColumnType, num_rows: int, levels: int) -> None:
    if not isinstance(array, np.ndarray):
        raise SchemaError(f"out takes NumPy arrays, not {type(array).__name__}", column=name)
    if array.ndim != 1 + levels or len(array) != num_rows:
        wanted = ", ".join([str(num_rows), *["length"] * levels])
        lists = f" of lists: give an array of shape ({wanted})" if levels else ""
        raise SchemaError(f"an array of shape {array.shape} for {num_rows} rows{lists}", column=name)
    if type_.dtype is None:
        raise SchemaError(f"a {type_} column, whose values are of variable length, is no array to read into", column=name)
    same_memory = type_.numpy_dtype.kind in "mM" and type_.numpy_dtype.itemsize == type_.dtype.itemsize
    if array.dtype != type_.dtype and not (same_memory and array.dtype == type_.numpy_dtype):
        raise SchemaError(f"an array of {array.dtype} for a {type_} column, which is held as {type_.dtype}", column=name)
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise SchemaError("an array to read into must be contiguous and writable", column=name)


def _check_apart(arrays: Mapping[str, Any]) -> None:
    """Refuse arrays with memory in common. Arrays are contiguous: in the order of addresses, only neighbours can overlap."""
    spans = sorted((array.__array_interface__["data"][0], array.nbytes, name) for name, array in arrays.items())
    for (start, size, name), (following, length, other) in pairwise(spans):
        if length and start + size > following:
            raise SchemaError(f"its array shares memory with that of {name!r}", column=other)
