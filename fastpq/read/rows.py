"""Checks the row numbers and row ranges that a caller requests, and splits them into ranges within row groups."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from fastpq.errors import FormatError, SchemaError
from fastpq.index.ranges import Int64s, RowRanges, cut_ranges
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.stats.writer_bugs import row_count_is_trusted


def check_row_count(metadata: FileMetaData, num_rows: int) -> None:
    """Check that the row count in the footer equals the sum over the row groups.

    Args:
        metadata: the footer.
        num_rows: sum of the row counts of all row groups.

    Raises:
        FormatError: the counts differ, and the file's writer is not known for wrong row counts.
    """
    if num_rows != metadata.num_rows and row_count_is_trusted(metadata.created_by):
        raise FormatError(
            f"the footer says {metadata.num_rows} rows, but its row groups have {num_rows} "
            '(on_error="null" reads the rows of the row groups)'
        )


def check_ranges(row_ranges: Iterable[tuple[int, int]], num_rows: int) -> Int64s:
    """Check row ranges, and return those that are not empty as an array: shape (n, 2), int64.

    Args:
        row_ranges: ascending pairs (start, stop).
        num_rows: the file's row count.

    Raises:
        SchemaError: a range is not a pair, lies outside the file, or begins before the end of the previous range.
    """
    bounds: list[tuple[int, int]] = []
    end = 0
    if not isinstance(row_ranges, Iterable):
        raise SchemaError(f"row_ranges must be a list of ranges, for example [(0, 100)], not {row_ranges!r}")
    for pair in row_ranges:
        try:
            start, stop = map(operator.index, pair)
        except (TypeError, ValueError):
            raise SchemaError(f"{pair!r} is not a range of rows: row_ranges must be a list of (start, stop)") from None
        if not 0 <= start <= stop <= num_rows:
            raise SchemaError(f"row_ranges has the rows {start} to {stop}, and the file has {num_rows} rows")
        if start < end:
            raise SchemaError(f"rows {start} to {stop} come after row {end}: ranges must ascend. take() takes rows in any order")
        end = stop
        if start < stop:
            bounds.append((start, stop))
    return np.array(bounds, np.int64).reshape(-1, 2)


def number_of_rows(name: str, value: Any, least: int = 0) -> int:
    """Check a number of rows that a caller gave as an argument, and return it.

    Args:
        name: name of the argument.
        value: its value.
        least: smallest number allowed.

    Raises:
        TypeError: the value is not a whole number.
        ValueError: the value is less than ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} must be a whole number of rows, not {value!r}")
    if value.__index__() < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    return value.__index__()


def check_indices(indices: Any, num_rows: int, of: str = "file") -> Int64s:
    """Return row numbers that count from the start of the file. Shape (n,), int64.

    Args:
        indices: whole numbers. Negative ones count from the end, as in numpy.take.
        num_rows: the file's row count.
        of: what errors call the file.

    Raises:
        TypeError: ``indices`` are not whole numbers, or some are masked.
        SchemaError: ``indices`` do not have one dimension, or a row is outside the file.
    """
    if np.ma.is_masked(indices):
        raise TypeError("indices must be whole numbers, and some are masked")
    rows = np.asarray(indices)
    if rows.ndim != 1:
        raise SchemaError(f"indices must have one dimension, not the shape {rows.shape}")
    if rows.size and rows.dtype.kind not in "iu":
        raise TypeError(f"indices must be whole numbers, not {rows.dtype}")
    outside = (rows < -num_rows) | (rows >= num_rows)
    if outside.any():
        raise SchemaError(f"there is no row {rows[outside][0]}: the {of} has {num_rows} rows")
    signed = rows.astype(np.int64)
    return np.where(signed < 0, signed + num_rows, signed)


def sampled_rows(n: int, num_rows: int, seed: Any, of: str = "file") -> Int64s:
    """Choose n different rows at random, with equal chances, and return their numbers in ascending order.

    Args:
        n: number of rows.
        num_rows: the file's row count.
        seed: seed for numpy.random.default_rng.
        of: what errors call the file.

    Raises:
        SchemaError: the file has fewer than n rows.
    """
    n = number_of_rows("n", n)
    if n > num_rows:
        raise SchemaError(f"{n} different rows are more than the {of} has: it has {num_rows}")
    return np.sort(np.random.default_rng(seed).choice(num_rows, n, replace=False, shuffle=False))


def ranges_of(rows: Int64s) -> Int64s:
    """Join row numbers to ranges (start, stop). Shape (n, 2), int64.

    Args:
        rows: row numbers in ascending order. None occurs twice.
    """
    apart = np.diff(rows) != 1
    first, last = np.append(len(rows) > 0, apart)[: len(rows)], np.append(apart, True)[-len(rows) :] if len(rows) else apart
    return np.stack([rows[first], rows[last] + 1], axis=1)


def rows_of_groups(bounds: Int64s, first: Int64s, row_groups: Sequence[int]) -> list[tuple[int, RowRanges]]:
    """Split a file's row ranges into ranges within row groups.

    Args:
        bounds: row ranges, as from check_ranges.
        first: number of the first row in each row group, and the file's row count as the last item.
        row_groups: row group indices in the order of the result.

    Returns:
        The row groups that have requested rows, each with these rows.
    """
    ends = np.cumsum(bounds[:, 1] - bounds[:, 0])
    starts = ends - (bounds[:, 1] - bounds[:, 0])

    def rows_before(row: int) -> int:
        """Count the requested rows before a row."""
        place = int(np.searchsorted(bounds[:, 0], row, side="right")) - 1
        return 0 if place < 0 else int(starts[place]) + min(row, int(bounds[place, 1])) - int(bounds[place, 0])

    groups = []
    for group in row_groups:
        begin, end = int(first[group]), int(first[group + 1])
        inside = cut_ranges(bounds, rows_before(begin), rows_before(end)) - begin
        if len(inside):
            groups.append((group, RowRanges(inside, end - begin)))
    return groups
