"""Objects in object stores, uploaded in parts while they are written. The object appears at the commit."""

from __future__ import annotations

import contextlib
import os
import secrets
import weakref
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fastpq.errors import UnsupportedError
from fastpq.io.location import Remote, locate, placed
from fastpq.io.object_store import Upload, find_store, store_at
from fastpq.io.sink import NO_CONDITIONS, Conditions, Sink

PART_BYTES = 8 << 20            # bytes in the first parts. S3 takes parts with at least 5 MiB, except for the last
PARTS_OF_A_SIZE = 1000          # after this many parts, the part size doubles, so that 10,000 parts hold 8 TB
FIXED_PART_BYTES = 64 << 20     # bytes in every part, for stores that take only equal parts (s3fs's fixed_upload_size)
PARTS_UNDER_WAY = 2             # how many parts are uploaded at the same time
DEFAULT_UPLOAD_SECONDS = 86400.0


def abort_uploads(
    where: Any,
    older_than: float = DEFAULT_UPLOAD_SECONDS,
    *,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> list[str]:
    """Abort unfinished uploads below a URL. Their writers were killed, or are still at work.

    An unfinished upload is not an object, and no reader sees it, but its parts take space that is paid for.

    Args:
        where: a folder or an object in S3 or Google's store. Given as a URL, or as a Python object that has an fsspec filesystem
            ``fs`` and a ``path``.
        older_than: age in seconds from which uploads are aborted. It should be longer than a writer needs for a file.
        filesystem: an fsspec filesystem that has the path. None finds the filesystem by the URL.
        storage_options: options for the fsspec filesystem behind a URL, as in pandas and Polars.
        timeout: how many seconds to wait for a byte from the store.

    Returns:
        Paths of the objects whose uploads were aborted.

    Raises:
        UnsupportedError: the files are elsewhere. In Azure, no request aborts an upload, and Azure drops the parts after a week.
        OSError: the store reported an error.
    """
    place = locate(placed(where, filesystem, storage_options, timeout))
    store = find_store(place.filesystem) if isinstance(place, Remote) else None
    if not isinstance(place, Remote) or store is None:
        raise UnsupportedError("unfinished uploads are listed and aborted in S3 (s3://...) and Google's store (gs://...) only")
    if not store.aborts:
        raise UnsupportedError("unfinished uploads in Azure cannot be aborted; Azure drops their parts by itself after a week")
    uploads = [one for one in store.unfinished(place.path) if one[2] >= older_than]
    for path, upload_id, _ in uploads:
        store.abort(path, upload_id)
    return [path for path, _, _ in uploads]


class MultipartSink(Sink):
    """An object in a store. Full parts are uploaded while the caller goes on writing, and the commit completes the upload.

    An object that is smaller than a part is put with one request. Memory holds at most PARTS_UNDER_WAY + 1 parts. If a writer is
    killed at any request, the old object stays. The unfinished upload is then left to abort_uploads, to a lifecycle rule that the
    bucket has, or to Azure.

    Args:
        remote: the object's place.
        conditions: what must be true for the object that exists at the commit.

    Raises:
        ValueError: ``if_match`` does not have the form of the store's versions.
    """

    def __init__(self, remote: Remote, conditions: Conditions = NO_CONDITIONS) -> None:
        self._remote, self._conditions = remote, conditions
        self._parts = _Parts(remote)
        self._parts.store.check(conditions)
        super().__init__(remote.name, self._parts)
        self._cleanup = weakref.finalize(self, _give_up, self._parts, os.getpid())

    def persist(self) -> None:
        """Do nothing: an object cannot be read before its upload is complete."""

    def _finish(self) -> None:
        parts = self._parts
        if parts.upload_id is None:
            parts.store.put(parts.path, bytes(parts.rest), parts.token, self._conditions)
        else:
            parts.store.complete(parts.finished(), self._conditions)
        self._cleanup.detach()
        self._remote.filesystem.invalidate_cache(parts.path)

    def _discard(self) -> None:
        self._cleanup()


class PendingSink(MultipartSink):
    """An object in a store that this process leaves incomplete. Another process completes ``upload``.

    The commit only uploads the last part.

    Attributes:
        upload: the upload. None before the commit.
    """

    upload: Upload | None = None

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)

    def _finish(self) -> None:
        self.upload = self._parts.finished()
        self._cleanup.detach()


class _Parts:
    """A file-like object that collects bytes into parts and uploads them. The first full part begins the upload."""

    def __init__(self, remote: Remote) -> None:
        self.store, self.path = store_at(remote.filesystem), remote.path
        self.token = secrets.token_hex(16)
        self.upload_id: str | None = None
        self.rest = bytearray()
        self._names: list[str] = []
        self._under_way: deque[Future[str]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._count = 0

    def write(self, view: memoryview) -> int:
        """Append bytes. Wait if a part is full while PARTS_UNDER_WAY parts are still being uploaded.

        Raises:
            OSError: the store reported an error, perhaps for an earlier part.
        """
        position = 0
        while position < len(view):
            missing = self._part_bytes() - len(self.rest)
            self.rest += view[position : position + missing]
            position += missing
            if len(self.rest) == self._part_bytes():
                self._send()
        return len(view)

    def finished(self) -> Upload:
        """Send the last part, wait until all parts have arrived, and return the upload."""
        if self.rest or not self._count:
            self._send()
        while self._under_way:
            self._names.append(self._under_way.popleft().result())
        self._end_pool()
        assert self.upload_id is not None
        return Upload(self.path, self.upload_id, self.token, tuple(self._names))

    def give_up(self) -> None:
        """Abort the upload. Wait first until the parts that are being uploaded have arrived or failed."""
        for part in self._under_way:
            part.cancel()
        self._end_pool()
        if self.upload_id is not None:
            with contextlib.suppress(OSError):      # the error that led here counts, and abort_uploads finds the upload
                self.store.abort(self.path, self.upload_id)

    def _part_bytes(self) -> int:
        return FIXED_PART_BYTES if self.store.has_equal_parts else PART_BYTES << self._count // PARTS_OF_A_SIZE

    def _send(self) -> None:
        if self.upload_id is None or self._pool is None:
            self.upload_id = self.store.begin(self.path, self.token)
            self._pool = ThreadPoolExecutor(PARTS_UNDER_WAY, thread_name_prefix="fastpq-upload")
        if len(self._under_way) >= PARTS_UNDER_WAY:
            self._names.append(self._under_way.popleft().result())
        self._count += 1
        self._under_way.append(self._pool.submit(self.store.put_part, self.path, self.upload_id, self._count, bytes(self.rest)))
        self.rest = bytearray()

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)


def _give_up(parts: _Parts, owner: int) -> None:
    if os.getpid() == owner:        # a forked child owns the sink, not the upload
        parts.give_up()
