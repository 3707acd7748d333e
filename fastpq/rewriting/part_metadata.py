"""Key-value metadata for a file that has a part of another file's rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.convert.pandas_metadata import PANDAS_KEY
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.rewriting.report import DroppedMetadata
from fastpq.write.entries_about_rows import PartOfRows, corrected_entries

KeptRows: TypeAlias = dict[int, NDArray[np.bool_]]      # which rows stay, by row group. A row group that is missing stays whole


def entries_of_part(
    metadata: FileMetaData, entries: Sequence[fmt.KeyValue], kept_rows: KeptRows, keep: Collection[str]
) -> tuple[list[fmt.KeyValue] | None, tuple[DroppedMetadata, ...]]:
    """Return key-value metadata that is true of some rows of a file, and what is left out.

    A RangeIndex of pandas gets the new row count. If the rows do not follow each other in the file, it counts from 0.

    Args:
        metadata: the file's footer.
        entries: the entries, which are true of all rows.
        kept_rows: which rows the new file has.
        keep: keys of entries that are copied unchanged.
    """
    first_row = _first_row(metadata, kept_rows)
    part = PartOfRows(first_row)
    new_entries = corrected_entries(entries, metadata.schema, num_kept_rows(metadata, kept_rows), keep, part)
    values = {entry.key: entry.value for entry in new_entries}
    dropped_entries: list[DroppedMetadata] = []
    for entry in entries:
        if entry.key not in values:
            dropped_entries.append(DroppedMetadata(entry.key, ""))
        elif values[entry.key] != entry.value and entry.key == "geo":
            dropped_entries.append(DroppedMetadata(entry.key, "bbox, geometry_types"))
        elif values[entry.key] != entry.value and entry.key == PANDAS_KEY and first_row is None:
            dropped_entries.append(DroppedMetadata(entry.key, "the labels of the RangeIndex"))
    return new_entries or None, tuple(dropped_entries)


def num_kept_rows(metadata: FileMetaData, kept_rows: KeptRows) -> int:
    """Return how many rows the new file has."""
    return sum(int(kept_rows[group].sum()) if group in kept_rows else rows for group, rows in enumerate(metadata.row_counts))


def _first_row(metadata: FileMetaData, kept_rows: KeptRows) -> int | None:
    """Return the first row that stays, if all rows that stay follow each other. Otherwise return None."""
    first_rows = metadata.first_rows.tolist()
    first, last = -1, -1
    for group, count in enumerate(metadata.row_counts):
        numbers = np.flatnonzero(kept_rows[group]) if group in kept_rows else np.arange(count)
        if len(numbers):
            first = first_rows[group] + int(numbers[0]) if first < 0 else first
            last = first_rows[group] + int(numbers[-1])
    return max(first, 0) if last - first + 1 == num_kept_rows(metadata, kept_rows) or first < 0 else None
