"""Changes that help to read single rows from a dataset by a key. Each is made on sample files, where lookups are measured."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from fastpq.advice.advice_report import Advice, Topic
from fastpq.advice.dataset_sample import DatasetFiles, bytes_of, sample_of
from fastpq.advice.lookups import LEAST_BYTES, LEAST_SHARE, LOOKUP, MOST_GROWTH, SMALL_PAGE_ROWS, likely_key, probes_of
from fastpq.advice.present_settings import structure_of
from fastpq.advice.recipe_steps import RecipeStep, make_steps, recipe_of
from fastpq.advice.trials import RowSample
from fastpq.api.file import ParquetFile
from fastpq.datasets.discovery import find_files
from fastpq.datasets.small_files import DEFAULT_TARGET_SIZE
from fastpq.errors import SchemaError
from fastpq.schema.types import Type

MOST_SAMPLE_FILES = 4       # after small files were joined
PROBED_FILES = 4            # files from which keys are taken
MISSING = RecipeStep("add-indexes")


class _Change(NamedTuple):
    """A change that may help.

    Attributes:
        topic, text: as in Advice.
        step: the step in the recipe.
        names_key: whether the advice is about the key column.
    """

    topic: Topic
    text: str
    step: RecipeStep
    names_key: bool = False


class DatasetLookupAdvisor:
    """Finds the changes for lookups in a dataset by one column.

    Args:
        dataset: the files.
        key: the column's dotted path, or None to choose a column.
        sample_rows: most rows by which the key is chosen.
        first_steps: steps that are made before.

    Attributes:
        key: the column, or None if no column looks like a key.
        steps: the steps that help.

    Raises:
        SchemaError: a file lacks the key column, or the key is in a list or a struct.
    """

    def __init__(
        self, dataset: DatasetFiles, key: str | None, sample_rows: int, first_steps: Sequence[RecipeStep]
    ) -> None:
        files = [file for file in dataset.files if file.footer.num_rows]
        self._num_files = max(dataset.num_joined, 1)
        self.steps: list[RecipeStep] = []
        self._files = sample_of(files) if files else []
        self._dataset, self._first_steps = dataset, first_steps
        self.key = key
        self._probes: list[Any] = []
        self._scratch, self._num_places, self._most_size = "", 0, 0.0
        if not self._files:
            return
        step = max(1, len(self._files) // PROBED_FILES)
        for file in self._files[::step]:
            with ParquetFile(BytesIO(bytes_of(file))) as opened:
                sample = RowSample(opened, structure_of(opened), sample_rows)
                self.key = self.key if self.key is not None else likely_key(sample)
                if self.key is None:
                    return
                if self.key not in sample.table:
                    raise SchemaError("lookups need a column of each file, neither in a list nor in a struct", column=self.key)
                self._probes += probes_of(sample.table[self.key].to_pylist())[::2]

    def advice(self) -> list[Advice]:
        """Return the changes, the largest gain first. Each is measured on top of those before it.

        Missing statistics and indexes come first, because the other changes need them.
        """
        if not self._probes:
            return []
        advice: list[Advice] = []
        with tempfile.TemporaryDirectory() as folder:
            self._scratch = folder
            present = self._place()
            self._write_sample(present)
            self._most_size = MOST_GROWTH * _size(present)
            before = self._bytes_for_lookup(present)
            missing = [change for change in self._changes(present) if change.step == MISSING]
            result = self._best(missing, present, before)
            while True:
                if result is not None:
                    change, after, present = result
                    columns = (self.key,) if change.names_key and self.key is not None else ()
                    recipe = recipe_of([change.step])
                    advice.append(Advice(change.topic, change.text, columns, LOOKUP, int(before), int(after), None, recipe))
                    self.steps.append(change.step)
                    before = after
                others = (change for change in self._changes(present) if change.step not in (MISSING, *self.steps))
                result = self._best(others, present, before)
                if result is None:
                    break
        return sorted(advice, key=lambda each: each.gain, reverse=True)

    def _best(self, changes: Iterable[_Change], present: str, before: float) -> tuple[_Change, float, str] | None:
        """Return the change that helps most, the bytes that a lookup then takes, and the changed files. None if none helps."""
        best: tuple[_Change, float, str] | None = None
        for change in changes:
            place = self._place()
            shutil.copytree(present, place)
            make_steps(place, [change.step])
            if _size(place) > self._most_size:
                continue
            after = self._bytes_for_lookup(place)
            if before - after >= max(LEAST_SHARE * before, LEAST_BYTES) and (best is None or after < best[1]):
                best = change, after, place
        return best

    def _place(self) -> str:
        """Return a path for a new folder, but do not make the folder."""
        self._num_places += 1
        return os.path.join(self._scratch, str(self._num_places))

    def _write_sample(self, folder: str) -> None:
        """Write the sample, and make the first steps on it. If all files together are one file, the sample becomes one too."""
        names = {self._dataset.relative_path(file): file for file in self._files}
        for name, file in names.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes_of(file))
        for step in self._first_steps:
            files = tuple(name for name in step.files if name in names)
            if step.verb == "compact":
                count = min(self._num_files, MOST_SAMPLE_FILES)
                size = _size(folder) // count + 1 if count > 1 else DEFAULT_TARGET_SIZE
                make_steps(folder, [RecipeStep("compact", {"target_size": size})])
            elif files or not step.files:
                make_steps(folder, [replace(step, files=files)])

    def _changes(self, folder: str) -> Iterator[_Change]:
        """Yield the changes that may help."""
        assert self.key is not None
        footers = [_Claims.of(file.path, self.key) for file in find_files(folder)]
        if not all(each.has_statistics and each.has_page_index for each in footers):
            lacking = "statistics" if not all(each.has_statistics for each in footers) else "page index"
            topic: Topic = "statistics" if lacking == "statistics" else "page index"
            text = f"Files have no {lacking}, so that a lookup reads whole columns of them. Add what is missing."
            yield _Change(topic, text, MISSING)
        if not all(each.has_bloom_filter or each.is_boolean for each in footers):
            text = "Each file whose bounds hold the value is read. A bloom filter rules out most of them. Add one to each chunk."
            yield _Change("bloom filter", text, RecipeStep("add-indexes", {"bloom_filter": {self.key: True}}), names_key=True)
        is_ordered = all(each.is_sorted for each in footers) and not self._is_overlapping(footers)
        if not is_ordered and self._dataset.has_uniform_folders:
            text = (
                "The rows are in no order that helps: the bounds of the files and row groups overlap. Sort the rows by the key, "
                "through all files of a folder. The order of the rows changes."
            )
            yield _Change("sorting", text, RecipeStep("sort", {"by": [self.key]}), names_key=True)
        if not all(each.has_page_index for each in footers):
            return
        text = f"A lookup reads whole pages. Write pages of {SMALL_PAGE_ROWS:,} rows, so that it reads fewer other rows."
        yield _Change("pages", text, RecipeStep("rechunk", {"data_page_rows": SMALL_PAGE_ROWS}))

    def _is_overlapping(self, claims: Sequence[_Claims]) -> bool:
        bounds = sorted((each.bounds for each in claims if each.bounds is not None), key=lambda pair: pair[0])
        return any(one[1] > other[0] for one, other in pairwise(bounds)) or len(bounds) < len(claims)

    def _bytes_for_lookup(self, folder: str) -> float:
        """Return how many bytes are read to open all files and to look up one key."""
        files = [Path(file.path).read_bytes() for file in find_files(folder)]
        opening = 0
        hits: list[int] = []
        misses: list[int] = []
        for data in files:
            with ParquetFile(BytesIO(data)) as file:
                opening += file.io.bytes_read
                for probe in self._probes:
                    before = file.io.bytes_read
                    rows = file.read(filters=[(self.key, "=", probe)]).num_rows
                    (hits if rows else misses).append(file.io.bytes_read - before)
        hit_files = len(hits) / len(self._probes)       # files that have a key, on average
        mean_miss = sum(misses) / max(len(misses), 1)
        return opening / len(files) * self._num_files + sum(hits) / len(self._probes) + max(
            self._num_files - hit_files, 0) * mean_miss


class _Claims(NamedTuple):
    """What a file says about the key column.

    Attributes:
        has_statistics, has_page_index, has_bloom_filter: whether all row groups have these.
        is_boolean: whether the type allows no bloom filter.
        is_sorted: whether all row groups declare that they are sorted by the column first.
        bounds: the smallest and the largest value, or None.
    """

    has_statistics: bool
    has_page_index: bool
    has_bloom_filter: bool
    is_boolean: bool
    is_sorted: bool
    bounds: tuple[Any, Any] | None

    @classmethod
    def of(cls, path: str, key: str) -> _Claims:
        with ParquetFile(path) as file:
            column = file.schema.column(key)
            groups = list(file.metadata.row_groups)
            chunks = [group.column(column.index) for group in groups]
            try:
                bounds = file.min_max(key)
            except (TypeError, ValueError):
                bounds = (None, None)
            return cls(
                all(chunk.metadata.statistics is not None for chunk in chunks),
                all(chunk.chunk.offset_index_offset is not None for chunk in chunks),
                all(chunk.metadata.bloom_filter_offset is not None for chunk in chunks),
                column.type.physical is Type.BOOLEAN,
                all(group.sorting_columns and group.sorting_columns[0].column_idx == column.index for group in groups),
                None if None in bounds else bounds,
            )


def _size(folder: str) -> int:
    return sum(os.path.getsize(file.path) for file in find_files(folder))
