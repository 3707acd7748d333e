"""DatasetFiles: a dataset with its files' footers. Sample files are taken from it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from fastpq.advice.present_settings import DICTIONARY_ENCODINGS
from fastpq.api.file import ParquetFile
from fastpq.common.progress import Meter
from fastpq.datasets.consolidation import consolidate, joined_kind, small_row_groups
from fastpq.datasets.discovery import find_files
from fastpq.datasets.small_files import DEFAULT_TARGET_SIZE, LEAST_PART, CompactedFile, groups_to_join
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import FormatError, UnsupportedError
from fastpq.io.location import Remote, locate
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import DEFAULT_PROPERTIES, ReaderProperties
from fastpq.rewriting.widening import with_wider_types
from fastpq.schema.types import ColumnType, Float16, Integer, Type

MOST_FILES = 32             # files in a sample
MOST_STORED_BYTES = 64 << 20    # in all files in a sample
MOST_KINDS = 16             # kinds that are tried, those with most bytes


@dataclass(frozen=True, slots=True)
class FileKind:
    """Files that were written alike: they share schema, codecs, indexes, dictionaries and writer.

    Attributes:
        files: the files, in order.
        is_joined: whether they would all be joined with others, row group by row group.
    """

    files: Sequence[CompactedFile]
    is_joined: bool

    @property
    def size(self) -> int:
        """Their stored bytes."""
        return sum(file.size for file in self.files)

    @property
    def middle_file(self) -> CompactedFile:
        """The file that is larger than half of the others."""
        return sorted(self.files, key=lambda file: file.size)[len(self.files) // 2]


@dataclass(slots=True)
class DatasetFiles:
    """A dataset as advice needs it.

    Attributes:
        name: the dataset, as reports show it.
        root: the folder to which paths in recipes are relative.
        files: the files, in order.
        wider_types: for each column whose types differ from file to file, a type that can hold all values, if there is one.
        groups: files that ``compact`` would join, after columns were widened.
        has_uniform_folders: whether all files of each folder can be joined then, so that ``sort`` takes them.
    """

    name: str
    root: str | Remote
    files: Sequence[CompactedFile]
    wider_types: Mapping[str, str] = field(init=False)
    groups: Sequence[Sequence[CompactedFile]] = field(init=False)
    has_uniform_folders: bool = field(init=False)

    def __post_init__(self) -> None:
        self.wider_types = _wider_types(self.files)
        kinds = {id(file): self._kind_after(file) for file in self.files}
        self.has_uniform_folders = len({*kinds.values()}) == len({file.folder for file in self.files})
        self.groups = groups_to_join(
            self.files, DEFAULT_TARGET_SIZE, DEFAULT_PROPERTIES.row_group_size, lambda file: kinds[id(file)])

    @classmethod
    def of(cls, where: Any, keys: Any) -> DatasetFiles:
        """Read all footers.

        Raises:
            UnsupportedError: a file is encrypted.
            FileNotFoundError: there is no file.
        """
        listed = find_files(where)
        place = locate(where) if isinstance(where, str | os.PathLike) else None
        root: str | Remote
        if isinstance(place, str) and os.path.isdir(place):
            root = place
        else:
            paths = [file.path for file in listed]
            common = os.path.dirname(paths[0]) if len(paths) == 1 else os.path.commonpath(paths)
            root = Remote(place.filesystem, common, common) if isinstance(place, Remote) else common
        files = []
        for file in listed:
            own_keys: FileDecryptionProperties | None = keys(file.path) if callable(keys) else keys
            files.append(CompactedFile.of(file, root, own_keys))
            if files[-1].is_encrypted:
                raise UnsupportedError(
                    "advice on a dataset whose files are encrypted: ask for advice on its files, one by one", path=file.path)
        name = os.fspath(where) if isinstance(where, str | os.PathLike) else f"{len(files)} files"
        return cls(name, root, files)

    @property
    def size(self) -> int:
        """Stored bytes in all files."""
        return sum(file.size for file in self.files)

    @property
    def num_rows(self) -> int:
        """Rows in all files."""
        return sum(file.footer.num_rows for file in self.files)

    @property
    def num_joined(self) -> int:
        """How many files there would be after ``compact``."""
        return len(self.files) - sum(len(group) - 1 for group in self.groups)

    def relative_path(self, file: CompactedFile) -> str:
        """Return a file's path as recipes have it."""
        root = self.root if isinstance(self.root, str) else f"/{self.root.path}"
        path = file.file.path if isinstance(self.root, str) else f"/{file.file.path}"
        return os.path.relpath(path, root).replace(os.sep, "/")

    def _kind_after(self, file: CompactedFile) -> Any:
        """Return a file's kind after columns were widened. Files with the same kind can be joined."""
        if not self.wider_types:
            return file.kind
        folder, _, *others = file.kind
        schema = file.footer.schema
        types = {
            column.name: self.wider_types[column.name]
            for column in schema.columns
            if column.name in self.wider_types and type_name(column.type) != self.wider_types[column.name]
        }
        return folder, repr(with_wider_types(schema, types).elements), *others

    def kinds(self) -> list[FileKind]:
        """Return all kinds, those with most bytes first."""
        alike: defaultdict[tuple[Any, ...], list[CompactedFile]] = defaultdict(list)
        for file in self.files:
            if file.footer.num_rows:
                alike[_kind_of(file.footer)].append(file)
        joined = {id(file) for group in self.groups for file in group}
        kinds = [
            FileKind(files, all(id(file) in joined and _has_only_small_groups(file.footer) for file in files))
            for files in alike.values()
        ]
        return sorted(kinds, key=lambda kind: kind.size, reverse=True)


