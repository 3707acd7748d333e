"""Commit records for datasets in object stores. With them, one request makes many objects appear and others disappear.

A store cannot rename objects. Therefore a commit's files are uploaded under their final names, and the uploads are completed one
after another. The commit happens when its record is put (If-None-Match). A dataset's ``_fastpq_commits`` folder holds

- ``begun-JOB.json``: a job's uploads. Their objects are hidden until the job is committed.
- ``NUMBER.json``: the records. Only the one with the largest number counts. It has everything that is needed from earlier
  records. If two jobs put the same number, one loses and looks at the dataset again.

fastpq lists the folder, then the dataset, then the folder again before it reads. If the folder did not change in between, the
hidden and removed objects belong to one moment.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from fastpq.errors import FormatError, UnsupportedError
from fastpq.io.location import Remote, RemotePath
from fastpq.io.multipart import abort_uploads
from fastpq.io.object_store import Upload, find_store, store_at
from fastpq.io.sink import Conditions
from fastpq.io.sink_opening import open_sink
from fastpq.io.waiting import ask_filesystem

_log = logging.getLogger("fastpq.datasets")

FOLDER = "_fastpq_commits"
NOTES = "_fastpq_jobs"  # folder with notes on uploads. A repeated job finds its earlier uploads by them
TRIES = 50              # number of times that a reader or a writer tries while other writers commit without a pause
_OUTDATED = frozenset({"_metadata", "_common_metadata"})       # files that a commit makes wrong (fastpq.datasets.known_footers)
VERSION = 2
READABLE = (1, VERSION)     # version 1 records name removed files only by path
KEPT = 2                # number of records that stay, since a reader may have listed the last but one

_RECORD = re.compile(r"(\d{20})\.json")
_BEGUN = re.compile(r"begun-(.+)\.json")


@dataclass(frozen=True)
class State:
    """Contents of a commit record. A dataset's latest record says which files are current.

    Attributes:
        number: record number, or 0 if there is no record.
        by: name of the job that put the record.
        committed_jobs: jobs whose commits have happened, and whose upload lists may still exist.
        abandoned_jobs: jobs that must not commit any more.
        removed_files: identities of removed files that may still exist, by path relative to the dataset. A file that has this
            path and another identity is current. The empty text matches any identity.
        streams: each stream's last batch number.
    """

    number: int = 0
    by: str = ""
    committed_jobs: tuple[str, ...] = ()
    abandoned_jobs: tuple[str, ...] = ()
    removed_files: Mapping[str, str] = field(default_factory=dict)
    streams: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """Dataset at one moment.

    Attributes:
        state: contents of the latest record.
        uploads: uploads of jobs that are neither committed nor cleaned up, by job.
        committed_jobs: committed jobs whose upload lists still exist.
        files: information about all objects outside the record folder, by path relative to the dataset.
        removed_files: identities of the removed files that still exist, by path.
    """

    state: State
    uploads: Mapping[str, tuple[Upload, ...]]
    committed_jobs: tuple[str, ...]
    files: Mapping[str, Mapping[str, Any]]
    removed_files: Mapping[str, str]

    def visible(self, root: str) -> dict[str, Mapping[str, Any]]:
        """Return information about the current files, by path relative to the dataset, which is at ``root``."""
        hidden_paths = {relative(root, upload.path) for uploads in self.uploads.values() for upload in uploads}
        hidden_paths |= self.removed_files.keys()
        return {path: about for path, about in self.files.items() if path not in hidden_paths}


class CommitRefused(OSError):
    """A job may not commit, because another process has ended it or cleaned it up. Nothing of the job took effect."""


def relative(root: str, path: str) -> str:
    """Return a path relative to a root above it."""
    return path.removeprefix(root.rstrip("/") + "/")


def base_of(path: str) -> str:
    """Return the dataset's folder for the path of one of its partitions (``.../name=value``)."""
    parts = path.rstrip("/").split("/")
    while len(parts) > 1 and "=" in parts[-1]:
        parts.pop()
    return "/".join(parts)


