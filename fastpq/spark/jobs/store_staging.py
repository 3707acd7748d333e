"""Stage new files that replace a dataset's files in an object store. One commit record makes all of them appear at once.

When a task has uploaded a new file, it writes a note: a JSON object below ``_fastpq_jobs/JOB/`` with the row count and what is
needed to complete the upload. The note's name is a hash over the sources' paths, sizes and versions. A job that runs again with
the same operation and settings therefore finds the uploads from earlier runs and makes only the missing ones. The commit record
(fastpq.datasets.records) makes the new files appear and the old files disappear.

Only one run may commit an upload. If two runs had it in their lists of uploads, one run could hide the object, and later remove
it, after the other run has committed it. Each run has a mark below ``_fastpq_jobs/JOB/runs/``. A run first prevents the commit of
each other run that has a mark, and only then uses its uploads.
"""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import Row

from fastpq.spark.core import FormatError, PendingSink, Remote, SchemaError, Upload, material_name, records, store_at
from fastpq.spark.jobs.running import SKIPPED, TaskOutcome
from fastpq.spark.jobs.staging import OWN_SUFFIX, Replacement, Stage, WriteFile, changed
from fastpq.spark.write.store_writer import data_files, require_store

Files = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class StoreStage(Stage):
    """New files in an object store. Tasks upload their bytes under the final names, and the commit completes the uploads.

    Attributes:
        run: name that identifies this run of the job.
    """

    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def begin(self) -> None:
        place = self._place
        records.finish(place)
        place.filesystem.pipe_file(self._mark(self.run), b"{}")
        for mark in records.find(place.filesystem, posixpath.dirname(self._mark(self.run))):
            if (run := posixpath.basename(mark).removesuffix(".json")) != self.run:
                records.end_job(place, f"{self.job}-{run}")
                records.remove(place.filesystem, mark)

    def replacements(self, groups: Iterable[Sequence[str]]) -> list[Replacement]:
        place, replacements = self._place, []
        files, version = data_files(place), store_at(place.filesystem).version
        for paths in groups:
            names = tuple(records.relative(place.path, place.filesystem._strip_protocol(path)) for path in paths)
            if missing := [name for name in names if name not in files]:
                raise changed(self.path_of(missing[0]))
            sizes, versions = tuple(_size(files[name]) for name in names), tuple(version(files[name]) for name in names)
            replacements.append(Replacement(names, sizes, versions))
        return replacements

    def make(self, replacement: Replacement, write: WriteFile) -> TaskOutcome:
        place = self._place
        note = records.note_of(place, self.job, replacement.fingerprint)
        if (earlier := _read(place, note)) is not None and store_at(place.filesystem).is_unfinished(upload := _upload(earlier)):
            if posixpath.dirname(upload.path) != posixpath.dirname(f"{place.path}/{replacement.sources[0]}"):
                raise FormatError("a note on an upload of another folder", path=note)
            return TaskOutcome(rows=int(earlier["rows"]), message=json.dumps(earlier))
        target = f"{place.path}/{_target(replacement)}"
        sink = PendingSink(Remote(place.filesystem, target, target))
        try:
            rows = write([self.path_of(source) for source in replacement.sources], sink, target, target)
        finally:
            sink.abort()        # has no effect on a finished upload
        if rows is None or sink.upload is None:
            return TaskOutcome(SKIPPED)
        message = json.dumps({"rows": rows, "upload": asdict(sink.upload)})
        place.filesystem.pipe_file(note, message.encode())
        return TaskOutcome(rows=rows, message=message)

    def commit(self, replacements: list[Replacement], rows: list[Row]) -> None:
        place = self._place
        uploads_by_source = {row.path: _upload(json.loads(row.made)) for row in rows if row.made is not None}
        ready_replacements = [one for one in replacements if self.path_of(one.sources[0]) in uploads_by_source]
        uploads = [uploads_by_source[self.path_of(one.sources[0])] for one in ready_replacements]

        def replaced(files: Files) -> list[str]:
            return [name for one in ready_replacements for name in self._unchanged(one, files)]

        if ready_replacements:
            job = f"{self.job}-{self.run}"
            replaced(records.snapshot(place.filesystem, place.path).visible(place.path))    # check sources before completing
            try:
                records.commit_uploads(place, job, uploads, replaced)
            except SchemaError:
                records.abandon_job(place, job)
                raise
        self._forget(uploads)

    def abandon(self) -> None:
        self._forget(())

    @property
    def _place(self) -> Remote:
        return require_store(self.root)

    def _mark(self, run: str) -> str:
        return records.note_of(self._place, f"{self.job}/runs", run)

    def _unchanged(self, replacement: Replacement, files: Files) -> Iterator[str]:
        """Yield a replacement's sources and the key material beside them.

        Args:
            replacement: the new file and its sources.
            files: information about the dataset's current files, by path.

        Raises:
            SchemaError: a source has changed.
        """
        version_of = store_at(self._place.filesystem).version
        for source, size, version in zip(replacement.sources, replacement.sizes, replacement.versions, strict=True):
            if source not in files or (_size(files[source]), version_of(files[source])) != (size, version):
                raise changed(self.path_of(source))
            yield source
            folder, name = posixpath.split(source)
            if (material := posixpath.join(folder, material_name(name))) in files:
                yield material

    def _forget(self, uploads: Iterable[Upload]) -> None:
        """Remove this run's mark. If it was the only mark, also remove the job's notes, which no other run needs then.

        The upload of each removed note is aborted, unless it is in ``uploads``.
        """
        place, upload_ids = self._place, {upload.upload_id for upload in uploads}
        paths = set(records.find(place.filesystem, posixpath.dirname(records.note_of(place, self.job, ""))))
        marks = {path for path in paths if posixpath.dirname(path) == posixpath.dirname(self._mark(""))}
        records.remove(place.filesystem, self._mark(self.run))
        if marks != {self._mark(self.run)}:
            return
        for note in paths - marks:
            earlier = _read(place, note)
            if earlier is not None and (upload := _upload(earlier)).upload_id not in upload_ids:
                store_at(place.filesystem).abort(upload.path, upload.upload_id)
            records.remove(place.filesystem, note)


def _size(about: Mapping[str, Any]) -> int:
    return int(about["size"])


def _target(replacement: Replacement) -> str:
    """Return a path in the sources' folder that no other attempt has.

    Attempts do not share a path, because ``records.clean_up`` may remove the object that another attempt has completed.
    """
    folder, name = posixpath.split(replacement.sources[0])
    stem, extension = posixpath.splitext(name)
    return posixpath.join(folder, f"{OWN_SUFFIX.sub('', stem)}-r{uuid.uuid4().hex[:12]}{extension}")


def _read(place: Remote, note: str) -> Any:
    """Return the decoded JSON of a note on an upload, or None if the note does not exist.

    Args:
        place: the dataset's folder.
        note: path of the note.

    Raises:
        FormatError: the note is not JSON.
    """
    try:
        return json.loads(place.filesystem.cat_file(note))
    except FileNotFoundError:
        return None
    except ValueError:
        raise FormatError("a note on an upload is no JSON", path=note) from None


def _upload(content: Any) -> Upload:
    """Return the upload that a note's content describes."""
    try:
        return Upload(**{**content["upload"], "parts": tuple(content["upload"]["parts"])})
    except (KeyError, TypeError):
        raise FormatError("a note on an upload has not the parts of one") from None
