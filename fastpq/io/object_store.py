"""Uploads to object stores: one interface, with a module for each store's requests (s3, azure, google).

fsspec has no names for uploads, by which another process completes what one process has uploaded, and no condition on the present
object. Each store's module therefore sends its requests through the client of fsspec's filesystem.
"""

from __future__ import annotations

import contextlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.sink import NO_CONDITIONS, Conditions, protocols

# Package of the filesystem's class: protocols, module of fastpq, class of its requests.
_STORES = {
    "s3fs": ({"s3", "s3a"}, "fastpq.io.s3", "S3Store"),
    "adlfs": ({"abfs", "abfss", "az"}, "fastpq.io.azure", "AzureStore"),
    "gcsfs": ({"gs", "gcs"}, "fastpq.io.google", "GoogleStore"),
}


@dataclass(frozen=True)
class Upload:
    """An upload with all its parts, to be completed or aborted by any process. It holds no secret.

    Attributes:
        path: path of the object in the form of the filesystem.
        upload_id: the store's name of the upload.
        token: random text in the object's metadata, by which a writer knows its own.
        parts: the store's names of the parts, in order.
    """

    path: str
    upload_id: str
    token: str
    parts: tuple[str, ...]


class ObjectStore(ABC):
    """Requests to one kind of store. A failure of a request is an OSError.

    Args:
        filesystem: an fsspec filesystem of the store.

    Attributes:
        aborts: whether an abort frees the parts; else the store drops the parts of unfinished uploads by itself.
        has_equal_parts: whether all parts but the last must have the same size.
    """

    aborts: ClassVar[bool] = True
    has_equal_parts: bool = False

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem

    @abstractmethod
    def begin(self, path: str, token: str) -> str:
        """Begin an upload; returns its id."""

    @abstractmethod
    def put_part(self, path: str, upload_id: str, number: int, body: bytes) -> str:
        """Upload a part, numbered from 1; returns its name."""

    def complete(self, upload: Upload, conditions: Conditions = NO_CONDITIONS) -> None:
        """Make the object of an upload appear; without effect if it was completed before.

        Args:
            upload: an upload with all its parts.
            conditions: on the present object.

        Raises:
            FileExistsError: there is an object, against ``if_none_match``.
            OSError: the present object is another one than in ``if_match``, or as reported by the store.
        """
        self._take_effect(upload.path, upload.token, conditions, lambda: self._complete(upload, conditions))
        self._completed(upload)

    def put(self, path: str, body: bytes, token: str, conditions: Conditions = NO_CONDITIONS) -> None:
        """Put an object by one request; raises the errors of complete."""
        self._take_effect(path, token, conditions, lambda: self._put(path, body, token, conditions))

    @abstractmethod
    def abort(self, path: str, upload_id: str) -> None:
        """Give up an upload, and free its parts where the store can; without effect on one completed or aborted before."""

    def end(self, upload: Upload) -> None:
        """Let nobody complete an upload any more, and remove its object, if it was completed."""
        self.abort(upload.path, upload.upload_id)
        self.remove(upload.path)

    @abstractmethod
    def is_unfinished(self, upload: Upload) -> bool:
        """Whether an upload waits to be completed: it was neither completed nor aborted."""

    @abstractmethod
    def unfinished(self, path: str) -> list[tuple[str, str, float]]:
        """Path, id and age in seconds of each unfinished upload of an object and below a folder, in order."""

    @abstractmethod
    def version(self, about: Mapping[str, Any]) -> str:
        """The version of an object, as in ``Conditions.if_match``, from the filesystem's information."""

    def identity(self, about: Mapping[str, Any]) -> str:
        """What tells an object from those that had, or will have, its path, from the filesystem's information."""
        return self.version(about)

    @abstractmethod
    def changed(self, about: Mapping[str, Any]) -> datetime | None:
        """The time of an object's last change, from the filesystem's information; None where it is unknown."""

    def check(self, conditions: Conditions) -> None:  # noqa: B027 - most stores take any ETag
        """Refuse conditions that the store cannot understand.

        Raises:
            ValueError: ``if_match`` has not the form of the store's versions.
        """

    def url(self, path: str) -> str:
        """The URL of a path, by which another process finds the same object."""
        found: str = self.filesystem.unstrip_protocol(path)
        return found

    def remove(self, path: str) -> None:
        """Remove an object, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(path)

    def place(self, path: str) -> tuple[str, str]:
        """Bucket and key of an object.

        Raises:
            SchemaError: the path is one of a bucket.
        """
        bucket, key, _ = self.filesystem.split_path(path)
        if not key:
            raise SchemaError("an object needs a name below its bucket", path=path)
        return bucket, key

    def _take_effect(self, path: str, token: str, conditions: Conditions, send: Callable[[], None]) -> None:
        """Send the requests that make an object appear; an error after which the object is there with its token is none."""
        try:
            send()
        except OSError as error:        # the answer may be lost, and a request sent again finds its own object
            if self._token(path) == token:
                return
            if conditions and self._is_refusal(error):
                raise conditions.refusal(path) from error
            raise

    @abstractmethod
    def _complete(self, upload: Upload, conditions: Conditions) -> None:
        """Send the requests of complete."""

    def _completed(self, upload: Upload) -> None:  # noqa: B027 - most stores take the parts into the object
        """Free the parts of an upload that was completed."""

    @abstractmethod
    def _put(self, path: str, body: bytes, token: str, conditions: Conditions) -> None:
        """Send the request of put."""

    @abstractmethod
    def _token(self, path: str) -> str | None:
        """The token of the present object; None without an object, without a token or without an answer."""

    @abstractmethod
    def _is_refusal(self, error: OSError) -> bool:
        """Whether an error says that a condition on the present object did not hold."""


def find_store(filesystem: Any) -> ObjectStore | None:
    """The requests to the store of an fsspec filesystem; None for other filesystems."""
    for kind in type(filesystem).__mro__:
        found = _STORES.get(kind.__module__.partition(".")[0])
        if found is not None and not found[0].isdisjoint(protocols(filesystem)):
            store: ObjectStore = getattr(importlib.import_module(found[1]), found[2])(filesystem)
            return store
    return None


def store_at(filesystem: Any) -> ObjectStore:
    """The requests to the store of an fsspec filesystem.

    Raises:
        UnsupportedError: the filesystem is none of S3, Azure or Google.
    """
    found = find_store(filesystem)
    if found is None:
        raise UnsupportedError("uploads to be completed later: in S3 (s3://), Azure (abfss://) and Google's store (gs://) only")
    return found


def url_of(filesystem: Any, path: str) -> str:
    """The URL of a path on an fsspec filesystem, by which another process finds the same object."""
    store = find_store(filesystem)
    found: str = filesystem.unstrip_protocol(path) if store is None else store.url(path)
    return found
