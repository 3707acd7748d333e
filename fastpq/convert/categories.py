"""Categories of a categorical column as JSON and back: the stored values of the entries, in order.

Parquet keeps neither the order of categories nor unused ones, unless in a dictionary page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastpq.arrays.nested_columns import StructColumn
from fastpq.arrays.numpy_output import fixed_values
from fastpq.arrays.table import AnyColumn, Column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.errors import ParquetError
from fastpq.schema.types import ColumnType, Decimal

# Most categories listed in the metadata of a file; of more, the dictionary pages of text alone keep the order.
MOST_CATEGORIES = 10_000


def categories_as_json(entries: AnyColumn) -> Any:
    """The stored values of categories: a list of numbers or texts, or an object of such lists for a struct; None for others."""
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


def categories_of(found: Any, column: AnyColumn) -> AnyColumn | None:
    """The entries of categories from JSON, as a column of the type of a file's column; None where the JSON does not fit.

    Args:
        found: as given by ``categories_as_json``.
        column: the column of the file.
    """
    if isinstance(column, StructColumn):
        names = [field.name for field in column.type.fields]
        if not isinstance(found, dict) or [*found] != names:
            return None
        children = [categories_of(found[name], child) for name, child in zip(names, column.children, strict=True)]
        if any(child is None for child in children) or len({len(child) for child in children if child is not None}) != 1:
            return None
        count = len(children[0]) if children[0] is not None else 0
        return StructColumn._made(column.type, tuple(children), count, arrow=column.arrow)
    if not isinstance(found, list) or not isinstance(column, Column):
        return None
    if column.type.is_text:
        if not all(isinstance(entry, str) for entry in found):
            return None
        return _made(np.array(found, object), column.type)
    dtype = column.type.dtype
    if dtype is None or not all(type(entry) in _TYPES.get(dtype.kind, ()) for entry in found):
        return None
    try:
        values = np.array(found, dtype)
    except (ValueError, OverflowError):
        return None
    field = column.arrow
    return Column._made(column.type, values, arrow=None if field is None else field.dictionary or field)


_TYPES: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (float, int)}


def _made(values: Any, type_: ColumnType) -> AnyColumn | None:
    try:
        return column_from_numpy(values, type=type_)
    except ParquetError:        # a lone surrogate
        return None
