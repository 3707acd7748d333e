"""Columns to NumPy arrays, by the table in ColumnType."""

from __future__ import annotations

import decimal
import uuid
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fastpq.errors import SchemaError
from fastpq.strings import objects_from_views, string_dtype_from_views
from fastpq.types import Decimal, Unknown, Uuid

if TYPE_CHECKING:
    from fastpq.table import Column

Array: TypeAlias = np.ndarray[Any, Any]
Nulls = Literal["masked", "nan", "object"]
Strings = Literal["stringdtype", "object"]


def to_numpy(column: Column, nulls: Nulls, strings: Strings) -> Array:
    """See Column.to_numpy."""
    if nulls not in ("masked", "nan", "object") or strings not in ("stringdtype", "object"):
        raise ValueError(f"nulls={nulls!r}, strings={strings!r}")
    present = column.validity_mask() if column.validity is not None else None
    if column.type.is_variable and not isinstance(column.type.logical, Unknown):
        return _variable(column, present, strings, nulls)
    logical = column.type.logical
    if isinstance(logical, Unknown):
        return np.full(len(column), None, dtype=object)
    if isinstance(logical, Decimal | Uuid):
        return _decimals(column, present) if isinstance(logical, Decimal) else _uuids(column, present)
    values = _fixed(column)
    if present is None:
        return values
    return _with_nulls(values, present, nulls)


def _variable(column: Column, present: Array | None, strings: Strings, nulls: Nulls) -> Array:
    from fastpq.table import BinaryViews

    values = column.as_views().values
    assert isinstance(values, BinaryViews)
    if column.type.is_text and strings == "stringdtype" and nulls != "object":
        return string_dtype_from_views(values.views, values.buffers, present)
    return objects_from_views(values.views, values.buffers, present, column.type.is_text)


def _fixed(column: Column) -> Array:
    """Values without regard to nulls: a view of the column's memory unless dates or times must be widened."""
    values = np.asarray(column.values)
    target = column.type.numpy_dtype
    if values.dtype == target:
        return values
    if target.kind in "mM":
        return values.astype(np.int64, copy=False).view(target)
    return values.view(target)


def _with_nulls(values: Array, present: Array, nulls: Nulls) -> Array:
    if nulls == "masked":
        return np.ma.MaskedArray(values, mask=~present)
    if nulls == "object":
        out = np.full(len(values), None, dtype=object)
        out[present] = values[present] if values.dtype.kind not in "mM" else _datetime_objects(values[present])
        return out
    if values.dtype.kind not in "fmM":
        raise SchemaError(f"{values.dtype} has no value that means null: take nulls='masked' or 'object'")
    out = values.copy()
    out[~present] = np.nan if values.dtype.kind == "f" else np.array("NaT", dtype=values.dtype)
    return out


def _datetime_objects(values: Array) -> Array:
    """Python dates and times where they can hold the values, NumPy scalars where they cannot (nanoseconds)."""
    out = np.empty(len(values), dtype=object)
    exact = np.datetime_data(values.dtype)[0] != "ns"
    for index, value in enumerate(values):
        out[index] = value.item() if exact else value
    return out


def _integers(column: Column) -> list[int]:
    values = np.asarray(column.values)
    if values.dtype.kind != "V":
        return [int(value) for value in values.tolist()]
    size, data = values.dtype.itemsize, values.tobytes()
    return [int.from_bytes(data[i : i + size], "little", signed=True) for i in range(0, len(data), size)]


def _decimals(column: Column, present: Array | None) -> Array:
    logical = column.type.logical
    assert isinstance(logical, Decimal)
    out = np.full(len(column), None, dtype=object)
    context = decimal.Context(prec=max(logical.precision, 1) + 2)
    for index, value in enumerate(_integers(column)):
        if present is None or present[index]:
            out[index] = context.scaleb(decimal.Decimal(value), -logical.scale)
    return out


def _uuids(column: Column, present: Array | None) -> Array:
    data = np.asarray(column.values).tobytes()
    out = np.full(len(column), None, dtype=object)
    for index in range(len(column)):
        if present is None or present[index]:
            out[index] = uuid.UUID(bytes=data[16 * index : 16 * index + 16])
    return out
