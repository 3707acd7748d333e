"""Atomic commits to a dataset's folder: renaming one journal file decides all renames and removals in a job.

A job writes below ``_fastpq_temporary/<job>/``. It commits by a rename that puts the file ``commit.json`` into this folder. From
then on the job has happened, even if its driver dies. fastpq's readers list the files in an unfinished commit as if it were
finished. For all other readers, ``recover`` finishes the commit. A job without commit.json has not happened, and its folder is
an orphan.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fastpq.spark.core import COMMON_METADATA, METADATA, FileSink, FormatError, make_directories, sync_folder

TEMPORARY = "_fastpq_temporary"
_SPARK_TEMPORARY = "_temporary"      # of Hadoop's FileOutputCommitter. The other is for dynamic overwriting
_SPARK_JOBS = (f"{_SPARK_TEMPORARY}/*", ".spark-staging-*")
STREAMS = "_fastpq_streams"
COMMIT = "commit.json"
ABANDONED = ".abandoned"
LOCK = "_fastpq_overwrite.lock"
LOCK_SECONDS = 600.0        # longest wait until another overwrite has committed
LOCK_POLL_SECONDS = 0.05
MAX_ATTEMPTS = 1000         # attempts to make a folder in TEMPORARY, because ending jobs remove TEMPORARY if it is empty


def job_folder(root: str, job: str) -> str:
    return os.path.join(root, TEMPORARY, job)


def make_job_folder(root: str, job: str) -> str:
    """Make a job's folder and return its path. This succeeds even while other jobs end and remove the empty folder above."""
    folder = job_folder(root, job)
    for _ in range(MAX_ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):
            make_directories(folder)
            return folder
    make_directories(folder)
    return folder


def commit(root: str, job: str, moves: Mapping[str, str], removals: Iterable[str], stream: tuple[str, int] | None = None) -> None:
    """Write a job's journal, then carry out its renames and removals. The outdated ``_metadata`` is removed too.

    Args:
        root: the dataset's folder.
        job: the job's name.
        moves: final path by present path for each new file, relative to root.
        removals: files to remove, relative to root.
        stream: the stream's name and the batch number, for streaming jobs.
    """
    folder = make_job_folder(root, job)
    summaries = {name for name in (METADATA, COMMON_METADATA) if os.path.exists(os.path.join(root, name))}
    content = {"moves": dict(moves), "removed": sorted({*removals, *summaries}), "stream": stream}
    replace_json(os.path.join(folder, COMMIT), content)
    _finish(root, job)


