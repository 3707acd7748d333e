"""Material files: a Parquet file's wrapped keys, in ``_KEY_MATERIAL_FOR_<name>.json`` in the same folder.

parquet-java and Arrow use the same file name. A material file is always replaced as a whole.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastpq.encryption.keys.material import (
    FOOTER_REFERENCE,
    LARGEST_MATERIAL_FILE,
    generation_of,
    json_text,
    parse_key_material,
    parse_material_file,
)
from fastpq.errors import KeyAccessError, LimitError, ParquetError, SchemaError
from fastpq.io.location import Remote, locate
from fastpq.io.sink import FileSink
from fastpq.io.sink_opening import open_sink
from fastpq.io.source_opening import open_source

PREFIX = "_KEY_MATERIAL_FOR_"
ROTATION_PREFIX = "_TMP_KEY_MATERIAL_FOR_"      # parquet-java and Arrow write this file, delete the old one, and rename this one
SUFFIX = ".json"


def material_name(name: str) -> str:
    """Return the name of the key material file for a Parquet file's name. The two files are in one folder."""
    return f"{PREFIX}{name}{SUFFIX}"


@dataclass(frozen=True)
class _OnFilesystem:
    """A path on an fsspec filesystem, in the form that fastpq.io.location accepts."""

    fs: Any
    path: str


class MaterialPath:
    """A path, either local or on an fsspec filesystem.

    Args:
        where: a path or URL.
        filesystem: fsspec filesystem for the path. None lets the path or URL decide.

    Raises:
        SchemaError: where is neither a path nor a URL.
        UnsupportedError: fsspec, or the package that it needs for a URL's scheme, is not installed.
    """

    def __init__(self, where: Any, filesystem: Any = None) -> None:
        location = locate(where if filesystem is None else _OnFilesystem(filesystem, os.fspath(where)))
        if location is None:
            raise SchemaError(f"key material needs the path of the file, not a {type(where).__name__}")
        if isinstance(location, Remote) and _is_local(location.filesystem):
            location = location.path.removeprefix("file://")
        self.filesystem = location.filesystem if isinstance(location, Remote) else None
        self.path = location.path if isinstance(location, Remote) else location

    def at(self, path: str) -> MaterialPath:
        """Return another path on the same filesystem."""
        place = object.__new__(MaterialPath)
        place.filesystem, place.path = self.filesystem, path
        return place

    def sibling(self, prefix: str, suffix: str = "") -> MaterialPath:
        """Return a file's path in the same folder. Its name is this name with a prefix and a suffix."""
        folder, name = self._split()
        return self.at(f"{folder}{prefix}{name}{suffix}")

    @property
    def name(self) -> str:
        """The path's last part."""
        return self._split()[1]

    @property
    def io_argument(self) -> Any:
        """The path in the form that open_source and open_sink accept."""
        return self.path if self.filesystem is None else _OnFilesystem(self.filesystem, self.path)

    def exists(self) -> bool:
        return bool(os.path.exists(self.path) if self.filesystem is None else self.filesystem.exists(self.path))

    def is_folder(self) -> bool:
        return bool(os.path.isdir(self.path) if self.filesystem is None else self.filesystem.isdir(self.path))

    @property
    def is_glob(self) -> bool:
        """Whether the path has the characters of a glob and no file of this name exists."""
        return glob.has_magic(self.path) and not self.exists()

    def matching_files(self) -> Iterator[MaterialPath]:
        """Yield the files that match this glob, by path. Names that begin with ``_`` or ``.`` are left out.

        Raises:
            FileNotFoundError: there are none.
        """
        if self.filesystem is None:
            matches = list(filter(os.path.isfile, glob.glob(self.path, recursive=True)))
        else:
            about = self.filesystem.glob(self.path, detail=True)
            matches = [path for path in about if about[path]["type"] == "file"]
        places = [self.at(path) for path in sorted(matches)]
        places = [place for place in places if not _is_hidden(place.name)]
        if not places:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)
        yield from places

    def visible_files(self) -> Iterator[MaterialPath]:
        """Yield all files in this folder and its subfolders, by path. Names that begin with ``_`` or ``.`` are left out."""
        if self.filesystem is not None:
            root = self.path.rstrip("/") + "/"
            for path in sorted(self.filesystem.find(self.path)):
                if not any(_is_hidden(part) for part in path.removeprefix(root).split("/")):
                    yield self.at(path)
            return
        for folder, folders, names in os.walk(self.path, onerror=_raise):
            folders[:] = sorted(name for name in folders if not _is_hidden(name))
            yield from (self.at(os.path.join(folder, name)) for name in sorted(names) if not _is_hidden(name))

    def remove(self) -> None:
        """Remove the file, if it exists."""
        if self.filesystem is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
        elif self.filesystem.exists(self.path):
            self.filesystem.rm_file(self.path)

    def _split(self) -> tuple[str, str]:
        if self.filesystem is None:
            name = os.path.basename(self.path)
            return self.path[: len(self.path) - len(name)], name
        folder, slash, name = self.path.rpartition("/")
        return folder + slash, name


