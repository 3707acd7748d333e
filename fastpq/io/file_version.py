"""FileVersion: a file's size, modification time and ETag, used to tell whether it was replaced."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from fastpq.errors import RemoteError

# Keys in the information that fsspec filesystems give. File objects may have tags as attributes.
_TIME_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")
_TAG_KEYS = ("ETag", "etag", "e_tag", "generation", "version_id")


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file's size, times and version tag.

    Attributes:
        size: file size in bytes. None if unknown.
        modified_ns: when the contents last changed, in nanoseconds since 1970. None if unknown.
        tag: the tag that a store gives to each object version: an ETag or a generation. None if there is no tag.
        renamed_ns: the file was not renamed after this time (ctime), in nanoseconds since 1970. None if unknown.
    """

    size: int | None = None
    modified_ns: int | None = None
    tag: str | None = None
    renamed_ns: int | None = None

    @classmethod
    def of_path(cls, path: str) -> FileVersion | None:
        """Return a local file's version. None if its status cannot be read, for example because it does not exist."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        return cls(status.st_size, status.st_mtime_ns, None, status.st_ctime_ns)

    @classmethod
    def from_information(cls, about: Mapping[str, Any]) -> FileVersion:
        """Return a file's version from the information that a filesystem or a file object gives.

        Args:
            about: facts by fsspec's names, for example "size", "mtime" and "ETag".
        """
        size = about.get("size")
        moment = next((about[key] for key in _TIME_KEYS if about.get(key) is not None), None)
        tag = next((about[key] for key in _TAG_KEYS if about.get(key) is not None), None)
        return cls(size if isinstance(size, int) else None, _nanoseconds(moment), None if tag is None else str(tag))

    @classmethod
    def of_object(cls, file: Any) -> FileVersion | None:
        """Return the version of a file object, from its ``info()``, its ``meta``, or attributes such as ``etag``.

        None if these have no tag and no modification time.
        """
        about = getattr(file, "info", None)
        about = about() if callable(about) else getattr(file, "meta", None)
        if not isinstance(about, Mapping):
            about = {key: getattr(file, key, None) for key in _TAG_KEYS}
            about = {key: value for key, value in about.items() if isinstance(value, str | int)}
        version = cls.from_information(about)
        return version if version.is_known else None

    @classmethod
    def from_headers(cls, headers: Mapping[str, str], size: int | None) -> FileVersion:
        """Return the file version that the headers of an HTTP answer describe.

        Args:
            headers: the headers. It must be possible to look them up by lower-case names.
            size: file size in bytes. None if unknown.
        """
        return cls(size, _header_time(headers.get("last-modified")), headers.get("x-goog-generation") or headers.get("etag"))

    @property
    def strong_etag(self) -> str | None:
        """The tag if it is a strong ETag, which If-Match demands (RFC 9110, 8.8.3 and 13.1.1). None for all other tags.

        Different contents of a file never have the same strong ETag.
        """
        return self.tag if self.tag is not None and self.tag.startswith('"') else None

    @property
    def is_known(self) -> bool:
        """Whether the version tag (an ETag or a generation) or the modification time is known."""
        return self.tag is not None or self.modified_ns is not None

    def proves(self, recorded_version: FileVersion, record: FileVersion) -> bool:
        """Return whether a data file with this version certainly has the footer that was copied earlier into another file.

        Args:
            recorded_version: the data file's version when its footer was copied.
            record: version of the file that holds the copy. If the versions have no tags, the data file must be older than this
                file, because times do not show every change. They do not show a second change in the same clock tick. They also
                do not show that another file with the same size and time was given this name later.
        """
        if self.size is None or self.size != recorded_version.size:
            return False
        if self.tag is not None or recorded_version.tag is not None:
            return self.tag == recorded_version.tag
        return self.modified_ns is not None and self.modified_ns == recorded_version.modified_ns and self.is_before(record)

    def is_before(self, other: FileVersion) -> bool:
        """Return whether this file got its contents and its name before the other file was modified. False if unknown."""
        latest = self.latest
        return latest is not None and other.modified_ns is not None and latest < other.modified_ns

    @property
    def latest(self) -> int | None:
        """When the contents or the name last changed, whichever was later, in nanoseconds since 1970. None if unknown."""
        return self.modified_ns if self.modified_ns is None or self.renamed_ns is None else max(self.modified_ns, self.renamed_ns)

    def difference(self, later: FileVersion) -> str | None:
        """Return a text that says how a later version of the file differs from this one. None if both may be the same.

        Only facts that both versions have are compared. If their tags are equal and are not weak ETags, the modification times
        do not matter.
        """
        if self.size is not None and later.size is not None and self.size != later.size:
            return f"it had {self.size} bytes and has {later.size} now"
        if self.tag is not None and later.tag is not None:
            if self.tag != later.tag:
                return f"its version was {self.tag} and is {later.tag} now"
            if not self.tag.startswith("W/"):
                return None
        if self.modified_ns is not None and later.modified_ns is not None and self.modified_ns != later.modified_ns:
            return f"its last change was {_date(self.modified_ns)} and is {_date(later.modified_ns)} now"
        return None

    def check_unchanged(self, later: FileVersion | None, path: str | None = None) -> None:
        """Compare this version with a later version of the file. Do nothing if ``later`` is None.

        Args:
            later: the file's version in a later request or status.
            path: the file's path, for the error.

        Raises:
            RemoteError: the file was replaced.
        """
        if later is not None and (difference := self.difference(later)) is not None:
            raise RemoteError(f"the object changed while it was read: {difference}", path=path)


def _header_time(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return _nanoseconds(parsedate_to_datetime(text))
    except ValueError:
        return None


def _nanoseconds(moment: Any) -> int | None:
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            return None
    if isinstance(moment, datetime):
        since = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    return int(moment * 1_000_000_000) if isinstance(moment, int | float) and not isinstance(moment, bool) else None


def _date(nanoseconds: int) -> str:
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(sep=" ")
    except (OverflowError, ValueError, OSError):
        return f"{nanoseconds} ns"
