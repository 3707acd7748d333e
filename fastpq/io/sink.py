"""Destinations of bytes: files that appear whole or not at all, file objects, and fsspec filesystems."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import tempfile
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeAlias

from fastpq.errors import SchemaError
from fastpq.io.counts import checked_count
from fastpq.io.location import Remote, locate
from fastpq.io.new_file import TEMPORARY_SUFFIX, TOKEN_BYTES, NewFile

BytesLike: TypeAlias = bytes | bytearray | memoryview

SPOOL_PREFIX = "fastpq-upload-"     # begin of the names of files waiting for their upload

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
            SchemaError: a file object does not say how many bytes it wrote.
            ValueError: the sink was committed or aborted.
        """
        self._must_be_open()
        view = memoryview(buffer)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        done = 0
        while done < len(view):  # a raw file may take a part of its argument
            count = checked_count(self._file.write(view[done:]), len(view) - done, "write", self.name)
            if not count:
                raise OSError(errno.EIO, "a file object took no byte of a write", self.name)
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
    """A local file, written as a NewFile and put in its place by commit.

    Args:
        path: path of the file.
        mode: permissions of a file without predecessor; None for the umask's.
        replaces: whether an old file may be replaced.
        follow_links: whether a symbolic link is followed; else the link is replaced by the file.
    """

    def __init__(
        self, path: str, *, mode: int | None = None, replaces: bool = True, follow_links: bool = True
    ) -> None:
        self._new = NewFile(path, mode=mode, replaces=replaces, follow_links=follow_links)
        super().__init__(path, self._new.file)

    def persist(self) -> None:
        self._new.persist()

    def _finish(self) -> None:
        self._new.place()

    def _discard(self) -> None:
        self._new.discard()


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
    """An object in an object store, gathered in a NewFile in the directory for temporary files and uploaded by commit."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        name = f"{SPOOL_PREFIX}{secrets.token_hex(TOKEN_BYTES)}"    # others cannot plant a file of this name
        self._new = NewFile(os.path.join(tempfile.gettempdir(), name), mode=0o600, replaces=False)
        super().__init__(remote.name, self._new.file)

    def persist(self) -> None:
        self._new.persist()

    def _finish(self) -> None:
        self._remote.filesystem.put_file(self._new.path, self._remote.path)
        self._new.discard()

    def _discard(self) -> None:
        self._new.discard()


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
