"""Sinks for a local file that gets more bytes at its end: a copy that takes its place, or the file itself.

LockedFile is the old file. It keeps other appends away.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys
import weakref

from fastpq.io.sink import FileSink, Sink

if sys.platform != "win32":
    import fcntl

CLONE = 0x40049409              # the ioctl FICLONE: the new file shares the old file's blocks until one of them changes
COPY_SIZE = 1 << 30             # most bytes that the kernel copies in one call
BUFFER_SIZE = 1 << 20           # bytes that are copied at a time where the kernel cannot copy
# Errors from filesystems that cannot clone a file or copy within the kernel.
UNCLONED = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF})


class LockedFile:
    """A local file to which this object alone may append. Other appends by fastpq are refused until it is closed.

    The lock (flock) belongs to the old file's inode, so it vanishes with its process. Windows has no lock. There only
    ``check_unchanged`` notices other appends.

    Attributes:
        path: the file's path, without symbolic links.
        descriptor: the open file.
        size: file size in bytes when the file was opened.

    Args:
        path: the file.
        writable: whether the file is opened for writing too.

    Raises:
        BlockingIOError: another append is at work.
        OSError: the file cannot be opened, is not a regular file, or was replaced meanwhile.
    """

    def __init__(self, path: str, *, writable: bool) -> None:
        self.path = os.path.realpath(path)
        mode = os.O_RDWR if writable else os.O_RDONLY
        self.descriptor = os.open(self.path, mode | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        self._close = weakref.finalize(self, os.close, self.descriptor)
        try:
            status = os.fstat(self.descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "rows can only be appended to a regular file", self.path)
            self._lock()
            self._status = os.fstat(self.descriptor)
            self.size = self._status.st_size
            self.check_unchanged()
        except BaseException:
            self.close()
            raise

    def check_unchanged(self) -> None:
        """Refuse a path at which another file, or a changed file, is now.

        Raises:
            OSError: the file was replaced, changed or removed.
        """
        old, new = self._status, os.stat(self.path)
        if (old.st_dev, old.st_ino, old.st_size, old.st_mtime_ns) != (new.st_dev, new.st_ino, new.st_size, new.st_mtime_ns):
            raise OSError(errno.ESTALE, "the file was replaced or changed while rows were appended to it", self.path)

    def check_place(self) -> None:
        """Refuse a path at which this file is no longer.

        Raises:
            OSError: the file was replaced or removed.
        """
        try:
            is_same = os.path.samestat(self._status, os.stat(self.path))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise OSError(errno.ESTALE, "the file was replaced or removed while rows were appended to it", self.path)

    def close(self) -> None:
        """Close the file, which frees the lock."""
        with contextlib.suppress(OSError):      # whoever has written to the file has asked for errors before
            self._close()

    def _lock(self) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(errno.EAGAIN, "another append to the file is at work", self.path) from None
        except OSError as error:
            if error.errno not in UNCLONED:       # filesystems without locks
                raise


class CopySink(FileSink):
    """A new file that begins with an old file's bytes, and takes its place at the commit. Readers see the old or the new file.

    Args:
        old: the old file. This sink closes it.
        size: how many of its bytes the new file begins with.
        durable: as in FileSink.

    Raises:
        OSError: the new file cannot be made, or the bytes cannot be copied.
    """

    def __init__(self, old: LockedFile, size: int, *, durable: bool) -> None:
        self._old = old
        super().__init__(old.path, durable=durable)
        try:
            copy_start(old.descriptor, self._new.file.fileno(), size)
        except BaseException as error:
            self._name_in(error)
            self.abort()
            raise
        self.size = size

    def _finish(self) -> None:
        self._old.check_unchanged()
        super()._finish()
        self._old.close()

    def _discard(self) -> None:
        super()._discard()
        self._old.close()


class InPlaceSink(Sink):
    """An old file that is extended where it is. An abort cuts it back to its old size.

    Until the commit, the file has no footer at its end, and nobody can read it. If the process or the machine dies before that,
    the old footer is still inside the file, in front of a torn tail. All bytes in front of the new footer are on disk before it,
    and the footer is on disk at the commit.

    Args:
        old: the old file, opened for writing. This sink closes it.
    """

    def __init__(self, old: LockedFile) -> None:
        self._old = old
        file = io.FileIO(old.descriptor, "r+b", closefd=False)
        file.seek(old.size)
        super().__init__(old.path, file)
        self.size = old.size
        self._cut_back = weakref.finalize(self, _cut_back, old, file, os.getpid())

    def keep_order(self) -> None:
        self.persist()

    def _persist(self) -> None:
        os.fsync(self._old.descriptor)

    def _finish(self) -> None:
        self._persist()
        self._old.check_place()
        self._cut_back.detach()
        self._old.close()

    def _discard(self) -> None:
        self._cut_back()


def _cut_back(old: LockedFile, file: io.FileIO, owner: int) -> None:
    if os.getpid() != owner:        # a forked child has a copy of the sink, but does not own the file
        return
    try:
        os.ftruncate(file.fileno(), old.size)
        with contextlib.suppress(OSError):      # the file has its old size, and only its durability is in doubt
            os.fsync(file.fileno())
    finally:
        old.close()


def copy_start(source: int, target: int, size: int) -> None:
    """Copy the first bytes of a file to a new file, and set the new file's position behind them.

    The blocks are shared if the filesystem can do that. Otherwise the kernel copies, or this process.

    Args:
        source, target: descriptors. The target is empty.
        size: how many bytes are copied.

    Raises:
        OSError: a file cannot be read or written, or the source is shorter.
    """
    if not _clone(source, target, size):
        position = _copy_in_kernel(source, target, size)
        _copy_by_reading(source, target, position, size)
    os.lseek(target, size, os.SEEK_SET)


def _clone(source: int, target: int, size: int) -> bool:
    if sys.platform != "linux":       # which has FICLONE
        return False
    try:
        fcntl.ioctl(target, CLONE, source)
    except OSError as error:
        if error.errno in UNCLONED:
            return False
        raise
    os.ftruncate(target, size)
    return True


def _copy_in_kernel(source: int, target: int, size: int) -> int:
    """Copy with copy_file_range, and return how many bytes were copied. The rest must be copied otherwise."""
    position = 0
    while hasattr(os, "copy_file_range") and position < size:
        try:
            count = os.copy_file_range(source, target, min(size - position, COPY_SIZE), position, position)
        except OSError as error:
            if error.errno in UNCLONED:
                break
            raise
        if not count:
            break
        position += count
    return position


def _copy_by_reading(source: int, target: int, position: int, size: int) -> None:
    os.lseek(source, position, os.SEEK_SET)
    os.lseek(target, position, os.SEEK_SET)
    while position < size:
        buffer = memoryview(os.read(source, min(size - position, BUFFER_SIZE)))
        if not buffer:
            raise OSError(errno.EIO, "the file became shorter while it was copied")
        position += len(buffer)
        while buffer:
            buffer = buffer[os.write(target, buffer) :]
