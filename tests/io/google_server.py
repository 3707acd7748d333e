"""A server of Google Cloud Storage for tests, in memory: the requests that gcsfs and fastpq send, without checks of tokens.

Requests, conditions and errors are those of Google's reference of the JSON interface, also the conditions of ``compose``, which
the emulator fake-gcs-server does not look at. The tests without conditions passed on fake-gcs-server 1.52 too, on 2026-11-23:
``FASTPQ_TEST_GOOGLE=http://127.0.0.1:PORT`` lets them use a server that runs already.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from typing import Any
from urllib.parse import unquote

from tests.io.store_server import Refused, StoredObject, StoreHandler, page_of, serving

PAGE = 40           # most entries of a listing
COMPOSED = 32       # most sources of a composed object


class _Handler(StoreHandler):
    def respond(self, path: str, raw: str) -> None:
        match = re.fullmatch(r"(/upload|/download)?/storage/v1/b(?:/([^/]+)(?:/o(?:/([^/]+)(/compose)?)?)?)?", raw)
        if match is None:
            raise Refused(404, "notFound", path)
        kind, bucket, key = match[1], unquote(match[2] or ""), unquote(match[3] or "")
        if self.command == "POST" and not bucket:
            self.buckets.setdefault(json.loads(self.body)["name"], {})
            self._json({})
        elif self.command == "POST" and kind == "/upload":
            self._insert(bucket)
        elif self.command == "POST" and match[4]:
            self._compose(bucket, key)
        elif self.command == "GET" and not key:
            if "/o" in raw.rpartition("/b/")[2]:
                self._list(bucket)
            else:
                self._json({"name": bucket} if self.bucket(bucket) else {})
        elif self.command == "DELETE":
            self._found(bucket, key)
            del self.buckets[bucket][key]
            self.answer(204)
        elif kind == "/download" or self.query.get("alt") == "media":
            found = self._found(bucket, key)
            if self.query.get("ifGenerationMatch", str(found.version)) != str(found.version):
                raise Refused(412, "conditionNotMet")
            self.send_object(found, {"x-goog-generation": found.version, "Content-Type": "application/octet-stream"})
        else:
            self._json(self._about(bucket, key, self._found(bucket, key)))

    def refuse(self, status: int, code: str, message: str = "") -> None:
        self._json({"error": {"code": status, "message": message or code, "errors": [{"reason": code}]}}, status)

    def _json(self, content: Any, status: int = 200) -> None:
        self.answer(status, {"Content-Type": "application/json"}, json.dumps(content).encode())

    def _list(self, bucket: str) -> None:
        objects, query = self.bucket(bucket), self.query
        size = min(int(query.get("maxResults", PAGE)), PAGE)
        names, prefixes, after = page_of(
            [*objects], query.get("prefix", ""), query.get("delimiter", ""), query.get("pageToken", ""), size
        )
        found: dict[str, Any] = {"kind": "storage#objects"}
        if names:
            found["items"] = [self._about(bucket, name, objects[name]) for name in names]
        if prefixes:
            found["prefixes"] = prefixes
        self._json(found | ({"nextPageToken": after} if after else {}))

    def _insert(self, bucket: str) -> None:
        if self.query["uploadType"] != "multipart":
            raise Refused(400, "notImplemented", "resumable uploads")
        head = f"Content-Type: {self.headers['Content-Type']}\n\n".encode()
        about, media = message_from_bytes(head + self.body, policy=policy.HTTP).iter_parts()
        found = json.loads(about.get_content())
        boundary = re.search(r'boundary="(.*)"', self.headers["Content-Type"])
        assert boundary is not None
        # the parser's own text of a binary part is not exact
        body = self.body.split(b"\n\n", 2)[2].removesuffix(f"\n--{boundary[1]}--".encode())
        assert media.get_content_type() == "application/octet-stream"
        self._store(bucket, found["name"], body, found.get("metadata") or {})

    def _compose(self, bucket: str, key: str) -> None:
        wish = json.loads(self.body)
        names = [one["name"] for one in wish["sourceObjects"]]
        if not 1 <= len(names) <= COMPOSED:
            raise Refused(400, "invalid", f"the number of source components provided ({len(names)}) exceeds the maximum (32)")
        body = b"".join(self._found(bucket, name).body for name in names)
        self._store(bucket, key, body, wish["destination"].get("metadata") or {})

    def _store(self, bucket: str, key: str, body: bytes, metadata: dict[str, str]) -> None:
        objects, wanted = self.bucket(bucket), self.query.get("ifGenerationMatch")
        present = objects[key].version if key in objects else 0
        if wanted is not None and int(wanted) != present:
            raise Refused(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
        objects[key] = self.new(body, metadata)
        self._json(self._about(bucket, key, objects[key]))

    def _found(self, bucket: str, key: str) -> StoredObject:
        found = self.bucket(bucket).get(key)
        if found is None:
            raise Refused(404, "notFound", key)
        return found

    def _about(self, bucket: str, key: str, found: StoredObject) -> dict[str, Any]:
        made = f"{found.made:%Y-%m-%dT%H:%M:%S}.{found.made.microsecond // 1000:03d}Z"
        about = {
            "kind": "storage#object", "bucket": bucket, "name": key,
            "size": str(len(found.body)), "generation": str(found.version),
            "metageneration": "1", "etag": f"e{found.version}", "timeCreated": made, "updated": made,
        }
        return about | ({"metadata": found.metadata} if found.metadata else {})


@contextmanager
def google_server() -> Iterator[str]:
    """Run a server; its URL."""
    with serving(_Handler) as url:
        yield url
