"""Python lists and dicts as nested columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.bitmap import pack_bitmap
from fastpq.errors import SchemaError
from fastpq.layouts import MAX_INT32
from fastpq.nested import ListColumn, StructColumn, nested_field
from fastpq.nested_types import ListType, StructType

if TYPE_CHECKING:
    from fastpq.table import AnyColumn

Convert = Callable[[list[Any]], "AnyColumn"]

_LISTS = (list, tuple, np.ndarray)


def are_nested(values: Any) -> bool:
    """Whether objects are lists or dicts, by the first that is not None."""
    if isinstance(values, np.ma.MaskedArray):
        values = values.compressed()
    if not (isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1)):
        return False
    first = next((value for value in values if value is not None), None)
    return isinstance(first, (*_LISTS, dict))


def nested_from_objects(values: Sequence[Any], convert: Convert, name: str) -> ListColumn | StructColumn:
    """A column of lists or of dicts.

    Args:
        values: lists (tuples, arrays) or dicts, and None where null; a key that a dict does not have is null in it.
        convert: makes a column of elements or of the values of a key.
        name: of the column, for errors.

    Raises:
        SchemaError: lists and dicts mixed with each other or with anything else, or keys that are not str.
    """
    if isinstance(values, np.ma.MaskedArray):
        values = values.filled(None)
    there = np.fromiter((value is not None for value in values), np.bool_, len(values))
    nulls = len(there) - int(np.count_nonzero(there))
    validity = pack_bitmap(there) if nulls else None
    first = next(value for value in values if value is not None)
    kinds: tuple[type, ...] = (dict,) if isinstance(first, dict) else _LISTS
    for number, value in enumerate(values):
        if value is not None and not isinstance(value, kinds):
            raise SchemaError(f"value {number} is a {type(value).__name__} among {type(first).__name__}s", column=name or None)
    if isinstance(first, dict):
        return _structs(values, convert, name, validity, nulls)
    lengths = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    elements = convert(list(chain.from_iterable(value for value in values if value is not None)))
    if offsets[-1] <= MAX_INT32:
        offsets = offsets.astype(np.int32)
    return ListColumn(ListType(nested_field("element", elements)), offsets, elements, validity, nulls, bool(nulls))


def _structs(values: Sequence[Any], convert: Convert, name: str, validity: Any, nulls: int) -> StructColumn:
    keys = dict.fromkeys(chain.from_iterable(value for value in values if value is not None))
    wrong = [key for key in keys if not isinstance(key, str)]
    if wrong:
        raise SchemaError(f"the key {wrong[0]!r} is not a str, as the name of a field is", column=name or None)
    children = {key: convert([None if value is None else value.get(key) for value in values]) for key in keys}
    type_ = StructType(tuple(nested_field(key, child) for key, child in children.items()))
    return StructColumn(type_, tuple(children.values()), len(values), validity, nulls, bool(nulls))
