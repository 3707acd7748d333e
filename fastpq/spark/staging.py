"""Atomic replacement of a dataset's files by files made from them in tasks, safe against the death of driver or executors.

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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame, Row, SparkSession

from fastpq.common.progress import Progress
from fastpq.errors import SchemaError
from fastpq.spark import journal
from fastpq.spark.listing import list_files, local_path
from fastpq.spark.running import ERROR, SKIPPED, JobError, TaskOutcome, Work, report_of, run_tasks
from fastpq.spark.writer import companions_of, material_of

Skipping = Literal["some", "all", "none"]

_OWN_SUFFIX = re.compile(r"-r[0-9a-f]{12}$")


@dataclass(frozen=True)
class Replacement:
    """One new file and its source files, all of one folder.

    Attributes:
        sources: paths relative to the dataset's folder.
        sizes: bytes of each source.
        times: last change of each source, in nanoseconds.
    """

    sources: tuple[str, ...]
    sizes: tuple[int, ...]
    times: tuple[int, ...]

    @property
    def fingerprint(self) -> str:
        """Hash of the sources' paths, sizes and times; differs after any change of a source."""
        return hashlib.sha256(repr((self.sources, self.sizes, self.times)).encode()).hexdigest()[:12]

    @property
    def target(self) -> str:
        """Path of the new file relative to the dataset's folder: in the sources' folder, named after the fingerprint."""
        folder, name = os.path.split(self.sources[0])
        stem, extension = os.path.splitext(name)
        return os.path.join(folder, f"{_OWN_SUFFIX.sub('', stem)}-r{self.fingerprint}{extension}")


@dataclass(frozen=True)
class Stage:
    """Temporary folder for the new files of a job.

    Attributes:
        root: the dataset's folder.
        job: the job's name.
    """

    root: str
    job: str

    def make(self, replacement: Replacement, write: Callable[[list[str], str], int | None]) -> TaskOutcome:
        """Make the new file of a replacement, or find the file of an earlier attempt.

        Args:
            replacement: the source files.
            write: writes one new file from the paths of sources to the path of a target, whole or not at all. Returns the number
                of rows, or None to leave the sources in place.
        """
        folder = os.path.join(journal.job_folder(self.root, self.job), os.path.dirname(replacement.target))
        journal.make_folders(self.root, self.job, os.path.relpath(folder, self.root))
        stem, extension = os.path.splitext(os.path.basename(replacement.target))
        for earlier in sorted(glob.glob(f"{glob.escape(os.path.join(folder, stem))}-*-rows*{extension}")):
            return TaskOutcome(rows=int(earlier.removesuffix(extension).rpartition("-rows")[2]), made=self._relative(earlier))
        # unique name for each attempt: the key material of one attempt cannot open the file of another
        place = os.path.join(folder, f"{stem}-{uuid.uuid4().hex}{extension}")
        rows = write([os.path.join(self.root, source) for source in replacement.sources], place)
        if rows is None:
            return TaskOutcome(SKIPPED)
        whole = f"{place.removesuffix(extension)}-rows{rows}{extension}"
        if os.path.exists(material_of(place)):
            os.replace(material_of(place), material_of(whole))
        os.replace(place, whole)
        return TaskOutcome(rows=rows, made=self._relative(whole))

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.root)


def stage_of(path: str, operation: str, *settings: object) -> Stage:
    """Begin or find the stage of a job, on the driver, after finishing interrupted commits.

    Args:
        path: the dataset's folder.
        operation: operation of the job, the first part of its name.
        *settings: all other inputs of the new files, hashed into the job's name.

    Raises:
        SchemaError: the path is no folder.
    """
    root = local_path(path)
    if not os.path.isdir(root):
        raise SchemaError("a job that replaces files needs the folder of a dataset", path=path)
    journal.recover(root)
    stage = Stage(root, f"{operation}-{hashlib.sha256(repr(settings).encode()).hexdigest()[:16]}")
    journal.make_job_folder(root, stage.job)
    return stage


