"""Uploads to object stores: one interface, and a module with each store's requests (s3, azure, google).

With fsspec, a process cannot complete what another process has uploaded, and an upload cannot depend on the object that is there.
Each store's module therefore sends its own requests, through the client that fsspec's filesystem has.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.location import protocols
from fastpq.io.sink import NO_CONDITIONS, Conditions

# For the package that has a filesystem's class: its protocols, and the module and class that send its requests.
_STORES = {
    "s3fs": ({"s3", "s3a"}, "fastpq.io.s3", "S3Store"),
    "adlfs": ({"abfs", "abfss", "az"}, "fastpq.io.azure", "AzureStore"),
    "gcsfs": ({"gs", "gcs"}, "fastpq.io.google", "GoogleStore"),
}


@dataclass(frozen=True)
class Upload:
    """An upload with all its parts. Any process can complete or abort it. It holds no secret.

    Attributes:
        path: the object's path in the filesystem's form.
        upload_id: the store's name for the upload.
        token: random text in the object's metadata, by which a writer recognizes its own object.
        parts: the store's names for the parts, in order.
    """

    path: str
    upload_id: str
    token: str
    parts: tuple[str, ...]


class ObjectStore(ABC):
    """The requests to one kind of store. If a request fails, it raises an OSError.

    Args:
        filesystem: an fsspec filesystem for the store.

    Attributes:
        aborts: whether an abort frees the parts. If not, the store drops unfinished uploads' parts by itself.
        has_equal_parts: whether all parts except the last must have the same size.
    """

    aborts: ClassVar[bool] = True
    has_equal_parts: bool = False

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem

    @abstractmethod
    def begin(self, path: str, token: str) -> str:
        """Begin an upload, and return its id."""

    @abstractmethod
    def put_part(self, path: str, upload_id: str, number: int, body: bytes) -> str:
        """Upload a part, and return its name. Numbers begin with 1."""

    def complete(self, upload: Upload, conditions: Conditions = NO_CONDITIONS) -> None:
        """Make an upload's object appear. Does nothing if the upload was completed before.

        Args:
            upload: an upload with all its parts.
            conditions: what must be true for the object that is there.

        Raises:
            FileExistsError: there is an object, which ``if_none_match`` forbids.
            OSError: the object does not have the version in ``if_match``, or the store reported an error.
        """
        self._take_effect(upload.path, upload.token, conditions, lambda: self._complete(upload, conditions))
        self._completed(upload)

    def put(self, path: str, body: bytes, token: str, conditions: Conditions = NO_CONDITIONS) -> None:
        """Put an object with one request. Errors are the same as in ``complete``."""
        self._take_effect(path, token, conditions, lambda: self._put(path, body, token, conditions))

    @abstractmethod
    def abort(self, path: str, upload_id: str) -> None:
        """Give up an upload, and free its parts if the store can. Does nothing if the upload was completed or aborted before."""

    def end(self, upload: Upload) -> None:
        """Make sure that nobody can complete an upload, and remove its object if it was completed."""
        self.abort(upload.path, upload.upload_id)
        self.remove(upload.path)

    @abstractmethod
    def is_unfinished(self, upload: Upload) -> bool:
        """Return whether an upload was neither completed nor aborted yet."""

    @abstractmethod
    def unfinished(self, path: str) -> list[tuple[str, str, float]]:
        """Return the unfinished uploads to an object, or to all objects below a folder, in sorted order.

        Returns:
            For each upload: (the object's path, the upload's id, the upload's age in seconds).
        """

    @abstractmethod
    def version(self, about: Mapping[str, Any]) -> str:
        """Return an object's version from the filesystem's information. ``Conditions.if_match`` takes such versions."""

    def identity(self, about: Mapping[str, Any]) -> str:
        """Return a text that distinguishes an object from earlier and later objects at its path.

        Args:
            about: the filesystem's information about the object.
        """
        return self.version(about)

    @abstractmethod
    def changed(self, about: Mapping[str, Any]) -> datetime | None:
        """Return when an object last changed, from the filesystem's information. None if it is unknown."""

    def check(self, conditions: Conditions) -> None:  # noqa: B027 - most stores take any ETag
        """Refuse conditions that the store cannot understand.

        Raises:
            ValueError: ``if_match`` does not have the form of the store's versions.
        """

    def url(self, path: str) -> str:
        """Return the URL by which another process finds the same object."""
        url: str = self.filesystem.unstrip_protocol(path)
        return url

    def remove(self, path: str) -> None:
        """Remove an object if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(path)

    def place(self, path: str) -> tuple[str, str]:
        """Return an object's bucket and key.

        Raises:
            SchemaError: the path names a bucket.
        """
        bucket, key, _ = self.filesystem.split_path(path)
        if not key:
            raise SchemaError("an object needs a name below its bucket", path=path)
        return bucket, key

    @contextlib.contextmanager
    def _failures(self, path: str, method: str) -> Iterator[None]:
        """Turn each error of a request into an OSError, even if the connection fails."""
        try:
            yield
        except OSError:
            raise
        except Exception as error:      # from the store's client, or from aiohttp below it
            raise self._failure(error, method, path) from error

    def _failure(self, error: Exception, method: str, path: str) -> Exception:
        """Return the error to raise for a failed request."""
        return OSError(errno.EIO, f"{method}: {type(error).__name__}: {str(error).partition(chr(10))[0]}", path)

    def _take_effect(self, path: str, token: str, conditions: Conditions, send: Callable[[], None]) -> None:
        """Send the requests that make an object appear.

        An error does not count if the object is there afterwards and has the token.
        """
        try:
            send()
        except OSError as error:        # if an answer was lost, a repeated request finds its own object
            if self._token(path) == token:
                return
            if conditions and self._is_refusal(error):
                raise conditions.refusal(path) from error
            raise

    @abstractmethod
    def _complete(self, upload: Upload, conditions: Conditions) -> None:
        """Send the requests for ``complete``."""

    def _completed(self, upload: Upload) -> None:  # noqa: B027 - most stores take the parts into the object
        """Free a completed upload's parts."""

    @abstractmethod
    def _put(self, path: str, body: bytes, token: str, conditions: Conditions) -> None:
        """Send the request for ``put``."""

    @abstractmethod
    def _token(self, path: str) -> str | None:
        """Return the token that the object at a path has. None if there is no object, no token or no answer."""

    @abstractmethod
    def _is_refusal(self, error: OSError) -> bool:
        """Return whether an error says that the object did not meet a condition."""


def find_store(filesystem: Any) -> ObjectStore | None:
    """Return the requests to the store behind an fsspec filesystem. None for other filesystems."""
    for kind in type(filesystem).__mro__:
        entry = _STORES.get(kind.__module__.partition(".")[0])
        if entry is not None and not entry[0].isdisjoint(protocols(filesystem)):
            store: ObjectStore = getattr(importlib.import_module(entry[1]), entry[2])(filesystem)
            return store
    return None


def store_at(filesystem: Any) -> ObjectStore:
    """Return the requests to the store behind an fsspec filesystem.

    Raises:
        UnsupportedError: the store is not S3, Azure or Google's.
    """
    store = find_store(filesystem)
    if store is None:
        raise UnsupportedError("uploads that are completed later need S3 (s3://), Azure (abfss://) or Google's store (gs://)")
    return store


def url_of(filesystem: Any, path: str) -> str:
    """Return the URL for a path on an fsspec filesystem. Another process finds the same object by this URL."""
    store = find_store(filesystem)
    url: str = filesystem.unstrip_protocol(path) if store is None else store.url(path)
    return url
