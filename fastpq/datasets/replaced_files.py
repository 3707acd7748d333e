"""ReplacedFiles and ReplacedObjects: new files take the place of some files of a dataset, in one step for each folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping
from typing import Any

from fastpq.datasets.discovery import DataFile
from fastpq.datasets.placement import Placement
from fastpq.datasets.records import relative
from fastpq.datasets.staged_files import StagedUploads, StageFolder, copy_owner, exchange_folders, remove_key_material
from fastpq.encryption.keys.store import PREFIX, SUFFIX
from fastpq.errors import SchemaError
from fastpq.io.file_version import FileVersion
from fastpq.io.location import Remote
from fastpq.io.new_file import make_directories


class ReplacedFiles(Placement):
    """New local files that take the place of some files. All other files stay, also those that come meanwhile.

    Every folder is replaced in one step, by a folder with links to the files that stay.

    Args:
        root: the dataset's folder.
        folders: the folders in which files are replaced, relative to the dataset's folder.

    Raises:
        UnsupportedError: the operating system or the filesystem cannot exchange folders.
    """

    def __init__(self, root: str, folders: Collection[str]) -> None:
        super().__init__(os.path.realpath(root), durable=True)
        self._old_versions: dict[str, dict[str, FileVersion | None]] = {folder: {} for folder in folders}
        self._new_names: dict[str, set[str]] = {folder: set() for folder in folders}
        self._stage = StageFolder(os.path.realpath(root), is_whole="" in folders)

    def target(self, folder: str, name: str) -> tuple[Any, str]:
        staged = self._staged(folder)
        make_directories(staged, durable=False)
        self._new_names[folder].add(name)
        return os.path.join(staged, name), self._path(folder, name)

    def replace(self, folder: str, file: DataFile, version: FileVersion | None) -> None:
        """Remove a file of a folder at the end.

        Args:
            folder: the folder, relative to the dataset's folder.
            file: the file.
            version: the file's version before it was read.
        """
        self._old_versions[folder][os.path.basename(file.path)] = version

    def finish(self) -> None:
        # a folder above others links their new files
        for folder in sorted(self._new_names, key=lambda folder: -len(folder.split("/")) if folder else 1):
            if self._new_names[folder]:
                self._exchange(folder)
                self._new_names[folder] = set()

    def abandon(self) -> None:
        self._stage.remove()
        for folder, names in self._new_names.items():
            for name in names:
                remove_key_material(self._path(folder, name))

    def _staged(self, folder: str) -> str:
        return os.path.join(self._stage.new, str(list(self._new_names).index(folder)))

    def _exchange(self, folder: str) -> None:
        place, staged, old = self._directory(folder), self._staged(folder), self._old_versions[folder]
        removed_names = {*old, *(PREFIX + name + SUFFIX for name in old)}
        known_names = removed_names | self._new_names[folder]
        linked_names = _names_below(place, known_names)
        known_names.update(linked_names)
        folders = _folders_below(place)
        make_directories(*(os.path.join(staged, name) for name in folders), durable=False)
        inodes = {name: _link(os.path.join(place, name), os.path.join(staged, name)) for name in linked_names}
        for name in reversed(folders):      # a folder that permits no new files gets its permissions last
            copy_owner(os.path.join(place, name), os.path.join(staged, name))
        _refuse_changes(old, place, place)
        exchange_folders(staged, place)
        try:
            _refuse_changes(old, staged, place)     # a change in the moment before the exchange
        except SchemaError:
            exchange_folders(staged, place)
            _bring_late_files(staged, place, known_names, {})
            raise
        _bring_late_files(staged, place, known_names, inodes)


def _refuse_changes(versions: Mapping[str, FileVersion | None], folder: str, place: str) -> None:
    """Refuse files that have another version now.

    Args:
        versions: version of each file before it was read.
        folder: where the files are.
        place: the folder that the error names.

    Raises:
        SchemaError: a file was changed or removed.
    """
    for name, version in versions.items():
        if not _is_same(version, FileVersion.of_path(os.path.join(folder, name))):
            raise _changed(os.path.join(place, name))


def _bring_late_files(old: str, new: str, known_names: Collection[str], inodes: Mapping[str, int | None]) -> None:
    """Repeat in a new folder what other processes did in the old one meanwhile: they added, replaced or removed files.

    Args:
        old: the old folder.
        new: the folder in its place.
        known_names: files that were not new.
        inodes: the inode of each file when it was linked.
    """
    for name in _names_below(old, known_names):
        _link(os.path.join(old, name), os.path.join(new, name))
    for name, inode in inodes.items():
        path, place = os.path.join(old, name), os.path.join(new, name)
        if inode is not None and _inode(path) != inode and _inode(place) == inode:
            os.unlink(place)
            _link(path, place)


def _folders_below(folder: str) -> list[str]:
    """Return the folders below a folder, relative to it, each before those below it. Symbolic links are left out."""
    paths = [directory for directory, _, _ in os.walk(folder)]
    return [os.path.relpath(path, folder) for path in paths[1:]]


def _names_below(folder: str, known_names: Collection[str]) -> list[str]:
    """Return the files and symbolic links below a folder, relative to it."""
    paths = [
        os.path.join(directory, name)
        for directory, folders, files in os.walk(folder)
        for name in [*files, *(name for name in folders if os.path.islink(os.path.join(directory, name)))]
    ]
    names = [os.path.relpath(path, folder) for path in paths]
    return [name for name in names if name not in known_names]


def _inode(path: str) -> int | None:
    try:
        return os.lstat(path).st_ino
    except FileNotFoundError:
        return None


def _link(path: str, place: str) -> int | None:
    """Link a file at another path, and return its inode. None if it is gone: a temporary file of another process."""
    make_directories(os.path.dirname(place), durable=False)
    with contextlib.suppress(FileNotFoundError):
        os.link(path, place, follow_symlinks=False)
    return _inode(place)


class ReplacedObjects(StagedUploads):
    """New objects in a store that take the place of some objects, by one commit record.

    Args:
        place: the dataset's folder.

    Raises:
        UnsupportedError: the filesystem is not that of S3, Azure or Google's store.
    """

    def __init__(self, place: Remote) -> None:
        super().__init__(place, is_whole=False)
        self._old_versions: dict[str, FileVersion | None] = {}

    def replace(self, folder: str, file: DataFile, version: FileVersion | None) -> None:
        """Remove an object at the end. The arguments are those of ``ReplacedFiles.replace``."""
        self._old_versions[file.path] = version

    def _old_files(self, files: Mapping[str, Mapping[str, Any]], root: str, prefixes: tuple[str, ...]) -> list[str]:
        versions = {relative(root, path): version for path, version in self._old_versions.items()}
        for name, version in versions.items():
            if name not in files or not _is_same(version, FileVersion.from_information(files[name])):
                raise _changed(f"{root}/{name}")
        return [*versions]


def _is_same(one: FileVersion | None, other: FileVersion | None) -> bool:
    """Return whether two versions have the same size, modification time and tag. A new link to a file changes another time."""
    return one is not None and other is not None and one.size == other.size and (
        one.modified_ns == other.modified_ns and one.tag == other.tag)


def _changed(path: str) -> SchemaError:
    return SchemaError("the file was changed or removed while new files for its rows were made: call again", path=path)
