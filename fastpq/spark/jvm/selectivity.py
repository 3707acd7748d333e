"""Decide whether fastpq or Spark applies the conditions in Spark's plan, by estimates for matching rows and time.

Spark's compiled code takes a few nanoseconds to apply a condition to a row. fastpq reads the filtered columns first, and then the
other columns only in matching rows. This saves time if few rows match and there are many other columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastpq.spark.core import FileMetaData, SchemaError, UnsupportedError, estimate_filters

# Seconds to apply a condition per second to decode its column (TPC-H queries 1, 3, 4, 6, 10, 12, 14, 15, 19)
FIXED_COST = 1.0
TEXT_COST = 12.0
MOST_KEPT = 0.5         # above this share of kept rows, it takes longer to pick rows than to decode all


def is_worth_filtering(
    metadata: FileMetaData, filters: object, row_groups: Sequence[int], columns: Sequence[int]
) -> bool:
    """Return whether it takes less time to leave out rows in fastpq than to hand over all rows in the row groups.

    Args:
        metadata: the file's footer.
        filters: conditions on the file's columns.
        row_groups: numbers of the row groups to read.
        columns: numbers of the columns to read.
    """
    if not row_groups:
        return True
    try:
        estimate = estimate_filters(filters, metadata, row_groups[0])
    except (SchemaError, UnsupportedError):     # for example, a value that does not have the unit of an INT96 column in memory
        return True
    cost = sum(TEXT_COST if column.type.is_variable else FIXED_COST for column in estimate.columns.values())
    others = len(set(columns) - estimate.columns.keys())
    return others * (1 - estimate.share / MOST_KEPT) > cost
