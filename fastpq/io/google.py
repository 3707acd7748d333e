"""Uploads to Google Cloud Storage, through gcsfs. Parts are hidden objects beside the target, and are composed into it.

Google's own resumable uploads are not used. The URL of such an upload is a secret with which anybody can write, and the uploads
cannot be listed. If the object is called NAME, its parts are called ``.fastpq-TOKEN-NUMBER-NAME`` and are in the same folder.
Dataset readers skip such names.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from fastpq.common.parallel import run_parallel
from fastpq.io.object_store import ObjectStore, Upload
from fastpq.io.sink import Conditions

TOKEN = "fastpq-upload"         # key in an object's metadata
COMPOSED = 32                   # Google composes at most this many objects with one request
REMOVED_AT_A_TIME = 8           # how many requests remove parts at the same time, after the object has appeared

_PART = re.compile(r"\.fastpq-([0-9a-f]{32})-(\d+)-([^/]*)")


class GoogleStore(ObjectStore):
    """Requests to Google's store (``GCSFileSystem.call``). An object's version is its generation."""

    def begin(self, path: str, token: str) -> str:
        self.place(path)
        return token

    def put_part(self, path: str, upload_id: str, number: int, body: bytes) -> str:
        bucket, key = self.place(path)
        name = _part(key, upload_id, f"{number:05d}")
        self._insert(path, bucket, name, body, {})
        return name

    def abort(self, path: str, upload_id: str) -> None:
        """Remove the parts, and also what another process composes from them meanwhile."""
        bucket, key = self.place(path)
        while names := [one["name"] for one in self._listed(path, bucket, _prefix(key, upload_id))]:
            self._remove(path, bucket, names)

    def is_unfinished(self, upload: Upload) -> bool:
        bucket, key = self.place(upload.path)
        names = {one["name"] for one in self._listed(upload.path, bucket, _prefix(key, upload.upload_id))}
        return names >= set(upload.parts)

    def unfinished(self, path: str) -> list[tuple[str, str, float]]:
        bucket, key, _ = self.filesystem.split_path(path)
        oldest: dict[tuple[str, str], datetime] = {}
        folder, base = posixpath.split(key)
        prefixes = [f"{key.rstrip('/')}/"] if key else [""]
        if base:
            prefixes.append(posixpath.join(folder, ".fastpq-"))
        for prefix in prefixes:
            for one in self._listed(path, bucket, prefix):
                if match := _PART.fullmatch(posixpath.basename(one["name"])):
                    target = posixpath.join(posixpath.dirname(one["name"]), unquote(match[3]))
                    if target == key or target.startswith(prefixes[0]):
                        created_at = datetime.fromisoformat(one["timeCreated"])
                        upload = (f"{bucket}/{target}", match[1])
                        oldest[upload] = min(created_at, oldest.get(upload, created_at))
        now = datetime.now(UTC)
        return sorted((name, token, (now - created_at).total_seconds()) for (name, token), created_at in oldest.items())

    def version(self, about: Mapping[str, Any]) -> str:
        return str(about["generation"])

    def changed(self, about: Mapping[str, Any]) -> datetime | None:
        return about.get("mtime")

    def check(self, conditions: Conditions) -> None:
        if conditions.if_match is not None and not conditions.if_match.isdecimal():
            raise ValueError(f"if_match in Google's store must be a generation, a number: {conditions.if_match!r} is not one")

    def _complete(self, upload: Upload, conditions: Conditions) -> None:
        bucket, key = self.place(upload.path)
        names, level = upload.parts, 0
        while len(names) > COMPOSED:
            level += 1
            groups = [names[first : first + COMPOSED] for first in range(0, len(names), COMPOSED)]
            names = tuple(_part(key, upload.upload_id, f"{level}{number:05d}") for number in range(1, len(groups) + 1))
            for name, group in zip(names, groups, strict=True):
                self._compose(upload.path, bucket, group, name, {})
        self._compose(upload.path, bucket, names, key, {TOKEN: upload.token}, **_condition_options(conditions))

    def _completed(self, upload: Upload) -> None:
        with contextlib.suppress(OSError):      # the object is there, and abort_uploads finds parts that are left
            self.abort(upload.path, upload.upload_id)

    def _put(self, path: str, body: bytes, token: str, conditions: Conditions) -> None:
        bucket, key = self.place(path)
        self._insert(path, bucket, key, body, {TOKEN: token}, **_condition_options(conditions))

    def _token(self, path: str) -> str | None:
        try:
            about = self._call(path, "GET", "b/{}/o/{}", *self.place(path), json_out=True)
        except OSError:
            return None
        token: str | None = about.get("metadata", {}).get(TOKEN)
        return token

    def _is_refusal(self, error: OSError) -> bool:
        return isinstance(error, FileExistsError)       # gcsfs's error for status 412

    def _insert(self, path: str, bucket: str, name: str, body: bytes, metadata: Mapping[str, str], **options: str) -> None:
        boundary = secrets.token_hex(16)        # random, so that no body contains it
        about = json.dumps({"name": name, "metadata": metadata})
        head = f"--{boundary}\nContent-Type: application/json; charset=UTF-8\n\n{about}\n"
        data = f"{head}--{boundary}\nContent-Type: application/octet-stream\n\n".encode() + body + f"\n--{boundary}--".encode()
        self._call(
            path, "POST", f"{self.filesystem._location}/upload/storage/v1/b/{quote(bucket, safe='')}/o", uploadType="multipart",
            headers={"Content-Type": f'multipart/related; boundary="{boundary}"'}, data=data, json_out=True, **options,
        )

    def _compose(
        self, path: str, bucket: str, names: Sequence[str], target: str, metadata: Mapping[str, str], **options: str
    ) -> None:
        wish = {"sourceObjects": [{"name": name} for name in names], "destination": {"metadata": metadata}}
        self._call(path, "POST", "b/{}/o/{}/compose", bucket, target, json=wish, json_out=True, **options)

    def _listed(self, path: str, bucket: str, prefix: str) -> list[dict[str, Any]]:
        objects: list[dict[str, Any]] = []
        page: dict[str, str] = {}
        while True:
            answer = self._call(path, "GET", "b/{}/o", bucket, prefix=prefix, json_out=True, **page)
            objects.extend(answer.get("items", ()))
            if "nextPageToken" not in answer:
                return objects
            page = {"pageToken": answer["nextPageToken"]}

    def _remove(self, path: str, bucket: str, names: Iterable[str]) -> None:
        def remove(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self._call(path, "DELETE", "b/{}/o/{}", bucket, name)

        run_parallel(remove, names, REMOVED_AT_A_TIME)

    def _call(self, path: str, method: str, where: str, *arguments: str, **options: Any) -> Any:
        """Return the answer to a request."""
        with self._failures(path, method):
            return self.filesystem.call(method, where, *arguments, **options)


def _prefix(key: str, token: str) -> str:
    """Return the text with which all part names in an upload begin."""
    return posixpath.join(posixpath.dirname(key), f".fastpq-{token}-")


def _part(key: str, token: str, number: str) -> str:
    """Return a part's name. It must not contain ``=``, because readers would take the name for a partition."""
    return f"{_prefix(key, token)}{number}-{quote(posixpath.basename(key), safe='')}"


def _condition_options(conditions: Conditions) -> dict[str, str]:
    if conditions.if_none_match is not None:
        return {"ifGenerationMatch": "0"}
    return {} if conditions.if_match is None else {"ifGenerationMatch": conditions.if_match}
