"""Comparison of tables by value, across the types chosen by each library."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class DifferenceError(Exception):
    """A peer's result differs from the file's values."""


def require_equal(got: pa.Table, truth: pa.Table) -> None:
    """Compare values column by column.

    Decimals of any width, strings in any layout, and dates as timestamps compare as equal values. For a library with only
    floating point in place of a type (fastparquet), the truth is rounded to floating point.

    Raises:
        DifferenceError: names the column and the difference.
    """
    if got.column_names != truth.column_names:
        raise DifferenceError(f"columns {got.column_names}, not {truth.column_names}")
    if got.num_rows != truth.num_rows:
        raise DifferenceError(f"{got.num_rows} rows, not {truth.num_rows}")
    for name in truth.column_names:
        if not same_column(got[name], truth[name]):
            types = f"{got[name].type}, in the file {truth[name].type}"
            raise DifferenceError(f"the values of {name} ({types}) are not those of the file")


def same_column(got: pa.ChunkedArray, truth: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(got.type):
        got = got.cast(got.type.value_type)
    if pa.types.is_floating(got.type):
        return same_floats(got, truth)
    if pa.types.is_nested(truth.type):
        return bool(got.cast(truth.type).equals(truth))
    common = common_type(got.type, truth.type)
    return bool(got.cast(common).equals(truth.cast(common)))


def common_type(got: pa.DataType, truth: pa.DataType) -> pa.DataType:
    if pa.types.is_string(truth) or pa.types.is_string_view(truth) or pa.types.is_large_string(truth):
        return pa.large_string()
    if pa.types.is_decimal(truth):
        return pa.decimal128(38, truth.scale)
    if pa.types.is_date(truth):
        return pa.timestamp("ms")
    return truth


def same_floats(got: pa.ChunkedArray, truth: pa.ChunkedArray) -> bool:
    """Nulls in the same places (a NaN counts as one), and the same values but for rounding."""
    one, other = (pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy() for column in (got, truth))
    return np.allclose(one, other, rtol=1e-12, equal_nan=True)
