"""Estimate how many rows of a row group satisfy filters, as if the values were spread evenly between their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastpq.errors import KeyAccessError
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.filters.predicate import (
    Bounds,
    Comparison,
    Condition,
    Membership,
    NullTest,
    Predicate,
    bind_filters,
    fold,
    leaves,
)
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor

UNKNOWN_SHARE = 0.25    # share of rows that a condition is assumed to keep if the bounds do not tell it


@dataclass(frozen=True, slots=True)
class FilterEstimate:
    """What filters read, and the rows that they keep.

    Attributes:
        columns: the columns in the filters, by their numbers.
        share: estimated share of the rows that the filters keep.
    """

    columns: Mapping[int, ColumnDescriptor]
    share: float


def estimate_filters(filters: Any, metadata: FileMetaData, row_group: int) -> FilterEstimate:
    """Return the columns that filters use, and the share of a row group's rows that they keep.

    Args:
        filters: conditions on the file's columns.
        metadata: the file's footer.
        row_group: number of the row group.

    Raises:
        SchemaError: a filter does not fit the file.
        UnsupportedError: a filter has a value that its column cannot be compared with.
    """
    predicate = bind_filters(filters, metadata.schema)
    columns = {leaf.column.index: leaf.column for leaf in leaves(predicate)}
    return FilterEstimate(columns, _kept_share(metadata, predicate, row_group))


def _kept_share(metadata: FileMetaData, predicate: Predicate, row_group: int) -> float:
    group = metadata.row_group(row_group)

    def share(leaf: Condition) -> float:
        try:
            claims = claims_of(metadata, leaf.column, group.column(leaf.column.index), group.num_rows)
        except KeyAccessError:
            return UNKNOWN_SHARE
        return _share(leaf, chunk_bounds(claims)[0])

    kept_share: float = fold(predicate, share, lambda one, other: one * other, lambda one, other: min(1.0, one + other))
    return kept_share


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
        matching_share = min(1.0, len(leaf.keys) / (high - low + 1))
        return 1 - matching_share if leaf.is_negated else matching_share
    key = _number(leaf.key) if isinstance(leaf, Comparison) else None
    if key is None or not isinstance(leaf, Comparison):
        return UNKNOWN_SHARE
    below = min(1.0, max(0.0, (key - low) / (high - low))) if high > low else float(key >= low)
    return below if leaf.ordering in ("<", "<=") else 1 - below


def _number(key: object) -> float | None:
    """Return a key as a number, or None for text and for NaN."""
    if isinstance(key, tuple):
        return float(key[1]) if key[0] == 0 else None
    return float(key) if isinstance(key, int) else None
