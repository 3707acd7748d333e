"""Objects in object stores by uploads: bytes travel while they are written, and the object appears at the commit."""

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

PART_BYTES = 8 << 20            # of the first parts; S3 takes parts of 5 MiB or more, but for the last
PARTS_OF_A_SIZE = 1000          # after as many parts they get twice as large: 10,000 parts hold 8 TB
FIXED_PART_BYTES = 64 << 20     # of all parts for stores that take equal parts alone (s3fs's fixed_upload_size)
PARTS_UNDER_WAY = 2
DEFAULT_UPLOAD_SECONDS = 86400.0


def abort_uploads(
    where: Any,
    older_than: float = DEFAULT_UPLOAD_SECONDS,
    *,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> list[str]:
    """Abort unfinished uploads below a URL: their writers were killed, or are at work.

    An unfinished upload is no object of a dataset, and no reader takes it for one; its parts take paid space.

    Args:
        where: a URL of S3 or Google's store, or an object with an fsspec filesystem ``fs`` and a ``path``; a folder or an object.
        older_than: least age of an upload in seconds; writers need less time for a file.
        filesystem: filesystem of the path, of fsspec; None finds one by the URL.
        storage_options: options of the fsspec filesystem of a URL, as for pandas and Polars.
        timeout: most seconds without a byte from the store.

    Returns:
        Paths of the objects whose uploads were aborted.

    Raises:
        UnsupportedError: the filesystem is another one. Azure has no request that aborts: it drops the parts after a week.
        OSError: as reported by the store.
    """
    place = locate(placed(where, filesystem, storage_options, timeout))
    store = find_store(place.filesystem) if isinstance(place, Remote) else None
    if not isinstance(place, Remote) or store is None:
        raise UnsupportedError("unfinished uploads are listed and aborted in S3 (s3://...) and Google's store (gs://...) only")
    if not store.aborts:
        raise UnsupportedError("unfinished uploads in Azure cannot be aborted; Azure drops their parts by itself after a week")
    found = [one for one in store.unfinished(place.path) if one[2] >= older_than]
    for path, upload_id, _ in found:
        store.abort(path, upload_id)
    return [path for path, _, _ in found]


class MultipartSink(Sink):
    """An object in a store: full parts are uploaded while the caller goes on writing, and commit completes the upload.

    An object smaller than a part is put by one request. Memory is bounded by PARTS_UNDER_WAY + 1 parts. A writer killed at any
    request leaves the old object; a started upload is left to abort_uploads, to a lifecycle rule of the bucket, or to Azure.

    Args:
        remote: place of the object.
        conditions: on the object present at the commit.

    Raises:
        ValueError: ``if_match`` has not the form of the store's versions.
    """

    def __init__(self, remote: Remote, conditions: Conditions = NO_CONDITIONS) -> None:
        self._remote, self._conditions = remote, conditions
        self._parts = _Parts(remote)
        self._parts.store.check(conditions)
        super().__init__(remote.name, self._parts)
        self._cleanup = weakref.finalize(self, _give_up, self._parts, os.getpid())

    def persist(self) -> None:
        """Without effect: no object can be read before its upload is complete."""

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
    """An object in a store left incomplete: commit uploads the last part, and ``upload`` is for another process to complete.

    Attributes:
        upload: the upload, after commit.
    """

    upload: Upload | None = None

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)

    def _finish(self) -> None:
        self.upload = self._parts.finished()
        self._cleanup.detach()


class _Parts:
    """Bytes of an object on their way into the parts of an upload; begins the upload with the first full part."""

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
        """Take bytes; waits while PARTS_UNDER_WAY parts are under way.

        Raises:
            OSError: as reported by the store, perhaps of an earlier part.
        """
        done = 0
        while done < len(view):
            wanted = self._part_bytes() - len(self.rest)
            self.rest += view[done : done + wanted]
            done += wanted
            if len(self.rest) == self._part_bytes():
                self._send()
        return len(view)

    def finished(self) -> Upload:
        """The upload with all parts, after the last of them has arrived."""
        if self.rest or not self._count:
            self._send()
        while self._under_way:
            self._names.append(self._under_way.popleft().result())
        self._end_pool()
        assert self.upload_id is not None
        return Upload(self.path, self.upload_id, self.token, tuple(self._names))

    def give_up(self) -> None:
        """Abort the upload, when the parts under way have arrived or failed."""
        for part in self._under_way:
            part.cancel()
        self._end_pool()
        if self.upload_id is not None:
            with contextlib.suppress(OSError):      # the error that led here counts; abort_uploads finds the upload
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
