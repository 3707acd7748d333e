"""Commit records of datasets in object stores: many objects appear, and others vanish, at one request.

A store renames nothing. Files of a commit are uploads under their final names; these are completed one after the other, and the
commit happens when its record is put (If-None-Match). The folder ``_fastpq_commits`` of a dataset holds

- ``begun-JOB.json``: uploads of a job; their objects are hidden until the job is committed,
- ``NUMBER.json``: the records. The one of the largest number counts; it holds everything to know from the earlier ones. Two jobs
  that want the same number compete, and the loser looks at the dataset anew.

Readers of fastpq list the folder, the dataset, and the folder again: without a change in between, hidden and removed objects are
those of one moment.
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
from fastpq.io.location import Remote
from fastpq.io.multipart import abort_uploads
from fastpq.io.object_store import Upload, find_store, store_at
from fastpq.io.sink import Conditions, open_sink

_log = logging.getLogger("fastpq.datasets")

FOLDER = "_fastpq_commits"
NOTES = "_fastpq_jobs"  # folder of notes on uploads, by which a job that is run again finds the uploads of earlier runs
TRIES = 50              # of a reader beside writers that commit without a pause, and of a writer among others
_OUTDATED = frozenset({"_metadata", "_common_metadata"})       # of the files before a commit (fastpq.datasets.known_footers)
VERSION = 2
READABLE = (1, VERSION)     # records of version 1 have removed files by their paths alone
KEPT = 2                # records; a reader may have listed the one before the last

_RECORD = re.compile(r"(\d{20})\.json")
_BEGUN = re.compile(r"begun-(.+)\.json")


@dataclass(frozen=True)
class State:
    """The contents of a commit record; the latest record of a dataset says which files are current.

    Attributes:
        number: of the record; 0 without one.
        by: name of the job that put the record.
        committed: jobs whose commits have happened, and whose uploads may still be listed.
        abandoned: jobs that must not commit any more.
        removed: identities of removed files, which may still be there, by path relative to the dataset. Another file of the path
            counts; the empty text stands for any.
        streams: number of the last batch of each stream.
    """

    number: int = 0
    by: str = ""
    committed: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()
    removed: Mapping[str, str] = field(default_factory=dict)
    streams: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """A dataset at one moment.

    Attributes:
        state: by the latest record.
        begun: uploads of jobs that are neither committed nor cleaned up, by job.
        ended: jobs that are committed, and whose lists of uploads are still there.
        files: information about all objects outside the folder of records, by path relative to the dataset.
        removed: identities of the removed files that are still there, by path.
    """

    state: State
    begun: Mapping[str, tuple[Upload, ...]]
    ended: tuple[str, ...]
    files: Mapping[str, Mapping[str, Any]]
    removed: Mapping[str, str]

    def visible(self, root: str) -> dict[str, Mapping[str, Any]]:
        """Files that count, by path relative to the dataset at root."""
        hidden = {relative(root, upload.path) for uploads in self.begun.values() for upload in uploads}
        return {path: about for path, about in self.files.items() if path not in hidden and path not in self.removed}


class CommitRefused(OSError):
    """A job was cleaned up as abandoned, or ended by another run, before its commit; nothing of the job took effect."""


def relative(root: str, path: str) -> str:
    """The part of a path below a root."""
    return path.removeprefix(root.rstrip("/") + "/")


def base_of(path: str) -> str:
    """The folder of a dataset from the path of one of its partitions (``.../name=value``)."""
    parts = path.rstrip("/").split("/")
    while len(parts) > 1 and "=" in parts[-1]:
        parts.pop()
    return "/".join(parts)


def visible_files(filesystem: Any, folder: str) -> dict[str, Mapping[str, Any]]:
    """Information about the files below a folder that count, by path; all files outside of the stores of find_store.

    Args:
        filesystem: an fsspec filesystem.
        folder: the folder of a dataset, or of a partition.

    Raises:
        OSError: writers committed all the time.
        FormatError: a record is broken.
        UnsupportedError: records in another filesystem than s3fs, adlfs and gcsfs, which may show them late.
    """
    if find_store(filesystem) is None:
        every = dict(filesystem.find(folder, detail=True))
        if any(f"/{FOLDER}/" in f"/{path}" for path in every):
            raise UnsupportedError(
                f"the dataset has records of commits ({FOLDER}), by which old and new files are told apart: read it by its URL "
                "(s3://, abfss://, gs://) with storage_options, or through s3fs, adlfs or gcsfs", path=folder)
        return every
    root = base_of(folder)
    found = snapshot(filesystem, root, folder).visible(root)
    return {f"{root.rstrip('/')}/{path}": about for path, about in found.items()}


def visible_matches(filesystem: Any, pattern: str) -> dict[str, Mapping[str, Any]]:
    """Information about the files that match a glob and count, by path; raises the errors of visible_files."""
    found: dict[str, Mapping[str, Any]] = filesystem.glob(pattern, detail=True)
    if find_store(filesystem) is None:
        return found
    first = re.search(r"[^/]*[*?\[]", pattern)
    counted = visible_files(filesystem, pattern[: first.start()].rstrip("/") if first else posixpath.dirname(pattern))
    return {path: about for path, about in found.items() if about["type"] != "file" or path in counted}


def snapshot(filesystem: Any, root: str, folder: str | None = None) -> Snapshot:
    """Read a dataset at one moment; of the files those below a folder, or all.

    Raises:
        OSError: writers committed all the time.
        FormatError: a record is broken.
    """
    for _ in range(TRIES):
        before = _names(filesystem, root)
        listed = find(filesystem, folder or root)
        if _names(filesystem, root) != before:
            continue
        try:
            state, begun = _state_of(filesystem, root, before), _begun_of(filesystem, root, before)
        except FileNotFoundError:       # cleaned up meanwhile
            continue
        files = {relative(root, path): about for path, about in listed.items()}
        ended = tuple(job for job in begun if job in state.committed)
        return Snapshot(
            state,
            {job: uploads for job, uploads in begun.items() if job not in state.committed},
            ended,
            {path: about for path, about in files.items() if not path.startswith(f"{FOLDER}/")},
            _left(filesystem, state.removed, files),
        )
    raise OSError(errno.EAGAIN, f"other jobs committed {TRIES} times while the dataset was listed", root)


def commit_uploads(
    place: Remote,
    job: str,
    uploads: Iterable[Upload],
    removed: Callable[[Mapping[str, Mapping[str, Any]]], Iterable[str]] = lambda files: (),
    stream: tuple[str, int] | None = None,
) -> bool:
    """Complete the uploads of a job, and let their objects appear, and removed files vanish, at once.

    Args:
        place: the dataset's folder.
        job: the job's name, unique.
        uploads: with all their parts.
        removed: the files to remove, by relative path, from the files that count before the commit; called again after another
            job's commit.
        stream: for streaming jobs, name of the stream and number of its batch.

    Returns:
        False, and nothing took effect, if the batch was committed before.

    Raises:
        CommitRefused: somebody cleaned up the job, or ended it.
        OSError: as reported by the store, or by ``removed``. The job has not happened, and is left to ``clean_up``.
    """
    filesystem, root, uploads = place.filesystem, place.path, tuple(uploads)
    if not _begin(place, job, uploads):
        raise CommitRefused(errno.ECANCELED, "another run of the same job has taken its uploads", root)
    for upload in uploads:
        store_at(filesystem).complete(upload)
    own = {relative(root, upload.path) for upload in uploads}
    for _ in range(TRIES):
        now = snapshot(filesystem, root)
        if job not in now.begun or job in now.state.abandoned:
            raise CommitRefused(errno.ECANCELED, "the job was cleaned up as abandoned before its commit", root)
        streams = dict(now.state.streams)
        if stream is not None:
            if streams.get(stream[0], -1) >= stream[1]:
                abandon_job(place, job)
                return False
            streams[stream[0]] = stream[1]
        counted = {path: about for path, about in now.visible(root).items() if path not in own}
        new = State(
            now.state.number + 1, job, (*now.ended, job), _still(now.state.abandoned, now.begun),
            {**now.removed, **_identities(filesystem, counted, removed(counted))}, streams,
        )
        for name in _OUTDATED & now.files.keys():      # before the commit: without them readers read all footers
            remove(filesystem, f"{root}/{name}")
        if _put_record(place, new):
            try:
                finish(place)
            except OSError as error:        # the commit has happened: an error would make callers repeat the job
                _log.warning("files that the job %s replaced, or its list of uploads, are left to the next job: %s", job, error)
            return True
    raise OSError(errno.EAGAIN, f"other jobs committed {TRIES} times before this one", root)


def abandon_job(place: Remote, job: str) -> None:
    """Let a job never commit, and remove its objects; without effect after its commit."""
    for _ in range(TRIES):
        now = snapshot(place.filesystem, place.path)
        if job not in now.begun:
            return
        abandoned = tuple({*_still(now.state.abandoned, now.begun), job})
        new = State(
            now.state.number + 1, f"abandons {job}", now.ended, abandoned, now.removed, now.state.streams
        )
        if _put_record(place, new):
            for upload in now.begun[job]:
                store_at(place.filesystem).end(upload)
            remove(place.filesystem, f"{place.path}/{FOLDER}/begun-{job}.json")
            return
    raise OSError(errno.EAGAIN, f"other jobs committed {TRIES} times", place.path)


def end_job(place: Remote, job: str) -> None:
    """Let a job never commit, whether its commit has begun or not; without effect after its commit.

    The uploads of a job whose commit has not begun may then go into another job.
    """
    if not _begin(place, job, ()):
        abandon_job(place, job)


def finish(place: Remote) -> list[str]:
    """Remove what committed jobs left: removed files, lists of uploads, earlier records; returns the names of the jobs."""
    filesystem, root = place.filesystem, place.path
    now = snapshot(filesystem, root)
    for path in now.removed:
        remove(filesystem, f"{root}/{path}")
    for job in now.ended:
        remove(filesystem, f"{root}/{FOLDER}/begun-{job}.json")
    for name in _names(filesystem, root):
        if (match := _RECORD.fullmatch(name)) and int(match[1]) <= now.state.number - KEPT:
            remove(filesystem, f"{root}/{FOLDER}/{name}")
    return list(now.ended)


def clean_up(place: Remote, older_than: float) -> list[str]:
    """Finish committed jobs; abandon begun commits and abort uploads at least ``older_than`` seconds old, where the store can.

    Args:
        place: the dataset's folder.
        older_than: least age in seconds.

    Returns:
        Names of the finished and abandoned jobs, and paths of aborted uploads.
    """
    filesystem, root = place.filesystem, place.path
    done = finish(place)
    now = snapshot(filesystem, root)
    for job in now.begun:
        try:
            about = filesystem.info(f"{root}/{FOLDER}/begun-{job}.json")
        except FileNotFoundError:
            continue
        if _age(filesystem, about) >= older_than:
            abandon_job(place, job)
            done.append(job)
    for path, about in now.files.items():
        if path.startswith(f"{NOTES}/") and _age(filesystem, about) >= older_than:
            remove(filesystem, f"{root}/{path}")
    return [*done, *abort_uploads(_Opened(filesystem, root), older_than)] if store_at(filesystem).aborts else done


@dataclass(frozen=True)
class _Opened:
    fs: Any
    path: str


def note_of(place: Remote, job: str, name: str) -> str:
    """The path of a note on an upload of a job."""
    return f"{place.path}/{NOTES}/{job}/{name}.json"


def find(filesystem: Any, folder: str) -> dict[str, Mapping[str, Any]]:
    """Information about the objects below a folder, by path, as they are now and kept by no cache.

    A filesystem with a cached listing finds no object that appeared since.
    """
    filesystem.invalidate_cache()
    found: dict[str, Mapping[str, Any]] = filesystem.find(folder, detail=True)
    filesystem.invalidate_cache()
    return found


def remove(filesystem: Any, path: str) -> None:
    """Remove an object, if it is there."""
    store_at(filesystem).remove(path)


def _age(filesystem: Any, about: Mapping[str, Any]) -> float:
    """Age of an object in seconds."""
    changed = store_at(filesystem).changed(about)
    return (datetime.now(UTC) - changed).total_seconds() if changed is not None else 0.0


def _still(names: Iterable[str], there: Iterable[str]) -> tuple[str, ...]:
    known = set(there)
    return tuple(name for name in names if name in known)


def _left(filesystem: Any, removed: Mapping[str, str], files: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Of removed files those that are there, and not others under their paths."""
    now = _identities(filesystem, files, removed)
    return {path: removed[path] for path, identity in now.items() if removed[path] in ("", identity)}