def _kind_of(footer: FileMetaData) -> tuple[Any, ...]:
    group = footer.row_group(0)
    chunks = [group.column(column.index) for column in footer.schema.columns]
    settings = tuple(
        (chunk.codec, chunk.metadata.statistics is None, chunk.metadata.bloom_filter_offset is None) for chunk in chunks
    )
    has_index = any(chunk.chunk.offset_index_offset is not None for chunk in chunks)
    has_dictionary = any(DICTIONARY_ENCODINGS & {*chunk.encodings} for chunk in chunks)
    return footer.created_by, joined_kind(footer), settings, has_index, has_dictionary


def _wider_types(files: Iterable[CompactedFile]) -> dict[str, str]:
    """Return a type for each column whose types differ. Columns that ``evolve_file`` cannot widen are left out."""
    types: dict[str, dict[str, ColumnType]] = defaultdict(dict)
    for file in files:
        for column in file.footer.schema.columns:
            types[column.name][type_name(column.type)] = column.type
    wider = {name: _wider(list(each.values())) for name, each in types.items() if len(each) > 1}
    return {name: type_ for name, type_ in wider.items() if type_ is not None}


def type_name(type_: ColumnType) -> str:
    """Return a name that is the same for equal types. 64-bit integers have one name, with an annotation or without."""
    if type_.physical is Type.INT64 and type_.logical in (None, Integer(64, True)):
        return "int64"
    return "float64" if type_.physical is Type.DOUBLE else str(type_)


def _wider(types: Sequence[ColumnType]) -> str | None:
    """Return a type that can hold all values in these types, or None if ``evolve_file`` does not make it."""

    def is_whole(each: ColumnType) -> bool:
        has_32_bits = each.physical is Type.INT32 and (each.logical is None or isinstance(each.logical, Integer))
        return has_32_bits or type_name(each) == "int64"

    def is_float(each: ColumnType) -> bool:
        return each.physical in (Type.FLOAT, Type.DOUBLE) or isinstance(each.logical, Float16)

    return "int64" if all(map(is_whole, types)) else "float64" if all(map(is_float, types)) else None


def _has_only_small_groups(footer: FileMetaData) -> bool:
    rows = DEFAULT_PROPERTIES.row_group_size
    return len(small_row_groups(footer, DEFAULT_TARGET_SIZE // LEAST_PART, rows)) == footer.num_row_groups


def sample_of(files: Sequence[CompactedFile]) -> list[CompactedFile]:
    """Return some files, spread over all, with at most MOST_STORED_BYTES together. There is at least one."""
    count = min(len(files), MOST_FILES)
    places = dict.fromkeys(len(files) * (2 * number + 1) // (2 * count) for number in range(count))
    chosen: list[CompactedFile] = []
    for place in places:
        if not chosen or sum(file.size for file in chosen) + files[place].size <= MOST_STORED_BYTES:
            chosen.append(files[place])
    return chosen


def joined_file(files: Iterable[CompactedFile], options: Mapping[str, Any] | None = None) -> bytes:
    """Return the file that ``compact`` would make from some files."""
    target = BytesIO()
    consolidate(
        [BytesIO(bytes_of(file)) for file in files], target, least_bytes=DEFAULT_TARGET_SIZE // LEAST_PART, keys=None,
        keys_of=lambda _: None, options=options or {}, threads=None, meter=Meter(None))
    return target.getvalue()


def bytes_of(file: CompactedFile) -> bytes:
    """Return a whole file."""
    with open_source(file.file.where) as source:
        return bytes(source.read(0, source.size))


def first_error(dataset: DatasetFiles, properties: ReaderProperties | None) -> FormatError | None:
    """Return the error in the first broken file, or None. Only files that may be in a sample are read.

    Args:
        dataset: the files.
        properties: limits and checks for reading.
    """
    kinds = dataset.kinds()[:MOST_KINDS]
    files = {id(file): file for each in (dataset.files, *(kind.files for kind in kinds)) for file in sample_of(each)}
    files |= {id(file): file for kind in kinds if not kind.is_joined for file in [kind.middle_file]}
    for file in files.values():
        try:
            with ParquetFile(file.file.where, properties=properties) as opened:
                for number in range(file.footer.num_row_groups):
                    opened.read(row_groups=[number])
        except FormatError as error:
            return error
    return None
