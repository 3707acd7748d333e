"""Atomic commits of a dataset's folder: one rename of a journal decides all renames and removals of a job.

A job writes below ``_fastpq_temporary/<job>/``. Its commit is the file ``commit.json`` in its folder, put in place by a rename:
from the rename on the job has happened, even if its driver dies. fastpq's readers list the files of an unfinished commit as if
finished; ``recover`` finishes the commit for all other readers. A job without commit.json has not happened, and its folder is an
orphan.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fastpq.datasets.discovery import COMMON_METADATA, METADATA
from fastpq.errors import FormatError
from fastpq.io.new_file import make_directories, sync_folder
from fastpq.io.sink import FileSink

TEMPORARY = "_fastpq_temporary"
STREAMS = "_fastpq_streams"
COMMIT = "commit.json"
ABANDONED = ".abandoned"
LOCK = "_fastpq_overwrite.lock"
LOCK_SECONDS = 600.0        # longest wait for another overwrite's commit
LOCK_POLL_SECONDS = 0.05
MAX_ATTEMPTS = 1000         # to make a folder inside another one that ending jobs remove when it is empty


def job_folder(root: str, job: str) -> str:
    return os.path.join(root, TEMPORARY, job)


def make_job_folder(root: str, job: str) -> str:
    """Make the folder of a job, also while other jobs end and remove the empty folder above it; the path of the folder."""
    folder = job_folder(root, job)
    for _ in range(MAX_ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):
            make_directories(folder)
            return folder
    make_directories(folder)
    return folder


def commit(root: str, job: str, moves: Mapping[str, str], removed: Iterable[str], stream: tuple[str, int] | None = None) -> None:
    """Write the journal of a job, then carry out its renames and removals; ``_metadata`` of the files before is removed, too.

    Args:
        root: the dataset's folder.
        job: the job's name.
        moves: present and final paths of new files, relative to root.
        removed: files to remove, relative to root.
        stream: for streaming jobs, name of the stream and number of its batch.
    """
    folder = make_job_folder(root, job)
    outdated = {name for name in (METADATA, COMMON_METADATA) if os.path.exists(os.path.join(root, name))}
    replace_json(os.path.join(folder, COMMIT), {"moves": dict(moves), "removed": sorted({*removed, *outdated}), "stream": stream})
    _finish(root, job)


@contextlib.contextmanager
def one_overwrite(root: str) -> Iterator[None]:
    """Let one job at a time list the files of a dataset and commit their removal: of two overwrites the later one counts.

    The lock (flock) belongs to a file that is removed at the end. A dead process holds no lock. A symbolic link in the place of
    the file is not followed.

    Args:
        root: the dataset's folder.

    Raises:
        TimeoutError: another job holds the lock for LOCK_SECONDS.
        OSError: the filesystem has no locks.
    """
    path, deadline = os.path.join(root, LOCK), time.monotonic() + LOCK_SECONDS
    while (lock := _locked(path)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"another job has been overwriting {root} for {LOCK_SECONDS:.0f} s")
        time.sleep(LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        try:
            if _is_at(path, lock):
                os.unlink(path)
        finally:
            os.close(lock)


def recover(root: str) -> list[str]:
    """Finish commits interrupted by the death of a driver; returns the names of their jobs."""
    jobs = [job for job in _jobs(root) if has_begun(root, job)]
    for job in jobs:
        _finish(root, job)
    return jobs


def finish_commits(root: str, older_than: float) -> list[str]:
    """Finish interrupted commits, and remove leftovers of other jobs.

    Args:
        root: the dataset's folder.
        older_than: least age in seconds of the newest file of a job to remove; a running job must not pause for so long.

    Returns:
        The names of the finished and removed jobs.
    """
    done = recover(root)
    now = time.time()
    for job in _jobs(root):
        folder = job_folder(root, job)
        if now - _newest(folder) >= older_than:
            shutil.rmtree(folder, ignore_errors=True)
            done.append(job)
    _remove_empty(os.path.join(root, TEMPORARY))
    return done


def make_folders(root: str, job: str, folder: str) -> None:
    """Make a task's folder, given relative to root, below the job's folder; only the driver makes the job's folder.

    Raises:
        FileNotFoundError: the job was abandoned; a task still running must leave nothing behind.
    """
    made = job_folder(root, job)
    for part in os.path.relpath(os.path.join(root, folder), made).split(os.sep):
        made = os.path.join(made, part)
        with contextlib.suppress(FileExistsError):
            os.mkdir(made)


def has_begun(root: str, job: str) -> bool:
    """Whether a job has a commit that is not finished: its files are the dataset's, and only recovery may take them."""
    return os.path.exists(os.path.join(job_folder(root, job), COMMIT))


