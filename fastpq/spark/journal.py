"""Commits of a folder: what is renamed and removed becomes true with one rename of a journal.

A job writes below ``_fastpq_temporary/<job>/``. Its commit is the file ``commit.json`` in there, put in place by a rename: from
then on the job has happened, whoever dies. fastpq's readers see through an unfinished commit; ``recover`` finishes it for all
others. A job without that file has not happened, and its folder is an orphan.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from typing import Any

from fastpq.errors import FormatError

TEMPORARY = "_fastpq_temporary"
STREAMS = "_fastpq_streams"
COMMIT = "commit.json"
ABANDONED = ".abandoned"


def job_folder(root: str, job: str) -> str:
    return os.path.join(root, TEMPORARY, job)


def commit(root: str, job: str, moves: Mapping[str, str], removed: Iterable[str], stream: tuple[str, int] | None = None) -> None:
    """Commit a job, and carry it out.

    Args:
        root: the dataset's folder.
        job: its name.
        moves: where files are and where they go, relative to root.
        removed: files that go, relative to root.
        stream: name of the stream and number of its batch, of streaming jobs.
    """
    folder = job_folder(root, job)
    os.makedirs(folder, exist_ok=True)
    replace_json(os.path.join(folder, COMMIT), {"moves": dict(moves), "removed": sorted(removed), "stream": stream})
    _finish(root, job)


def recover(root: str) -> list[str]:
    """Finish the commits that a driver left unfinished; returns the names of their jobs."""
    jobs = [job for job in _jobs(root) if os.path.exists(os.path.join(job_folder(root, job), COMMIT))]
    for job in jobs:
        _finish(root, job)
    return jobs


def finish_commits(root: str, older_than: float) -> list[str]:
    """Finish commits, and remove what other jobs left.

    Args:
        root: the dataset's folder.
        older_than: seconds for which nothing in a job's folder changed; a job that still runs must not be so slow.

    Returns:
        The names of the jobs whose leftovers are gone.
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
    """Make a folder of a task, relative to root and below its job's: that one is made by the driver alone.

    Raises:
        FileNotFoundError: the job was abandoned; a task that still runs leaves nothing behind.
    """
    made = job_folder(root, job)
    for part in os.path.relpath(os.path.join(root, folder), made).split(os.sep):
        made = os.path.join(made, part)
        with contextlib.suppress(FileExistsError):
            os.mkdir(made)


def abandon(root: str, job: str) -> None:
    """Remove what a job without a commit wrote."""
    folder = job_folder(root, job)
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, folder + ABANDONED)       # at once, so that a task that still runs adds nothing meanwhile
    shutil.rmtree(folder + ABANDONED, ignore_errors=True)
    _remove_empty(os.path.join(root, TEMPORARY))


def pending(root: str) -> tuple[dict[str, str], set[str]]:
    """What unfinished commits still have to move (data files alone), and what they remove; absolute paths."""
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
    """The last batch of a stream that was committed; -1 before the first."""
    journals = (_read(os.path.join(job_folder(root, job), COMMIT)) for job in _jobs(root))
    begun = [journal["stream"][1] for journal in journals if journal and journal["stream"] and journal["stream"][0] == stream]
    known = _read(_stream_file(root, stream))
    return max(-1 if known is None else int(known["batch"]), *map(int, begun), -1)


def replace_json(path: str, content: object) -> None:
    """Put a JSON file in its place as a whole, and onto the disk."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _finish(root: str, job: str) -> None:
    """Carry out a commit; every step may have been done already, by whoever died at it."""
    folder = job_folder(root, job)
    journal = _read(os.path.join(folder, COMMIT))
    if journal is None:
        return
    # material files of keys come first: a data file is readable from its first moment
    for source, target in sorted(journal["moves"].items(), key=lambda move: not os.path.basename(move[1]).startswith("_")):
        os.makedirs(os.path.dirname(os.path.join(root, target)), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.replace(os.path.join(root, source), os.path.join(root, target))
    for path in journal["removed"]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(root, path))
        with contextlib.suppress(OSError):      # a partition that is empty now
            if os.path.dirname(path):
                os.rmdir(os.path.dirname(os.path.join(root, path)))
    if journal["stream"] is not None:
        name, batch = journal["stream"]
        os.makedirs(os.path.join(root, STREAMS), exist_ok=True)
        replace_json(_stream_file(root, name), {"batch": batch})
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
