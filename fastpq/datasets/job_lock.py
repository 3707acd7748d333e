"""only_job: keeps two jobs from changing the same files at the same time."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import posixpath
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

from fastpq.errors import CryptoError, UnsupportedError
from fastpq.io.location import Remote, RemotePath
from fastpq.io.new_file import new_token
from fastpq.io.object_store import ObjectStore, find_store
from fastpq.io.sink import Conditions
from fastpq.io.source_opening import open_source
from fastpq.io.waiting import ask_filesystem

NAME = "_fastpq_job.lock"       # readers of datasets skip names that begin with an underscore
_SAFE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FLAGS = os.O_RDWR | os.O_CREAT | _SAFE
_LARGEST_LOCK = 1000            # bytes. Locks of jobs are smaller


def only_job(root: str | Remote, verb: str) -> AbstractContextManager[Callable[[], bool]]:
    """Exclude other jobs on a folder, on folders in it, and on folders that it is in.

    Two jobs would replace each other's files, key material and journals. Each job first locks its own folder, and then looks
    for other locks. If two jobs begin at the same time, at least one of them sees the other.

    The operating system drops the lock of a killed process on a local folder. Systems without ``fcntl`` have no lock. In a store
    the lock is an object, which stays there if the process is killed.

    Args:
        root: the dataset's folder, a local path or a place on a filesystem.
        verb: what the job does, for the error that other jobs get.

    Returns:
        A context manager. It gives a function that returns whether the folder is still locked for this job.

    Raises:
        CryptoError: another job is changing some of the files.
        UnsupportedError: the filesystem cannot keep two jobs apart.
    """
    return _only_in_store(root, verb) if isinstance(root, Remote) else _only_on_disk(root, verb)


@contextmanager
def cleaning_up(clean_up: Callable[[], None], note: str) -> Iterator[None]:
    """Clean up at the end. If an error ends the block, it is raised even if cleaning up fails too.

    Args:
        clean_up: called at the end.
        note: what has to be said if ``clean_up`` fails. It is added to the error.
    """
    try:
        yield
    except BaseException as error:
        try:
            clean_up()
        except Exception as failure:
            error.add_note(f"{note} ({type(failure).__name__}: {failure})")
        raise
    try:
        clean_up()
    except Exception as failure:
        failure.add_note(note)
        raise


@contextmanager
def _only_on_disk(root: str, verb: str) -> Iterator[Callable[[], bool]]:
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
            owner = _owner(os.read(descriptor, _LARGEST_LOCK))
            os.close(descriptor)
            raise CryptoError(f"another job is changing the files of this folder: {owner}", path=root) from None
        if _is_at(descriptor, path):
            break
        os.close(descriptor)        # the job that had the lock has removed the file

    def release() -> None:
        try:
            if _is_at(descriptor, path):        # somebody may have removed the lock, and another job may have its own
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        finally:
            os.close(descriptor)

    with cleaning_up(release, f"the file {path} could not be removed"):
        os.ftruncate(descriptor, 0)         # a killed job leaves its text
        os.write(descriptor, _description(f"{verb} job"))
        for folder in _folders_around(root):
            if (content := _content_on_disk(os.path.join(folder, NAME))) is not None:
                raise CryptoError(f"another job is changing the files of the folder {folder}: {_owner(content)}", path=root)
        yield lambda: _is_at(descriptor, path)


def _is_at(descriptor: int, path: str) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _folders_around(root: str) -> Iterator[str]:
    """Yield the folders that a folder is in, and those in it that have a lock."""
    folder = os.path.realpath(root)
    while (parent := os.path.dirname(folder)) != folder:
        yield (folder := parent)
    for below, _, names in os.walk(root):
        if NAME in names and below != root:
            yield below


def _content_on_disk(path: str) -> bytes | None:
    """Return what a running job's lock says. None if there is no such job."""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | _SAFE)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):      # no lock is a symbolic link
            return None
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, _LARGEST_LOCK)
    finally:
        os.close(descriptor)
    return None


@contextmanager
def _only_in_store(root: Remote, verb: str) -> Iterator[Callable[[], bool]]:
    store = find_store(root.filesystem)
    if store is None:
        raise UnsupportedError(
            "the filesystem cannot keep two jobs apart: files change their keys in local folders, and in S3, Azure and Google's "
            "store through s3fs, adlfs and gcsfs", path=root.name)
    path, token = f"{root.path.rstrip('/')}/{NAME}", new_token()
    content = _description(f"{verb} job {token}")
    try:
        store.put(path, content, token, Conditions(if_none_match="*"))
    except FileExistsError:
        raise _refusal(root, store, path, _content(root, path), "this folder") from None

    def is_locked() -> bool:
        return _content(root, path) == content

    def release() -> None:
        if is_locked():     # somebody may have removed the lock, and another job may have put its own
            store.remove(path)

    with cleaning_up(release, f"the lock could not be removed: if no job is running, remove the object {store.url(path)}"):
        for other in _locks_around(root, path):
            try:
                other_content = _content(root, other)
            except PermissionError:     # who may not read the folders above cannot see their jobs
                continue
            if other_content is not None:
                raise _refusal(root, store, other, other_content, f"the folder {store.url(posixpath.dirname(other))}")
        yield is_locked


def _locks_around(root: Remote, path: str) -> Iterator[str]:
    """Yield where the folders that a folder is in would have their locks, and the locks of folders in it.

    Args:
        root: the folder.
        path: its own lock.
    """
    folder = root.path.strip("/")
    while folder := posixpath.dirname(folder):
        yield f"{folder}/{NAME}"
    root.filesystem.invalidate_cache(root.path)
    for other in ask_filesystem(root.filesystem, "find", root.path):
        if other.endswith(f"/{NAME}") and other.strip("/") != path.strip("/"):
            yield other


def _refusal(root: Remote, store: ObjectStore, path: str, content: bytes | None, where: str) -> CryptoError:
    owner = "it has just ended" if content is None else _owner(content)
    return CryptoError(
        f"another job is changing the files of {where}: {owner}. If it was killed, remove the object {store.url(path)}, and call "
        "this again", path=root.name)


def _description(job: str) -> bytes:
    """Return what a lock says about its job."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return f"{job} in process {os.getpid()} on {platform.node()}, begun at {started}".encode()


def _owner(content: bytes) -> str:
    """Return what a lock says about its job. Anybody who may write to the folder may have written it."""
    is_text = content.isascii() and content.decode().isprintable()
    return content.decode() if content and is_text else "its lock does not tell which"


def _content(root: Remote, path: str) -> bytes | None:
    """Return the first bytes of a lock. None if there is no lock."""
    try:
        with open_source(RemotePath(root.filesystem, path), memory_map=False) as source:
            return source.read(0, min(source.size, _LARGEST_LOCK)).tobytes()
    except FileNotFoundError:
        return None
