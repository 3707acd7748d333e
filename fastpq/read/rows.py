"""Row numbers and row ranges of a file: checked, and split into ranges within row groups."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from fastpq.errors import FormatError, SchemaError
from fastpq.index.ranges import Int64s, RowRanges, cut_ranges
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.stats.quirks import row_count_is_trusted


def check_row_count(metadata: FileMetaData, found: int) -> None:
    """Compare the number of rows in the footer with the rows of the row groups.

    Args:
        metadata: the footer.
        found: rows of all row groups.

    Raises:
        FormatError: the footer has another number.
    """
    if found != metadata.num_rows and row_count_is_trusted(metadata.created_by):
        raise FormatError(f"{metadata.num_rows} rows in the footer, and {found} in its row groups")


def check_ranges(row_ranges: Iterable[tuple[int, int]], num_rows: int) -> Int64s:
    """Row ranges as an array of shape (n, 2), int64, without empty ranges.

    Args:
        row_ranges: ascending pairs (start, stop).
        num_rows: number of rows of the file.

    Raises:
        SchemaError: a range is no pair, lies outside the file, or begins before the end of the previous range.
    """
    bounds: list[tuple[int, int]] = []
    end = 0
    if not isinstance(row_ranges, Iterable):
        raise SchemaError(f"row_ranges is a list of ranges, for example [(0, 100)], not {row_ranges!r}")
    for pair in row_ranges:
        try:
            start, stop = map(operator.index, pair)
        except (TypeError, ValueError):
            raise SchemaError(f"{pair!r} is not a range of rows: row_ranges is a list of (start, stop)") from None
        if not 0 <= start <= stop <= num_rows:
            raise SchemaError(f"rows {start} to {stop} of a file that has {num_rows}")
        if start < end:
            raise SchemaError(f"rows {start} to {stop} behind row {end}: ranges must ascend; take() takes rows in any order")
        end = stop
        if start < stop:
            bounds.append((start, stop))
    return np.array(bounds, np.int64).reshape(-1, 2)


def number_of_rows(name: str, value: Any, least: int = 0) -> int:
    """A number of rows given by a caller.

    Args:
        name: name of the argument.
        value: its value.
        least: smallest number allowed.

    Raises:
        TypeError: no whole number.
        ValueError: a number below the smallest.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} is a whole number of rows, not {value!r}")
    if value.__index__() < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    return value.__index__()


def check_indices(indices: Any, num_rows: int, of: str = "file") -> Int64s:
    """Row numbers counted from the start of the file; shape (n,), int64.

    Args:
        indices: whole numbers; negative ones count from the end, as in numpy.take.
        num_rows: number of rows of the file.
        of: noun for the file, for errors.

    Raises:
        TypeError: no whole numbers.
        SchemaError: not of one dimension, or rows outside the file.
    """
    if np.ma.is_masked(indices):
        raise TypeError("indices with masked ones, not whole numbers")
    rows = np.asarray(indices)
    if rows.ndim != 1:
        raise SchemaError(f"indices of shape {rows.shape}, not of one dimension")
    if rows.size and rows.dtype.kind not in "iu":
        raise TypeError(f"indices of {rows.dtype}, not whole numbers")
    outside = (rows < -num_rows) | (rows >= num_rows)
    if outside.any():
        raise SchemaError(f"row {rows[outside][0]} of a {of} that has {num_rows}")
    signed = rows.astype(np.int64)
    return np.where(signed < 0, signed + num_rows, signed)


def sampled_rows(n: int, num_rows: int, seed: Any, of: str = "file") -> Int64s:
    """Numbers of n different rows chosen at random with equal chances, ascending.

    Args:
        n: number of rows.
        num_rows: number of rows of the file.
        seed: seed of numpy.random.default_rng.
        of: noun for the file, for errors.

    Raises:
        SchemaError: the file has fewer rows.
    """
    n = number_of_rows("n", n)
    if n > num_rows:
        raise SchemaError(f"{n} different rows of a {of} that has {num_rows}")
    return np.sort(np.random.default_rng(seed).choice(num_rows, n, replace=False, shuffle=False))


def ranges_of(rows: Int64s) -> Int64s:
    """Ascending, distinct row numbers as ranges; shape (n, 2), int64."""
    apart = np.diff(rows) != 1
    first, last = np.append(len(rows) > 0, apart)[: len(rows)], np.append(apart, True)[-len(rows) :] if len(rows) else apart
    return np.stack([rows[first], rows[last] + 1], axis=1)


def rows_of_groups(bounds: Int64s, first: Int64s, row_groups: Sequence[int]) -> list[tuple[int, RowRanges]]:
    """Row ranges of a file, split into ranges within row groups.

    Args:
        bounds: a result of check_ranges.
        first: the result of first_rows.
        row_groups: indices in the order of the result.

    Returns:
        Row groups with rows in bounds, each with its rows.
    """
    ends = np.cumsum(bounds[:, 1] - bounds[:, 0])
    starts = ends - (bounds[:, 1] - bounds[:, 0])

    def wanted_before(row: int) -> int:
        """Number of rows in bounds before a row."""
        place = int(np.searchsorted(bounds[:, 0], row, side="right")) - 1
        return 0 if place < 0 else int(starts[place]) + min(row, int(bounds[place, 1])) - int(bounds[place, 0])

    found = []
    for group in row_groups:
        begin, end = int(first[group]), int(first[group + 1])
        inside = cut_ranges(bounds, wanted_before(begin), wanted_before(end)) - begin
        if len(inside):
            found.append((group, RowRanges(inside, end - begin)))
    return found