@contextlib.contextmanager
def one_overwrite(root: str) -> Iterator[None]:
    """Let one job at a time list a dataset's files and commit their removal. If two jobs overwrite, the later one counts.

    The lock (flock) belongs to a file that is removed at the end. A dead process holds no lock. If a symbolic link stands in the
    file's place, it is not followed.

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
    """Finish commits that were interrupted because a driver died. Return the names of their jobs."""
    jobs = [job for job in _jobs(root) if has_begun(root, job)]
    for job in jobs:
        _finish(root, job)
    return jobs


def finish_commits(root: str, older_than: float) -> list[str]:
    """Finish interrupted commits, and remove what other jobs have left behind.

    Args:
        root: the dataset's folder.
        older_than: minimum age in seconds of a removed job's newest file. A running job must not pause for so long.

    Returns:
        The names of the finished and removed jobs.
    """
    jobs = recover(root)
    now = time.time()
    for job in _jobs(root):
        folder = job_folder(root, job)
        if now - _newest(folder) >= older_than:
            shutil.rmtree(folder, ignore_errors=True)
            jobs.append(job)
    _remove_empty(os.path.join(root, TEMPORARY))
    return jobs


def remove_spark_jobs(root: str, older_than: float) -> list[str]:
    """Remove what Spark's committers have left of jobs whose driver died. Such jobs have written nothing.

    Args:
        root: the dataset's folder.
        older_than: minimum age in seconds of a removed job's newest file. A running job must not pause for so long.

    Returns:
        The names of the removed jobs' folders, relative to ``root``.
    """
    removed_jobs = []
    for pattern in _SPARK_JOBS:
        for folder in sorted(glob.glob(os.path.join(glob.escape(root), pattern), include_hidden=True)):
            if time.time() - _newest(folder) >= older_than:
                shutil.rmtree(folder, ignore_errors=True)
                removed_jobs.append(os.path.relpath(folder, root))
    _remove_empty(os.path.join(root, _SPARK_TEMPORARY))
    return removed_jobs


def make_folders(root: str, job: str, folder: str) -> None:
    """Make a task's folder (a path relative to root) inside the job's folder. Only the driver makes the job's folder.

    Raises:
        FileNotFoundError: the job was abandoned. A task that still runs must leave nothing behind.
    """
    path = job_folder(root, job)
    for part in os.path.relpath(os.path.join(root, folder), path).split(os.sep):
        path = os.path.join(path, part)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)


def has_begun(root: str, job: str) -> bool:
    """Whether a job has an unfinished commit. Its files belong to the dataset, and only recovery may move them."""
    return os.path.exists(os.path.join(job_folder(root, job), COMMIT))


def abandon(root: str, job: str) -> None:
    """Remove the files of a job that has no commit. A job whose commit has begun is left to ``recover``."""
    if has_begun(root, job):
        return
    folder = job_folder(root, job)
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, folder + ABANDONED)       # rename first, so that a running task can add nothing during the removal
    shutil.rmtree(folder + ABANDONED, ignore_errors=True)
    _remove_empty(os.path.join(root, TEMPORARY))


def pending(root: str) -> tuple[dict[str, str], set[str]]:
    """Return what unfinished commits still have to do: final paths of data files by present path, and files to remove."""
    moves: dict[str, str] = {}
    removals: set[str] = set()
    for job in _jobs(root):
        journal = _read(os.path.join(job_folder(root, job), COMMIT))
        if journal is None:
            continue
        removals.update(os.path.join(root, path) for path in journal["removed"])
        for source, target in journal["moves"].items():
            is_hidden = os.path.basename(target).startswith(("_", "."))
            if not is_hidden and os.path.exists(os.path.join(root, source)):
                moves[os.path.join(root, source)] = os.path.join(root, target)
    return moves, removals


def last_batch(root: str, stream: str) -> int:
    """Return the number of a stream's last committed batch. -1 before the first."""
    journals = (_read(os.path.join(job_folder(root, job), COMMIT)) for job in _jobs(root))
    entries = [journal["stream"] for journal in journals if journal and journal["stream"]]
    pending_batches = [batch for name, batch in entries if name == stream]
    stream_state = _read(_stream_file(root, stream))
    return max(-1 if stream_state is None else int(stream_state["batch"]), *map(int, pending_batches), -1)


def replace_json(path: str, content: object) -> None:
    """Write a JSON file atomically and durably."""
    with FileSink(path) as sink:
        sink.write(json.dumps(content).encode())


def _locked(path: str) -> int | None:
    """Open a file, which is made if missing, and lock it. Return its descriptor, or None while another process has the lock."""
    flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, os.O_RDWR | flags, 0o666)
    except PermissionError:     # another user's file. Local filesystems can also lock a file that is opened for reading
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
    os.close(descriptor)        # another process holds the lock, or the last holder removed the file
    return None


def _is_at(path: str, descriptor: int) -> bool:
    """Whether a path still leads to an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _finish(root: str, job: str) -> None:
    """Carry out a commit. An interrupted attempt may already have done any step."""
    folder = job_folder(root, job)
    journal = _read(os.path.join(folder, COMMIT))
    if journal is None:
        return
    # key material first, because a data file must be readable as soon as it appears
    moves = sorted(journal["moves"].items(), key=lambda move: not os.path.basename(move[1]).startswith("_"))
    folders = dict.fromkeys(os.path.dirname(os.path.join(root, target)) for _, target in moves)
    make_directories(*folders)
    for source, target in moves:
        with contextlib.suppress(FileNotFoundError):
            os.replace(os.path.join(root, source), os.path.join(root, target))
    for path in folders:        # the new names must be on disk before old files are removed
        sync_folder(path)
    for path in journal["removed"]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(root, path))
        with contextlib.suppress(OSError):      # removes a partition's folder if it is empty
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