def abandon(root: str, job: str) -> None:
    """Remove the files of a job without a commit; a job whose commit has begun is left to ``recover``."""
    if has_begun(root, job):
        return
    folder = job_folder(root, job)
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, folder + ABANDONED)       # rename first: a running task can add nothing during the removal
    shutil.rmtree(folder + ABANDONED, ignore_errors=True)
    _remove_empty(os.path.join(root, TEMPORARY))


def pending(root: str) -> tuple[dict[str, str], set[str]]:
    """Absolute paths of unfinished commits: data files still to move, as present and final path, and files still to remove."""
    moves: dict[str, str] = {}
    removed: set[str] = set()
    for job in _jobs(root):
        journal = _read(os.path.join(job_folder(root, job), COMMIT))
        if journal is None:
            continue
        removed.update(os.path.join(root, path) for path in journal["removed"])
        for source, target in journal["moves"].items():
            hidden = os.path.basename(target).startswith(("_", "."))
            if not hidden and os.path.exists(os.path.join(root, source)):
                moves[os.path.join(root, source)] = os.path.join(root, target)
    return moves, removed


def last_batch(root: str, stream: str) -> int:
    """Number of a stream's last committed batch; -1 before the first."""
    journals = (_read(os.path.join(job_folder(root, job), COMMIT)) for job in _jobs(root))
    begun = [journal["stream"][1] for journal in journals if journal and journal["stream"] and journal["stream"][0] == stream]
    known = _read(_stream_file(root, stream))
    return max(-1 if known is None else int(known["batch"]), *map(int, begun), -1)


def replace_json(path: str, content: object) -> None:
    """Write a JSON file atomically and durably."""
    with FileSink(path) as sink:
        sink.write(json.dumps(content).encode())


def _locked(path: str) -> int | None:
    """The descriptor of a locked file, made if missing; None while another process has the lock."""
    flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, os.O_RDWR | flags, 0o666)
    except PermissionError:     # of another user; local filesystems lock files opened for reading too
        descriptor = os.open(path, os.O_RDONLY | flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(path, descriptor):
            return descriptor
    except BlockingIOError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)        # locked, or removed by the last holder
    return None


def _is_at(path: str, descriptor: int) -> bool:
    """Whether an open file still has a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _finish(root: str, job: str) -> None:
    """Carry out a commit; any step may have been done before by an interrupted attempt."""
    folder = job_folder(root, job)
    journal = _read(os.path.join(folder, COMMIT))
    if journal is None:
        return
    # key material first: a data file must be readable from the moment it appears
    moves = sorted(journal["moves"].items(), key=lambda move: not os.path.basename(move[1]).startswith("_"))
    folders = dict.fromkeys(os.path.dirname(os.path.join(root, target)) for _, target in moves)
    make_directories(*folders)
    for source, target in moves:
        with contextlib.suppress(FileNotFoundError):
            os.replace(os.path.join(root, source), os.path.join(root, target))
    for path in folders:        # the new names are on disk before old files go
        sync_folder(path)
    for path in journal["removed"]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(root, path))
        with contextlib.suppress(OSError):      # removes a partition's folder if empty
            if os.path.dirname(path):
                os.rmdir(os.path.dirname(os.path.join(root, path)))
    if journal["stream"] is not None:
        name, batch = journal["stream"]
        os.makedirs(os.path.join(root, STREAMS), exist_ok=True)
        replace_json(_stream_file(root, name), {"batch": batch})
    with contextlib.suppress(FileNotFoundError):        # another driver finishes the same commit
        os.unlink(os.path.join(folder, COMMIT))
    abandon(root, job)


def _stream_file(root: str, stream: str) -> str:
    return os.path.join(root, STREAMS, f"{stream}.json")


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise FormatError("a commit's journal is no JSON", path=path) from None


def _jobs(root: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(root, TEMPORARY)))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _newest(folder: str) -> float:
    newest = 0.0
    for path, _, names in os.walk(folder):
        for entry in (path, *(os.path.join(path, name) for name in names)):
            with contextlib.suppress(FileNotFoundError):
                newest = max(newest, os.path.getmtime(entry))
    return newest


def _remove_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)