def _identities(filesystem: Any, files: Mapping[str, Mapping[str, Any]], paths: Iterable[str]) -> dict[str, str]:
    """Identities of those paths that are files."""
    store = store_at(filesystem)
    return {path: store.identity(files[path]) for path in paths if path in files}


def _names(filesystem: Any, root: str) -> frozenset[str]:
    folder = f"{root.rstrip('/')}/{FOLDER}"
    return frozenset(relative(folder, path) for path in find(filesystem, folder))


def _state_of(filesystem: Any, root: str, names: Iterable[str]) -> State:
    latest = max((name for name in names if _RECORD.fullmatch(name)), default=None)
    if latest is None:
        return State()
    found = _read(filesystem, root, latest)
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
        committed, abandoned = (tuple(map(str, found[name])) for name in ("committed", "abandoned"))
        removed = found["removed"] if found["version"] > 1 else dict.fromkeys(found["removed"], "")
        removed = {str(path): str(identity) for path, identity in removed.items()}
        streams = {str(name): int(batch) for name, batch in found["streams"].items()}
        return State(int(found["number"]), str(found["by"]), committed, abandoned, removed, streams)
    raise FormatError("a commit's record has not the parts of one", path=f"{root}/{FOLDER}/{latest}")


def _begun_of(filesystem: Any, root: str, names: Iterable[str]) -> dict[str, tuple[Upload, ...]]:
    found = {}
    for name in names:
        if match := _BEGUN.fullmatch(name):
            try:
                uploads = _read(filesystem, root, name)["uploads"]
                found[match[1]] = tuple(Upload(**{**one, "parts": tuple(one["parts"])}) for one in uploads)
            except (KeyError, TypeError):
                raise FormatError("a list of uploads has not the parts of one", path=f"{root}/{FOLDER}/{name}") from None
    return found


