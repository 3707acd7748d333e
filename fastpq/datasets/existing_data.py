"""placement_of: the placement of new files for each value of existing_data_behavior."""

from __future__ import annotations

import errno
import os
from typing import Any, Literal, TypeAlias

from fastpq.datasets.discovery import find_files
from fastpq.datasets.placement import Placement
from fastpq.datasets.staged_files import StagedFolders, StagedUploads
from fastpq.errors import SchemaError
from fastpq.io.location import Remote, RemotePath, locate

ExistingData: TypeAlias = Literal["append", "error", "overwrite_or_ignore", "delete_matching", "overwrite"]


def placement_of(root: Any, existing_data: ExistingData, *, is_partitioned: bool, durable: bool) -> Placement:
    """Return the placement for ``existing_data_behavior``.

    Args:
        root: the dataset's folder.
        existing_data: what happens to existing files.
        is_partitioned: whether the new files are in folders of partitions.
        durable: whether new folders survive a power failure.

    Raises:
        FileExistsError: the folder has files, and ``existing_data`` is ``"error"``.
        SchemaError: ``root`` is no folder.
        UnsupportedError: the filesystem cannot replace a folder in one step.
    """
    place = locate(root)
    if place is None:
        raise SchemaError(f"a dataset must be written to a directory or a URL, not to a {type(root).__name__}")
    match existing_data:
        case "append":
            return Placement(place, durable=durable)
        case "overwrite_or_ignore":
            return Placement(place, durable=durable, replaces=True)
        case "error":
            if _has_files(place):
                name = place.name if isinstance(place, Remote) else place
                raise FileExistsError(errno.EEXIST, 'the folder is not empty, and existing_data_behavior is "error"', name)
            return Placement(place, durable=durable)
        case "delete_matching" | "overwrite":
            is_whole = existing_data == "overwrite" or not is_partitioned
            return StagedUploads(place, is_whole) if isinstance(place, Remote) else StagedFolders(place, is_whole)
    raise ValueError(
        'existing_data_behavior must be "append", "error", "overwrite_or_ignore", "delete_matching" or "overwrite", '
        f"not {existing_data!r}"
    )


def _has_files(place: str | Remote) -> bool:
    if isinstance(place, str):
        return os.path.isdir(place) and bool(os.listdir(place))
    try:
        return bool(find_files(RemotePath(place.filesystem, place.path)))
    except FileNotFoundError:
        return False
