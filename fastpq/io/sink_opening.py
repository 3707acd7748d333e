"""open_sink: the sink for a path, a URL or a file object. Also the sinks for fsspec filesystems without a store module."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import stat
import weakref
from typing import Any

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.location import Remote, is_of_arrow, locate, protocols
from fastpq.io.new_file import TEMPORARY_SUFFIX, new_token
from fastpq.io.sink import NO_CONDITIONS, Conditions, FileObjectSink, FileSink, Sink

SPOOL_PREFIX = "fastpq-upload-"     # file names begin with this while the files wait for their upload

# Protocols for object stores. There an object appears when its upload is complete, and moving an object means copying it.
OBJECT_STORES = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "cos", "obs", "tos", "r2", "hf"}
)


class MovingSink(Sink):
    """A file on an fsspec filesystem, written under a temporary name. The commit moves it, and is as atomic as this move."""

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
    """An object in a store. The fsspec filesystem uploads it while the caller writes, and the commit completes it."""

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
    """Return a DeferredSink if the filesystem's files have their own commit, else None."""
    base = importlib.import_module("fsspec.spec").AbstractBufferedFile
    file = remote.filesystem.open(remote.path, "wb", autocommit=False)
    if isinstance(file, base) and type(file).commit is not base.commit and type(file).discard is not base.discard:
        return DeferredSink(remote, file)
    file.discard() if hasattr(file, "discard") else file.close()
    return None


class UploadingSink(FileSink):
    """An object in a store, collected in a NewFile in the directory for temporary files. The commit uploads it."""

    def __init__(self, remote: Remote) -> None:
        import tempfile

        self._remote, folder = remote, tempfile.gettempdir()
        name = f"{SPOOL_PREFIX}{new_token()}"    # nobody else can plant a file with this name
        super().__init__(os.path.join(folder, name), mode=0o600, replaces=False)
        self.name, self._error_path = remote.name, folder

    def _finish(self) -> None:
        self._remote.filesystem.put_file(self._new.path, self._remote.path)
        self._discard()


def open_sink(where: Any, conditions: Conditions = NO_CONDITIONS, *, durable: bool = True) -> Sink:
    """Open a destination for writing.

    Args:
        where: a local path (str, PathLike or ``file://`` URL), a binary file object, an fsspec URL (``scheme://``), or
            an object with an fsspec filesystem ``fs`` and a ``path``. A Sink is returned as it is.
        conditions: what must be true of the target at the commit.
        durable: whether a local file is on disk at the commit, as in NewFile. Other destinations ignore it.

    Returns:
        A sink. What it does depends on the destination:

        - A local path: an old file stays until the commit. Bytes that are on disk then replace it at once. If durable, a new
          file's bytes are also on disk before it gets its name.
        - An object in S3, Azure or Google's store, or in another store whose fsspec filesystem can complete an upload later: the
          object is uploaded while it is written, and appears at the commit.
        - Any other remote file: it appears in the way that its filesystem has.
        - A file object, a device or a pipe: it is written directly. A file object's owner must deal with half-written contents.

    Raises:
        UnsupportedError: fsspec, or its package for the URL's scheme, is not installed. Or the target cannot keep the conditions.
            S3, Azure and Google's store keep both conditions, local files only ``if_none_match``.
        OSError: the file cannot be made.
        SchemaError: ``where`` is not a place where bytes can be written.
    """
    if isinstance(where, Sink):
        return where
    is_path = isinstance(where, str | os.PathLike)
    place = None if hasattr(where, "write") and not is_path and not hasattr(where, "fs") else locate(where)
    if isinstance(place, Remote):
        return _remote_sink(place, conditions)
    if isinstance(place, str) and place.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place)
    is_file = isinstance(place, str) and not _is_special(place)
    if conditions.if_match is not None or (conditions and not is_file):
        raise _without_conditions(str(place or type(where).__name__))
    if isinstance(place, str):
        if not is_file:
            return FileObjectSink(open(place, "wb", buffering=0), place, is_owned=True)
        return FileSink(place, replaces=not conditions, durable=durable)
    if isinstance(where, io.TextIOBase):
        raise SchemaError(f"cannot write to {type(where).__name__}, a text file: open it in binary mode, or take io.BytesIO")
    if hasattr(where, "write"):
        return FileObjectSink(where)
    raise SchemaError(f"cannot write to a {type(where).__name__}: give a path, a URL or a binary file object")


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
    if OBJECT_STORES.isdisjoint(protocols(remote.filesystem)):
        return MovingSink(remote)
    # A file on a pyarrow filesystem has no commit. The object appears when the file is closed.
    return UploadingSink(remote) if is_of_arrow(remote.filesystem) else _deferred(remote) or UploadingSink(remote)


def _is_special(path: str) -> bool:
    """Return whether a path names a device, a pipe or a socket. A rename would destroy these."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