def _read(filesystem: Any, root: str, name: str) -> Any:
    path = f"{root.rstrip('/')}/{FOLDER}/{name}"
    try:
        found = json.loads(filesystem.cat_file(path))
    except ValueError:
        raise FormatError("a commit's record is no JSON", path=path) from None
    if not isinstance(found, dict) or found.get("version") not in READABLE:
        raise FormatError(f"a commit's record of a version above {VERSION}: a newer fastpq wrote it", path=path)
    return found


def _begin(place: Remote, job: str, uploads: Iterable[Upload]) -> bool:
    """Put the list of a job's uploads; False if there is one."""
    try:
        _put(place, f"begun-{job}.json", {"version": VERSION, "uploads": [asdict(upload) for upload in uploads]})
    except FileExistsError:
        return False
    return True


def _put_record(place: Remote, state: State) -> bool:
    """Put the record of a state; False if another job took its number."""
    try:
        _put(place, f"{state.number:020d}.json", {"version": VERSION, **asdict(state)})
    except FileExistsError:
        return False
    return True


def _put(place: Remote, name: str, content: Mapping[str, Any]) -> None:
    """Put a new object of JSON into the folder of records.

    Raises:
        FileExistsError: the object is there.
    """
    target = _Opened(place.filesystem, f"{place.path.rstrip('/')}/{FOLDER}/{name}")
    with open_sink(target, Conditions(if_none_match="*")) as sink:
        sink.write(json.dumps(content).encode())