def visible_files(filesystem: Any, folder: str) -> dict[str, Mapping[str, Any]]:
    """Return information about the current files below a folder, by path.

    On a filesystem that find_store does not know as a store, all files are current.

    Args:
        filesystem: an fsspec filesystem.
        folder: a dataset's folder, or a partition's folder.

    Raises:
        OSError: other writers committed all the time.
        FormatError: a record is broken.
        UnsupportedError: there are records in a filesystem other than s3fs, adlfs and gcsfs, which may show them late.
    """
    if find_store(filesystem) is None:
        every = dict(ask_filesystem(filesystem, "find", folder, detail=True))
        if any(f"/{FOLDER}/" in f"/{path}" for path in every):
            raise UnsupportedError(
                f"the dataset has records of commits ({FOLDER}), which say which files are current: read it by its URL "
                "(s3://, abfss://, gs://) with storage_options, or through s3fs, adlfs or gcsfs", path=folder)
        return every
    root = base_of(folder)
    current = snapshot(filesystem, root, folder).visible(root)
    return {f"{root.rstrip('/')}/{path}": about for path, about in current.items()}


def visible_matches(filesystem: Any, pattern: str) -> dict[str, Mapping[str, Any]]:
    """Return information about the current files that match a glob, by path. Raise the errors that visible_files raises."""
    matches: dict[str, Mapping[str, Any]] = ask_filesystem(filesystem, "glob", pattern, detail=True)
    if find_store(filesystem) is None:
        return matches
    first = re.search(r"[^/]*[*?\[]", pattern)
    current = visible_files(filesystem, pattern[: first.start()].rstrip("/") if first else posixpath.dirname(pattern))
    return {path: about for path, about in matches.items() if about["type"] != "file" or path in current}


def snapshot(filesystem: Any, root: str, folder: str | None = None) -> Snapshot:
    """Return a dataset at one moment, with the files below ``folder``, or with all files.

    Raises:
        OSError: other writers committed all the time.
        FormatError: a record is broken.
    """
    for _ in range(TRIES):
        before = _names(filesystem, root)
        infos = find(filesystem, folder or root)
        if _names(filesystem, root) != before:
            continue
        try:
            state, uploads = _state_of(filesystem, root, before), _uploads_of(filesystem, root, before)
        except FileNotFoundError:       # cleaned up meanwhile
            continue
        files = {relative(root, path): about for path, about in infos.items()}
        return Snapshot(
            state,
            {job: each for job, each in uploads.items() if job not in state.committed_jobs},
            tuple(job for job in uploads if job in state.committed_jobs),
            {path: about for path, about in files.items() if not path.startswith(f"{FOLDER}/")},
            _left(filesystem, state.removed_files, files),
        )
    raise OSError(errno.EAGAIN, f"other jobs committed {TRIES} times while the dataset was listed", root)


def commit_uploads(
    place: Remote,
    job: str,
    uploads: Iterable[Upload],
    files_to_remove: Callable[[Mapping[str, Mapping[str, Any]]], Iterable[str]] = lambda files: (),
    stream: tuple[str, int] | None = None,
) -> bool:
    """Complete a job's uploads. Their objects appear and removed files disappear, all at the same moment.

    Args:
        place: the dataset's folder.
        job: the job's unique name.
        uploads: uploads with all their parts.
        files_to_remove: gets information about the current files before the commit, by relative path, and returns the relative
            paths of the files to remove. It is called again after another job's commit.
        stream: for streaming jobs, the stream's name and the batch number.

    Returns:
        False if the batch was already committed. Nothing takes effect then.

    Raises:
        CommitRefused: another process cleaned up the job, or ended it.
        OSError: the store or ``files_to_remove`` raised an error. The commit has not happened. ``clean_up`` removes the rest.
    """
    filesystem, root, uploads = place.filesystem, place.path, tuple(uploads)
    if not _begin(place, job, uploads):
        raise CommitRefused(errno.ECANCELED, "another run of the same job has taken its uploads", root)
    for upload in uploads:
        store_at(filesystem).complete(upload)
    own = {relative(root, upload.path) for upload in uploads}
    for _ in range(TRIES):
        now = snapshot(filesystem, root)
        if job not in now.uploads or job in now.state.abandoned_jobs:
            raise CommitRefused(errno.ECANCELED, "the job was cleaned up as abandoned before its commit", root)
        streams = dict(now.state.streams)
        if stream is not None:
            if streams.get(stream[0], -1) >= stream[1]:
                abandon_job(place, job)
                return False
            streams[stream[0]] = stream[1]
        current = {path: about for path, about in now.visible(root).items() if path not in own}
        new = State(
            now.state.number + 1, job, (*now.committed_jobs, job), _still(now.state.abandoned_jobs, now.uploads),
            {**now.removed_files, **_identities(filesystem, current, files_to_remove(current))}, streams,
        )
        for name in _OUTDATED & now.files.keys():      # without these files, readers read all footers
            remove(filesystem, f"{root}/{name}")
        if _put_record(place, new):
            try:
                finish(place)
            except OSError as error:        # the commit has happened, and an error would make callers repeat the job
                _log.warning("files that the job %s replaced, or its list of uploads, are left to the next job: %s", job, error)
            return True
    raise OSError(errno.EAGAIN, f"other jobs committed {TRIES} times before this one", root)


