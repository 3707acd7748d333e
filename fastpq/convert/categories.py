"""Categories of a categorical column as JSON, and back: the entries' stored values, in order.

Parquet keeps category order and unused categories only in a dictionary page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastpq.arrays.flat_column import fixed_values
from fastpq.arrays.nested_columns import StructColumn
from fastpq.arrays.table import AnyColumn, Column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.errors import ParquetError
from fastpq.schema.types import Decimal

# Largest category count that file metadata lists. Longer lists keep their order only in text dictionary pages.
MOST_CATEGORIES = 10_000


def categories_as_json(entries: AnyColumn) -> Any:
    """Return the stored category values: a list with numbers or texts, for a struct a dict with lists, None for others."""
    if isinstance(entries, StructColumn):
        fields = zip(entries.type.fields, entries.children, strict=True)
        parts = {field.name: categories_as_json(child) for field, child in fields}
        return None if entries.null_count or any(part is None for part in parts.values()) else parts
    if not isinstance(entries, Column) or entries.null_count:
        return None
    if entries.type.is_text:
        return entries.to_pylist()
    if entries.type.is_variable:
        return None
    values = fixed_values(entries)
    if isinstance(entries.type.logical, Decimal) and values.dtype.kind == "V":
        return None
    if values.dtype.kind == "f":
        return values.tolist() if bool(np.isfinite(values).all()) else None
    return values.tolist() if values.dtype.kind in "biu" else None


def categories_of(stored_categories: Any, column: AnyColumn) -> AnyColumn | None:
    """Return the categories that JSON holds, as a column with the type that a file's column has, or None if the JSON does not
    fit.

    Args:
        stored_categories: the result of ``categories_as_json``.
        column: the column in the file.
    """
    if isinstance(column, StructColumn):
        names = [field.name for field in column.type.fields]
        if not isinstance(stored_categories, dict) or [*stored_categories] != names:
            return None
        children = [categories_of(stored_categories[name], child) for name, child in zip(names, column.children, strict=True)]
        if any(child is None for child in children) or len({len(child) for child in children if child is not None}) != 1:
            return None
        count = len(children[0]) if children[0] is not None else 0
        return StructColumn._made(column.type, tuple(children), count, arrow=column.arrow)
    if not isinstance(stored_categories, list) or not isinstance(column, Column):
        return None
    if column.type.is_text:
        if not all(isinstance(entry, str) for entry in stored_categories):
            return None
        try:
            return column_from_numpy(np.array(stored_categories, object), type=column.type)
        except ParquetError:        # a lone surrogate
            return None
    dtype = column.type.dtype
    if dtype is None or not all(type(entry) in _TYPES.get(dtype.kind, ()) for entry in stored_categories):
        return None
    try:
        values = np.array(stored_categories, dtype)
    except (ValueError, OverflowError):
        return None
    field = column.arrow
    return Column._made(column.type, values, arrow=None if field is None else field.dictionary or field)


_TYPES: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (float, int)}
