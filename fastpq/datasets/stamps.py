"""Stamps: facts by which a file of a dataset is known to be unchanged, without a look at its bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

# Names of facts in the listings of fsspec's filesystems.
_CHANGED = ("LastModified", "last_modified", "mtime", "updated", "created")
_VERSIONS = ("ETag", "etag", "e_tag", "generation")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size, time and version of a file.

    Attributes:
        size: in bytes; None where unknown.
        changed: time of the last change, in nanoseconds since 1970; None where unknown.
        version: version that a store gives to each object of a path, as an ETag; None without one.
        moved: time since which the file may have its name (ctime), in nanoseconds since 1970; None where unknown.
    """

    size: int | None
    changed: int | None
    version: str | None = None
    moved: int | None = None

    def proves(self, recorded: Stamp, made: Stamp) -> bool:
        """Whether a file with this stamp is the one recorded earlier.

        Args:
            recorded: stamp of the file when its footer was read.
            made: stamp of the file that holds the record. A change within the tick of the clock in which the record was made
                would not show, nor would files of one size and time that were renamed later; versions have no such doubt.
        """
        if self.size is None or self.size != recorded.size:
            return False
        if self.version is not None or recorded.version is not None:
            return self.version == recorded.version
        return self.changed is not None and self.changed == recorded.changed and self.is_before(made)

    def is_before(self, other: Stamp) -> bool:
        """Whether the file was changed, and got its name, before the change of another one; False where this is unknown."""
        latest = self.latest
        return latest is not None and other.changed is not None and latest < other.changed

    @property
    def latest(self) -> int | None:
        """Time of the last change of contents or name; None where unknown."""
        return self.changed if self.changed is None or self.moved is None else max(self.changed, self.moved)


def local_stamp(path: str) -> Stamp | None:
    """The stamp of a local file; None if there is none."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return Stamp(about.st_size, about.st_mtime_ns, None, about.st_ctime_ns)


def listed_stamp(about: Mapping[str, Any]) -> Stamp:
    """The stamp of a remote file, from the information of its filesystem."""
    size = about.get("size")
    changed = next((about[key] for key in _CHANGED if about.get(key) is not None), None)
    version = next((about[key] for key in _VERSIONS if about.get(key) is not None), None)
    return Stamp(size if isinstance(size, int) else None, _nanoseconds(changed), None if version is None else str(version))


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
