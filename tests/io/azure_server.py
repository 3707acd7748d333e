"""A server of Azure's Blob Storage for tests, in memory: the requests that adlfs and fastpq send, without checks of keys.

Blocks, conditions and errors are those of Microsoft's reference (Put Block, Put Block List, Put Blob, List Blobs). Azurite,
Microsoft's own emulator, needs Node. The tests passed on Azurite 3.37 too, on 2026-11-23: with the variable
``FASTPQ_TEST_AZURE=http://127.0.0.1:PORT`` they use a server that runs already
(``azurite-blob --inMemoryPersistence --skipApiVersionCheck --blobPort PORT``).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.io.store_server import Refused, StoredObject, StoreHandler, page_of, serving

ACCOUNT = "devstoreaccount1"
# The key of all emulators, from Microsoft's documentation.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PAGE = 40           # most entries of a listing


def connection_string(url: str) -> str:
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url}/{ACCOUNT};"


class _Handler(StoreHandler):
    staged: dict[tuple[str, str], dict[str, bytes]]

    def respond(self, path: str, raw: str) -> None:
        _, _, container, *rest = raw.split("/", 3)
        container, key = unquote(container), unquote(rest[0]) if rest else ""
        if not key:
            self._container(container)
        elif self.command == "PUT":
            self._put(container, key)
        elif self.command == "DELETE":
            self._found(container, key)
            del self.buckets[container][key]
            self.staged.pop((container, key), None)
            self.answer(202)
        elif self.query.get("comp") == "blocklist":
            self._blocks(container, key)
        else:
            found = self._found(container, key)
            self._check(found)
            self.send_object(found, self._about(found))

    def refuse(self, status: int, code: str, message: str = "") -> None:
        body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{escape(message or code)}</Message></Error>'.encode()
        self.answer(status, {"x-ms-error-code": code, "Content-Type": "application/xml"}, body)

    def _container(self, name: str) -> None:
        if self.command == "PUT":
            if name in self.buckets:
                raise Refused(409, "ContainerAlreadyExists")
            self.buckets[name] = {}
            self.answer(201, {"ETag": '"0x1"', "Last-Modified": "Mon, 23 Nov 2026 00:00:00 GMT"})
        elif self.query.get("comp") == "list":
            self._list(name)
        else:
            self.bucket(name)
            self.answer(200, {"ETag": '"0x1"', "Last-Modified": "Mon, 23 Nov 2026 00:00:00 GMT"})

    def _list(self, container: str) -> None:
        objects: dict[str, StoredObject | None] = dict(self.bucket(container))
        if "uncommittedblobs" in self.query.get("include", ""):
            staged: dict[str, StoredObject | None] = {key: None for place, key in self.staged if place == container}
            objects = staged | objects
        query = self.query
        size = min(int(query.get("maxresults", PAGE)), PAGE)
        names, prefixes, after = page_of(
            [*objects], query.get("prefix", ""), query.get("delimiter", ""), query.get("marker", ""), size
        )
        entries = [self._entry(name, objects[name]) for name in names]
        entries += [f"<BlobPrefix><Name>{escape(prefix)}</Name></BlobPrefix>" for prefix in prefixes]
        body = (
            f'<?xml version="1.0"?><EnumerationResults ServiceEndpoint="http://127.0.0.1/" ContainerName="{container}">'
            f"<Blobs>{''.join(entries)}</Blobs><NextMarker>{escape(after)}</NextMarker></EnumerationResults>"
        )
        self.answer(200, {"Content-Type": "application/xml"}, body.encode())

    def _entry(self, name: str, found: StoredObject | None) -> str:
        about = {"Content-Length": 0, "BlobType": "BlockBlob"} if found is None else {
            "Creation-Time": found.date, "Last-Modified": found.date, "Etag": f"0x{found.version:X}",
            "Content-Length": len(found.body), "BlobType": "BlockBlob",
        }
        metadata = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in (found.metadata if found else {}).items())
        properties = "".join(f"<{key}>{value}</{key}>" for key, value in about.items())
        return f"<Blob><Name>{escape(name)}</Name><Properties>{properties}</Properties><Metadata>{metadata}</Metadata></Blob>"

    def _put(self, container: str, key: str) -> None:
        objects = self.bucket(container)
        if self.query.get("comp") == "block":
            blocks, name = self.staged.setdefault((container, key), {}), base64.b64decode(self.query["blockid"]).decode()
            if any(len(other) != len(name) for other in blocks):
                raise Refused(400, "InvalidBlobOrBlock", "the ids of a blob's blocks have the same length")
            blocks[name] = self.body
            self.answer(201)
            return
        body = self._joined(container, key) if self.query.get("comp") == "blocklist" else self.body
        self._check(objects.get(key))
        metadata = {name[len("x-ms-meta-") :]: text for name, text in self.headers.items() if name.startswith("x-ms-meta-")}
        objects[key] = self.new(body, metadata)
        self.staged.pop((container, key), None)     # also blocks that are not in the list, and of other writers
        self.answer(201, self._about(objects[key]))

    def _joined(self, container: str, key: str) -> bytes:
        blocks = self.staged.get((container, key), {})
        listed = [base64.b64decode(one.text or "").decode() for one in ElementTree.fromstring(self.body)]
        if not blocks.keys() >= set(listed):
            raise Refused(400, "InvalidBlockList", "the specified block list is invalid")
        return b"".join(blocks[name] for name in listed)

    def _check(self, present: StoredObject | None) -> None:
        none_match, match = self.headers.get("If-None-Match"), self.headers.get("If-Match")
        if none_match is not None and present is not None:
            raise Refused(409, "BlobAlreadyExists")
        if match is not None and (present is None or match != f'"0x{present.version:X}"'):
            raise Refused(412, "ConditionNotMet")

    def _blocks(self, container: str, key: str) -> None:
        blocks = self.staged.get((container, key), {})
        if not blocks and key not in self.bucket(container):
            raise Refused(404, "BlobNotFound")
        entries = "".join(
            f"<Block><Name>{base64.b64encode(name.encode()).decode()}</Name><Size>{len(body)}</Size></Block>"
            for name, body in blocks.items()
        )
        body = f'<?xml version="1.0"?><BlockList><UncommittedBlocks>{entries}</UncommittedBlocks></BlockList>'
        self.answer(200, {"Content-Type": "application/xml"}, body.encode())

    def _found(self, container: str, key: str) -> StoredObject:
        found = self.bucket(container).get(key)
        if found is None:
            raise Refused(404, "BlobNotFound")
        return found

    def _about(self, found: StoredObject) -> dict[str, Any]:
        metadata = {f"x-ms-meta-{name}": text for name, text in found.metadata.items()}
        return {
            "ETag": f'"0x{found.version:X}"', "Last-Modified": found.date, "x-ms-creation-time": found.date,
            "x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", **metadata,
        }


@contextmanager
def azure_server() -> Iterator[str]:
    """Run a server; its URL."""
    with serving(_Handler, staged={}) as url:
        yield url