def abandon_job(place: Remote, job: str) -> None:
    """Prevent a job from committing, and remove the objects that it has uploaded. This has no effect after the commit."""
    for _ in range(TRIES):
        now = snapshot(place.filesystem, place.path)
        if job not in now.uploads:
            return
        abandoned_jobs = tuple({*_still(now.state.abandoned_jobs, now.uploads), job})
        new = State(
            now.state.number + 1, f"abandons {job}", now.committed_jobs, abandoned_jobs, now.removed_files, now.state.streams
        )
        if _put_record(place, new):
            for upload in now.uploads[job]:
                store_at(place.filesystem).end(upload)
            remove(place.filesystem, f"{place.path}/{FOLDER}/begun-{job}.json")
            return
    raise OSError(errno.EAGAIN, f"other jobs committed {TRIES} times", place.path)


def end_job(place: Remote, job: str) -> None:
    """Prevent a job from committing, whether its commit has begun or not. This has no effect after the commit.

    If the commit has not begun, another job may use the uploads of this job afterwards.
    """
    if not _begin(place, job, ()):
        abandon_job(place, job)


def finish(place: Remote) -> list[str]:
    """Remove what committed jobs left: removed files, upload lists and earlier records. Return the jobs' names."""
    filesystem, root = place.filesystem, place.path
    now = snapshot(filesystem, root)
    for path in now.removed_files:
        remove(filesystem, f"{root}/{path}")
    for job in now.committed_jobs:
        remove(filesystem, f"{root}/{FOLDER}/begun-{job}.json")
    for name in _names(filesystem, root):
        if (match := _RECORD.fullmatch(name)) and int(match[1]) <= now.state.number - KEPT:
            remove(filesystem, f"{root}/{FOLDER}/{name}")
    return list(now.committed_jobs)


def clean_up(place: Remote, older_than: float) -> list[str]:
    """Finish committed jobs, abandon old begun commits, and abort old uploads if the store can.

    Args:
        place: the dataset's folder.
        older_than: commits and uploads are old if they have at least this age, in seconds.

    Returns:
        Names of finished and abandoned jobs, and paths of aborted uploads.
    """
    filesystem, root = place.filesystem, place.path
    names = finish(place)
    now = snapshot(filesystem, root)
    for job in now.uploads:
        try:
            about = filesystem.info(f"{root}/{FOLDER}/begun-{job}.json")
        except FileNotFoundError:
            continue
        if _age(filesystem, about) >= older_than:
            abandon_job(place, job)
            names.append(job)
    for path, about in now.files.items():
        if path.startswith(f"{NOTES}/") and _age(filesystem, about) >= older_than:
            remove(filesystem, f"{root}/{path}")
    return [*names, *abort_uploads(RemotePath(filesystem, root), older_than)] if store_at(filesystem).aborts else names


def note_of(place: Remote, job: str, name: str) -> str:
    """Return the path of the note on one upload of a job."""
    return f"{place.path}/{NOTES}/{job}/{name}.json"


def find(filesystem: Any, folder: str) -> dict[str, Mapping[str, Any]]:
    """Return information about the objects below a folder, by path, as they are now.

    The filesystem's cache is neither used nor filled, because a cached listing would lack objects that appeared since then.
    """
    filesystem.invalidate_cache()
    infos: dict[str, Mapping[str, Any]] = ask_filesystem(filesystem, "find", folder, detail=True)
    filesystem.invalidate_cache()
    return infos


def remove(filesystem: Any, path: str) -> None:
    """Remove an object if it exists."""
    store_at(filesystem).remove(path)


