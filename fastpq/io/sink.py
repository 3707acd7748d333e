"""Where bytes go: files that appear whole or not at all, file objects, and fsspec."""

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

# Longest file name that every common filesystem takes, and what a temporary name adds to the target's.
NAME_MAX = 255
TEMPORARY_SUFFIX = ".{}.tmp"
TOKEN_BYTES = 8

# Filesystems on which a file appears when its upload is complete, and on which moving means copying.
OBJECT_STORES = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "cos", "obs", "tos", "r2", "hf"}
)


class Sink:
    """Bytes written one after another, which take effect with commit.

    As a context manager it commits at the end, or aborts when an exception passes.

    Attributes:
        name: path, URL or what the object calls itself, for messages.
    """

    def __init__(self, name: str, file: Any) -> None:
        self.name = name
        self._file = file
        self._written = 0
        self._open = True

    def write(self, buffer: BytesLike) -> None:
        """Append a contiguous buffer.

        Raises:
            OSError: what the place itself reports.
            ValueError: the sink was committed or aborted.
        """
        self._must_be_open()
        view = memoryview(buffer)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        done = 0
        while done < len(view):  # a raw file may take less than it is given
            count = self._file.write(view[done:])
            if count is None:
                raise BlockingIOError(errno.EAGAIN, "a file object that does not block takes no more", self.name)
            done += count
        self._written += len(view)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._written

    def persist(self) -> None:
        """Let what was written so far survive the end of this process, as far as the place can; it does not take effect.

        Raises:
            OSError: what the place itself reports.
        """
        if hasattr(self._file, "flush"):
            self._file.flush()

    def commit(self) -> None:
        """Make what was written take effect; on failure it is aborted.

        Raises:
            OSError: what the place itself reports; what was there before is still there.
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
        """Undo everything; without effect after commit or abort."""
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
    """A local file, written under a temporary name beside it and renamed over it.

    The temporary name is hidden and ends in ``.tmp``; only a killed process leaves one behind (temporary_files finds
    it). Permissions are those of the file replaced, or what the umask gives; a symbolic link is followed, not replaced.
    """

    def __init__(self, path: str) -> None:
        self._target = os.path.realpath(path)
        self._temporary = _temporary_path(self._target, secrets.token_hex(TOKEN_BYTES))
        mode = _mode_of(self._target)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            descriptor = os.open(self._temporary, flags, 0o666 if mode is None else mode)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, path) from None  # nobody asked for the temporary name
        file = os.fdopen(descriptor, "wb", buffering=0)  # what a buffer held, a forked child would write again
        self._cleanup = weakref.finalize(self, _remove_temporary, file, self._temporary, os.getpid())
        super().__init__(path, file)
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)  # the umask took its share when the file was made

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
    """The temporary files of a local path that are there, the oldest first: their writers are at work, or were killed."""
    pattern = _temporary_path(glob.escape(os.path.realpath(target)), TOKEN_BYTES * "[0-9a-f][0-9a-f]")
    return sorted(glob.glob(pattern, include_hidden=True), key=os.path.getmtime)


def _mode_of(path: str) -> int | None:
    """The permissions of a file to replace; None when there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return stat.S_IMODE(status.st_mode)


def _remove_temporary(file: io.FileIO, path: str, owner: int) -> None:
    if os.getpid() != owner:  # a forked child has the sink, not the file
        return
    file.close()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@contextlib.contextmanager
def _synced(directory: str) -> Iterator[None]:
    """Make a rename in a directory survive a power failure; Windows has no such call, and some filesystems refuse it.

    Raises:
        OSError: the directory cannot be opened; nothing was renamed yet.
    """
    if os.name == "nt":
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        yield
        with contextlib.suppress(OSError):      # the new file is in its place, whatever the directory says
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileObjectSink(Sink):
    """A binary file object, written to as we go: what an abort leaves in it is for its owner to remove."""

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
    """A file on an fsspec filesystem, written under a temporary name beside it and moved; as atomic as its move."""

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
        super().__init__(remote.name, open(self._spool, "wb", buffering=0))  # noqa: SIM115 - by finish or discard
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
    """Open something to write to.

    Args:
        where: a local path (str, PathLike or ``file://`` URL), a binary file object, an fsspec URL (``scheme://``), or
            an object with an fsspec filesystem ``fs`` and a ``path``.

    Returns:
        A sink. For a local path the old file, if there is one, stays until commit and is then replaced at once, its
        bytes on disk before its name; remote files the same, as far as the filesystem can; a file object is
        written to directly, and its owner answers for half-written ones. A device or a pipe is written to directly too.

    Raises:
        UnsupportedError: the URL needs fsspec or one of its filesystems, which is not installed.
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
    """Whether a path names something that a rename would destroy: a device, a pipe, a socket."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
