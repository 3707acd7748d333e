"""only_job: keeps two jobs from changing the files of a folder at the same time."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

from fastpq.errors import CryptoError, UnsupportedError
from fastpq.io.location import Remote, RemotePath
from fastpq.io.new_file import new_token
from fastpq.io.object_store import find_store
from fastpq.io.sink import Conditions
from fastpq.io.source_opening import open_source

NAME = "_fastpq_job.lock"       # readers of datasets skip names that begin with an underscore
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_LARGEST_LOCK = 1000            # bytes. Locks of jobs are smaller


def only_job(root: str | Remote, verb: str) -> AbstractContextManager[Callable[[], bool]]:
    """Exclude other jobs on a folder. Two jobs would replace each other's files, key material and journals.

    The operating system drops the lock of a killed process on a local folder. Systems without ``fcntl`` have no lock. In a store
    the lock is an object, which stays there if the process is killed.

    Args:
        root: the dataset's folder, a local path or a place on a filesystem.
        verb: what the job does, for the error that other jobs get.

    Returns:
        A context manager. It gives a function that returns whether the folder is still locked for this job.

    Raises:
        CryptoError: another job is changing the folder.
        UnsupportedError: the filesystem cannot keep two jobs apart.
    """
    return _only_in_store(root, verb) if isinstance(root, Remote) else _only_on_disk(root)


@contextmanager
def _only_on_disk(root: str) -> Iterator[Callable[[], bool]]:
    try:
        import fcntl
    except ImportError:
        yield lambda: True
        return
    path = os.path.join(root, NAME)
    while True:
        descriptor = os.open(path, _FLAGS, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise CryptoError("another job is changing the files of this folder", path=root) from None
        if _is_at(descriptor, path):
            break
        os.close(descriptor)        # the job that had the lock has removed the file
    try:
        yield lambda: _is_at(descriptor, path)
    finally:
        if _is_at(descriptor, path):        # somebody may have removed the lock, and another job may have its own
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


@contextmanager
def _only_in_store(root: Remote, verb: str) -> Iterator[Callable[[], bool]]:
    store = find_store(root.filesystem)
    if store is None:
        raise UnsupportedError(
            "the filesystem cannot keep two jobs apart: files change their keys in local folders, and in S3, Azure and Google's "
            "store through s3fs, adlfs and gcsfs", path=root.name)
    path, token = f"{root.path.rstrip('/')}/{NAME}", new_token()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    content = f"{verb} job {token} in process {os.getpid()} on {platform.node()}, begun at {started}".encode()
    try:
        store.put(path, content, token, Conditions(if_none_match="*"))
    except FileExistsError:
        raise CryptoError(
            f"another job is changing the files of this folder: {_owner(root, path)}. If it was killed, remove the "
            f"object {store.url(path)}, and call this again", path=root.name) from None

    def is_locked() -> bool:
        return _content(root, path) == content

    try:
        yield is_locked
    finally:
        if is_locked():     # somebody may have removed the lock, and another job may have put its own
            store.remove(path)


def _owner(root: Remote, path: str) -> str:
    """Return what a lock says about its job. Anybody who may write to the folder may have written it."""
    content = _content(root, path)
    if content is None:
        return "it has just ended"
    return content.decode() if content.isascii() and content.decode().isprintable() else "its lock does not tell which"


def _content(root: Remote, path: str) -> bytes | None:
    """Return the first bytes of a lock. None if there is no lock."""
    try:
        with open_source(RemotePath(root.filesystem, path), memory_map=False) as source:
            return source.read(0, min(source.size, _LARGEST_LOCK)).tobytes()
    except FileNotFoundError:
        return None
