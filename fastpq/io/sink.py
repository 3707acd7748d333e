"""Destinations of bytes: files that appear whole or not at all, file objects, and fsspec filesystems."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import stat
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.counts import checked_count
from fastpq.io.location import Remote, is_of_arrow, locate
from fastpq.io.new_file import TEMPORARY_SUFFIX, NewFile, new_token

BytesLike: TypeAlias = bytes | bytearray | memoryview

MOST_TOGETHER = 1 << 16         # bytes of small buffers, copied together, from which they are written

SPOOL_PREFIX = "fastpq-upload-"     # begin of the names of files waiting for their upload

# Object stores, by protocol: an object appears when its upload is complete, and moving an object means copying.
OBJECT_STORES = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "cos", "obs", "tos", "r2", "hf"}
)


@dataclass(frozen=True)
class Conditions:
    """Conditions on the target for a commit: no file there, or an object of a given ETag (RFC 9110, If-None-Match, If-Match).

    Attributes:
        if_none_match: ``"*"``: there must be no file.
        if_match: ETag of the present object; in Google's store, its generation.

    Raises:
        ValueError: if_none_match is another text, or both are given.
    """

    if_none_match: str | None = None
    if_match: str | None = None

    def __post_init__(self) -> None:
        if self.if_none_match not in (None, "*"):
            raise ValueError(f'if_none_match is None or "*", for no file at the target, and not {self.if_none_match!r}')
        if self.if_none_match is not None and self.if_match is not None:
            raise ValueError("if_none_match wants no file at the target, and if_match wants one: give one of them")

    def __bool__(self) -> bool:
        return self.if_none_match is not None or self.if_match is not None

    def refusal(self, path: str) -> OSError:
        """The error where the conditions do not hold."""
        if self.if_none_match is not None:
            return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return OSError(errno.ESTALE, "the object was replaced: its ETag is not the one of if_match", path)


NO_CONDITIONS = Conditions()


class Sink:
    """A destination of bytes, written one behind the other; commit makes the bytes take effect.

    A context manager: commits at the end, or aborts on an exception.

    Attributes:
        name: path, URL or the object's own name, for messages.
        is_open: whether the sink is neither committed nor aborted.
        written: number of bytes written.
    """

    def __init__(self, name: str, file: Any) -> None:
        self.name = name
        self.is_open = True
        self._file = file
        self._gathered = bytearray()        # small buffers not written yet
        self.written = 0

    def write(self, buffer: BytesLike) -> None:
        """Append a contiguous buffer; small ones reach the destination together, at the latest by flush, persist or commit.

        Raises:
            OSError: as reported by the destination.
            SchemaError: a file object does not say how many bytes it wrote.
            ValueError: the sink was committed or aborted.
        """
        view = memoryview(buffer)
        self.write_together((view.cast("B") if view.nbytes else b"",))

    def write_together(self, buffers: Iterable[BytesLike]) -> None:
        """Append contiguous buffers of bytes; raises the errors of ``write``."""
        if not self.is_open:
            raise self._closed()
        for buffer in buffers:
            size = len(buffer)
            if size > MOST_TOGETHER:
                self.flush()
                self._put(memoryview(buffer))
            else:
                self._gathered += buffer
                if len(self._gathered) >= MOST_TOGETHER:
                    self.flush()
            self.written += size

    def flush(self) -> None:
        """Give the gathered buffers to the destination; raises the errors of ``write``."""
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._put(memoryview(gathered))

    def _put(self, view: memoryview) -> None:
        done = 0
        while done < len(view):  # a raw file may take a part of its argument
            count = self._file.write(view[done:])
            if type(count) is not int or count != len(view) - done:
                count = checked_count(count, len(view) - done, "write", self.name)
            if not count:
                raise OSError(errno.EIO, "a file object took no byte of a write", self.name)
            done += count

    def persist(self) -> None:
        """Make the bytes written so far survive the end of this process, as far as the destination can. No commit yet.

        Raises:
            OSError: as reported by the destination.
        """
        self.flush()
        if hasattr(self._file, "flush"):
            self._file.flush()

    def commit(self) -> None:
        """Make the written bytes take effect; aborts on failure.

        Raises:
            OSError: as reported by the destination; old contents are still there.
            ValueError: the sink was committed or aborted.
        """
        if not self.is_open:
            raise self._closed()
        try:
            self.flush()
            self._finish()
        except BaseException:
            self.abort()
            raise
        self.is_open = False

    def abort(self) -> None:
        """Undo all writes; without effect after commit or abort."""
        if self.is_open:
            self.is_open = False
            self._discard()

    def _finish(self) -> None:
        raise NotImplementedError

    def _discard(self) -> None:
        raise NotImplementedError

    def _closed(self) -> ValueError:
        return ValueError(f"{self.name} was committed or aborted")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        elif self.is_open:
            self.commit()


class FileSink(Sink):
    """A local file, written as a NewFile and put in its place by commit.

    Args:
        path: path of the file.
        mode: permissions of a file without predecessor; None for the umask's.
        replaces: whether an old file may be replaced.
        follow_links: whether a symbolic link is followed; else the link is replaced by the file.
        durable: whether the file is on disk when it takes its place, as for NewFile.
    """

    def __init__(
        self, path: str, *, mode: int | None = None, replaces: bool = True, follow_links: bool = True, durable: bool = True
    ) -> None:
        self._new = NewFile(path, mode=mode, replaces=replaces, follow_links=follow_links, durable=durable)
        super().__init__(path, self._new.file)

    def persist(self) -> None:
        self.flush()
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
        self._temporary = f"{directory}{slash}.{base}{TEMPORARY_SUFFIX.format(new_token())}"
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


class DeferredSink(Sink):
    """An object in a store whose fsspec filesystem uploads while the caller writes, and completes the object at the commit."""

    def __init__(self, remote: Remote, file: Any) -> None:
        super().__init__(remote.name, file)
        self._cleanup = weakref.finalize(self, _give_up_deferred, file, os.getpid())

    def _finish(self) -> None:
        self._file.close()
        self._file.commit()
        self._cleanup.detach()

    def _discard(self) -> None:
        self._cleanup()


def _give_up_deferred(file: Any, owner: int) -> None:
    if os.getpid() != owner:
        return
    try:
        file.close()
    finally:
        file.discard()


def _deferred(remote: Remote) -> DeferredSink | None:
    """A DeferredSink, if the filesystem's files have a commit of their own."""
    base = importlib.import_module("fsspec.spec").AbstractBufferedFile
    file = remote.filesystem.open(remote.path, "wb", autocommit=False)
    if isinstance(file, base) and type(file).commit is not base.commit and type(file).discard is not base.discard:
        return DeferredSink(remote, file)
    file.discard() if hasattr(file, "discard") else file.close()
    return None


