"""Changes that help when single rows are read by a key. Each is measured: sampled keys are looked up, and bytes counted."""

from __future__ import annotations

import re
from typing import Any

from fastpq.advice.advice_report import Advice
from fastpq.advice.present_settings import Change, structural_changes
from fastpq.advice.trials import RowSample, Trial
from fastpq.api.file import ParquetFile
from fastpq.errors import SchemaError
from fastpq.options import DEFAULT_PROPERTIES, SortingColumn
from fastpq.schema.types import Type

LOOKUP = "bytes for one lookup"
PROBES = 8                          # keys that are looked up
SMALL_PAGE_ROWS = 4096
# A change must save this share, and so many bytes.
LEAST_SHARE, LEAST_BYTES = 0.1, 4096
MOST_GROWTH = 1.25                  # of the file, for one change: bloom filters take most

KEYS_LOOKED_AT = 100_000            # rows by which a key column is chosen
MOST_REPEATED = 0.1                 # share of a key column's rows that may repeat a value
_KEY_TYPES = (Type.INT32, Type.INT64, Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
_KEY_NAME = re.compile(r"(^|_|\b)(id|key|uuid|guid|code|number|no)(_|\b|$)|[a-z](Id|Key|ID)$", re.IGNORECASE)


class LookupAdvisor:
    """Finds the changes for lookups by one column.

    Args:
        file: the file.
        sample: rows of it.
        key: dotted path of the column, or None to choose one.
        opening_bytes: bytes that opening the file took.

    Attributes:
        key: the column, or None if no column looks like a key.
        settings: the settings with all changes that were found.

    Raises:
        SchemaError: the key is in a list or a struct.
    """

    def __init__(
        self, file: ParquetFile, sample: RowSample, key: str | None, opening_bytes: int
    ) -> None:
        self._structure, self._sample = sample.structure, sample
        self._present = self.settings = sample.structure.settings
        self.key = key if key is not None else likely_key(sample)
        if self.key is not None and self.key not in sample.table:
            raise SchemaError("lookups need a column that is neither in a list nor in a struct", column=self.key)
        values = [] if self.key is None else sample.table[self.key].to_pylist()
        self._probes = probes_of(values)
        self._missing_keys = [] if sample.is_whole else _missing_keys(self._probes, {*values})
        # If columns are left out, trials open with a smaller footer than the file.
        self._file, self._opening_bytes = file, opening_bytes if sample.names is None else 0

    def advice(self) -> list[Advice]:
        """Return the changes, the largest gain first. Each is measured on top of those before it."""
        if not self._probes:
            return []
        before = self._present_bytes()
        pending, advice = self._changes(), []
        while pending:
            results = [(self._bytes_after(change), change) for change in pending]
            after, best = min(results, key=lambda pair: pair[0])
            if before - after < max(LEAST_SHARE * before, LEAST_BYTES):
                break
            recipe = best.apply(self._present).options()
            columns = (self.key,) if best.topic in ("sorting", "bloom filter") and self.key is not None else ()
            advice.append(Advice(best.topic, best.text, columns, LOOKUP, int(before), int(after), None, recipe))
            self.settings = best.apply(self.settings)
            pending.remove(best)
            before = after
        return sorted(advice, key=lambda each: each.gain, reverse=True)

    def _changes(self) -> list[Change]:
        """Return what might help."""
        assert self.key is not None
        changes, present = structural_changes(self._structure), self._present
        without = [name for name, each in present.columns.items() if not each.has_statistics]
        if without:
            text = "Columns have no statistics, so that no row group and no page can be left out. Write them."
            changes.append(Change("statistics", text, {}, {name: {"has_statistics": True} for name in without}))
        if not present.has_page_index:
            text = "There is no page index, so that a lookup reads whole column chunks. Write one."
            changes.append(Change("page index", text, {"has_page_index": True}))
        defaults = DEFAULT_PROPERTIES
        if self._structure.has_large_pages:
            text = "The pages are large, and a lookup reads whole pages. Write pages of the default size."
            pages = {"page_rows": defaults.data_page_rows, "page_bytes": defaults.data_page_size}
            pages_with_index = {**pages, "has_page_index": True}
            changes.append(Change("pages", text, pages if present.has_page_index else pages_with_index))
        small = f"A lookup reads whole pages. Write pages of {SMALL_PAGE_ROWS:,} rows, so that it reads fewer other rows."
        changes.append(Change("pages", small, {"page_rows": SMALL_PAGE_ROWS}))
        if not present.columns[self.key].has_bloom_filter and self.key not in present.booleans:
            text = "Bounds rarely rule out a value of this column. A bloom filter does. Write one for each row group."
            changes.append(Change("bloom filter", text, {}, {self.key: {"has_bloom_filter": True}}))
        if not present.sorting:
            text = "The rows are in no order that helps. Sort each row group by the key: the order of the rows changes."
            changes.append(Change("sorting", text, {"sorting": (SortingColumn(self.key),)}))
        return changes

    def _bytes_after(self, change: Change) -> float:
        trial = self._sample.trial(change.apply(self.settings))
        if trial.structure.size > MOST_GROWTH * self._sample.trial(self._present).structure.size:
            return float("inf")
        return self._trial_bytes(trial)

    def _present_bytes(self) -> float:
        """Return the bytes that it takes to open the file as it is and to look up one key."""
        return self._opening_bytes + self._mean_bytes(self._file, self._probes)

    def _mean_bytes(self, file: ParquetFile, values: list[Any]) -> float:
        before = file.io.bytes_read
        for value in values:
            file.read(self._sample.names, filters=[(self.key, "=", value)])
        return (file.io.bytes_read - before) / max(len(values), 1)

    def _trial_bytes(self, trial: Trial) -> float:
        """Return the same for the whole file, if all of it were written like a trial."""
        file = trial.reopened()
        opening = file.io.bytes_read if self._sample.names is None else 0
        size = opening + self._mean_bytes(file, self._probes)
        if self._sample.is_whole:
            return size
        # A lookup also asks the other row groups, which do not have the key. Keys that the sample lacks show what that costs.
        groups = max(len(trial.structure.facts.rows), 1)
        all_groups = -(-int(self._structure.facts.rows.sum()) // trial.structure.settings.row_group_rows)
        return size + max(0.0, all_groups / groups - 1) * self._mean_bytes(file, self._missing_keys)


def likely_key(sample: RowSample) -> str | None:
    """Return the column whose values repeat least, or None. Columns with a name like that of a key come first."""
    shares = {}
    for column in sample.columns:
        if column.type.physical not in _KEY_TYPES or len(column.path) > 1 or column.max_repetition_level:
            continue
        values = sample.table[column.name].slice(0, KEYS_LOOKED_AT).to_pylist()
        if values and None not in values:
            shares[column.name] = 1 - len({*values}) / len(values)
    unique = [name for name, share in shares.items() if share <= MOST_REPEATED]
    key_names = [name for name in unique if _KEY_NAME.search(name)]
    return min(key_names or unique, key=lambda name: shares[name], default=None)


def probes_of(values: list[Any]) -> list[Any]:
    """Return some of the values, spread over all rows."""
    count = len(values)
    if not count:
        return []
    places = [count * (2 * number + 1) // (2 * PROBES) for number in range(PROBES)]
    return [values[place] for place in dict.fromkeys(places) if values[place] is not None]


def _missing_keys(values: list[Any], present_values: set[Any]) -> list[Any]:
    """Return values close to the given ones that are not present. There are none for types other than whole numbers and text."""
    missing = []
    for value in values:
        near = value + 1 if isinstance(value, int) else value + "~" if isinstance(value, str) else None
        if near is not None and near not in present_values:
            missing.append(near)
    return missing
