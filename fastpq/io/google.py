"""Uploads to Google Cloud Storage through gcsfs: hidden objects beside the target, composed into it.

Google's own resumable uploads do not serve here: the URL of one is a secret, by which anybody may write, and none are listed.
A part's name is ``.fastpq-TOKEN-NUMBER-NAME`` in the folder of the object NAME; readers of datasets pass over such names.
"""

from __future__ import annotations

import contextlib
import errno
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

TOKEN = "fastpq-upload"         # metadata of an object
COMPOSED = 32                   # most objects that Google composes by one request
REMOVED_AT_A_TIME = 8           # parts, after the object has appeared

_PART = re.compile(r"\.fastpq-([0-9a-f]{32})-(\d+)-([^/]*)")


class GoogleStore(ObjectStore):
    """Requests to Google's store (``GCSFileSystem.call``). A version is an object's generation."""

    def begin(self, path: str, token: str) -> str:
        self.place(path)
        return token

    def put_part(self, path: str, upload_id: str, number: int, body: bytes) -> str:
        bucket, key = self.place(path)
        name = _part(key, upload_id, f"{number:05d}")
        self._insert(path, bucket, name, body, {})
        return name

    def abort(self, path: str, upload_id: str) -> None:
        """Remove the parts, and all that another process composes of them meanwhile."""
        bucket, key = self.place(path)
        while names := [one["name"] for one in self._listed(path, bucket, _prefix(key, upload_id))]:
            self._remove(path, bucket, names)

    def is_unfinished(self, upload: Upload) -> bool:
        bucket, key = self.place(upload.path)
        there = {one["name"] for one in self._listed(upload.path, bucket, _prefix(key, upload.upload_id))}
        return there >= set(upload.parts)

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
                        made = datetime.fromisoformat(one["timeCreated"])
                        upload = (f"{bucket}/{target}", match[1])
                        oldest[upload] = min(made, oldest.get(upload, made))
        now = datetime.now(UTC)
        return sorted((name, token, (now - made).total_seconds()) for (name, token), made in oldest.items())

    def version(self, about: Mapping[str, Any]) -> str:
        return str(about["generation"])

    def changed(self, about: Mapping[str, Any]) -> datetime | None:
        return about.get("mtime")

    def check(self, conditions: Conditions) -> None:
        if conditions.if_match is not None and not conditions.if_match.isdecimal():
            raise ValueError(f"if_match in Google's store is an object's generation, a number, and not {conditions.if_match!r}")

    def _complete(self, upload: Upload, conditions: Conditions) -> None:
        bucket, key = self.place(upload.path)
        names, level = upload.parts, 0
        while len(names) > COMPOSED:
            level += 1
            groups = [names[first : first + COMPOSED] for first in range(0, len(names), COMPOSED)]
            names = tuple(_part(key, upload.upload_id, f"{level}{number:05d}") for number in range(1, len(groups) + 1))
            for name, group in zip(names, groups, strict=True):
                self._compose(upload.path, bucket, group, name, {})
        self._compose(upload.path, bucket, names, key, {TOKEN: upload.token}, **_wanted(conditions))

    def _completed(self, upload: Upload) -> None:
        with contextlib.suppress(OSError):      # the object is there; abort_uploads finds the parts
            self.abort(upload.path, upload.upload_id)

    def _put(self, path: str, body: bytes, token: str, conditions: Conditions) -> None:
        bucket, key = self.place(path)
        self._insert(path, bucket, key, body, {TOKEN: token}, **_wanted(conditions))

    def _token(self, path: str) -> str | None:
        try:
            found = self._call(path, "GET", "b/{}/o/{}", *self.place(path), json_out=True)
        except OSError:
            return None
        token: str | None = found.get("metadata", {}).get(TOKEN)
        return token

    def _is_refusal(self, error: OSError) -> bool:
        return isinstance(error, FileExistsError)       # gcsfs's error of the status 412

    def _insert(self, path: str, bucket: str, name: str, body: bytes, metadata: Mapping[str, str], **wanted: str) -> None:
        boundary = secrets.token_hex(16)        # no body has it
        about = json.dumps({"name": name, "metadata": metadata})
        head = f"--{boundary}\nContent-Type: application/json; charset=UTF-8\n\n{about}\n"
        data = f"{head}--{boundary}\nContent-Type: application/octet-stream\n\n".encode() + body + f"\n--{boundary}--".encode()
        self._call(
            path, "POST", f"{self.filesystem._location}/upload/storage/v1/b/{quote(bucket, safe='')}/o", uploadType="multipart",
            headers={"Content-Type": f'multipart/related; boundary="{boundary}"'}, data=data, json_out=True, **wanted,
        )

    def _compose(
        self, path: str, bucket: str, names: Sequence[str], target: str, metadata: Mapping[str, str], **wanted: str
    ) -> None:
        wish = {"sourceObjects": [{"name": name} for name in names], "destination": {"metadata": metadata}}
        self._call(path, "POST", "b/{}/o/{}/compose", bucket, target, json=wish, json_out=True, **wanted)

    def _listed(self, path: str, bucket: str, prefix: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        page: dict[str, str] = {}
        while True:
            answer = self._call(path, "GET", "b/{}/o", bucket, prefix=prefix, json_out=True, **page)
            found.extend(answer.get("items", ()))
            if "nextPageToken" not in answer:
                return found
            page = {"pageToken": answer["nextPageToken"]}

    def _remove(self, path: str, bucket: str, names: Iterable[str]) -> None:
        def remove(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self._call(path, "DELETE", "b/{}/o/{}", bucket, name)

        run_parallel(remove, names, REMOVED_AT_A_TIME)

    def _call(self, path: str, method: str, where: str, *arguments: str, **wanted: Any) -> Any:
        """The answer to a request; each failure is an OSError, also of the connection."""
        try:
            return self.filesystem.call(method, where, *arguments, **wanted)
        except OSError:
            raise
        except Exception as error:      # of gcsfs, aiohttp and google.auth
            raise OSError(errno.EIO, f"{method}: {type(error).__name__}: {error}", path) from error


def _prefix(key: str, token: str) -> str:
    """The names of an upload's parts begin so."""
    return posixpath.join(posixpath.dirname(key), f".fastpq-{token}-")


def _part(key: str, token: str, number: str) -> str:
    """The name of a part; readers take a name with ``=`` for a partition, and this one for hidden."""
    return f"{_prefix(key, token)}{number}-{quote(posixpath.basename(key), safe='')}"


def _wanted(conditions: Conditions) -> dict[str, str]:
    if conditions.if_none_match is not None:
        return {"ifGenerationMatch": "0"}
    return {} if conditions.if_match is None else {"ifGenerationMatch": conditions.if_match}