class UploadingSink(Sink):
    """An object in an object store, gathered in a NewFile in the directory for temporary files and uploaded by commit."""

    def __init__(self, remote: Remote) -> None:
        import tempfile

        self._remote = remote
        name = f"{SPOOL_PREFIX}{new_token()}"    # others cannot plant a file of this name
        self._new = NewFile(os.path.join(tempfile.gettempdir(), name), mode=0o600, replaces=False)
        super().__init__(remote.name, self._new.file)

    def persist(self) -> None:
        self.flush()
        self._new.persist()

    def _finish(self) -> None:
        self._remote.filesystem.put_file(self._new.path, self._remote.path)
        self._new.discard()

    def _discard(self) -> None:
        self._new.discard()


def open_sink(where: Any, conditions: Conditions = NO_CONDITIONS, *, durable: bool = True) -> Sink:
    """Open a destination for writing.

    Args:
        where: a local path (str, PathLike or ``file://`` URL), a binary file object, an fsspec URL (``scheme://``), or
            an object with an fsspec filesystem ``fs`` and a ``path``. A Sink is returned as it is.
        conditions: on what is at the target at the commit.
        durable: whether a local file is on disk at the commit, as for NewFile; without effect on other destinations.

    Returns:
        A sink. For a local path, an old file stays until commit and is then replaced at once, by bytes that are on disk; if
        durable, the bytes of a new file are on disk before its name, too. Objects in S3, Azure, Google's store and in stores
        whose fsspec filesystems can complete an upload later are uploaded while they are written, and appear at the commit.
        Other remote files appear as far as the filesystem can. A file object, a device or a pipe is written to directly; the
        owner of a file object answers for half-written contents.

    Raises:
        UnsupportedError: fsspec, or its package for the URL's scheme, is not installed; or conditions where they cannot be kept:
            S3, Azure and Google's store keep both, local files ``if_none_match``.
        OSError: the file cannot be made.
        SchemaError: where is none of these.
    """
    if isinstance(where, Sink):
        return where
    is_path = isinstance(where, str | os.PathLike)
    located = None if hasattr(where, "write") and not is_path and not hasattr(where, "fs") else locate(where)
    if isinstance(located, Remote):
        return _remote_sink(located, conditions)
    if isinstance(located, str) and located.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), located)
    is_file = isinstance(located, str) and not _is_special(located)
    if conditions.if_match is not None or (conditions and not is_file):
        raise _without_conditions(str(located or type(where).__name__))
    if isinstance(located, str):
        if not is_file:
            return FileObjectSink(open(located, "wb", buffering=0), located, owned=True)
        return FileSink(located, replaces=not conditions, durable=durable)
    if isinstance(where, io.TextIOBase):
        raise SchemaError(f"cannot write to {type(where).__name__}, a file of text: open it in binary mode, or take io.BytesIO")
    if hasattr(where, "write"):
        return FileObjectSink(where)
    raise SchemaError(f"cannot write to {type(where).__name__}: neither a path, a URL nor a binary file object")


def _without_conditions(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"conditions on the target {name}: S3, Azure and Google's store keep if_none_match and if_match, local files the first"
    )


def _remote_sink(remote: Remote, conditions: Conditions) -> Sink:
    from fastpq.io.multipart import MultipartSink
    from fastpq.io.object_store import find_store

    if find_store(remote.filesystem) is not None:
        return MultipartSink(remote, conditions)
    if conditions:
        raise _without_conditions(remote.name)
    if protocols(remote.filesystem) & {"http", "https"}:
        raise UnsupportedError(f"writing to {remote.name}: fsspec only reads over HTTP; write to a local path or an s3:// URL")
    if not _is_object_store(remote.filesystem):
        return MovingSink(remote)
    # a file of pyarrow's filesystems has no commit: closing it makes the object
    return UploadingSink(remote) if is_of_arrow(remote.filesystem) else _deferred(remote) or UploadingSink(remote)


def _is_object_store(filesystem: Any) -> bool:
    return not OBJECT_STORES.isdisjoint(protocols(filesystem))


def protocols(filesystem: Any) -> set[str]:
    """The protocols of an fsspec filesystem."""
    protocol = filesystem.protocol
    return {protocol} if isinstance(protocol, str) else set(protocol)


def _is_special(path: str) -> bool:
    """Whether a path names a device, a pipe or a socket, which a rename would destroy."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
