"""Stage new files that replace a dataset's files. Tasks make them, and the driver or executors may die at any time.

A job's temporary folder is named after its operation and settings. Each new file is named after its source files' paths, sizes
and times. A job that runs again therefore finds the files from earlier runs and makes only the missing ones. At the end, a
journal moves all new files in and removes the old files (fastpq.spark.tables.journal).
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row

from fastpq.spark.core import SchemaError
from fastpq.spark.jobs.running import SKIPPED, TaskOutcome
from fastpq.spark.tables import journal
from fastpq.spark.tables.listing import list_files
from fastpq.spark.write.folder_writer import companions_of
from fastpq.spark.write.write_task import material_of

OWN_SUFFIX = re.compile(r"-r[0-9a-f]{12}$")     # at the end of the stem in a new file's name

# Writes one new file, whole or not at all. It takes the source paths or URLs, a target for ParquetWriter, the new file's path
# for its keys, and the path that the file has after the commit. It returns the row count, or None to leave the sources in place.
WriteFile = Callable[[list[str], Any, str, str], int | None]


@dataclass(frozen=True)
class Replacement:
    """One new file and its source files, which are all in one folder.

    Attributes:
        sources: paths relative to the dataset's folder.
        sizes: each source's size in bytes.
        versions: each source's last change in nanoseconds. In stores, its ETag.
    """

    sources: tuple[str, ...]
    sizes: tuple[int, ...]
    versions: tuple[int | str, ...]

    @property
    def fingerprint(self) -> str:
        """A hash over the sources' paths, sizes and versions. It differs after any change to a source."""
        return hashlib.sha256(repr((self.sources, self.sizes, self.versions)).encode()).hexdigest()[:12]

    @property
    def target(self) -> str:
        """The new file's path relative to the dataset's folder. It is in the sources' folder and named after the fingerprint."""
        folder, name = os.path.split(self.sources[0])
        stem, extension = os.path.splitext(name)
        return os.path.join(folder, f"{OWN_SUFFIX.sub('', stem)}-r{self.fingerprint}{extension}")


@dataclass(frozen=True)
class Stage(ABC):
    """A job's new files, until they replace their sources. Spark pickles a stage for the executors.

    Attributes:
        root: path or URL of the dataset's folder.
        job: the job's name.
    """

    root: str
    job: str

    @abstractmethod
    def begin(self) -> None:
        """Finish interrupted commits, then begin the stage or find an earlier one. This runs on the driver."""

    @abstractmethod
    def replacements(self, groups: Iterable[Sequence[str]]) -> list[Replacement]:
        """Return a replacement for each group of file paths, with the present sizes and versions."""

    @abstractmethod
    def make(self, replacement: Replacement, write: WriteFile) -> TaskOutcome:
        """Make a replacement's new file, or find the file from an earlier attempt."""

    @abstractmethod
    def commit(self, replacements: list[Replacement], rows: list[Row]) -> None:
        """Replace all sources by their new files at once.

        Args:
            replacements: the sources.
            rows: the tasks' report, which holds the outcomes that ``make`` returned.

        Raises:
            SchemaError: a source has changed. Nothing was replaced.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Give up all new files."""

    def each_file(self) -> list[Replacement]:
        """Return a replacement for each file in the dataset."""
        return self.replacements([file.path] for file in list_files([self.root]))

    def path_of(self, source: str) -> str:
        """Return a source's path or URL, given its path relative to the dataset's folder."""
        return os.path.join(self.root, source)


class FolderStage(Stage):
    """New files in a temporary folder on a filesystem that driver and executors share."""

    def begin(self) -> None:
        journal.recover(self.root)
        journal.make_job_folder(self.root, self.job)

    def replacements(self, groups: Iterable[Sequence[str]]) -> list[Replacement]:
        replacements = []
        for paths in groups:
            states = [os.stat(path) for path in paths]
            relative = tuple(os.path.relpath(path, self.root) for path in paths)
            replacements.append(
                Replacement(relative, tuple(state.st_size for state in states), tuple(state.st_mtime_ns for state in states))
            )
        return replacements

    def make(self, replacement: Replacement, write: WriteFile) -> TaskOutcome:
        folder = os.path.join(journal.job_folder(self.root, self.job), os.path.dirname(replacement.target))
        journal.make_folders(self.root, self.job, os.path.relpath(folder, self.root))
        stem, extension = os.path.splitext(os.path.basename(replacement.target))
        for earlier in sorted(glob.glob(f"{glob.escape(os.path.join(folder, stem))}-*-rows*{extension}")):
            return TaskOutcome(rows=int(earlier.removesuffix(extension).rpartition("-rows")[2]), message=self._relative(earlier))
        # each attempt needs its own name, because one attempt's key material cannot open another attempt's file
        place = os.path.join(folder, f"{stem}-{uuid.uuid4().hex}{extension}")
        rows = write([self.path_of(source) for source in replacement.sources], place, place, replacement.target)
        if rows is None:
            return TaskOutcome(SKIPPED)
        whole = f"{place.removesuffix(extension)}-rows{rows}{extension}"
        if os.path.exists(material_of(place)):
            os.replace(material_of(place), material_of(whole))
        os.replace(place, whole)
        return TaskOutcome(rows=rows, message=self._relative(whole))

    def commit(self, replacements: list[Replacement], rows: list[Row]) -> None:
        moves: dict[str, str] = {}
        removals: list[str] = []
        new_files = {row.path: row.made for row in rows if row.made is not None}
        with journal.one_overwrite(self.root):
            for one in replacements:
                place = new_files.get(self.path_of(one.sources[0]))
                if place is None:
                    continue
                self._check_unchanged(one)
                pairs = ((place, one.target), (material_of(place), material_of(one.target)))
                moves.update(pair for pair in pairs if os.path.exists(os.path.join(self.root, pair[0])))
                removals += [name for path in one.sources for name in (path, *companions_of(self.root, path))]
            if moves:
                journal.commit(self.root, self.job, moves, removals)
            else:
                self.abandon()

    def abandon(self) -> None:
        journal.abandon(self.root, self.job)

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.root)

    def _check_unchanged(self, replacement: Replacement) -> None:
        for source, size, time in zip(replacement.sources, replacement.sizes, replacement.versions, strict=True):
            path = self.path_of(source)
            state = os.stat(path) if os.path.exists(path) else None
            if state is None or (state.st_size, state.st_mtime_ns) != (size, time):
                raise changed(path)


def changed(path: str) -> SchemaError:
    """Return the error for a source that changed during a job."""
    return SchemaError("the file changed while a job was at work on it; nothing was replaced: run it again", path=path)
