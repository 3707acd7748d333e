"""Placement: where the new files of a dataset go, and what happens to the files that are there."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from fastpq.io.location import Remote, RemotePath
from fastpq.io.new_file import make_directories
from fastpq.io.object_store import find_store
from fastpq.io.sink import NO_CONDITIONS, Conditions


class Placement:
    """Puts every new file in its place as soon as it is complete. Other files stay.

    A placement is a context manager. At the end of the context the new files are in place. Subclasses keep the files apart until
    then.

    Args:
        root: the dataset's folder, a local path or a place on a filesystem.
        durable: whether new folders survive a power failure.
        replaces: whether a new file may take the place of an old file with the same path.

    Attributes:
        is_remote: whether files are uploaded.
    """

    def __init__(self, root: str | Remote, *, durable: bool = False, replaces: bool = False) -> None:
        self._root, self._durable = root, durable
        self._replaces = replaces
        self.is_remote = isinstance(root, Remote)

    def make_folders(self, folders: Iterable[str]) -> None:
        """Make all local folders for partitions together. They then need fewer syncs, and one costs more than a file.

        Args:
            folders: paths relative to the dataset's folder, separated by ``/``.
        """
        if not self.is_remote:
            make_directories(*map(self._directory, folders), durable=self._durable)

    def free_name(self, folder: str, name: str) -> bool:
        """Return whether a new file may have this name. Two files of one write never have the same name.

        Args:
            folder: folder of the file, relative to the dataset's folder.
            name: file name.
        """
        return self._replaces or not _exists(self._root, self._path(folder, name))

    def target(self, folder: str, name: str) -> tuple[Any, str]:
        """Return where ParquetWriter writes a file, and the path that the file has afterwards.

        Args:
            folder, name: as for ``free_name``.
        """
        path = self._path(folder, name)
        if isinstance(self._root, Remote):
            self._root.filesystem.makedirs(self._directory(folder), exist_ok=True)
        else:
            make_directories(self._directory(folder), durable=self._durable)
        return self.placed(path), path

    def placed(self, path: str) -> str | RemotePath:
        """Return where a file with this path is read."""
        return RemotePath(self._root.filesystem, path) if isinstance(self._root, Remote) else path

    @property
    def conditions(self) -> Conditions:
        """What must be true of the path of a new file when the file is complete."""
        keeps_condition = not isinstance(self._root, Remote) or find_store(self._root.filesystem) is not None
        return Conditions(if_none_match="*") if keeps_condition and not self._replaces else NO_CONDITIONS

    def finish(self) -> None:
        """Put the files in their places."""

    def abandon(self) -> None:
        """Remove the files that are not in their places yet."""

    def _directory(self, folder: str) -> str:
        if isinstance(self._root, Remote):
            return posixpath.join(self._root.path, folder) if folder else self._root.path
        return os.path.join(self._root, *folder.split("/")) if folder else self._root

    def _path(self, folder: str, name: str) -> str:
        return (posixpath.join if self.is_remote else os.path.join)(self._directory(folder), name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.abandon()


def _exists(root: str | Remote, path: str) -> bool:
    return bool(root.filesystem.exists(path)) if isinstance(root, Remote) else os.path.lexists(path)
