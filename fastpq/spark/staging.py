"""New files in the place of a dataset's files, made in tasks, safe against the death of driver or executors.

The temporary folder of a job is named after its operation and settings. Each new file is named after the paths, sizes and times
of its source files. A job run again therefore finds the files made by earlier runs and makes only the missing ones. At the end, a
journal moves all new files in and removes the old files (fastpq.spark.journal).
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

from fastpq.errors import SchemaError
from fastpq.spark import journal
from fastpq.spark.listing import list_files
from fastpq.spark.running import SKIPPED, TaskOutcome
from fastpq.spark.writer import companions_of, material_of

OWN_SUFFIX = re.compile(r"-r[0-9a-f]{12}$")     # of the stem of a new file's name

# Writes one new file, whole or not at all. Takes the paths or URLs of the sources, the target of a ParquetWriter, and the path of
# the new file for its keys. Returns the number of rows, or None to leave the sources in place.
WriteFile = Callable[[list[str], Any, str], int | None]


@dataclass(frozen=True)
class Replacement:
    """One new file and its source files, all of one folder.

    Attributes:
        sources: paths relative to the dataset's folder.
        sizes: bytes of each source.
        versions: last change of each source, in nanoseconds; in stores its ETag.
    """

    sources: tuple[str, ...]
    sizes: tuple[int, ...]
    versions: tuple[int | str, ...]

    @property
    def fingerprint(self) -> str:
        """Hash of the sources' paths, sizes and versions; differs after any change of a source."""
        return hashlib.sha256(repr((self.sources, self.sizes, self.versions)).encode()).hexdigest()[:12]

    @property
    def target(self) -> str:
        """Path of the new file relative to the dataset's folder: in the sources' folder, named after the fingerprint."""
        folder, name = os.path.split(self.sources[0])
        stem, extension = os.path.splitext(name)
        return os.path.join(folder, f"{OWN_SUFFIX.sub('', stem)}-r{self.fingerprint}{extension}")


@dataclass(frozen=True)
class Stage(ABC):
    """The new files of a job, until they take the place of their sources; pickled to executors.

    Attributes:
        root: the dataset's folder: a path, or a URL.
        job: the job's name.
    """

    root: str
    job: str

    @abstractmethod
    def begin(self) -> None:
        """Begin or find the stage, on the driver, after finishing interrupted commits."""

    @abstractmethod
    def replacements(self, groups: Iterable[Sequence[str]]) -> list[Replacement]:
        """Replacements for groups of files given by path, with the present sizes and versions."""

    @abstractmethod
    def make(self, replacement: Replacement, write: WriteFile) -> TaskOutcome:
        """Make the new file of a replacement, or find the file of an earlier attempt."""

    @abstractmethod
    def commit(self, replacements: list[Replacement], rows: list[Row]) -> None:
        """Put all new files in the place of their sources at once.

        Args:
            replacements: the sources.
            rows: report of the tasks, with the outcomes of ``make``.

        Raises:
            SchemaError: a source changed meanwhile; nothing was replaced.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Give up all new files."""

    def each_file(self) -> list[Replacement]:
        """A replacement for each file of the dataset."""
        return self.replacements([file.path] for file in list_files([self.root]))

    def path_of(self, source: str) -> str:
        """The path or URL of a source given relative to the dataset's folder."""
        return os.path.join(self.root, source)


class FolderStage(Stage):
    """New files in a temporary folder on a filesystem that driver and executors share."""

    def begin(self) -> None:
        journal.recover(self.root)
        journal.make_job_folder(self.root, self.job)

    def replacements(self, groups: Iterable[Sequence[str]]) -> list[Replacement]:
        found = []
        for paths in groups:
            states = [os.stat(path) for path in paths]
            relative = tuple(os.path.relpath(path, self.root) for path in paths)
            found.append(
                Replacement(relative, tuple(state.st_size for state in states), tuple(state.st_mtime_ns for state in states))
            )
        return found

    def make(self, replacement: Replacement, write: WriteFile) -> TaskOutcome:
        folder = os.path.join(journal.job_folder(self.root, self.job), os.path.dirname(replacement.target))
        journal.make_folders(self.root, self.job, os.path.relpath(folder, self.root))
        stem, extension = os.path.splitext(os.path.basename(replacement.target))
        for earlier in sorted(glob.glob(f"{glob.escape(os.path.join(folder, stem))}-*-rows*{extension}")):
            return TaskOutcome(rows=int(earlier.removesuffix(extension).rpartition("-rows")[2]), made=self._relative(earlier))
        # unique name for each attempt: the key material of one attempt cannot open the file of another
        place = os.path.join(folder, f"{stem}-{uuid.uuid4().hex}{extension}")
        rows = write([self.path_of(source) for source in replacement.sources], place, place)
        if rows is None:
            return TaskOutcome(SKIPPED)
        whole = f"{place.removesuffix(extension)}-rows{rows}{extension}"
        if os.path.exists(material_of(place)):
            os.replace(material_of(place), material_of(whole))
        os.replace(place, whole)
        return TaskOutcome(rows=rows, made=self._relative(whole))

    def commit(self, replacements: list[Replacement], rows: list[Row]) -> None:
        moves: dict[str, str] = {}
        removed: list[str] = []
        made = {row.path: row.made for row in rows if row.made is not None}
        with journal.one_overwrite(self.root):
            for one in replacements:
                place = made.get(self.path_of(one.sources[0]))
                if place is None:
                    continue
                self._check_unchanged(one)
                pairs = ((place, one.target), (material_of(place), material_of(one.target)))
                moves.update(pair for pair in pairs if os.path.exists(os.path.join(self.root, pair[0])))
                removed += [name for path in one.sources for name in (path, *companions_of(self.root, path))]
            if moves:
                journal.commit(self.root, self.job, moves, removed)
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
    """The error where a source changed during a job."""
    return SchemaError("the file changed while a job was at work on it; nothing was replaced: run it again", path=path)
