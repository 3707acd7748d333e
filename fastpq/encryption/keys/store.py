"""Material files: the wrapped keys of a Parquet file, in ``_KEY_MATERIAL_FOR_<name>.json`` in the same folder.

The file name is the same as in parquet-java and Arrow. A material file is always replaced as a whole.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastpq.encryption.keys.material import LARGEST_MATERIAL_FILE, compact, parse_material_file
from fastpq.errors import KeyAccessError, LimitError, ParquetError, SchemaError
from fastpq.io.location import Remote, locate
from fastpq.io.sink import FileSink, open_sink
from fastpq.io.source import open_source

PREFIX = "_KEY_MATERIAL_FOR_"
ROTATION_PREFIX = "_TMP_KEY_MATERIAL_FOR_"      # parquet-java and Arrow write here, then delete and rename
SUFFIX = ".json"


@dataclass(frozen=True)
class _OnFilesystem:
    """A path on an fsspec filesystem, in the form for fastpq.io.location."""

    fs: Any
    path: str


class MaterialPath:
    """A path, local or on an fsspec filesystem.

    Args:
        where: a path or URL.
        filesystem: fsspec filesystem of the path; None to choose by path or URL.

    Raises:
        SchemaError: where is neither path nor URL.
        UnsupportedError: fsspec, or its package for a URL's scheme, is not installed.
    """

    def __init__(self, where: Any, filesystem: Any = None) -> None:
        located = locate(where if filesystem is None else _OnFilesystem(filesystem, os.fspath(where)))
        if located is None:
            raise SchemaError(f"key material is found by a path, not by {type(where).__name__}")
        if isinstance(located, Remote) and _is_local(located.filesystem):
            located = located.path.removeprefix("file://")
        self.filesystem = located.filesystem if isinstance(located, Remote) else None
        self.path = located.path if isinstance(located, Remote) else located

    def at(self, path: str) -> MaterialPath:
        """Another path on the same filesystem."""
        place = object.__new__(MaterialPath)
        place.filesystem, place.path = self.filesystem, path
        return place

    def sibling(self, prefix: str, suffix: str = "") -> MaterialPath:
        folder, name = self._split()
        return self.at(f"{folder}{prefix}{name}{suffix}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._split()[1]

    @property
    def opened(self) -> Any:
        """The path in the form for open_source and open_sink."""
        return self.path if self.filesystem is None else _OnFilesystem(self.filesystem, self.path)

    def exists(self) -> bool:
        return bool(os.path.exists(self.path) if self.filesystem is None else self.filesystem.exists(self.path))

    def is_folder(self) -> bool:
        return bool(os.path.isdir(self.path) if self.filesystem is None else self.filesystem.isdir(self.path))

    def visible_files(self) -> Iterator[MaterialPath]:
        """All files in this folder and in folders below, by path, except names beginning with ``_`` or ``.``."""
        if self.filesystem is not None:
            root = self.path.rstrip("/") + "/"
            for path in sorted(self.filesystem.find(self.path)):
                if not any(_hidden(part) for part in path.removeprefix(root).split("/")):
                    yield self.at(path)
            return
        for folder, folders, names in os.walk(self.path, onerror=_raise):
            folders[:] = sorted(name for name in folders if not _hidden(name))
            yield from (self.at(os.path.join(folder, name)) for name in sorted(names) if not _hidden(name))

    def _split(self) -> tuple[str, str]:
        if self.filesystem is None:
            name = os.path.basename(self.path)
            return self.path[: len(self.path) - len(name)], name
        folder, slash, name = self.path.rpartition("/")
        return folder + slash, name


class MaterialFile:
    """The material file of a Parquet file, in the same folder.

    Args:
        parquet_file: the Parquet file.
    """

    def __init__(self, parquet_file: MaterialPath) -> None:
        self._parquet_file = parquet_file
        self._place = parquet_file.sibling(PREFIX, SUFFIX)

    @property
    def path(self) -> str:
        """Path of the material file."""
        return self._place.path

    def exists(self) -> bool:
        return self._place.exists() or self._interrupted().exists()

    def read(self) -> dict[str, str]:
        """The entries of the material file by reference, each as JSON text.

        Raises:
            KeyAccessError: there is no material file.
            FormatError, LimitError: the material file is malformed, or too large.
        """
        place = self._place
        if not place.exists():
            place = self._interrupted()     # left by an unfinished rotation of parquet-java or Arrow
            if not place.exists():
                raise KeyAccessError("the file's keys are in a key material file, which is not there", path=self.path)
        try:
            with open_source(place.opened, memory_map=False) as source:
                if source.size > LARGEST_MATERIAL_FILE:
                    raise LimitError(f"a key material file of {source.size} bytes: it may have {LARGEST_MATERIAL_FILE}")
                return parse_material_file(source.read(0, source.size).tobytes())
        except ParquetError as error:
            error.at(path=place.path)
            raise

    def begin(self) -> None:
        """Check that a new material file will not replace the keys of an existing Parquet file.

        Raises:
            SchemaError: there are a Parquet file and its material file already.
        """
        if self.exists() and self._parquet_file.exists():
            raise SchemaError(
                "there is a file whose keys are in a key material file: until the new file is whole, neither may be "
                "replaced. Remove both first, or write to another path",
                path=self._parquet_file.path,
            )

    def write(self, entries: Mapping[str, str]) -> None:
        """Replace the material file; at every moment there is the old file or the new one.

        A symbolic link in the place of the file is replaced, not followed: whoever may write in the folder may have put it there.

        Args:
            entries: material as JSON text, by reference.
        """
        self._remove(self._place.sibling(".", ".crc"))      # Hadoop's checksum of the old file does not fit the new one
        place = self._place
        with FileSink(place.path, follow_links=False) if place.filesystem is None else open_sink(place.opened) as sink:
            sink.write(compact(dict(entries)).encode())
        self._remove(self._interrupted())

    def _interrupted(self) -> MaterialPath:
        return self._parquet_file.sibling(ROTATION_PREFIX, SUFFIX)

    def _remove(self, place: MaterialPath) -> None:
        if place.filesystem is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place.path)
        elif place.exists():
            place.filesystem.rm_file(place.path)


def _is_local(filesystem: Any) -> bool:
    """Whether an fsspec filesystem has the files of the operating system, by their paths."""
    protocol = filesystem.protocol
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _raise(error: OSError) -> None:
    raise error
