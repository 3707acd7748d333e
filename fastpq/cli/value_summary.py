"""ValueSummary: counts, bounds, mean and distinct values of one column, collected from batch to batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypedDict

from fastpq.cli.cell_values import json_value

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn

MOST_DISTINCT = 100_000  # values of a column that are told apart


class ColumnSummary(TypedDict):
    """Statistics of the values in a column.

    Attributes:
        column: name.
        values: values that are not null.
        nulls: null count.
        nans: NaN count of floats, or null.
        distinct: number of distinct values, or null for nested columns.
        distinct_is_a_minimum: whether there are more distinct values than were told apart.
        min, max: smallest and largest value, or null.
        mean: mean of numbers, or null.
        deviation: standard deviation of numbers, or null.
        mean_length: mean number of characters, bytes or list elements, or null.
    """

    column: str
    values: int
    nulls: int
    nans: int | None
    distinct: int | None
    distinct_is_a_minimum: bool
    min: Any
    max: Any
    mean: float | str | None
    deviation: float | str | None
    mean_length: float | None


class SummaryOfValues(TypedDict):
    """Statistics of the values in some columns.

    Attributes:
        rows: row count.
        columns: the columns.
    """

    rows: int
    columns: list[ColumnSummary]


def _valid_numbers(column: Any, valid: Any) -> Any:
    """Return the numbers that are not null."""
    import numpy as np

    values = column.to_numpy(nulls="masked")
    return np.ma.getdata(values) if valid is None else np.ma.getdata(values)[valid]


class ValueSummary:
    """Statistics of one column.

    Args:
        name: column name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._values = self._nulls = 0
        self._nans: int | None = None
        self._distinct: set[Any] | None = set()
        self._has_more = False
        self._low: Any = None
        self._high: Any = None
        self._mean, self._squares = 0.0, 0.0  # mean so far, and sum of squared distances from it
        self._numbers = 0
        self._length: int | None = None

    def add(self, column: AnyColumn) -> None:
        """Add the values of a column."""
        valid = column.validity_mask() if column.null_count else None
        count = len(column) - column.null_count
        self._nulls += column.null_count
        self._values += count
        if not count:
            return
        dtype = getattr(getattr(column, "type", None), "dtype", None)
        logical = getattr(getattr(column, "type", None), "logical", None)
        if dtype is not None and dtype.kind in "iufb" and type(logical).__name__ in ("NoneType", "Integer", "Float16"):
            self._add_numbers(_valid_numbers(column, valid))
        else:
            self._add_objects([value for value in column.to_pylist() if value is not None])

    def _add_numbers(self, values: Any) -> None:
        import numpy as np

        if values.dtype.kind == "f":
            is_nan = np.isnan(values)
            self._nans = (self._nans or 0) + int(is_nan.sum())
            values = values[~is_nan]
        if not len(values):
            return
        self._add_bounds(values.min().item(), values.max().item())
        if values.dtype.kind != "b":
            self._add_moments(values.astype(np.float64))
        if self._distinct is not None and not self._has_more:
            self._add_distinct(np.unique(values).tolist())

    def _add_moments(self, values: Any) -> None:
        """Update the mean, and the sum of squared deviations from it, for more values (Chan, Golub and LeVeque)."""
        import numpy as np

        with np.errstate(all="ignore"):
            count, mean = len(values), float(values.mean())
            squares = float(((values - mean) ** 2).sum())
        total = self._numbers + count
        distance = mean - self._mean
        self._squares += squares + distance * distance * self._numbers * count / total
        self._mean += distance * count / total
        self._numbers = total

    def _add_objects(self, values: list[Any]) -> None:
        if isinstance(values[0], str | bytes | list):
            self._length = (self._length or 0) + sum(map(len, values))
        if isinstance(values[0], list | dict):
            self._distinct = None
            return
        try:
            self._add_bounds(min(values), max(values))
        except TypeError:
            self._low = self._high = None
        if self._distinct is not None and not self._has_more:
            self._add_distinct(values)

    def _add_bounds(self, low: Any, high: Any) -> None:
        self._low = low if self._low is None else min(self._low, low)
        self._high = high if self._high is None else max(self._high, high)

    def _add_distinct(self, values: list[Any]) -> None:
        assert self._distinct is not None
        try:
            self._distinct.update(values)
        except TypeError:  # values without a hash
            self._distinct = None
            return
        self._has_more = len(self._distinct) > MOST_DISTINCT

    def facts(self) -> ColumnSummary:
        """Return the statistics."""
        distinct = None if self._distinct is None else min(len(self._distinct), MOST_DISTINCT)
        deviation = math.sqrt(self._squares / self._numbers) if self._numbers else None
        return ColumnSummary(
            column=self._name,
            values=self._values,
            nulls=self._nulls,
            nans=self._nans,
            distinct=distinct,
            distinct_is_a_minimum=self._has_more,
            min=json_value(self._low),
            max=json_value(self._high),
            mean=json_value(self._mean) if self._numbers else None,
            deviation=json_value(deviation),
            mean_length=None if self._length is None or not self._values else self._length / self._values,
        )