class MaterialFile:
    """A Parquet file's material file, in the same folder.

    Args:
        parquet_file: the Parquet file.
    """

    def __init__(self, parquet_file: MaterialPath) -> None:
        self._parquet_file = parquet_file
        self._place = parquet_file.sibling(PREFIX, SUFFIX)

    @property
    def path(self) -> str:
        """The material file's path."""
        return self._place.path

    def exists(self) -> bool:
        return self._place.exists() or self._unfinished_rotation().exists()

    def read(self) -> dict[str, str]:
        """Return the material file's entries, by reference. Each is a JSON text.

        Raises:
            KeyAccessError: there is no material file.
            FormatError, LimitError: the material file is malformed, or too large.
        """
        place = self._place
        if not place.exists():
            place = self._unfinished_rotation()     # a rotation by parquet-java or Arrow stopped before its last step
            if not place.exists():
                raise KeyAccessError("the file's keys are in a key material file, which is missing", path=self.path)
        try:
            with open_source(place.io_argument, memory_map=False) as source:
                if source.size > LARGEST_MATERIAL_FILE:
                    raise LimitError(f"a key material file of {source.size} bytes: at most {LARGEST_MATERIAL_FILE} are allowed")
                return parse_material_file(source.read(0, source.size).tobytes())
        except ParquetError as error:
            error.at(path=place.path)
            raise

    def is_in_use(self) -> bool:
        """Return whether the Parquet file and its material file exist, so that a new file will replace both."""
        return self.exists() and self._parquet_file.exists()

    def add(self, entries: Mapping[str, str]) -> None:
        """Add the keys of a new file that will replace the Parquet file. The present file stays readable by its own entries.

        Args:
            entries: each key's material as JSON text, by a reference that the material file does not have.

        Raises:
            FormatError, UnsupportedError, LimitError: the present material file is malformed, or too large. It may be a link that
                somebody planted, so only key material is copied from it.
        """
        with self._alone():
            present_entries = self.read()
            for text in present_entries.values():
                parse_key_material(text)
            self.write(present_entries | dict(entries))

    def settle(self, generation: str, old_generation: str | None) -> None:
        """Drop the keys of a file that was replaced, after its successor is in its place.

        Entries of other files, which others may be writing, stay. The entry ``footerKey``, by which other programs find the
        footer key, becomes that of the new file.

        Args:
            generation: the generation of the new file, by ``generation_of``.
            old_generation: the generation of the file that was replaced. None if it had no external key material.
        """
        with self._alone():
            entries = self.read()
            footer = entries.get(FOOTER_REFERENCE + generation)
            if not generation or footer is None:
                return
            old = "" if old_generation is None else old_generation
            other_entries = {name: text for name, text in entries.items() if generation_of(name) not in (old, "")}
            self.write({FOOTER_REFERENCE: footer} | other_entries)

    def remove(self) -> None:
        """Remove the material file, whose Parquet file has no encryption any more."""
        for place in (self._place, self._unfinished_rotation(), self._place.sibling(".", ".crc")):
            place.remove()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other processes that change material files in the same local folder.

        Stores, Windows, and filesystems without locks have no such lock. Two writers of one file could then lose keys.
        """
        descriptor = None if self._place.filesystem is not None else _locked_folder(self._place.path)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def write(self, entries: Mapping[str, str]) -> None:
        """Replace the material file. At every moment, either the old or the new file is there.

        A symbolic link at this path is replaced, not followed, because anybody who may write to the folder may have put it there.

        Args:
            entries: each key's material as JSON text, by reference.
        """
        self._place.sibling(".", ".crc").remove()       # Hadoop's checksum for the old file does not match the new one
        place = self._place
        with FileSink(place.path, follow_links=False) if place.filesystem is None else open_sink(place.io_argument) as sink:
            sink.write(json_text(dict(entries)).encode())
        self._unfinished_rotation().remove()

    def _unfinished_rotation(self) -> MaterialPath:
        return self._parquet_file.sibling(ROTATION_PREFIX, SUFFIX)


def _locked_folder(path: str) -> int | None:
    """Wait for the lock of a file's folder. Return the descriptor that holds it, or None if there are no locks."""
    try:
        import fcntl

        descriptor = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_CLOEXEC)
    except (ImportError, OSError):
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _is_local(filesystem: Any) -> bool:
    """Return whether an fsspec filesystem shows the operating system's files under their own paths."""
    protocol = filesystem.protocol
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _raise(error: OSError) -> None:
    raise error
