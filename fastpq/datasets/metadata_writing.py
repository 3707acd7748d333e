"""write_dataset_metadata: writes a dataset's ``_metadata`` and ``_common_metadata`` files."""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import time
import zlib
from collections.abc import Mapping
from typing import Any

from fastpq import format as fmt
from fastpq.api.file import ParquetFile
from fastpq.common.parallel import run_ordered
from fastpq.datasets.discovery import COMMON_METADATA, METADATA, DataFile, list_dataset
from fastpq.datasets.known_footers import (
    FILES_KEY,
    Contents,
    FileRecord,
    contents_of,
    have_equal_arrow_types,
    records_as_text,
    relative_path,
)
from fastpq.datasets.opened_files import REMOTE_FILES
from fastpq.errors import FormatError, KeyAccessError, ParquetError, SchemaError, UnsupportedError
from fastpq.format.stored_footer import MAGIC
from fastpq.io.file_version import FileVersion
from fastpq.io.location import Remote, RemotePath, locate, placed
from fastpq.io.sink_opening import open_sink
from fastpq.metadata.file_metadata import decoded_footer
from fastpq.stats.writer_bugs import bugs_of

_log = logging.getLogger("fastpq.datasets")

# Shortest time in seconds between a data file's last change and _metadata. A local filesystem's clock ticks every 1 to 10 ms.
_TICK = 0.02


def write_dataset_metadata(
    root: Any, *, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None, timeout: float | None = None
) -> list[str]:
    """Write the footers of all files in a directory into its ``_metadata`` file, and the schema into ``_common_metadata``.

    Readers then read this one file instead of all footers. fastpq does so only while each data file has the size, and the time
    or the ETag, that ``_metadata`` recorded when the footer was read. If fastpq wrote the present ``_metadata``, only the
    footers of new and changed files are read again.

    Args:
        root: the directory, or an fsspec URL.
        filesystem: an fsspec or pyarrow.fs filesystem for the path, or None to find one by the URL.
        storage_options: options for the URL's fsspec filesystem, as for pandas and Polars.
        timeout: for S3 URLs, longest time in seconds without a byte from the server.

    Returns:
        Paths to ``_metadata`` and ``_common_metadata``.

    Raises:
        FileNotFoundError: there is no data file.
        SchemaError: ``root`` is not a directory, or the files have different schemas. Nullability counts too.
        UnsupportedError: a file is encrypted, so that its statistics would be written in plaintext.
        FormatError: a file has a broken footer.
    """
    place = placed(root, filesystem, storage_options, timeout)
    targets = _targets(place)
    if targets is None:
        raise SchemaError(f"{METADATA} belongs to a directory: {root} is not one")
    files, metadata_file, _ = list_dataset(place)
    names = [relative_path(DataFile(targets[0][0], targets[0][1], {}), file) for file in files]
    versions = [file.version() or FileVersion(None, None) for file in files]
    earlier = _earlier(metadata_file)

    def footer_of(number: int) -> fmt.FileMetaData:
        name = names[number]
        record = None if earlier is None else (earlier.records or {}).get(name)
        metadata_version = None if metadata_file is None else metadata_file.version()
        if earlier and record and metadata_version and versions[number].proves(record.file_version, metadata_version):
            footer = record.footer(earlier.whole, earlier.row_groups[name])
            if zlib.crc32(fmt.encode(footer)) == record.checksum:
                return footer
        return _read(files[number])

    is_remote = any(isinstance(file.where, RemotePath) for file in files)
    footers = list(run_ordered(footer_of, range(len(files)), REMOTE_FILES if is_remote else 1))
    records = {
        name: FileRecord.of(footer, file_version, zlib.crc32(fmt.encode(footer)))
        for name, file_version, footer in zip(names, versions, footers, strict=True)
    }
    whole = _united(footers, files, records)
    _write(whole, targets, [] if is_remote else versions)
    return [path for _, path in targets]


def remove_metadata(root: Any) -> None:
    """Remove a dataset's ``_metadata`` and ``_common_metadata``, if they exist."""
    for where, path in _targets(root) or ():
        with contextlib.suppress(FileNotFoundError):
            if isinstance(where, RemotePath):
                where.fs.rm_file(path)
            else:
                os.unlink(path)


def settle_metadata(root: Any, write_metadata_file: bool | None, *, is_missing: bool = False) -> None:
    """Write or remove ``_metadata`` after files were added to a dataset.

    Args:
        root: the dataset's folder.
        write_metadata_file: the option of write_dataset. If it is None, a failure is only logged, because the files are already
            written. After an error, callers would write them again.
        is_missing: whether the dataset lost its ``_metadata`` when its files were replaced. Then it is written again.
    """
    if write_metadata_file:
        write_dataset_metadata(root)
    elif write_metadata_file is not None:
        remove_metadata(root)
    else:
        try:
            if is_missing or has_metadata(root):
                _rewrite_or_remove(root)
        except Exception as error:      # packages for stores raise their own errors
            _log.warning("%s of a dataset may be out of date: %s", METADATA, error)


def settle_metadata_of_file(path: str) -> None:
    """Update the ``_metadata`` file that names a local file, after the local file was replaced or changed.

    The folders above the file are searched. A ``_metadata`` file that cannot have the changed file is removed.
    """
    folder, name = os.path.split(os.path.abspath(path))
    while not os.path.isfile(os.path.join(folder, METADATA)):
        parent, part = os.path.split(folder)
        if parent == folder:
            return
        folder, name = parent, posixpath.join(part, name)
    try:
        with ParquetFile(os.path.join(folder, METADATA)) as file:
            is_named = name in contents_of(file.metadata).row_groups
    except (ParquetError, OSError):
        return
    if is_named:
        settle_metadata(folder, None)