def replacements_of(root: str, groups: Iterable[Sequence[str]]) -> list[Replacement]:
    """Replacements for groups of files given by path, with the present sizes and times."""
    found = []
    for paths in groups:
        states = [os.stat(path) for path in paths]
        relative = tuple(os.path.relpath(path, root) for path in paths)
        found.append(
            Replacement(relative, tuple(state.st_size for state in states), tuple(state.st_mtime_ns for state in states))
        )
    return found


def each_file(root: str) -> list[Replacement]:
    """A replacement for each file of a dataset."""
    return replacements_of(root, ([file.path] for file in list_files([root])))


def replace(
    spark: SparkSession,
    stage: Stage,
    replacements: list[Replacement],
    write: Callable[[list[str], str], int | None],
    progress: Progress | None,
    *,
    skipping: Skipping = "some",
) -> DataFrame:
    """Make all new files on executors, then swap them for their sources.

    Args:
        spark, stage, replacements, write, progress: of the job.
        skipping: whether ``write`` may skip ``"some"`` files; ``"all"`` files or none, as a job that was done before; or
            ``"none"``. Files that stand out may be forgeries in the place of encrypted files.

    Returns:
        The report: a row for each replacement.

    Raises:
        JobError: a file could not be made, or was skipped against ``skipping``. The dataset stays as it was; the job can be run
            again.
        SchemaError: a source changed during the job. The dataset stays as it was; the job can be run again.
    """
    work: Work[Replacement] = Work(
        stage.job,
        lambda one: (os.path.join(stage.root, one.sources[0]), sum(one.sizes)),
        lambda one: stage.make(one, write),
    )
    rows = run_tasks(spark, replacements, work, progress)
    report = report_of(spark, rows)
    if problem := _problem(rows, skipping):
        if all(row.status == SKIPPED for row in rows):
            journal.abandon(stage.root, stage.job)
        error = JobError(problem)
        error.report = report
        raise error
    _commit(stage, replacements, rows)
    return report


def _problem(rows: list[Row], skipping: Skipping) -> str | None:
    """Why the new files may not take the place of their sources; None if they may."""
    failed = [row for row in rows if row.status == ERROR]
    if failed:
        return (
            f"{len(failed)} of {len(rows)} files failed, and the dataset stays as it was; a job that is run again goes on from "
            f"here. The first error: {failed[0].error}"
        )
    skipped = sum(row.status == SKIPPED for row in rows)
    if skipping != "some" and 0 < skipped < len(rows):
        return (
            "plaintext and encrypted files stand side by side, and one may have been put in the place of another; the dataset "
            "stays as it was (allowPlaintextFiles=true goes on)"
        )
    if skipping == "none" and skipped:
        return (
            f"all {skipped} files are plaintext: the job was done before, or plaintext files were put in the place of encrypted "
            "ones; the dataset stays as it was (allowPlaintextFiles=true reports the files as skipped)"
        )
    return None


def _commit(stage: Stage, replacements: list[Replacement], rows: list[Row]) -> None:
    moves: dict[str, str] = {}
    removed: list[str] = []
    made = {row.path: row.made for row in rows if row.made is not None}
    with journal.one_overwrite(stage.root):
        for one in replacements:
            place = made.get(os.path.join(stage.root, one.sources[0]))
            if place is None:
                continue
            _check_unchanged(stage.root, one)
            pairs = ((place, one.target), (material_of(place), material_of(one.target)))
            moves.update(pair for pair in pairs if os.path.exists(os.path.join(stage.root, pair[0])))
            removed += [name for path in one.sources for name in (path, *companions_of(stage.root, path))]
        if moves:
            journal.commit(stage.root, stage.job, moves, removed)
        else:
            journal.abandon(stage.root, stage.job)


def _check_unchanged(root: str, replacement: Replacement) -> None:
    for source, size, time in zip(replacement.sources, replacement.sizes, replacement.times, strict=True):
        path = os.path.join(root, source)
        state = os.stat(path) if os.path.exists(path) else None
        if state is None or (state.st_size, state.st_mtime_ns) != (size, time):
            raise SchemaError("the file changed while a job was at work on it; nothing was replaced: run it again", path=path)

