"""Finds data files in directories, globs and lists of paths, local or on fsspec filesystems."""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote

from fastpq.common.parallel import run_ordered
from fastpq.datasets.hive import parse_directories, parse_partitions
from fastpq.datasets.records import visible_files, visible_matches
from fastpq.errors import SchemaError
from fastpq.io.file_version import FileVersion
from fastpq.io.location import Remote, RemotePath, locate, protocols
from fastpq.io.retrying import persistent
from fastpq.io.waiting import WAITER, ask_filesystem
from fastpq.options import DEFAULT_MAX_ATTEMPTS

METADATA = "_metadata"      # file with the footers of all files in a directory (fastpq.datasets.known_footers)
COMMON_METADATA = "_common_metadata"        # file with the schema alone
# Number of URLs in a list that are looked up at the same time (benchmarks.datasets).
ASKED_AT_A_TIME = 16
# Suffixes of files that are not data: notes, tables in other formats, checksums.
NO_DATA = (
    ".txt", ".md", ".rst", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml", ".html", ".yaml", ".yml", ".toml", ".crc",
    ".md5", ".sha256", ".log", ".sql", ".py", ".ipynb", ".pdf", ".avro", ".orc", ".arrow", ".feather",
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file in a dataset.

    Attributes:
        where: path or RemotePath, as ParquetFile takes it.
        path: path that errors show, and that is given to a function that returns the keys for a path.
        partitions: partition values in the names of the directories above the file, as text, by column name. None is null.
        about: facts that the filesystem listed about a remote file, for example its size. None for any other file.
    """

    where: str | RemotePath
    path: str
    partitions: dict[str, str | None]
    about: Mapping[str, Any] | None = None

    def version(self) -> FileVersion | None:
        """Return the file's version, or None if it is unknown.

        For a remote file it is the version at the time of the listing. For a local file it is the present version.
        """
        if isinstance(self.where, str):
            return FileVersion.of_path(self.where)
        return None if self.about is None else FileVersion.from_information(self.about)


class Listing(NamedTuple):
    """The files in a dataset.

    Attributes:
        files: data files, in order.
        metadata: the directory's ``_metadata`` file, or None if there is none or if the dataset is not one directory.
        common_metadata: the directory's ``_common_metadata`` file, or None as for ``metadata``.
    """

    files: list[DataFile]
    metadata: DataFile | None = None
    common_metadata: DataFile | None = None


def find_files(where: Any, *, is_listed: bool = False) -> list[DataFile]:
    """Return a dataset's data files. Arguments and errors are those of ``list_dataset``."""
    return list_dataset(where, is_listed=is_listed).files


def list_dataset(where: Any, *, is_listed: bool = False, directory_names: Sequence[str] | None = None) -> Listing:
    """Return the files in a directory, a glob, a path or a list of these. Directories and globs are sorted by path.

    Below a directory or in a glob, names that begin with ``_`` or ``.`` are left out, except for partitions (``_x=1``). Names
    with a suffix in NO_DATA are left out too. Partitions are parsed from the path below the given directory. For a glob, a
    file, or directories in a list, they are parsed from the whole path.

    Args:
        where: a directory, a glob, a path, or a list of these.
        is_listed: whether ``where`` is an item in a list.
        directory_names: partition columns of a directory whose subdirectories are named by values alone, outermost first. None
            takes the names in the paths.

    Raises:
        FileNotFoundError: there is no file.
        SchemaError: ``where`` has another type, or is no directory although ``directory_names`` are given.
    """
    if isinstance(where, Iterable) and not isinstance(where, str | bytes):
        if directory_names is not None:
            raise SchemaError("directories that are named by values alone are read from their common directory, not from a list")
        places = list(where)
        is_remote = any((isinstance(one, str) and "://" in one) or hasattr(one, "fs") for one in places)
        find_one = partial(find_files, is_listed=True)
        waiter = WAITER.get()
        start_pool = None if waiter is None else waiter.start_pool
        lists = run_ordered(find_one, places, ASKED_AT_A_TIME if is_remote else 1, start_pool=start_pool)
        return Listing([file for files in lists for file in files])
    place = locate(where)
    if place is None:
        raise SchemaError(f"a dataset must be a directory, a glob, a path or a list of these, not a {type(where).__name__}")
    listing = _remote(place, is_listed) if isinstance(place, Remote) else _local(place, is_listed)
    if directory_names is not None:
        listing = listing._replace(files=[_by_directories(file, place, directory_names) for file in listing.files])
    if not listing.files:
        if isinstance(place, str) and os.path.isdir(place):
            raise FileNotFoundError(f"there is no data file in the folder {place}")
        raise FileNotFoundError(f"there is no file at {place.name if isinstance(place, Remote) else place}")
    return listing


def _by_directories(file: DataFile, place: str | Remote, names: Sequence[str]) -> DataFile:
    """Return a file below a dataset's directory with the partition values that the names of its directories are."""
    root = place.path if isinstance(place, Remote) else place
    relative = posixpath.relpath(_slashed(file.path), _slashed(root))
    if relative == "." or relative.startswith(".."):
        raise SchemaError("directories that are named by values alone are read from their common directory", path=file.path)
    return replace(file, partitions=parse_directories(relative, names))


def find_local_file(root: str) -> DataFile | None:
    """Return the first data file in a directory, or None if there is none. Files come before directories, both by name."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if files := _below(root, [(path, path, None)], False):
                return files[0]
    return None


def _local(path: str, is_listed: bool) -> Listing:
    if os.path.isdir(path):
        names = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        beside = (os.path.join(path, name) for name in (METADATA, COMMON_METADATA))
        return Listing(
            _below(path, ((name, name, None) for name in names), is_listed),
            *(DataFile(name, name, {}) if os.path.isfile(name) else None for name in beside),
        )
    paths = [path] if os.path.exists(path) else sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
    return Listing([DataFile(name, name, parse_partitions(_slashed(name))) for name in _data_files(paths, path)])


def _remote(place: Remote, is_listed: bool) -> Listing:
    filesystem, path = place.filesystem, place.path
    decode = unquote if protocols(filesystem) & {"http", "https"} else str       # a page of links has quoted names
    about = _about(place)
    if about is None:
        matches = visible_matches(filesystem, path)
        paths = _data_files(sorted(name for name, about in matches.items() if about["type"] == "file"), path)
        return Listing(
            [DataFile(_listed(filesystem, name, matches[name]), name, parse_partitions(decode(name))) for name in paths]
        )
    if about["type"] == "directory":
        infos = visible_files(filesystem, path)
        files = ((name, _listed(filesystem, name, info), info) for name, info in infos.items())
        beside = (f"{path.rstrip('/')}/{name}" for name in (METADATA, COMMON_METADATA))
        return Listing(
            _below(path, files, is_listed, decode),
            *(
                DataFile(_listed(filesystem, name, infos[name]), name, {}, infos[name]) if name in infos else None
                for name in beside
            ),
        )
    return Listing([DataFile(_listed(filesystem, path, about), path, parse_partitions(decode(path)))])


def _about(place: Remote) -> Mapping[str, Any] | None:
    """Return what the filesystem says about a file or a directory, or None if the path does not exist."""
    filesystem, path = place.filesystem, place.path
    try:
        about: dict[str, Any] = persistent(place, lambda: ask_filesystem(filesystem, "info", path), DEFAULT_MAX_ATTEMPTS)
    except FileNotFoundError:
        return None
    # some servers show a directory as a page of links
    if about["type"] == "file" and (path.endswith("/") or about.get("mimetype") == "text/html"):
        return about | {"type": "directory"} if ask_filesystem(filesystem, "isdir", path) else about
    return about


def _listed(filesystem: Any, path: str, about: Mapping[str, Any]) -> RemotePath:
    size = about.get("size")
    return RemotePath(filesystem, path, size if isinstance(size, int) else None)


def _below(
    root: str,
    files: Iterable[tuple[str, str | RemotePath, Mapping[str, Any] | None]],
    is_listed: bool,
    decode: Callable[[str], str] = str,
) -> list[DataFile]:
    below, start = [], _slashed(root)
    for path, where, about in sorted(files, key=lambda file: file[0]):
        relative = decode(_relative(_slashed(path), start))
        if not any(map(is_hidden, relative.split("/"))) and not path.lower().endswith(NO_DATA):
            below.append(DataFile(where, path, parse_partitions(decode(_slashed(path)) if is_listed else relative), about))
    return below


def _relative(path: str, start: str) -> str:
    """Return a path relative to a directory, both with slashes. It is mostly the part behind the directory's path."""
    prefix = start if start.endswith("/") else start + "/"
    rest = path[len(prefix) :]
    is_plain = path.startswith(prefix) and not rest.startswith("/") and "//" not in rest and "./" not in rest
    return rest if rest and is_plain else posixpath.relpath(path, start)


def _data_files(paths: Sequence[str], pattern: str) -> Iterator[str]:
    """Yield those matches of a glob that are data files.

    Hidden files and files with a suffix in NO_DATA count if the pattern itself names them.
    """
    takes_hidden, takes_all = is_hidden(posixpath.basename(_slashed(pattern))), pattern.lower().endswith(NO_DATA)
    for path in paths:
        is_skipped = is_hidden(posixpath.basename(_slashed(path))) and not takes_hidden
        if path == pattern or (not is_skipped and (takes_all or not path.lower().endswith(NO_DATA))):
            yield path


def is_hidden(part: str) -> bool:
    """Return whether readers of datasets skip files and folders with this name."""
    return part[:1] in ("_", ".") and "=" not in part


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/")
