"""Reads from stores of the package obstore: a store as a filesystem, and range requests to it."""

from __future__ import annotations

from typing import Any

from obstore.exceptions import PreconditionError
from obstore.fsspec import FsspecStore

from fastpq.errors import RemoteError
from fastpq.io.file_version import FileVersion
from fastpq.io.range_requests import Answer, AsyncRanges, ConditionFailedError, RangeRequest, WholeFile


class StoreFilesystem(FsspecStore):     # type: ignore[misc]
    """One store of obstore as an fsspec filesystem. Paths are those in the store.

    Args:
        store: the store, for example an ``obstore.store.S3Store``.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        options: dict[str, Any] = {"skip_instance_cache": True}
        super().__init__("memory", **options)       # a protocol without buckets

    def _construct_store(self, bucket: str) -> Any:
        return self._store

    def _split_path(self, path: str) -> tuple[str, str]:
        return "", path.strip("/")

    async def _ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
        entries = [{**entry, "name": entry["name"].lstrip("/")} for entry in await super()._ls(path, detail=True, **options)]
        return entries if detail else sorted(entry["name"] for entry in entries)

    def __reduce__(self) -> Any:
        return StoreFilesystem, (self._store,)


class ObstoreRanges(AsyncRanges):
    """Requests to a store of obstore. ``if_match`` demands the object's ETag."""

    def __init__(self, place: Any) -> None:
        super().__init__(place)
        bucket, self._key = self.filesystem._split_path(self.path)
        self._store = self.filesystem._construct_store(bucket)

    async def send(
        self, request: RangeRequest, version: FileVersion | None, condition: str | None, whole: WholeFile
    ) -> Answer:
        start, length = request.start, request.length
        options: dict[str, Any] = {"range": {"suffix": length} if start is None else (start, start + length)}
        if condition is not None:
            options["if_match"] = condition
        try:
            answer = await self._store.get_async(self._key, options=options)
        except PreconditionError as error:
            raise ConditionFailedError from error
        now = FileVersion.from_information(answer.meta)
        first, end = answer.range
        size = answer.meta["size"]
        is_right = (first, end) == (start, start + length) if start is not None else end == size and 0 < end - first <= length
        if not is_right or request.size not in (None, size):
            raise RemoteError(f"the store answered with the bytes {first} to {end} of {size} to a request for {request}")
        if version is not None:
            version.check_unchanged(now)
        return Answer((await answer.bytes_async()).to_bytes(), first, size, now)