def _age(filesystem: Any, about: Mapping[str, Any]) -> float:
    """Return an object's age in seconds."""
    changed_at = store_at(filesystem).changed(about)
    return (datetime.now(UTC) - changed_at).total_seconds() if changed_at is not None else 0.0


def _still(names: Iterable[str], there: Iterable[str]) -> tuple[str, ...]:
    existing = set(there)
    return tuple(name for name in names if name in existing)


def _left(filesystem: Any, removed_files: Mapping[str, str], files: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the identities of removed files that still exist, by path. Other files that now have their paths do not count."""
    now = _identities(filesystem, files, removed_files)
    return {path: removed_files[path] for path, identity in now.items() if removed_files[path] in ("", identity)}


def _identities(filesystem: Any, files: Mapping[str, Mapping[str, Any]], paths: Iterable[str]) -> dict[str, str]:
    """Return each file's identity, by path. Paths without a file are left out."""
    store = store_at(filesystem)
    return {path: store.identity(files[path]) for path in paths if path in files}


def _names(filesystem: Any, root: str) -> frozenset[str]:
    folder = f"{root.rstrip('/')}/{FOLDER}"
    return frozenset(relative(folder, path) for path in find(filesystem, folder))


def _state_of(filesystem: Any, root: str, names: Iterable[str]) -> State:
    latest = max((name for name in names if _RECORD.fullmatch(name)), default=None)
    if latest is None:
        return State()
    record = _read(filesystem, root, latest)
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
        committed_jobs, abandoned_jobs = (tuple(map(str, record[name])) for name in ("committed", "abandoned"))
        removed_files = record["removed"] if record["version"] > 1 else dict.fromkeys(record["removed"], "")
        removed_files = {str(path): str(identity) for path, identity in removed_files.items()}
        streams = {str(name): int(batch) for name, batch in record["streams"].items()}
        return State(int(record["number"]), str(record["by"]), committed_jobs, abandoned_jobs, removed_files, streams)
    raise FormatError("a commit record lacks some of its parts", path=f"{root}/{FOLDER}/{latest}")


def _uploads_of(filesystem: Any, root: str, names: Iterable[str]) -> dict[str, tuple[Upload, ...]]:
    uploads_by_job = {}
    for name in names:
        if match := _BEGUN.fullmatch(name):
            try:
                uploads = _read(filesystem, root, name)["uploads"]
                uploads_by_job[match[1]] = tuple(Upload(**{**one, "parts": tuple(one["parts"])}) for one in uploads)
            except (KeyError, TypeError):
                raise FormatError("a list of uploads lacks some of its parts", path=f"{root}/{FOLDER}/{name}") from None
    return uploads_by_job


def _read(filesystem: Any, root: str, name: str) -> Any:
    path = f"{root.rstrip('/')}/{FOLDER}/{name}"
    try:
        content = json.loads(ask_filesystem(filesystem, "cat_file", path))
    except ValueError:
        raise FormatError("a commit record is not JSON", path=path) from None
    if not isinstance(content, dict) or content.get("version") not in READABLE:
        raise FormatError(f"a commit record has a version above {VERSION}: a newer fastpq wrote it", path=path)
    return content


def _begin(place: Remote, job: str, uploads: Iterable[Upload]) -> bool:
    """Put a job's upload list. Return False if there is one already."""
    try:
        _put(place, f"begun-{job}.json", {"version": VERSION, "uploads": [asdict(upload) for upload in uploads]})
    except FileExistsError:
        return False
    return True


def _put_record(place: Remote, state: State) -> bool:
    """Put a record with a state. Return False if another job took its number."""
    try:
        _put(place, f"{state.number:020d}.json", {
            "version": VERSION, "number": state.number, "by": state.by, "committed": state.committed_jobs,
            "abandoned": state.abandoned_jobs, "removed": state.removed_files, "streams": state.streams,
        })
    except FileExistsError:
        return False
    return True


def _put(place: Remote, name: str, content: Mapping[str, Any]) -> None:
    """Put a new JSON object into the record folder.

    Raises:
        FileExistsError: the object exists.
    """
    target = RemotePath(place.filesystem, f"{place.path.rstrip('/')}/{FOLDER}/{name}")
    with open_sink(target, Conditions(if_none_match="*")) as sink:
        sink.write(json.dumps(content).encode())
