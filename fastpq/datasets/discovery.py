"""find_files: the data files of directories, globs and lists of paths, local or on fsspec filesystems."""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from fastpq.common.parallel import run_ordered
from fastpq.datasets.hive import parse_partitions
from fastpq.datasets.records import visible_files, visible_matches
from fastpq.datasets.stamps import Stamp, listed_stamp, local_stamp
from fastpq.errors import SchemaError
from fastpq.io.location import Remote, RemotePath, locate
from fastpq.io.retrying import persistent
from fastpq.options import DEFAULT_MAX_ATTEMPTS

METADATA = "_metadata"      # file with the row groups of all files of a directory (fastpq.datasets.known_footers)
COMMON_METADATA = "_common_metadata"        # file with the schema alone
# Places of a list of URLs asked about at the same time (benchmarks.datasets).
ASKED_AT_A_TIME = 16
# Suffixes of files beside the data: notes, tables of other formats, checksums.
NO_DATA = (
    ".txt", ".md", ".rst", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml", ".html", ".yaml", ".yml", ".toml", ".crc",
    ".md5", ".sha256", ".log", ".sql", ".py", ".ipynb", ".pdf", ".avro", ".orc", ".arrow", ".feather",
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a dataset.

    Attributes:
        where: path or RemotePath for ParquetFile.
        path: path for messages and for functions from path to keys.
        partitions: text of the partition values in its directories, by name; None is null.
        about: information of the filesystem about a remote file when it was listed; None for any other file.
    """

    where: str | RemotePath
    path: str
    partitions: dict[str, str | None]
    about: Mapping[str, Any] | None = None

    def stamp(self) -> Stamp | None:
        """Size, time and version of the file: of a remote file when it was listed, of a local one now; None if unknown."""
        if isinstance(self.where, str):
            return local_stamp(self.where)
        return None if self.about is None else listed_stamp(self.about)


class Listing(NamedTuple):
    """The files of a dataset.

    Attributes:
        files: data files, in order.
        metadata: the file ``_metadata`` of a directory; None without one, and for files other than of one directory.
        common_metadata: the file ``_common_metadata``, likewise.
    """

    files: list[DataFile]
    metadata: DataFile | None = None
    common_metadata: DataFile | None = None


def find_files(where: Any, *, is_listed: bool = False) -> list[DataFile]:
    """The data files of a dataset, as ``list_dataset`` finds these."""
    return list_dataset(where, is_listed=is_listed).files


def list_dataset(where: Any, *, is_listed: bool = False) -> Listing:
    """Files of a directory, a glob, a path or a list of them; files of a directory or glob are sorted by path.

    Below a directory or in a glob, names that begin with ``_`` or ``.`` are left out, except partitions (``_x=1``), and so are
    names with the suffixes of other kinds of files (NO_DATA). Partitions are parsed from the path below the given directory; for
    a glob, a file, or directories in a list, from the whole path.

    Args:
        where: a directory, a glob, a path, or a list of these.
        is_listed: whether where stands in a list.

    Raises:
        FileNotFoundError: no file found.
        SchemaError: where is of another type.
    """
    if isinstance(where, Iterable) and not isinstance(where, str | bytes):
        listed = list(where)
        is_remote = any((isinstance(one, str) and "://" in one) or hasattr(one, "fs") for one in listed)
        find_one = partial(find_files, is_listed=True)
        return Listing([file for files in run_ordered(find_one, listed, ASKED_AT_A_TIME if is_remote else 1) for file in files])
    located = locate(where)
    if located is None:
        raise SchemaError(f"a dataset is a directory, a glob, a path or a list of these, not a {type(where).__name__}")
    found = _remote(located, is_listed) if isinstance(located, Remote) else _local(located, is_listed)
    if not found.files:
        if isinstance(located, str) and os.path.isdir(located):
            raise FileNotFoundError(f"there is no data file in the folder {located}")
        raise FileNotFoundError(f"there is no file at {located.name if isinstance(located, Remote) else located}")
    return found


def find_local_file(root: str) -> DataFile | None:
    """The data file of a directory found first, names in order, files before directories; None without one."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if found := _below(root, [(path, path, None)], False):
                return found[0]
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
    return Listing([DataFile(name, name, parse_partitions(_slashed(name))) for name in _chosen(paths, path)])


def _remote(place: Remote, is_listed: bool) -> Listing:
    filesystem, path = place.filesystem, place.path
    about = _about(place)
    if about is None:
        matches = visible_matches(filesystem, path)
        paths = _chosen(sorted(name for name, about in matches.items() if about["type"] == "file"), path)
        return Listing([DataFile(_listed(filesystem, name, matches[name]), name, parse_partitions(name)) for name in paths])
    if about["type"] == "directory":
        found = visible_files(filesystem, path)
        listed = ((name, _listed(filesystem, name, about), about) for name, about in found.items())
        beside = (f"{path.rstrip('/')}/{name}" for name in (METADATA, COMMON_METADATA))
        return Listing(
            _below(path, listed, is_listed),
            *(
                DataFile(_listed(filesystem, name, found[name]), name, {}, found[name]) if name in found else None
                for name in beside
            ),
        )
    return Listing([DataFile(_listed(filesystem, path, about), path, parse_partitions(path))])


def _about(place: Remote) -> Mapping[str, Any] | None:
    """Type and size of a file or a directory; None where there is neither."""
    filesystem, path = place.filesystem, place.path
    try:
        about: dict[str, Any] = persistent(place, lambda: filesystem.info(path), DEFAULT_MAX_ATTEMPTS)
    except FileNotFoundError:
        return None
    # a server's page of links
    if about["type"] == "file" and (path.endswith("/") or about.get("mimetype") == "text/html") and filesystem.isdir(path):
        return about | {"type": "directory"}
    return about


def _listed(filesystem: Any, path: str, about: Mapping[str, Any]) -> RemotePath:
    size = about.get("size")
    return RemotePath(filesystem, path, size if isinstance(size, int) else None)


def _below(
    root: str, files: Iterable[tuple[str, str | RemotePath, Mapping[str, Any] | None]], is_listed: bool
) -> list[DataFile]:
    found = []
    for path, where, about in sorted(files, key=lambda file: file[0]):
        relative = posixpath.relpath(_slashed(path), _slashed(root))
        if not any(map(_is_hidden, relative.split("/"))) and not path.lower().endswith(NO_DATA):
            found.append(DataFile(where, path, parse_partitions(_slashed(path) if is_listed else relative), about))
    return found


def _chosen(paths: Sequence[str], pattern: str) -> Iterator[str]:
    """Matches of a glob that are data files; the pattern itself may name hidden files and suffixes of other kinds."""
    takes_hidden, takes_all = _is_hidden(posixpath.basename(_slashed(pattern))), pattern.lower().endswith(NO_DATA)
    for path in paths:
        hidden = _is_hidden(posixpath.basename(_slashed(path))) and not takes_hidden
        if path == pattern or (not hidden and (takes_all or not path.lower().endswith(NO_DATA))):
            yield path


def _is_hidden(part: str) -> bool:
    return part[:1] in ("_", ".") and "=" not in part


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/")
