"""only_job: keeps two jobs from changing the files of a folder at the same time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from fastpq.errors import CryptoError
from fastpq.io.location import Remote

NAME = "_fastpq_job.lock"       # readers of datasets skip names that begin with an underscore
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def only_job(root: str | Remote) -> Iterator[None]:
    """Exclude other jobs on a local folder. Two jobs would replace each other's files, key material and journals.

    The operating system drops the lock of a killed process. Stores, and systems without ``fcntl``, have no such lock.

    Args:
        root: the dataset's folder, a local path or a place on a filesystem.

    Raises:
        CryptoError: another job is changing the folder.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    if isinstance(root, Remote):
        yield
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
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
