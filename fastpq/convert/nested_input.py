"""List, map and struct columns from Python lists and dicts, and from arrays with several dimensions or fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.arrays.bitmap import validity_of
from fastpq.arrays.layouts import MAX_INT32, Array
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.python_lists import joined, lengths_of
from fastpq.convert.object_input import is_missing
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import ListType, MapType, StructType

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn

Convert = Callable[[Any], "AnyColumn"]

_LISTS = (list, tuple, np.ndarray)


def is_masked_array(values: Any) -> bool:
    """Whether values are a numpy.ma.MaskedArray. To see that an ndarray is none, numpy.ma need not be imported."""
    return type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray)


def are_nested(values: Any) -> bool:
    """Whether values are lists or dicts. The first value that is not null decides."""
    if is_masked_array(values):
        values = values.compressed()
    if isinstance(values, np.ndarray):
        if values.dtype != object or values.ndim != 1:
            return False
    elif not isinstance(values, list | tuple):
        return False
    first = next((value for value in values if not _is_null(value)), None)
    return isinstance(first, (*_LISTS, dict))


def _is_null(value: Any) -> bool:
    return value is None or value is np.ma.masked or is_missing(value)


def lists_of_rows(shape: tuple[int, ...], values: AnyColumn) -> AnyColumn:
    """Return an array with two or more dimensions as a list column with one list size (Arrow's fixed-size lists).

    Args:
        shape: array shape. The first dimension counts the rows.
        values: the values in C order.
    """
    column = values
    for level in range(len(shape) - 1, 0, -1):
        size, count = shape[level], math.prod(shape[:level])
        offsets = np.arange(count + 1, dtype=np.int64 if count * size > MAX_INT32 else np.int32) * size
        type_ = ListType(column.as_field("element"))
        column = ListColumn._made(type_, offsets, column, nullable=False, arrow=FieldNode(f"+w:{size}"))
    return column


def struct_of_parts(array: Array, convert: Convert) -> StructColumn:
    """Return a structured array, or complex numbers, as a struct column with the fields, or with ``real`` and ``imag``.

    Args:
        array: one-dimensional, and perhaps masked. A masked complex number is null, and a masked record field is null.
        convert: makes a column from an array.
    """
    data = np.ma.getdata(array)
    validity, nulls = None, 0
    if data.dtype.names is not None:
        parts = {name: array[name] for name in data.dtype.names}
    else:
        parts = {"real": data.real, "imag": data.imag}
        validity, nulls = validity_of(~np.ma.getmaskarray(array))
    children = {name: convert(part) for name, part in parts.items()}
    type_ = StructType(tuple(child.as_field(name) for name, child in children.items()))
    ends = tuple(children.values())
    return StructColumn._made(type_, ends, len(data), validity=validity, null_count=nulls, nullable=bool(nulls))


def nested_from_objects(
    objects: Any, convert: Convert, name: str, by_key: Mapping[str, Convert] | None = None
) -> ListColumn | StructColumn:
    """Return lists or dicts as a list or struct column.

    Args:
        objects: a sequence with lists (tuples, arrays) or dicts, with None for null. A key that a dict does not have is null in
            its row.
        convert: makes a column from the elements, or from a key's values.
        name: column name, for errors.
        by_key: functions that replace ``convert`` for some keys.

    Raises:
        SchemaError: lists and dicts are mixed with each other or with other values, or a key is not a str.
    """
    values: Any = objects.filled(None) if isinstance(objects, np.ma.MaskedArray) else objects
    if _is_null(next(value for value in values if value is not None)):
        values = [None if _is_null(each) else each for each in values]
    array = _as_objects(values)
    first = next(value for value in values if value is not None)
    lengths, wrong = lengths_of(array) if not isinstance(first, dict) else _dicts(array)
    if wrong >= 0:
        if _is_null(array[wrong]):
            return nested_from_objects([None if _is_null(each) else each for each in values], convert, name, by_key)
        if isinstance(first, _LISTS) and isinstance(array[wrong], np.ndarray):
            raise SchemaError(f"value {wrong} is an array without a dimension", column=name or None)
        kind, expected_kind = type(array[wrong]).__name__, type(first).__name__
        raise SchemaError(f"value {wrong} is a {kind} among {expected_kind}s", column=name or None)
    validity, nulls = validity_of(lengths >= 0)
    if isinstance(first, dict):
        return _structs(values, lambda key: (by_key or {}).get(key, convert), name, validity, nulls)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    flat_values = _elements(array, lengths)
    if len(flat_values) != offsets[-1]:     # a subclass has its own __iter__, or another thread changed a list
        raise SchemaError(f"lists of {offsets[-1]} elements gave {len(flat_values)}", column=name or None)
    elements = convert(flat_values)
    if offsets[-1] <= MAX_INT32:
        offsets = offsets.astype(np.int32)
    type_ = ListType(elements.as_field("element"))
    return ListColumn._made(type_, offsets, elements, validity=validity, null_count=nulls, nullable=bool(nulls))


def maps_from_objects(objects: Any, of_keys: Convert, of_values: Convert, name: str) -> ListColumn:
    """Return dicts or pair lists as a map column.

    Args:
        objects: a sequence with dicts or pair lists, and None for null.
        of_keys: makes a column from the keys.
        of_values: makes a column from the values.
        name: column name, for errors.

    Raises:
        SchemaError: a value is not a dict and not a list of pairs, or a key is None.
    """
    values = [None if _is_null(value) else value for value in objects]
    pairs: list[Any] = []
    lengths = np.zeros(len(values) + 1, np.int64)
    for number, value in enumerate(values):
        if value is None:
            continue
        items = list(value.items() if isinstance(value, dict) else value if isinstance(value, _LISTS) else [value])
        wrong = [item for item in items if not isinstance(item, list | tuple) or len(item) != 2 or item[0] is None]
        if wrong:
            message = f"value {number} is not a map: give a dict, or a list of pairs of a key and a value"
            raise SchemaError(message, column=name or None).showing(value)
        lengths[number + 1] = len(items)
        pairs.extend(items)
    offsets = np.cumsum(lengths)
    if offsets[-1] <= MAX_INT32:
        offsets = offsets.astype(np.int32)
    keys, map_values = (convert([pair[part] for pair in pairs]) for part, convert in enumerate((of_keys, of_values)))
    type_ = MapType(replace(keys.as_field("key"), nullable=False), replace(map_values.as_field("value"), nullable=True))
    ends = (keys._with(nullable=False), map_values._with(nullable=True))
    elements = StructColumn._made(StructType((type_.key, type_.value)), ends, len(pairs), nullable=False)
    validity, nulls = validity_of(np.fromiter((value is not None for value in values), np.bool_, len(values)))
    return ListColumn._made(type_, offsets, elements, validity=validity, null_count=nulls, nullable=bool(nulls))


def _as_objects(values: Any) -> Array:
    """Return values as a contiguous object array, with each list or array as one object."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values)
    return np.fromiter(values, dtype=object, count=len(values))


def _dicts(array: Array) -> tuple[Array, int]:
    """Return dict lengths, and the first wrong value's position or -1, as ``lengths_of`` does for lists."""
    sizes = np.empty(len(array), np.int64)
    for number, value in enumerate(array):
        if value is not None and not isinstance(value, dict):
            return sizes, number
        sizes[number] = -1 if value is None else len(value)
    return sizes, -1


def _elements(array: Array, lengths: Array) -> Any:
    """Return the elements in all lists: an array if all lists are arrays with one dtype, and a list otherwise."""
    elements = joined(array, lengths)
    if elements is not None:
        return elements
    lists = [value for value in array if value is not None]
    dtypes = {value.dtype if type(value) is np.ndarray and value.ndim == 1 else None for value in lists}
    if len(dtypes) == 1 and None not in dtypes:
        return np.concatenate(lists)
    return list(chain.from_iterable(lists))


def _structs(values: Sequence[Any], convert_of: Callable[[str], Convert], name: str, validity: Any, nulls: int) -> StructColumn:
    keys = dict.fromkeys(chain.from_iterable(value for value in values if value is not None))
    wrong = [key for key in keys if not isinstance(key, str)]
    if wrong:
        key_text = repr(wrong[0])
        reason = f"the key {key_text} must be a str, because dicts become structs; for maps give the type of a map"
        raise SchemaError(f"{reason}: schema={{name: pyarrow.map_(keys, values)}}", column=name or None).showing(key_text)
    children = {key: convert_of(key)([None if value is None else value.get(key) for value in values]) for key in keys}
    type_ = StructType(tuple(child.as_field(key) for key, child in children.items()))
    ends = tuple(children.values())
    return StructColumn._made(type_, ends, len(values), validity=validity, null_count=nulls, nullable=bool(nulls))
