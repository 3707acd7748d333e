"""Lists of one length, read into arrays of two or more dimensions of the caller (``out=``)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from fastpq.arrays.layouts import Array
from fastpq.arrays.numpy_output import fixed_values
from fastpq.arrays.table import AnyColumn, Column, ListColumn
from fastpq.errors import SchemaError
from fastpq.schema.shape import ListShape, Shape
from fastpq.schema.types import ColumnType


def lists_of(shape: Shape, name: str) -> tuple[ColumnType, int]:
    """The type of the values of a column of lists, and the number of its levels of lists.

    Args:
        shape: shape of the column.
        name: its name, for errors.

    Raises:
        SchemaError: a column of structs or maps.
    """
    levels = 0
    while isinstance(shape, ListShape) and not shape.is_map:
        shape, levels = shape.element, levels + 1
    if not levels or not isinstance(shape.type, ColumnType):
        raise SchemaError("a nested column, other than of lists of one length, is no array to read into", column=name)
    return shape.type, levels


def filled(array: Array, column: ListColumn, name: str) -> ListColumn:
    """The column over the memory of an array, after its values are copied there; a column with null lists stays as it is.

    Args:
        array: shape (number of lists, length of each, ...), of the dtype of the values, or of an equally wide one.
        column: lists of this length.
        name: name of the column, for errors.

    Raises:
        SchemaError: lists of another length, or nulls and an array without a mask.
    """
    present: Array | None = None      # which slots of the array have a list, or a value, of the column; None for all
    lists: list[ListColumn] = []
    inner: AnyColumn = column
    for length in array.shape[1:]:
        inner = cast(ListColumn, inner)
        lists.append(inner)
        sizes = np.diff(inner.offsets)
        if inner.null_count:
            present, sizes = _narrowed(present, inner), sizes[inner.validity_mask()]
        if bool((sizes != length).any()):
            found = int(sizes[sizes != length][0])
            raise SchemaError(f"a list of {found} values for an array of shape {array.shape}", column=name)
        present, inner = None if present is None else np.repeat(present, length), inner.used_elements()
    leaf = cast(Column, inner)
    values = fixed_values(leaf)
    memory = np.ma.getdata(array, subok=False).reshape(-1).view(values.dtype)
    missing = len(memory) - len(values) + leaf.null_count
    if missing and not isinstance(array, np.ma.MaskedArray):
        raise SchemaError(f"{missing} nulls in an array without a mask: pass a numpy.ma.MaskedArray", column=name)
    memory[... if present is None else present] = values
    if isinstance(array, np.ma.MaskedArray):
        set_mask(array, ~_narrowed(present, leaf).reshape(array.shape))
    return _over(lists, leaf._with(values=memory)) if present is None else column


def _narrowed(present: Array | None, column: AnyColumn) -> Array:
    """Which slots of an array have a value other than null, from the slots that have a value or null of a column."""
    if present is None:
        return column.validity_mask()
    found = present.copy()
    found[present] = column.validity_mask()
    return found


def _over(lists: list[ListColumn], leaf: Column) -> ListColumn:
    """Lists of other values."""
    inner: Any = leaf
    for column in reversed(lists):
        inner = column._with(offsets=column.offsets - column.offsets[0], elements=inner)
    return cast(ListColumn, inner)


def set_mask(array: np.ma.MaskedArray[Any, Any], mask: Array) -> None:
    """Set the mask of an array, in the memory of the present mask if there is one."""
    if array.mask is np.ma.nomask:
        array.mask = mask
    else:
        np.copyto(np.ma.getmaskarray(array), mask)     # getmaskarray returns the array's own mask
