"""Uploads to Azure's Blob Storage and Data Lake, through adlfs. Blocks are staged under the final name, and a list commits them.

Azure has no request that aborts staged blocks. It drops them after a week, or when another list is committed under that name.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from azure.core import MatchConditions
from azure.storage.blob import BlobBlock, BlockState
from fsspec.asyn import sync

from fastpq.io.object_store import ObjectStore, Upload
from fastpq.io.sink import Conditions

TOKEN = "fastpq_upload"         # key in an object's metadata, where Azure takes only identifiers
REFUSALS = frozenset({"BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet"})     # error codes


class AzureStore(ObjectStore):
    """Requests to Azure (``AzureBlobFileSystem.service_client``).

    Block ids contain the upload's token. They all have the same length, as Azure demands for one object.
    """

    aborts = False

    def begin(self, path: str, token: str) -> str:
        self.place(path)
        return token

    def put_part(self, path: str, upload_id: str, number: int, body: bytes) -> str:
        name = f"{upload_id}{number:05d}"
        self._call(path, "stage_block", name, body)
        return name

    def abort(self, path: str, upload_id: str) -> None:
        """Do nothing: the blocks stay until Azure drops them.

        Putting an empty object there would drop them at once, but readers would find it.
        """

    def end(self, upload: Upload) -> None:
        """Commit an empty list, so that Azure drops all blocks, and then remove the empty object.

        In between, others may find the empty object.
        """
        self._call(upload.path, "commit_block_list", [])
        self.remove(upload.path)

    def is_unfinished(self, upload: Upload) -> bool:
        try:
            _, blocks = self._call(upload.path, "get_block_list", "uncommitted")
        except FileNotFoundError:
            return False
        return {block.id for block in blocks} >= set(upload.parts)

    def unfinished(self, path: str) -> list[tuple[str, str, float]]:
        """Return unfinished uploads like ObjectStore, but with empty ids. Blocks are not listed if the object exists already."""
        container, key, _ = self.filesystem.split_path(path)

        async def list_blobs(**kind: Any) -> dict[str, Any]:
            async with self.filesystem.service_client.get_container_client(container) as client:
                return {blob.name: blob async for blob in client.list_blobs(name_starts_with=key, **kind)}

        with self._failures(path, "list_blobs"):
            unfinished_blobs = sync(self.filesystem.loop, list_blobs, include=["uncommittedblobs"])
            complete = sync(self.filesystem.loop, list_blobs)
        now, uploads = datetime.now(UTC), []
        for name, blob in unfinished_blobs.items():
            is_below = name == key or not key or name.startswith(f"{key.rstrip('/')}/")
            if is_below and name not in complete:
                start = blob.last_modified
                uploads.append((f"{container}/{name}", "", (now - start).total_seconds() if start else 0.0))
        return sorted(uploads)

    def version(self, about: Mapping[str, Any]) -> str:
        return str(about["etag"])

    def changed(self, about: Mapping[str, Any]) -> datetime | None:
        return about.get("last_modified")

    def url(self, path: str) -> str:
        """Return the URL. It names the account, unless a connection string names it."""
        filesystem = self.filesystem
        has_host = hasattr(filesystem, "account_host") or filesystem.connection_string is not None
        if has_host or not filesystem.account_name:
            return super().url(path)
        container, key = self.filesystem.split_path(path)[:2]
        return f"abfss://{container}@{filesystem.account_name}.dfs.core.windows.net/{key}"

    def _complete(self, upload: Upload, conditions: Conditions) -> None:
        blocks = [BlobBlock(name, BlockState.UNCOMMITTED) for name in upload.parts]
        self._call(upload.path, "commit_block_list", blocks, metadata={TOKEN: upload.token}, **_condition_options(conditions))

    def _put(self, path: str, body: bytes, token: str, conditions: Conditions) -> None:
        self._call(path, "upload_blob", body, overwrite=True, metadata={TOKEN: token}, **_condition_options(conditions))

    def _token(self, path: str) -> str | None:
        try:
            token: str | None = self._call(path, "get_blob_properties").metadata.get(TOKEN)
        except OSError:
            return None
        return token

    def _is_refusal(self, error: OSError) -> bool:
        code = getattr(error.__cause__, "error_code", None)
        return getattr(code, "value", code) in REFUSALS

    def _call(self, path: str, method: str, *arguments: Any, **options: Any) -> Any:
        """Return the answer to a request."""
        container, key = self.place(path)

        async def send() -> Any:
            async with self.filesystem.service_client.get_blob_client(container, key) as client:
                return await getattr(client, method)(*arguments, **options)

        with self._failures(path, method):
            return sync(self.filesystem.loop, send)

    def _failure(self, error: Exception, method: str, path: str) -> Exception:
        if getattr(error, "status_code", None) == 404:
            return FileNotFoundError(errno.ENOENT, f"{method}: no such object, or no such container", path)
        return super()._failure(error, method, path)


def _condition_options(conditions: Conditions) -> dict[str, Any]:
    if conditions.if_none_match is not None:
        return {"match_condition": MatchConditions.IfMissing}
    if conditions.if_match is not None:
        return {"match_condition": MatchConditions.IfNotModified, "etag": conditions.if_match}
    return {}
