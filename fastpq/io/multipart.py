"""Objects in S3 by multipart upload: bytes travel while they are written, and the object appears when its upload is completed.

Requests go through the client of s3fs (``S3FileSystem.call_s3``): fsspec has no names for uploads, by which another process
completes what one process has uploaded, and no condition on the present object.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import secrets
import weakref
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.location import Remote, locate, placed, refused_options
from fastpq.io.sink import NO_CONDITIONS, Conditions, Sink

S3_PROTOCOLS = frozenset({"s3", "s3a"})
PART_BYTES = 8 << 20            # of the first parts; S3 takes parts of 5 MiB or more, but for the last
PARTS_OF_A_SIZE = 1000          # after as many parts they get twice as large: 10,000 parts hold 8 TB
FIXED_PART_BYTES = 64 << 20     # of all parts for stores that take equal parts alone (s3fs's fixed_upload_size)
PARTS_UNDER_WAY = 2
TOKEN = "fastpq-upload"         # metadata of an object, by which a writer knows its own
DEFAULT_UPLOAD_SECONDS = 86400.0


@dataclass(frozen=True)
class Upload:
    """An upload with all its parts, to be completed or aborted by any process.

    Attributes:
        path: path of the object in the form of the filesystem.
        upload_id: S3's name of the upload.
        token: the object's metadata TOKEN.
        etags: ETags of the parts, in order.
    """

    path: str
    upload_id: str
    token: str
    etags: tuple[str, ...]


def is_s3(filesystem: Any) -> bool:
    """Whether a filesystem is one of S3 by s3fs."""
    protocol = filesystem.protocol
    names = (protocol,) if isinstance(protocol, str) else protocol
    return hasattr(filesystem, "call_s3") and not S3_PROTOCOLS.isdisjoint(names)


def complete_upload(filesystem: Any, upload: Upload, conditions: Conditions = NO_CONDITIONS) -> None:
    """Make the object of an upload appear; without effect if it was completed before.

    Args:
        filesystem: filesystem of the object.
        upload: an upload with all its parts.
        conditions: on the present object.

    Raises:
        FileExistsError: there is an object, against ``if_none_match``.
        OSError: the present object is another one than in ``if_match``, or as reported by the store.
    """
    parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(upload.etags, 1)]
    wanted = {**_place(filesystem, upload.path), "UploadId": upload.upload_id, "MultipartUpload": {"Parts": parts}}
    _take_effect(filesystem, upload.path, upload.token, conditions, "complete_multipart_upload", wanted)


def abort_upload(filesystem: Any, upload: Upload) -> None:
    """Give up an upload; without effect if it was completed or aborted before.

    Raises:
        OSError: as reported by the store.
    """
    _abort(filesystem, upload.path, upload.upload_id)


def is_unfinished(filesystem: Any, upload: Upload) -> bool:
    """Whether an upload waits to be completed: it was neither completed nor aborted.

    Raises:
        OSError: as reported by the store.
    """
    try:
        _call(filesystem, upload.path, "list_parts", **_place(filesystem, upload.path), UploadId=upload.upload_id, MaxParts=1)
    except FileNotFoundError:
        return False
    return True


def abort_uploads(
    where: Any,
    older_than: float = DEFAULT_UPLOAD_SECONDS,
    *,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> list[str]:
    """Abort unfinished multipart uploads below a URL: their writers were killed, or are at work.

    An unfinished upload is no object, and no reader sees it; its parts take paid space.

    Args:
        where: a URL of S3, or an object with an fsspec filesystem ``fs`` and a ``path``: a folder, or an object.
        older_than: least age of an upload in seconds; writers need less time for a file.
        filesystem: filesystem of the path, of fsspec; None finds one by the URL.
        storage_options: options of the fsspec filesystem of a URL, as for pandas and Polars.
        timeout: most seconds without a byte from the store.

    Returns:
        Paths of the objects whose uploads were aborted.

    Raises:
        UnsupportedError: the filesystem is none of S3.
        OSError: as reported by the store.
    """
    place = locate(placed(where, filesystem, storage_options, timeout))
    if not isinstance(place, Remote) or not is_s3(place.filesystem):
        raise UnsupportedError("unfinished uploads are listed and aborted in S3 only (s3://...)")
    found = [one for one in unfinished_uploads(place) if one[2] >= older_than]
    for path, upload_id, _ in found:
        _abort(place.filesystem, path, upload_id)
    return [path for path, _, _ in found]


def unfinished_uploads(place: Remote) -> list[tuple[str, str, float]]:
    """Path, id and age in seconds of each unfinished upload of an object and below a folder."""
    bucket, key, _ = place.filesystem.split_path(place.path)
    now, found = datetime.datetime.now(datetime.UTC), []
    markers: dict[str, str] = {}
    while True:
        answer = _call(place.filesystem, place.path, "list_multipart_uploads", Bucket=bucket, Prefix=key, **markers)
        for one in answer.get("Uploads", ()):
            if one["Key"] == key or not key or one["Key"].startswith(f"{key.rstrip('/')}/"):
                age = (now - one["Initiated"]).total_seconds()
                found.append((f"{bucket}/{one['Key']}", one["UploadId"], age))
        if not answer.get("IsTruncated"):
            return sorted(found)
        markers = {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}


class MultipartSink(Sink):
    """An object in S3: full parts are uploaded while the caller goes on writing, and commit completes the upload.

    An object smaller than a part is put by one request. Memory is bounded by PARTS_UNDER_WAY + 1 parts. A writer killed at any
    request leaves the old object; a started upload is left to abort_uploads, or to a lifecycle rule of the bucket.

    Args:
        remote: place of the object.
        conditions: on the object present at the commit.
    """

    def __init__(self, remote: Remote, conditions: Conditions = NO_CONDITIONS) -> None:
        self._remote, self._conditions = remote, conditions
        self._parts = _Parts(remote)
        super().__init__(remote.name, self._parts)
        self._cleanup = weakref.finalize(self, _give_up, self._parts, os.getpid())

    def persist(self) -> None:
        """Without effect: no object can be read before its upload is complete."""

    def _finish(self) -> None:
        parts = self._parts
        if parts.upload_id is None:
            body = bytes(parts.rest)
            wanted = {**_place(parts.filesystem, parts.path), "Body": body, "Metadata": {TOKEN: parts.token}}
            _take_effect(parts.filesystem, parts.path, parts.token, self._conditions, "put_object", wanted)
        else:
            complete_upload(parts.filesystem, parts.finished(), self._conditions)
        self._cleanup.detach()
        parts.filesystem.invalidate_cache(parts.path)

    def _discard(self) -> None:
        self._cleanup()


class PendingSink(MultipartSink):
    """An object in S3 left incomplete: commit uploads the last part, and ``upload`` is for another process to complete.

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
        self.filesystem, self.path = remote.filesystem, remote.path
        self.token = secrets.token_hex(16)
        self.upload_id: str | None = None
        self.rest = bytearray()
        self._has_fixed_size = bool(getattr(remote.filesystem, "fixed_upload_size", False))
        self._etags: list[str] = []
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
            self._etags.append(self._under_way.popleft().result())
        self._end_pool()
        assert self.upload_id is not None
        return Upload(self.path, self.upload_id, self.token, tuple(self._etags))

    def give_up(self) -> None:
        """Abort the upload, when the parts under way have arrived or failed."""
        for part in self._under_way:
            part.cancel()
        self._end_pool()
        if self.upload_id is not None:
            with contextlib.suppress(OSError):      # the error that led here counts; abort_uploads finds the upload
                _abort(self.filesystem, self.path, self.upload_id)

    def _part_bytes(self) -> int:
        return FIXED_PART_BYTES if self._has_fixed_size else PART_BYTES << self._count // PARTS_OF_A_SIZE

    def _send(self) -> None:
        if self.upload_id is None or self._pool is None:
            self.upload_id = self._begin()
            self._pool = ThreadPoolExecutor(PARTS_UNDER_WAY, thread_name_prefix="fastpq-upload")
        if len(self._under_way) >= PARTS_UNDER_WAY:
            self._etags.append(self._under_way.popleft().result())
        self._count += 1
        self._under_way.append(self._pool.submit(self._put, self._count, bytes(self.rest)))
        self.rest = bytearray()

    def _begin(self) -> str:
        place = _place(self.filesystem, self.path)
        answer = _call(self.filesystem, self.path, "create_multipart_upload", **place, Metadata={TOKEN: self.token})
        return str(answer["UploadId"])

    def _put(self, number: int, body: bytes) -> str:
        assert self.upload_id is not None
        place = {**_place(self.filesystem, self.path), "UploadId": self.upload_id}
        answer = _call(self.filesystem, self.path, "upload_part", **place, PartNumber=number, Body=body)
        return str(answer["ETag"])

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)


