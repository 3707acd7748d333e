"""find_files: the data files of directories, globs and lists of paths, local or on fsspec filesystems."""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastpq.datasets.hive import parse_partitions
from fastpq.datasets.records import visible_files, visible_matches
from fastpq.errors import SchemaError
from fastpq.io.location import Remote, locate


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A path on an fsspec filesystem, in the form accepted by ParquetFile and ParquetWriter."""

    fs: Any
    path: str


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a dataset.

    Attributes:
        where: path or RemotePath for ParquetFile.
        path: path for messages and for functions from path to keys.
        partitions: text of the partition values in its directories, by name; None is null.
    """

    where: str | RemotePath
    path: str
    partitions: dict[str, str | None]


def find_files(where: Any) -> list[DataFile]:
    """Files of a directory, a glob, a path or a list of them; files of a directory or glob are sorted by path.

    Below a directory, names that begin with ``_`` or ``.`` are left out, except partitions (``_x=1``). Partitions are parsed from
    the path below the given directory; for a glob or a file, from the whole path.

    Raises:
        FileNotFoundError: no file found.
        SchemaError: where is of another type.
    """
    if isinstance(where, Iterable) and not isinstance(where, str | bytes):
        return [file for one in where for file in find_files(one)]
    located = locate(where)
    if located is None:
        raise SchemaError(f"a dataset is a directory, a glob, a path or a list of these, not a {type(where).__name__}")
    found = _remote(located) if isinstance(located, Remote) else _local(located)
    if not found:
        raise FileNotFoundError(f"there is no file at {located.name if isinstance(located, Remote) else located}")
    return found


def _local(path: str) -> list[DataFile]:
    if os.path.isdir(path):
        names = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        return _below(path, ((name, name) for name in names))
    paths = [path] if os.path.exists(path) else sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
    return [DataFile(name, name, parse_partitions(_slashed(name))) for name in paths]


def _remote(place: Remote) -> list[DataFile]:
    filesystem, path = place.filesystem, place.path
    if filesystem.isdir(path):
        return _below(path, ((name, RemotePath(filesystem, name)) for name in visible_files(filesystem, path)))
    paths = [path] if filesystem.isfile(path) else sorted(visible_matches(filesystem, path))
    return [DataFile(RemotePath(filesystem, name), name, parse_partitions(name)) for name in paths]


def _below(root: str, files: Iterable[tuple[str, str | RemotePath]]) -> list[DataFile]:
    found = []
    for path, where in sorted(files, key=lambda file: file[0]):
        relative = posixpath.relpath(_slashed(path), _slashed(root))
        if not any(part[0] in "_." and "=" not in part for part in relative.split("/")):
            found.append(DataFile(where, path, parse_partitions(relative)))
    return found


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/")
