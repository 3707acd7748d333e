"""KnownFooters: the footers of a dataset's files, taken from its ``_metadata`` file if that is certainly up to date.

``_metadata`` holds the row groups of all files. Each column chunk there has its file's path. If fastpq wrote ``_metadata``, its
key-value metadata also hold the files' versions, and everything else in which the files' footers differ.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastpq import format as fmt
from fastpq.api.file import ParquetFile
from fastpq.datasets.discovery import METADATA, DataFile
from fastpq.errors import FormatError, ParquetError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.io.file_version import FileVersion
from fastpq.io.source_opening import KnownFile
from fastpq.metadata.file_metadata import FileMetaData, decoded_footer
from fastpq.schema.parquet_schema import ParquetSchema

_log = logging.getLogger("fastpq.datasets")

# Key for the entry that holds the files' versions, their own key-value metadata and their writers.
FILES_KEY = "fastpq.files"
VERSION = 1
# Smallest number of bytes after a file's last page: the footer length and the magic bytes.
_END = 8


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a ``_metadata`` file that fastpq wrote says about a data file, apart from its row groups.

    Attributes:
        file_version: version of the file when its footer was read.
        version: format version in the footer.
        created_by: name of the writer.
        key_values: key-value metadata, or None.
        checksum: CRC-32 of the serialized footer that ``footer`` returns, or None if unknown.
    """

    file_version: FileVersion
    version: int
    created_by: str | None
    key_values: tuple[tuple[str, str | None], ...] | None
    checksum: int | None = None

    @classmethod
    def of(cls, footer: fmt.FileMetaData, file_version: FileVersion, checksum: int | None = None) -> FileRecord:
        """Return the record for a file that has this footer."""
        return cls(file_version, footer.version, footer.created_by, key_values_of(footer), checksum)

    def footer(self, whole: fmt.FileMetaData, row_groups: list[fmt.RowGroup]) -> fmt.FileMetaData:
        """Return the file's footer.

        Args:
            whole: the ``_metadata`` file's contents.
            row_groups: the file's row groups, without paths.
        """
        entries = None if self.key_values is None else [fmt.KeyValue(key=key, value=value) for key, value in self.key_values]
        return fmt.FileMetaData(
            version=self.version, schema=whole.schema, num_rows=sum(group.num_rows for group in row_groups),
            row_groups=row_groups, key_value_metadata=entries, created_by=self.created_by, column_orders=whole.column_orders,
        )


class KnownFooters:
    """Footers of all files in a dataset. They are valid for some time after the files were listed.

    Args:
        footers: each file's serialized footer, by path.
        rows: each file's row count, by path.
        versions: each file's version when it was listed, by path.
    """

    def __init__(self, footers: Mapping[str, bytes], rows: Mapping[str, int], versions: Mapping[str, FileVersion]) -> None:
        self._footers, self.rows, self._versions = footers, rows, versions
        self._since = time.monotonic()

    def age(self) -> float:
        """Return how many seconds ago the files were listed."""
        return time.monotonic() - self._since

    def known_file(self, file: DataFile) -> KnownFile:
        """Return a file together with its footer, so that it can be opened without reading the footer."""
        return KnownFile(file.where, self._footers[file.path])

    def version_of(self, file: DataFile) -> FileVersion:
        """Return the version that a file had when it was listed."""
        return self._versions[file.path]


def known_footers(metadata: DataFile | None, files: Sequence[DataFile], options: Mapping[str, Any]) -> KnownFooters | None:
    """Return the footers of all files, or None if ``_metadata`` lacks a file or if a file may have changed since.

    Args:
        metadata: the dataset's ``_metadata`` file, or None if there is none.
        files: all data files in the dataset.
        options: reader options.
    """
    if metadata is None or metadata.version() is None:
        return None
    versions = {file.path: file_version for file in files if (file_version := file.version()) is not None}
    try:
        if len(versions) < len(files):
            return None
        with ParquetFile(metadata.where, **options) as file:
            contents = contents_of(file.metadata)
        return _checked(contents, metadata, files, versions, options)
    except (ParquetError, OSError) as error:
        _log.warning("%s is ignored, and the footers of all files are read: %s", metadata.path, error)
        return None


@dataclass(frozen=True, slots=True)
class Contents:
    """Decoded ``_metadata`` file.

    Attributes:
        whole: the file's footer.
        row_groups: each file's row groups, without paths, by path relative to the dataset.
        records: what fastpq recorded about each file, by relative path, or None if another writer wrote ``_metadata``.
    """

    whole: fmt.FileMetaData
    row_groups: Mapping[str, list[fmt.RowGroup]]
    records: Mapping[str, FileRecord] | None


def contents_of(metadata: FileMetaData) -> Contents:
    """Return a ``_metadata`` file's contents.

    Raises:
        FormatError: this is not a ``_metadata`` file: a chunk has no path, a row group is in two files, or chunks are encrypted.
    """
    whole: fmt.FileMetaData = decoded_footer(metadata)
    if whole.encryption_algorithm is not None:
        raise FormatError("the footer says that the files are encrypted, and these have footers of their own")
    row_groups: dict[str, list[fmt.RowGroup]] = {}
    for group in whole.row_groups:
        paths = {chunk.file_path for chunk in group.columns}
        path = next(iter(paths), None)
        if len(paths) != 1 or path is None or any(chunk.crypto_metadata is not None for chunk in group.columns):
            raise FormatError(f"a row group is encrypted, or is in the files {sorted(map(str, paths))}")
        for chunk in group.columns:
            chunk.file_path = None
        row_groups.setdefault(path, []).append(group)
    text = metadata.key_value(FILES_KEY)
    records = None if text is None else _records_of(text)
    for path in records or ():
        row_groups.setdefault(path, [])     # for a file without row groups
    return Contents(whole, row_groups, records)


