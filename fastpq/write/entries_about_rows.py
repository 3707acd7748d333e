"""corrected_entries: the key-value metadata of a file, after it got rows that its writer did not know."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.arrow.hints import redacted_entry
from fastpq.convert.pandas_metadata import PANDAS_KEY
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.schema.parquet_schema import ParquetSchema

# Entries about all rows of a file, in which only its writer can count in more rows: Hudi's record keys and their bloom filter.
_STALE_ENTRIES = frozenset(
    {"hoodie_min_record_key", "hoodie_max_record_key", "org.apache.hudi.bloomfilter", "com.uber.hoodie.bloomfilter"}
)
_GEO_KEY = "geo"
_GEO_CLAIMS = ("bbox", "geometry_types")        # GeoParquet: what the geometries of a column have in common


class PartOfRows(NamedTuple):
    """A part of a file's rows.

    Attributes:
        first_row: the number of its first row in the file. None if its rows do not follow each other.
    """

    first_row: int | None


def corrected_entries(
    old_entries: Iterable[fmt.KeyValue],
    schema: ParquetSchema,
    num_rows: int,
    keep: Collection[str] = (),
    part: PartOfRows | None = None,
) -> list[fmt.KeyValue]:
    """Return key-value metadata that is true of more rows, or of a part of the rows.

    Entries that make statements about all rows are corrected, or left out if only their writer could correct them.

    Args:
        old_entries: the entries, which are true of some of the rows, or of more rows.
        schema: file schema.
        num_rows: number of all rows.
        keep: keys of entries that are copied unchanged.
        part: the part of the old rows that the new file has. None if it has all of them, and more.
    """
    old_entries = list(old_entries)
    entries = [
        entry if entry.key in keep else fmt.KeyValue(key=entry.key, value=_corrected(entry.key, entry.value, num_rows, part))
        for entry in old_entries
        if entry.key in keep or entry.key not in _STALE_ENTRIES
    ]
    if entries == old_entries:
        return entries
    # the ARROW:schema has a copy of the other entries, which pyarrow reads
    others = {entry.key: entry.value for entry in entries if entry.key != ARROW_KEY and entry.value is not None}
    for entry in entries:
        if entry.key == ARROW_KEY and entry.value is not None:
            corrected_schema, _ = redacted_entry(entry.value, schema.root.children, others, ())
            entry.value = corrected_schema or entry.value
    return entries


def _corrected(key: str, value: str | None, num_rows: int, part: PartOfRows | None) -> str | None:
    """Return an entry's value for a file that got or lost rows and has ``num_rows`` now."""
    if value is None or key not in (PANDAS_KEY, _GEO_KEY):
        return value
    try:
        content = json.loads(value)
        if key == PANDAS_KEY:
            _correct_pandas(content, num_rows, part)
        else:
            for column in content["columns"].values():
                for claim in _GEO_CLAIMS:
                    if claim in column and claim == "geometry_types":
                        column[claim] = []      # any type
                    else:
                        column.pop(claim, None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return value        # readers ignore an entry with another structure
    return json.dumps(content)


def _correct_pandas(content: Any, num_rows: int, part: PartOfRows | None) -> None:
    """Extend or cut a RangeIndex. Leave out categories if there are new rows, because these may have others."""
    for level in content["index_columns"]:
        if isinstance(level, dict) and level.get("kind") == "range":
            if part is not None and part.first_row is None:
                level["start"], level["step"] = 0, 1
            elif part is not None:
                level["start"] += (part.first_row or 0) * level["step"]
            level["stop"] = level["start"] + num_rows * level["step"]
    if part is not None:
        return
    for column in content["columns"]:
        details = column.get("metadata")
        if isinstance(details, dict):
            details.pop("categories", None)
            details.pop("num_categories", None)
