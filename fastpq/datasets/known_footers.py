"""KnownFooters: the footers of the files of a dataset from its ``_metadata`` file, where the file is known to be up to date.

``_metadata`` holds the row groups of all files, with the path of the file in each column chunk. Its own key-value metadata have,
if fastpq wrote the file, the stamps of all files, and what else differs between the footers of the files.
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
from fastpq.datasets.stamps import Stamp
from fastpq.errors import FormatError, ParquetError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.io.source import KnownFile
from fastpq.metadata.file_metadata import FileMetaData

_log = logging.getLogger("fastpq.datasets")

# Key-value metadata: stamps of the files, and their own key-value metadata and writers.
FILES_KEY = "fastpq.files"
VERSION = 1
# Bytes of the shortest file behind its last page: length of the footer, and magic bytes.
_END = 8


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What ``_metadata`` of fastpq says of a file beside its row groups.

    Attributes:
        stamp: when its footer was read.
        version: of the format.
        created_by: name of the writer.
        key_values: key-value metadata; None for none.
        checksum: CRC-32 of the footer, as ``footer`` gives it, serialized; None where nobody knows.
    """

    stamp: Stamp
    version: int
    created_by: str | None
    key_values: tuple[tuple[str, str | None], ...] | None
    checksum: int | None = None

    def footer(self, whole: fmt.FileMetaData, row_groups: list[fmt.RowGroup]) -> fmt.FileMetaData:
        """The footer of the file.

        Args:
            whole: the contents of ``_metadata``.
            row_groups: those of the file, without paths.
        """
        entries = None if self.key_values is None else [fmt.KeyValue(key=key, value=value) for key, value in self.key_values]
        return fmt.FileMetaData(
            version=self.version, schema=whole.schema, num_rows=sum(group.num_rows for group in row_groups),
            row_groups=row_groups, key_value_metadata=entries, created_by=self.created_by, column_orders=whole.column_orders,
        )


class KnownFooters:
    """The footers of all files of a dataset, for some time after the files were listed.

    Args:
        footers: serialized footer of each file, by path.
        rows: number of rows of each file, by path.
        stamps: stamps of the files when they were listed, by path.
    """

    def __init__(self, footers: Mapping[str, bytes], rows: Mapping[str, int], stamps: Mapping[str, Stamp]) -> None:
        self._footers, self.rows, self._stamps = footers, rows, stamps
        self._since = time.monotonic()

    def age(self) -> float:
        """Seconds since the listing."""
        return time.monotonic() - self._since

    def known_file(self, file: DataFile) -> KnownFile:
        """The place of a file with its footer."""
        return KnownFile(file.where, self._footers[file.path])

    def stamp(self, file: DataFile) -> Stamp:
        """The stamp of a file when it was listed."""
        return self._stamps[file.path]


def known_footers(metadata: DataFile | None, files: Sequence[DataFile], options: Mapping[str, Any]) -> KnownFooters | None:
    """The footers of all files; None where one of the files is not in ``_metadata``, or may have changed since.

    Args:
        metadata: the ``_metadata`` file of the dataset; None without one.
        files: all data files of the dataset.
        options: options of readers.
    """
    if metadata is None or metadata.stamp() is None:
        return None
    stamps = {file.path: stamp for file in files if (stamp := file.stamp()) is not None}
    try:
        if len(stamps) < len(files):
            return None
        with ParquetFile(metadata.where, **options) as file:
            found = contents_of(file.metadata)
        return _checked(found, metadata, files, stamps, options)
    except (ParquetError, OSError) as error:
        _log.warning("%s is passed over, and the footers of all files are read: %s", metadata.path, error)
        return None


@dataclass(frozen=True, slots=True)
class Contents:
    """A decoded ``_metadata`` file.

    Attributes:
        whole: all structs.
        row_groups: row groups of each file, without paths, by path relative to the dataset.
        records: what fastpq recorded of each file, by relative path; None in files of other writers.
    """

    whole: fmt.FileMetaData
    row_groups: Mapping[str, list[fmt.RowGroup]]
    records: Mapping[str, FileRecord] | None


def contents_of(metadata: FileMetaData) -> Contents:
    """The contents of a ``_metadata`` file.

    Raises:
        FormatError: no such file: a chunk without a path, a row group in two files, or encrypted chunks.
    """
    whole: fmt.FileMetaData = metadata.decoded()
    if whole.encryption_algorithm is not None:
        raise FormatError("encrypted files have footers of their own")
    row_groups: dict[str, list[fmt.RowGroup]] = {}
    for group in whole.row_groups:
        paths = {chunk.file_path for chunk in group.columns}
        path = next(iter(paths), None)
        if len(paths) != 1 or path is None or any(chunk.crypto_metadata is not None for chunk in group.columns):
            raise FormatError(f"a row group of the files {sorted(map(str, paths))}, or an encrypted one")
        for chunk in group.columns:
            chunk.file_path = None
        row_groups.setdefault(path, []).append(group)
    text = metadata.key_value(FILES_KEY)
    records = None if text is None else _records_of(text)
    for path in records or ():
        row_groups.setdefault(path, [])     # of a file without rows
    return Contents(whole, row_groups, records)


