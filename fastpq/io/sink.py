"""Destinations of bytes: files that appear whole or not at all, file objects, and fsspec filesystems."""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import os
import secrets
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeAlias

from fastpq.errors import SchemaError
from fastpq.io.location import Remote, locate

BytesLike: TypeAlias = bytes | bytearray | memoryview

NAME_MAX = 255                  # bytes; longest file name allowed by every common filesystem
TEMPORARY_SUFFIX = ".{}.tmp"    # end of a temporary name; the random token makes the name unique
TOKEN_BYTES = 8                 # random bytes of a token, in hexadecimal digits

# Object stores, by protocol: an object appears when its upload is complete, and moving an object means copying.
OBJECT_STORES = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "cos", "obs", "tos", "r2", "hf"}
)


class Sink:
    """A destination of bytes, written one behind the other; commit makes the bytes take effect.

    A context manager: commits at the end, or aborts on an exception.

    Attributes:
        name: path, URL or the object's own name, for messages.
    """

    def __init__(self, name: str, file: Any) -> None:
        self.name = name
        self._file = file
        self._written = 0
        self._open = True

    def write(self, buffer: BytesLike) -> None:
        """Append a contiguous buffer.

        Raises:
            OSError: as reported by the destination.
            ValueError: the sink was committed or aborted.
        """
        self._must_be_open()
        view = memoryview(buffer)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        done = 0
        while done < len(view):  # a raw file may take a part of its argument
            count = self._file.write(view[done:])
            if count is None:
                raise BlockingIOError(errno.EAGAIN, "a file object that does not block takes no more", self.name)
            done += count
        self._written += len(view)

    def tell(self) -> int:
        """Number of bytes written."""
        return self._written

    @property
    def is_open(self) -> bool:
        """Whether the sink is neither committed nor aborted."""
        return self._open

    def persist(self) -> None:
        """Make the bytes written so far survive the end of this process, as far as the destination can. No commit yet.

        Raises:
            OSError: as reported by the destination.
        """
        if hasattr(self._file, "flush"):
            self._file.flush()

    def commit(self) -> None:
        """Make the written bytes take effect; aborts on failure.

        Raises:
            OSError: as reported by the destination; old contents are still there.
            ValueError: the sink was committed or aborted.
        """
        self._must_be_open()
        try:
            self._finish()
        except BaseException:
            self.abort()
            raise
        self._open = False

    def abort(self) -> None:
        """Undo all writes; without effect after commit or abort."""
        if self._open:
            self._open = False
            self._discard()

    def _finish(self) -> None:
        raise NotImplementedError

    def _discard(self) -> None:
        raise NotImplementedError

    def _must_be_open(self) -> None:
        if not self._open:
            raise ValueError(f"{self.name} was committed or aborted")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        elif self._open:
            self.commit()


class FileSink(Sink):
    """A local file, written under a temporary name in its directory and renamed by commit.

    The temporary name is hidden and ends in ``.tmp``; only a killed process leaves a temporary file behind (temporary_files
    finds these). Permissions are those of the replaced file, or the umask's.

    Args:
        path: path of the file.
        follow_links: whether a symbolic link is followed; else the link is replaced by the file.
    """

    def __init__(self, path: str, *, follow_links: bool = True) -> None:
        folder, name = os.path.split(path)
        self._target = os.path.realpath(path) if follow_links else os.path.join(os.path.realpath(folder), name)
        self._temporary = _temporary_path(self._target, secrets.token_hex(TOKEN_BYTES))
        mode = _mode_of(self._target)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            descriptor = os.open(self._temporary, flags, 0o666 if mode is None else mode)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, path) from None  # the caller knows no temporary name
        file = os.fdopen(descriptor, "wb", buffering=0)  # unbuffered: a forked child would write a buffer a second time
        self._cleanup = weakref.finalize(self, _remove_temporary, file, self._temporary, os.getpid())
        super().__init__(path, file)
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)  # the umask has reduced the mode given to open

    def persist(self) -> None:
        os.fsync(self._file.fileno())

    def _finish(self) -> None:
        self.persist()
        self._file.close()
        with _synced(os.path.dirname(self._target)):
            os.replace(self._temporary, self._target)
            self._cleanup.detach()

    def _discard(self) -> None:
        self._cleanup()


def _temporary_path(target: str, token: str) -> str:
    directory, base = os.path.split(target)
    kept = os.fsencode(base)[: NAME_MAX - len(TEMPORARY_SUFFIX.format(TOKEN_BYTES * "00")) - 1]
    return os.path.join(directory, f".{os.fsdecode(kept)}{TEMPORARY_SUFFIX.format(token)}")


