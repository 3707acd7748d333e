"""Uploads to Azure's Blob Storage and Data Lake: blocks, staged under the final name and committed by a list, through adlfs.

Azure has no request that aborts staged blocks; it drops them after a week, or when another list is committed under the name.
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

TOKEN = "fastpq_upload"         # metadata of an object; Azure takes identifiers alone
REFUSALS = frozenset({"BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet"})     # codes of errors


class AzureStore(ObjectStore):
    """Requests to Azure (``AzureBlobFileSystem.service_client``).

    The ids of blocks have the upload's token, and lengths equal for all uploads of one object, as Azure demands.
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
        """Without effect: the blocks stay until Azure drops them. An empty object would drop them, and readers would find it."""

    def end(self, upload: Upload) -> None:
        """Commit an empty list, by which Azure drops all blocks, and remove the empty object. Others may find it in between."""
        self._call(upload.path, "commit_block_list", [])
        self.remove(upload.path)

    def is_unfinished(self, upload: Upload) -> bool:
        try:
            _, staged = self._call(upload.path, "get_block_list", "uncommitted")
        except FileNotFoundError:
            return False
        return {block.id for block in staged} >= set(upload.parts)

    def unfinished(self, path: str) -> list[tuple[str, str, float]]:
        """As in ObjectStore, of objects that are not there; ids are empty. Staged blocks beside an object are not listed."""
        container, key, _ = self.filesystem.split_path(path)

        async def listed(**kind: Any) -> dict[str, Any]:
            async with self.filesystem.service_client.get_container_client(container) as client:
                return {blob.name: blob async for blob in client.list_blobs(name_starts_with=key, **kind)}

        try:
            staged = sync(self.filesystem.loop, listed, include=["uncommittedblobs"])
            complete = sync(self.filesystem.loop, listed)
        except OSError:
            raise
        except Exception as error:
            raise _failure(error, "list_blobs", path) from error
        now, found = datetime.now(UTC), []
        for name, blob in staged.items():
            is_below = name == key or not key or name.startswith(f"{key.rstrip('/')}/")
            if is_below and name not in complete:
                begun = blob.last_modified
                found.append((f"{container}/{name}", "", (now - begun).total_seconds() if begun else 0.0))
        return sorted(found)

    def version(self, about: Mapping[str, Any]) -> str:
        return str(about["etag"])

    def changed(self, about: Mapping[str, Any]) -> datetime | None:
        return about.get("last_modified")

    def url(self, path: str) -> str:
        """With the account, which is a part of URLs; a connection string names its own account."""
        filesystem = self.filesystem
        has_host = hasattr(filesystem, "account_host") or filesystem.connection_string is not None
        if has_host or not filesystem.account_name:
            return super().url(path)
        container, key = self.filesystem.split_path(path)[:2]
        return f"abfss://{container}@{filesystem.account_name}.dfs.core.windows.net/{key}"

    def _complete(self, upload: Upload, conditions: Conditions) -> None:
        blocks = [BlobBlock(name, BlockState.UNCOMMITTED) for name in upload.parts]
        self._call(upload.path, "commit_block_list", blocks, metadata={TOKEN: upload.token}, **_wanted(conditions))

    def _put(self, path: str, body: bytes, token: str, conditions: Conditions) -> None:
        self._call(path, "upload_blob", body, overwrite=True, metadata={TOKEN: token}, **_wanted(conditions))

    def _token(self, path: str) -> str | None:
        try:
            found: str | None = self._call(path, "get_blob_properties").metadata.get(TOKEN)
        except OSError:
            return None
        return found

    def _is_refusal(self, error: OSError) -> bool:
        code = getattr(error.__cause__, "error_code", None)
        return getattr(code, "value", code) in REFUSALS

    def _call(self, path: str, method: str, *arguments: Any, **wanted: Any) -> Any:
        """The answer to a request; each failure is an OSError, also of the connection."""
        container, key = self.place(path)

        async def send() -> Any:
            async with self.filesystem.service_client.get_blob_client(container, key) as client:
                return await getattr(client, method)(*arguments, **wanted)

        try:
            return sync(self.filesystem.loop, send)
        except OSError:
            raise
        except Exception as error:      # of the client, and of aiohttp below it
            raise _failure(error, method, path) from error


def _failure(error: Exception, method: str, path: str) -> OSError:
    if getattr(error, "status_code", None) == 404:
        return FileNotFoundError(errno.ENOENT, f"{method}: no such object, or no such container", path)
    return OSError(errno.EIO, f"{method}: {type(error).__name__}: {str(error).partition(chr(10))[0]}", path)


def _wanted(conditions: Conditions) -> dict[str, Any]:
    if conditions.if_none_match is not None:
        return {"match_condition": MatchConditions.IfMissing}
    if conditions.if_match is not None:
        return {"match_condition": MatchConditions.IfNotModified, "etag": conditions.if_match}
    return {}