def _rewrite_or_remove(root: Any) -> None:
    try:
        write_dataset_metadata(root)
    except ParquetError as error:
        remove_metadata(root)
        _log.info("%s of a dataset is removed: %s", METADATA, error)


def has_metadata(root: Any) -> bool:
    """Return whether a dataset has a ``_metadata`` or ``_common_metadata`` file."""
    for where, path in _targets(root) or ():
        if where.fs.exists(path) if isinstance(where, RemotePath) else os.path.exists(path):
            return True
    return False


def _targets(root: Any) -> list[tuple[str | RemotePath, str]] | None:
    """Return the place and the path of both files, or None if the dataset is not a directory."""
    place = locate(root)
    if isinstance(place, str):
        paths = [os.path.join(place, name) for name in (METADATA, COMMON_METADATA)]
        return [(path, path) for path in paths] if os.path.isdir(place) else None
    if not isinstance(place, Remote):
        return None
    paths = [posixpath.join(place.path, name) for name in (METADATA, COMMON_METADATA)]
    return [(RemotePath(place.filesystem, path), path) for path in paths]


def _earlier(metadata_file: DataFile | None) -> Contents | None:
    """Return the present ``_metadata`` file's contents, or None if there is no such file or it is broken."""
    if metadata_file is None:
        return None
    try:
        with ParquetFile(metadata_file.where) as file:
            return contents_of(file.metadata)
    except (ParquetError, OSError):
        return None


def _read(file: DataFile) -> fmt.FileMetaData:
    try:
        with ParquetFile(file.where) as parquet_file:
            footer = decoded_footer(parquet_file.metadata)
    except KeyAccessError:
        raise _of_encrypted(file) from None
    if footer.encryption_algorithm is not None or footer.footer_signing_key_metadata is not None:
        raise _of_encrypted(file)
    if any(chunk.file_path is not None for group in footer.row_groups for chunk in group.columns):
        raise UnsupportedError(f"{METADATA} cannot have a file whose chunks are in other files", path=file.path)
    return footer


def _of_encrypted(file: DataFile) -> UnsupportedError:
    return UnsupportedError(f"the file is encrypted, and {METADATA} would have its statistics in plaintext", path=file.path)


def _united(
    footers: list[fmt.FileMetaData], files: list[DataFile], records: Mapping[str, FileRecord]
) -> fmt.FileMetaData:
    """Return what ``_metadata`` holds: the row groups of all files, with the file paths.

    Raises:
        SchemaError: the footers have different schemas or Arrow types.
        UnsupportedError: ``_metadata`` cannot keep everything that a footer has.
    """
    first = footers[0]
    row_groups: list[fmt.RowGroup] = []
    for footer, file, (name, record) in zip(footers, files, records.items(), strict=True):
        _compare(first, footer, files[0], file)
        if record.footer(first, footer.row_groups) != footer:
            raise UnsupportedError(f"the footer has parts that {METADATA} does not keep", path=file.path)
        for group in footer.row_groups:
            for chunk in group.columns:
                chunk.file_path = name
        row_groups += footer.row_groups
    writers = [footer.created_by for footer in footers]
    return fmt.FileMetaData(
        version=max(footer.version for footer in footers), schema=first.schema,
        num_rows=sum(group.num_rows for group in row_groups), row_groups=row_groups, column_orders=first.column_orders,
        key_value_metadata=[*(first.key_value_metadata or ()), fmt.KeyValue(key=FILES_KEY, value=records_as_text(records))],
        # if one writer is known for mistakes, readers must not trust any statistics
        created_by=next((writer for writer in writers if bugs_of(writer)), writers[0]),
    )


def _compare(first: fmt.FileMetaData, other: fmt.FileMetaData, file: DataFile, other_file: DataFile) -> None:
    if first.schema == other.schema and first.column_orders == other.column_orders:
        if not have_equal_arrow_types(first, other):
            raise SchemaError(f"the Arrow types differ from those of {file.path}", path=other_file.path)
        return
    pairs = zip(first.schema, other.schema, strict=False)
    name = next((mine.name for mine, theirs in pairs if mine != theirs), other.schema[-1].name)
    reason = f"the schema or a nullability differs from {file.path}, but {METADATA} has one schema for all files"
    raise SchemaError(reason, column=name, path=other_file.path)


def _write(whole: fmt.FileMetaData, targets: list[tuple[str | RemotePath, str]], versions: list[FileVersion]) -> None:
    """Write both files. Before ``_metadata`` is written, wait until a clock tick has passed since a local data file changed."""
    newest = max((file_version.latest for file_version in versions if file_version.latest is not None), default=0)
    age = time.time() - newest / 1e9
    if 0 <= age < _TICK:
        time.sleep(_TICK - age)
    _write_footer(whole, targets[0][0])
    entries = [entry for entry in whole.key_value_metadata or () if entry.key != FILES_KEY]
    whole.key_value_metadata, whole.row_groups, whole.num_rows = entries or None, [], 0
    _write_footer(whole, targets[1][0])


def _write_footer(footer: fmt.FileMetaData, where: str | RemotePath) -> None:
    data = fmt.encode(footer)
    if len(data) > 2**31 - 1:
        raise FormatError(f"the footer has {len(data)} bytes, but Parquet counts them in 31 bits")
    with open_sink(where) as sink:
        sink.write(MAGIC + data + len(data).to_bytes(4, "little") + MAGIC)