def temporary_files(target: str) -> list[str]:
    """The temporary files of a local path, oldest first: their writers are at work, or were killed."""
    pattern = _temporary_path(glob.escape(os.path.realpath(target)), TOKEN_BYTES * "[0-9a-f][0-9a-f]")
    return sorted(glob.glob(pattern, include_hidden=True), key=os.path.getmtime)


def _mode_of(path: str) -> int | None:
    """The permissions of an existing file; None if there is none, or a link that is not followed."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return None if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)


def _remove_temporary(file: io.FileIO, path: str, owner: int) -> None:
    if os.getpid() != owner:  # a forked child owns the sink, not the file
        return
    file.close()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@contextlib.contextmanager
def _synced(directory: str) -> Iterator[None]:
    """Make a rename in a directory survive a power failure.

    Windows has no call for this, and some filesystems refuse the call.

    Raises:
        OSError: the directory cannot be opened; nothing was renamed yet.
    """
    if os.name == "nt":
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        yield
        with contextlib.suppress(OSError):      # the rename is done; only its durability is in doubt
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileObjectSink(Sink):
    """A binary file object, written to directly: after an abort, its owner has to remove the written bytes."""

    def __init__(self, file: Any, name: str | None = None, *, owned: bool = False) -> None:
        self._owned = owned
        super().__init__(name or str(getattr(file, "name", type(file).__name__)), file)

    def _finish(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()
        self._discard()

    def _discard(self) -> None:
        if self._owned:
            self._file.close()


class MovingSink(Sink):
    """A file on an fsspec filesystem, written under a temporary name and moved by commit; as atomic as the move."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        directory, slash, base = remote.path.rpartition("/")
        self._temporary = f"{directory}{slash}.{base}{TEMPORARY_SUFFIX.format(secrets.token_hex(TOKEN_BYTES))}"
        super().__init__(remote.name, remote.filesystem.open(self._temporary, "wb"))
        self._cleanup = weakref.finalize(
            self, _remove_remote, remote.filesystem, self._file, self._temporary, os.getpid()
        )

    def _finish(self) -> None:
        self._file.close()
        self._remote.filesystem.mv(self._temporary, self._remote.path)
        self._cleanup.detach()

    def _discard(self) -> None:
        self._cleanup()


def _remove_remote(filesystem: Any, file: Any, path: str, owner: int) -> None:
    if os.getpid() != owner:
        return
    try:
        file.close()
    finally:
        with contextlib.suppress(FileNotFoundError):
            filesystem.rm_file(path)


class UploadingSink(Sink):
    """An object in an object store, gathered in a local temporary directory and uploaded by commit."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        directory = tempfile.mkdtemp(prefix="fastpq-")
        self._spool = os.path.join(directory, "upload")
        super().__init__(remote.name, open(self._spool, "wb", buffering=0))  # noqa: SIM115 - closed by finish or discard
        self._cleanup = weakref.finalize(self, _remove_spool, self._file, directory, os.getpid())

    def _finish(self) -> None:
        self._file.close()
        self._remote.filesystem.put_file(self._spool, self._remote.path)
        self._cleanup()

    def _discard(self) -> None:
        self._cleanup()


def _remove_spool(file: io.FileIO, directory: str, owner: int) -> None:
    if os.getpid() != owner:
        return
    file.close()
    shutil.rmtree(directory)


def open_sink(where: Any) -> Sink:
    """Open a destination for writing.

    Args:
        where: a local path (str, PathLike or ``file://`` URL), a binary file object, an fsspec URL (``scheme://``), or
            an object with an fsspec filesystem ``fs`` and a ``path``.

    Returns:
        A sink. For a local path, an old file stays until commit and is then replaced at once: the new bytes are on disk before
        the new name. Remote files likewise, as far as the filesystem can. A file object, a device or a pipe is written to
        directly; the owner of a file object answers for half-written contents.

    Raises:
        UnsupportedError: fsspec, or its package for the URL's scheme, is not installed.
        OSError: the file cannot be made.
        SchemaError: where is none of these.
    """
    located = locate(where)
    if isinstance(located, Remote):
        kind: Callable[[Remote], Sink] = UploadingSink if _is_object_store(located.filesystem) else MovingSink
        return kind(located)
    if isinstance(located, str):
        if _is_special(located):
            return FileObjectSink(open(located, "wb", buffering=0), located, owned=True)
        return FileSink(located)
    if hasattr(where, "write"):
        return FileObjectSink(where)
    raise SchemaError(f"cannot write to {type(where).__name__}: neither a path, a URL nor a binary file object")


def _is_object_store(filesystem: Any) -> bool:
    protocol = filesystem.protocol
    return not OBJECT_STORES.isdisjoint((protocol,) if isinstance(protocol, str) else protocol)


def _is_special(path: str) -> bool:
    """Whether a path names a device, a pipe or a socket, which a rename would destroy."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
