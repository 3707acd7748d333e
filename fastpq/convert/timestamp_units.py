"""with_timestamp_unit: gives all timestamps of a table the same unit, as pyarrow's option coerce_timestamps does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from fastpq.arrays.nested_columns import map_leaves
from fastpq.arrays.table import Column, Table
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Timestamp, TimeUnitName, Type

CoercedUnit: TypeAlias = Literal["ms", "us"]

_TICKS: dict[TimeUnitName, int] = {"ms": 10**3, "us": 10**6, "ns": 10**9}      # per second
_ARROW_FORMATS: dict[TimeUnitName, str] = {"ms": "tsm:", "us": "tsu:", "ns": "tsn:"}
_INT64 = np.iinfo(np.int64)


def with_timestamp_unit(table: Table, unit: CoercedUnit, *, truncate: bool) -> Table:
    """Return the table with all INT64 timestamps in a unit, nested ones too. INT96 timestamps stay as they are.

    Args:
        table: the table.
        unit: the unit.
        truncate: whether digits below the unit may be lost. They are cut off, so times before 1970 become later, as in pyarrow.

    Raises:
        SchemaError: a timestamp would lose digits, and ``truncate`` is False. Or it does not fit the unit.
    """
    pairs = zip(table.names, table.columns, strict=True)
    columns = [map_leaves(partial(_converted, unit=unit, truncate=truncate, name=name), column) for name, column in pairs]
    return table._of(columns)


def _converted(column: Column, unit: CoercedUnit, truncate: bool, name: str) -> Column:
    logical = column.type.logical
    if not isinstance(logical, Timestamp) or column.type.physical is not Type.INT64 or logical.unit == unit:
        return column
    values: Any = column.values
    own_ticks, ticks = _TICKS[logical.unit], _TICKS[unit]
    if own_ticks > ticks:
        factor = own_ticks // ticks
        converted_values = values // factor
        converted_values += (values < 0) & (converted_values * factor != values)
        is_wrong = np.zeros(len(column), bool) if truncate else converted_values * factor != values
        reason = "has digits below the unit, which allow_truncated_timestamps=True cuts off"
    else:
        factor = ticks // own_ticks
        most = _INT64.max // factor
        is_wrong = (values > most) | (values < -most)       # abs() of the smallest int64 is negative
        converted_values = np.where(is_wrong, 0, values) * factor
        reason = "is outside the range of the unit"
    is_wrong &= column.validity_mask()
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        text = str(np.datetime64(int(values[row]), logical.unit))
        raise SchemaError(f"coerce_timestamps={unit!r}: {text} {reason}", column=name).showing(text)
    type_ = ColumnType(Type.INT64, None, replace(logical, unit=unit))
    arrow = column.arrow
    if arrow is not None and arrow.format.startswith("ts"):
        arrow = replace(arrow, format=_ARROW_FORMATS[unit] + arrow.format[4:])
    return column._with(type=type_, values=converted_values, arrow=arrow)