def _records_of(text: str) -> dict[str, FileRecord]:
    try:
        entry = json.loads(text)
        if entry["version"] != VERSION:
            raise FormatError(f"the file versions are not of layout {VERSION}: a newer fastpq wrote them")
        kinds = [
            (int(version), writer, None if entries is None else tuple((str(key), value) for key, value in entries))
            for version, writer, entries in entry["footers"]
        ]
        records = {}
        for path, kind, (size, modified_ns, etag), checksum in entry["files"]:
            version, writer, entries = kinds[kind]
            records[str(path)] = FileRecord(FileVersion(size, modified_ns, etag), version, writer, entries, int(checksum))
        return records
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError):
        raise FormatError("the file versions are broken") from None


def records_as_text(records: Mapping[str, FileRecord]) -> str:
    """Return file records as text for the key-value metadata."""
    kinds: dict[Any, int] = {}
    files = []
    for path, record in records.items():
        kind = kinds.setdefault((record.version, record.created_by, record.key_values), len(kinds))
        version = record.file_version
        files.append([path, kind, [version.size, version.modified_ns, version.tag], record.checksum])
    return json.dumps({"version": VERSION, "footers": list(kinds), "files": files}, separators=(",", ":"))


def relative_path(metadata: DataFile, file: DataFile) -> str:
    """Return a data file's path in the form that column chunks in ``_metadata`` have."""
    return file.path.replace("\\", "/")[len(metadata.path) - len(METADATA) :]


def _checked(
    contents: Contents,
    metadata: DataFile,
    files: Sequence[DataFile],
    versions: Mapping[str, FileVersion],
    options: Mapping[str, Any],
) -> KnownFooters | None:
    """Return the files' footers if each file is in ``_metadata`` and unchanged, otherwise None."""
    record_version = metadata.version()
    assert record_version is not None
    records = contents.records or {}
    footers, rows = {}, {}
    for file in files:
        path, file_version = relative_path(metadata, file), versions[file.path]
        groups = contents.row_groups.get(path)
        if groups is None or not all(_is_inside(group, file_version.size) for group in groups):
            return None
        if contents.records is not None:
            record = records.get(path)
            if record is None or not file_version.proves(record.file_version, record_version):
                return None
        elif not file_version.is_before(record_version):
            return None
        else:
            record = FileRecord.of(contents.whole, file_version)
        footers[file.path] = footer = _encoded(record.footer(contents.whole, groups))
        if record.checksum not in (None, zlib.crc32(footer)):
            raise FormatError(f"its copy of the footer of {path} is damaged")
        rows[file.path] = sum(group.num_rows for group in groups)
    if contents.records is None and not _agrees(files[0], footers[files[0].path], options):
        return None
    if len({dict(record.key_values or ()).get(ARROW_KEY) for record in records.values()}) > 1:
        return None
    return KnownFooters(footers, rows, versions)


def _encoded(footer: fmt.FileMetaData) -> bytes:
    try:
        return fmt.encode(footer)
    except (ValueError, OverflowError) as error:       # damaged bytes may decode
        raise FormatError(f"a footer in it is damaged: {error}") from None


def _is_inside(group: fmt.RowGroup, size: int | None) -> bool:
    """Return whether a row group's pages are inside a file that has ``size`` bytes. Encrypted metadata count as outside."""
    for chunk in group.columns:
        metadata = chunk.meta_data
        if metadata is None or size is None:
            return False
        first = metadata.dictionary_page_offset or metadata.data_page_offset
        if min(first, metadata.data_page_offset) + metadata.total_compressed_size > size - _END:
            return False
    return True


def _agrees(file: DataFile, footer: bytes, options: Mapping[str, Any]) -> bool:
    """Return whether a file's own footer has the types, row groups, writer and Arrow types that ``_metadata`` has for it.

    This is checked if another writer wrote ``_metadata``, because that has no file versions.
    """
    with ParquetFile(file.where, **options) as parquet_file:
        own, other = decoded_footer(parquet_file.metadata), fmt.decode(fmt.FileMetaData, footer)[0]
    if own.created_by != other.created_by or not have_equal_arrow_types(own, other) or own.encryption_algorithm is not None:
        return False
    is_alike = own.schema == other.schema and own.column_orders == other.column_orders
    return is_alike and _essence(own.row_groups) == _essence(other.row_groups)


def key_values_of(footer: fmt.FileMetaData) -> tuple[tuple[str, str | None], ...] | None:
    """Return a footer's key-value metadata, or None if it has none."""
    entries = footer.key_value_metadata
    return None if entries is None else tuple((entry.key, entry.value) for entry in entries)


def have_equal_arrow_types(one: fmt.FileMetaData, other: fmt.FileMetaData) -> bool:
    """Return whether the ARROW:schema of two footers says the same. A footer may lack it if it says nothing."""
    entries = [dict(key_values_of(footer) or ()).get(ARROW_KEY) for footer in (one, other)]
    if entries[0] == entries[1]:
        return True
    if all(entries):
        return False
    from fastpq.arrow.hints import entry_says_more

    nodes = ParquetSchema.from_thrift(one.schema).root.children
    return not any(entry_says_more(entry, nodes) for entry in entries if entry)


def _essence(row_groups: Sequence[fmt.RowGroup]) -> Sequence[fmt.RowGroup]:
    """Remove ordinals and file offsets from row groups in place, and return the row groups.

    Writers of ``_metadata`` change both, so they must not be compared.
    """
    for group in row_groups:
        group.ordinal = group.file_offset = None
        for chunk in group.columns:
            chunk.file_offset = None
    return row_groups
