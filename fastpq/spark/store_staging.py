"""New files in the place of a dataset's files in an object store: uploads, completed and swapped in at once by a commit record.

A task notes a finished upload below ``_fastpq_jobs/JOB/``, by a hash of its sources' paths, sizes and versions. A job run again,
with the same operation and settings, therefore finds the uploads of earlier runs and makes only the missing ones. The record of
the commit (fastpq.datasets.records) lets the new files appear and the old ones vanish.

An upload goes into the commit of one run: two lists of one upload would hide, and later remove, an object that is committed. A
run has a mark below ``_fastpq_jobs/JOB/runs/``. Each run first ends all others with a mark, and only then takes their uploads.
"""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import Row

from fastpq.datasets import records
from fastpq.encryption.keys.store import PREFIX as MATERIAL_PREFIX
from fastpq.encryption.keys.store import SUFFIX as MATERIAL_SUFFIX
from fastpq.errors import FormatError, SchemaError
from fastpq.io.location import Remote
from fastpq.io.multipart import PendingSink
from fastpq.io.object_store import Upload, store_at
from fastpq.spark.running import SKIPPED, TaskOutcome
from fastpq.spark.staging import OWN_SUFFIX, Replacement, Stage, WriteFile, changed
from fastpq.spark.stores import data_files, require_store

Files = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class StoreStage(Stage):
    """New files in an object store, uploaded under their final names and not completed.

    Attributes:
        run: name of this run of the job.
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
        place, found = self._place, []
        files, version = data_files(place), store_at(place.filesystem).version
        for paths in groups:
            names = tuple(records.relative(place.path, place.filesystem._strip_protocol(path)) for path in paths)
            if missing := [name for name in names if name not in files]:
                raise changed(self.path_of(missing[0]))
            sizes, versions = tuple(_size(files[name]) for name in names), tuple(version(files[name]) for name in names)
            found.append(Replacement(names, sizes, versions))
        return found

    def make(self, replacement: Replacement, write: WriteFile) -> TaskOutcome:
        place = self._place
        note = records.note_of(place, self.job, replacement.fingerprint)
        if (earlier := _read(place, note)) is not None and store_at(place.filesystem).is_unfinished(upload := _upload(earlier)):
            if posixpath.dirname(upload.path) != posixpath.dirname(f"{place.path}/{replacement.sources[0]}"):
                raise FormatError("a note on an upload of another folder", path=note)
            return TaskOutcome(rows=int(earlier["rows"]), made=json.dumps(earlier))
        target = f"{place.path}/{_target(replacement)}"
        sink = PendingSink(Remote(place.filesystem, target, target))
        try:
            rows = write([self.path_of(source) for source in replacement.sources], sink, target)
        finally:
            sink.abort()        # without effect on a finished upload
        if rows is None or sink.upload is None:
            return TaskOutcome(SKIPPED)
        made = json.dumps({"rows": rows, "upload": asdict(sink.upload)})
        place.filesystem.pipe_file(note, made.encode())
        return TaskOutcome(rows=rows, made=made)

    def commit(self, replacements: list[Replacement], rows: list[Row]) -> None:
        place = self._place
        made = {row.path: _upload(json.loads(row.made)) for row in rows if row.made is not None}
        done = [one for one in replacements if self.path_of(one.sources[0]) in made]
        uploads = [made[self.path_of(one.sources[0])] for one in done]

        def replaced(files: Files) -> list[str]:
            return [name for one in done for name in self._unchanged(one, files)]

        if done:
            job = f"{self.job}-{self.run}"
            replaced(records.snapshot(place.filesystem, place.path).visible(place.path))    # before an upload is completed
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
        """The sources of a replacement and the key material beside them, of the files that count.

        Raises:
            SchemaError: a source has changed.
        """
        version_of = store_at(self._place.filesystem).version
        for source, size, version in zip(replacement.sources, replacement.sizes, replacement.versions, strict=True):
            if source not in files or (_size(files[source]), version_of(files[source])) != (size, version):
                raise changed(self.path_of(source))
            yield source
            folder, name = posixpath.split(source)
            if (material := posixpath.join(folder, f"{MATERIAL_PREFIX}{name}{MATERIAL_SUFFIX}")) in files:
                yield material

    def _forget(self, used: Iterable[Upload]) -> None:
        """Remove the notes and the mark of this run, and abort noted uploads without use; a later run takes over the notes."""
        place, kept = self._place, {upload.upload_id for upload in used}
        found = set(records.find(place.filesystem, posixpath.dirname(records.note_of(place, self.job, ""))))
        marks = {path for path in found if posixpath.dirname(path) == posixpath.dirname(self._mark(""))}
        records.remove(place.filesystem, self._mark(self.run))
        if marks != {self._mark(self.run)}:
            return
        for note in found - marks:
            earlier = _read(place, note)
            if earlier is not None and (upload := _upload(earlier)).upload_id not in kept:
                store_at(place.filesystem).abort(upload.path, upload.upload_id)
            records.remove(place.filesystem, note)


def _size(about: Mapping[str, Any]) -> int:
    return int(about["size"])


def _target(replacement: Replacement) -> str:
    """A name in the folder of the sources that no other attempt has: clean_up may remove what another attempt has completed."""
    folder, name = posixpath.split(replacement.sources[0])
    stem, extension = posixpath.splitext(name)
    return posixpath.join(folder, f"{OWN_SUFFIX.sub('', stem)}-r{uuid.uuid4().hex[:12]}{extension}")


def _read(place: Remote, note: str) -> Any:
    """A note on an upload; None without one."""
    try:
        return json.loads(place.filesystem.cat_file(note))
    except FileNotFoundError:
        return None
    except ValueError:
        raise FormatError("a note on an upload is no JSON", path=note) from None


def _upload(found: Any) -> Upload:
    """The upload of a note."""
    try:
        return Upload(**{**found["upload"], "parts": tuple(found["upload"]["parts"])})
    except (KeyError, TypeError):
        raise FormatError("a note on an upload has not the parts of one") from None
