"""Whether fastpq or Spark applies a condition of Spark's plan to rows: an estimate of the rows left, and of the time for both.

Spark's compiled code takes some nanoseconds for a condition on a row. fastpq reads the filtered columns first, and the other
columns in matching rows alone: worth the time where few rows match and there are many other columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastpq.errors import KeyAccessError, SchemaError, UnsupportedError
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.filters.predicate import Bounds, Comparison, Condition, Membership, NullTest, Predicate, bind_filters, fold, leaves
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnKey

UNKNOWN_SHARE = 0.25    # of rows that a condition keeps, where bounds do not tell
# Time to apply a condition, for each second of decoding the column (TPC-H queries 1, 3, 4, 6, 10, 12, 14)
FIXED_COST = 2.0
TEXT_COST = 12.0
MOST_KEPT = 0.5         # share of rows from which picking rows takes longer than decoding all


def is_worth_filtering(
    metadata: FileMetaData, filters: object, row_groups: Sequence[int], columns: Sequence[ColumnKey]
) -> bool:
    """Whether leaving out rows in fastpq takes less time than handing over all rows of the row groups.

    Args:
        metadata: footer of the file.
        filters: conditions on its columns.
        row_groups: numbers of the row groups to read.
        columns: numbers of the columns to read.
    """
    if not row_groups:
        return True
    try:
        predicate = bind_filters(filters, metadata.schema)
    except (SchemaError, UnsupportedError):     # of values in the units of INT96 columns in memory
        return True
    found = {leaf.column.index: leaf.column for leaf in leaves(predicate)}
    cost = sum(TEXT_COST if column.type.is_variable else FIXED_COST for column in found.values())
    others = len(set(columns) - found.keys())
    return others * (1 - expected_share(metadata, predicate, row_groups[0]) / MOST_KEPT) > cost


def expected_share(metadata: FileMetaData, predicate: Predicate, row_group: int) -> float:
    """The share of the rows of a row group that a predicate is expected to keep, as if values were spread evenly."""
    group = metadata.row_group(row_group)

    def share(leaf: Condition) -> float:
        try:
            claims = claims_of(metadata, leaf.column, group.column(leaf.column.index), group.num_rows)
        except KeyAccessError:
            return UNKNOWN_SHARE
        return _share(leaf, chunk_bounds(claims)[0])

    kept: float = fold(predicate, share, lambda one, other: one * other, lambda one, other: min(1.0, one + other))
    return kept


def _share(leaf: Condition, bounds: Bounds) -> float:
    if isinstance(leaf, NullTest):
        if bounds.null_count is None or not bounds.num_values:
            return 0.0 if leaf.is_null else 1.0
        nulls = bounds.null_count / bounds.num_values
        return nulls if leaf.is_null else 1 - nulls
    low, high = _number(bounds.minimum), _number(bounds.maximum)
    if low is None or high is None:
        return UNKNOWN_SHARE
    if isinstance(leaf, Membership):
        found = min(1.0, len(leaf.keys) / (high - low + 1))
        return 1 - found if leaf.negated else found
    key = _number(leaf.key) if isinstance(leaf, Comparison) else None
    if key is None or not isinstance(leaf, Comparison):
        return UNKNOWN_SHARE
    below = min(1.0, max(0.0, (key - low) / (high - low))) if high > low else float(key >= low)
    return below if leaf.ordering in ("<", "<=") else 1 - below


def _number(key: object) -> float | None:
    """A key as a number; None for text, and for NaN."""
    if isinstance(key, tuple):
        return float(key[1]) if key[0] == 0 else None
    return float(key) if isinstance(key, int) else None