def _records_of(text: str) -> dict[str, FileRecord]:
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            raise FormatError(f"stamps of files of another version than {VERSION}: a newer fastpq wrote them")
        kinds = [
            (int(version), writer, None if entries is None else tuple((str(key), value) for key, value in entries))
            for version, writer, entries in found["footers"]
        ]
        records = {}
        for path, kind, (size, changed, etag), checksum in found["files"]:
            version, writer, entries = kinds[kind]
            records[str(path)] = FileRecord(Stamp(size, changed, etag), version, writer, entries, int(checksum))
        return records
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError):
        raise FormatError("the stamps of files are broken") from None


def records_as_text(records: Mapping[str, FileRecord]) -> str:
    """The records of files for the key-value metadata."""
    kinds: dict[Any, int] = {}
    files = []
    for path, record in records.items():
        kind = kinds.setdefault((record.version, record.created_by, record.key_values), len(kinds))
        files.append([path, kind, [record.stamp.size, record.stamp.changed, record.stamp.version], record.checksum])
    return json.dumps({"version": VERSION, "footers": list(kinds), "files": files}, separators=(",", ":"))


def relative_path(metadata: DataFile, file: DataFile) -> str:
    """The path of a data file as column chunks of ``_metadata`` have it."""
    return file.path.replace("\\", "/")[len(metadata.path) - len(METADATA) :]


def _checked(
    found: Contents, metadata: DataFile, files: Sequence[DataFile], stamps: Mapping[str, Stamp], options: Mapping[str, Any]
) -> KnownFooters | None:
    """The footers of the files, if each of these is there, and unchanged."""
    made = metadata.stamp()
    assert made is not None
    records = found.records or {}
    footers, rows = {}, {}
    for file in files:
        path, stamp = relative_path(metadata, file), stamps[file.path]
        groups = found.row_groups.get(path)
        if groups is None or not all(_is_inside(group, stamp.size) for group in groups):
            return None
        if found.records is not None:
            record = records.get(path)
            if record is None or not stamp.proves(record.stamp, made):
                return None
        elif not stamp.is_before(made):
            return None
        else:
            record = _record_of_others(found.whole, stamp)
        footers[file.path] = footer = _encoded(record.footer(found.whole, groups))
        if record.checksum not in (None, zlib.crc32(footer)):
            raise FormatError(f"the footer of {path} in it is damaged")
        rows[file.path] = sum(group.num_rows for group in groups)
    if found.records is None and not _agrees(files[0], footers[files[0].path], options):
        return None
    if len({dict(record.key_values or ()).get(ARROW_KEY) for record in records.values()}) > 1:
        return None
    return KnownFooters(footers, rows, stamps)


def _encoded(footer: fmt.FileMetaData) -> bytes:
    try:
        return fmt.encode(footer)
    except (ValueError, OverflowError) as error:       # of damaged bytes that decode
        raise FormatError(f"a footer in it is damaged: {error}") from None


def _record_of_others(whole: fmt.FileMetaData, stamp: Stamp) -> FileRecord:
    entries = whole.key_value_metadata
    key_values = None if entries is None else tuple((entry.key, entry.value) for entry in entries)
    return FileRecord(stamp, whole.version, whole.created_by, key_values)


def _is_inside(group: fmt.RowGroup, size: int | None) -> bool:
    """Whether the pages of a row group are within a file of a size; encrypted metadata are in no footer of plaintext files."""
    for chunk in group.columns:
        stored = chunk.meta_data
        if stored is None or size is None:
            return False
        first = stored.dictionary_page_offset or stored.data_page_offset
        if min(first, stored.data_page_offset) + stored.total_compressed_size > size - _END:
            return False
    return True


def _agrees(file: DataFile, footer: bytes, options: Mapping[str, Any]) -> bool:
    """Whether the footer of a file says the same as ``_metadata`` of another writer: types, row groups, writer, Arrow types."""
    with ParquetFile(file.where, **options) as opened:
        own, told = opened.metadata.decoded(), fmt.decode(fmt.FileMetaData, footer)[0]
    arrow = [_arrow_entry(each) for each in (own, told)]
    if own.created_by != told.created_by or arrow[0] != arrow[1] or own.encryption_algorithm is not None:
        return False
    is_alike = own.schema == told.schema and own.column_orders == told.column_orders
    return is_alike and _essence(own.row_groups) == _essence(told.row_groups)


def _arrow_entry(footer: fmt.FileMetaData) -> str | None:
    return {entry.key: entry.value for entry in footer.key_value_metadata or ()}.get(ARROW_KEY)


def _essence(row_groups: Sequence[fmt.RowGroup]) -> Sequence[fmt.RowGroup]:
    """Row groups, changed in place, without the parts that writers of ``_metadata`` change: ordinals and file offsets."""
    for group in row_groups:
        group.ordinal = group.file_offset = None
        for chunk in group.columns:
            chunk.file_offset = None
    return row_groups