def _give_up(parts: _Parts, owner: int) -> None:
    if os.getpid() == owner:        # a forked child owns the sink, not the upload
        parts.give_up()


def _place(filesystem: Any, path: str) -> dict[str, str]:
    bucket, key, _ = filesystem.split_path(path)
    if not key:
        raise SchemaError("an object needs a name below its bucket", path=path)
    return {"Bucket": bucket, "Key": key}


def _take_effect(
    filesystem: Any, path: str, token: str, conditions: Conditions, method: str, wanted: Mapping[str, Any]
) -> None:
    """Send the request that makes an object appear; an error after which the object is there with its token is none."""
    headers = {"IfNoneMatch": conditions.if_none_match, "IfMatch": conditions.if_match}
    try:
        _call(filesystem, path, method, **wanted, **{name: value for name, value in headers.items() if value is not None})
    except OSError as error:        # the answer may be lost, and a request sent again finds its own object
        if _token_of(filesystem, path) == token:
            return
        if _is_refusal(error):
            raise conditions.refusal(path) from error
        raise


def _token_of(filesystem: Any, path: str) -> str | None:
    """The token of the present object; None without an object, without a token or without an answer."""
    try:
        answer = _call(filesystem, path, "head_object", **_place(filesystem, path))
    except OSError:
        return None
    token: str | None = answer.get("Metadata", {}).get(TOKEN)
    return token


def _is_refusal(error: OSError) -> bool:
    """Whether a condition on the present object did not hold (412)."""
    answer = getattr(error.__cause__, "response", None) or {}       # errors of the connection have None
    return bool(answer.get("ResponseMetadata", {}).get("HTTPStatusCode") == 412)


def _abort(filesystem: Any, path: str, upload_id: str) -> None:
    with contextlib.suppress(FileNotFoundError):        # completed or aborted before
        _call(filesystem, path, "abort_multipart_upload", **_place(filesystem, path), UploadId=upload_id)


def _call(filesystem: Any, path: str, method: str, **wanted: Any) -> Any:
    """The answer to a request; each failure is an OSError, also of the connection."""
    try:
        return filesystem.call_s3(method, **wanted)
    except OSError:
        raise
    except (TypeError, AttributeError) as error:
        raise refused_options(path, filesystem.storage_options, error) from error
    except Exception as error:      # of botocore and aiohttp, which s3fs passes on
        raise OSError(errno.EIO, f"{method}: {type(error).__name__}: {error}", path) from error
