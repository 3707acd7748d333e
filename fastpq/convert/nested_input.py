"""Python lists and dicts as list and struct columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.arrays.bitmap import pack_bitmap
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


def are_nested(values: Any) -> bool:
    """Whether values are lists or dicts, judged by the first value other than None."""
    if isinstance(values, np.ma.MaskedArray):
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
    """A column of lists of one size, for an array of two or more dimensions; Arrow's fixed-size lists.

    Args:
        shape: shape of the array; the first dimension counts the rows.
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
    """A column of structs, for a structured array or complex numbers: the fields, or ``real`` and ``imag``.

    Args:
        array: one-dimensional, a masked array too: masked complex numbers are null, and masked fields of a record are null.
        convert: makes a column of an array.
    """
    data = np.ma.getdata(array)
    there: Array | None = None
    if data.dtype.names is not None:
        parts = {name: array[name] for name in data.dtype.names}
    else:
        parts = {"real": data.real, "imag": data.imag}
        masked = np.ma.getmaskarray(array)
        there = ~masked if masked.any() else None
    children = {name: convert(part) for name, part in parts.items()}
    type_ = StructType(tuple(child.as_field(name) for name, child in children.items()))
    validity, nulls = (None, 0) if there is None else (pack_bitmap(there), len(there) - int(np.count_nonzero(there)))
    ends, nullable = tuple(children.values()), there is not None
    return StructColumn._made(type_, ends, len(data), validity=validity, null_count=nulls, nullable=nullable)


def nested_from_objects(
    objects: Any, convert: Convert, name: str, by_key: Mapping[str, Convert] | None = None
) -> ListColumn | StructColumn:
    """A column of lists or of dicts.

    Args:
        objects: a sequence of lists (tuples, arrays) or dicts, with None for null; a key missing in a dict is null in its row.
        convert: makes a column of the elements, or of the values of a key.
        name: name of the column, for errors.
        by_key: makes a column of the values of some keys, in the place of ``convert``.

    Raises:
        SchemaError: lists and dicts mixed with each other or with other values, or keys other than str.
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
        found, expected = type(array[wrong]).__name__, type(first).__name__
        raise SchemaError(f"value {wrong} is a {found} among {expected}s", column=name or None)
    there = lengths >= 0
    nulls = len(there) - int(np.count_nonzero(there))
    validity = pack_bitmap(there) if nulls else None
    if isinstance(first, dict):
        return _structs(values, lambda key: (by_key or {}).get(key, convert), name, validity, nulls)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    joined_elements = _elements(array, lengths)
    if len(joined_elements) != offsets[-1]:     # a subclass has its own __iter__, or another thread changed a list
        raise SchemaError(f"lists of {offsets[-1]} elements gave {len(joined_elements)}", column=name or None)
    elements = convert(joined_elements)
    if offsets[-1] <= MAX_INT32:
        offsets = offsets.astype(np.int32)
    type_ = ListType(elements.as_field("element"))
    return ListColumn._made(type_, offsets, elements, validity=validity, null_count=nulls, nullable=bool(nulls))


def maps_from_objects(objects: Any, of_keys: Convert, of_values: Convert, name: str) -> ListColumn:
    """A column of maps.

    Args:
        objects: a sequence of dicts or of lists of pairs, with None for null.
        of_keys: makes a column of the keys.
        of_values: makes a column of the values.
        name: name of the column, for errors.

    Raises:
        SchemaError: values other than dicts and lists of pairs, or a key that is None.
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
            message = f"value {number} is no map: give a dict, or a list of pairs of a key and a value"
            raise SchemaError(message, column=name or None).showing(value)
        lengths[number + 1] = len(items)
        pairs.extend(items)
    offsets = np.cumsum(lengths)
    if offsets[-1] <= MAX_INT32:
        offsets = offsets.astype(np.int32)
    keys, mapped = (convert([pair[part] for pair in pairs]) for part, convert in enumerate((of_keys, of_values)))
    type_ = MapType(replace(keys.as_field("key"), nullable=False), replace(mapped.as_field("value"), nullable=True))
    ends = (keys._with(nullable=False), mapped._with(nullable=True))
    elements = StructColumn._made(StructType((type_.key, type_.value)), ends, len(pairs), nullable=False)
    there = np.fromiter((value is not None for value in values), np.bool_, len(values))
    nulls = len(there) - int(np.count_nonzero(there))
    validity = pack_bitmap(there) if nulls else None
    return ListColumn._made(type_, offsets, elements, validity=validity, null_count=nulls, nullable=bool(nulls))


def _as_objects(values: Any) -> Array:
    """Values as a contiguous object array, each list or array one object."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values)
    return np.fromiter(values, dtype=object, count=len(values))


def _dicts(array: Array) -> tuple[Array, int]:
    """As ``lengths_of``, of dicts."""
    sizes = np.empty(len(array), np.int64)
    for number, value in enumerate(array):
        if value is not None and not isinstance(value, dict):
            return sizes, number
        sizes[number] = -1 if value is None else len(value)
    return sizes, -1


def _elements(array: Array, lengths: Array) -> Any:
    """The elements of all lists: an array of the dtype of the arrays where all are of one dtype, a list otherwise."""
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
        shown = repr(wrong[0])
        reason = f"the key {shown} is not a str, as the name of a field is: dicts are structs, and maps with the type of a map"
        raise SchemaError(f"{reason}, schema={{name: pyarrow.map_(keys, values)}}", column=name or None).showing(shown)
    children = {key: convert_of(key)([None if value is None else value.get(key) for value in values]) for key in keys}
    type_ = StructType(tuple(child.as_field(key) for key, child in children.items()))
    ends = tuple(children.values())
    return StructColumn._made(type_, ends, len(values), validity=validity, null_count=nulls, nullable=bool(nulls))
