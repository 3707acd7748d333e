"""write_dataset_metadata: the files ``_metadata`` and ``_common_metadata`` of a dataset."""

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
    records_as_text,
    relative_path,
)
from fastpq.datasets.opened_files import REMOTE_FILES
from fastpq.datasets.stamps import Stamp
from fastpq.errors import FormatError, KeyAccessError, ParquetError, SchemaError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY, MAGIC
from fastpq.io.location import Remote, RemotePath, locate, placed
from fastpq.io.sink import open_sink
from fastpq.stats.quirks import mistakes_of

_log = logging.getLogger("fastpq.datasets")

# Seconds between the last change of a data file and _metadata: a tick of the clock of a local filesystem is 1 to 10 ms.
_TICK = 0.02


def write_dataset_metadata(
    root: Any, *, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None, timeout: float | None = None
) -> list[str]:
    """Write the footers of all files of a directory into its ``_metadata`` file, and the schema into ``_common_metadata``.

    Readers of the directory then read this one file in place of all footers. fastpq does so only while each data file is in
    ``_metadata`` with the size, and the time or the ETag, that it had when its footer was read. Footers in a ``_metadata`` of
    fastpq are read again only where a file is new or has changed.

    Args:
        root: the directory, or an fsspec URL.
        filesystem: filesystem of the path, of fsspec or of pyarrow.fs; None finds one by the URL.
        storage_options: options of the fsspec filesystem of a URL, as for pandas and Polars.
        timeout: most seconds without a byte from a server, for URLs of S3.

    Returns:
        Paths of ``_metadata`` and ``_common_metadata``.

    Raises:
        FileNotFoundError: there is no data file.
        SchemaError: root is no directory, or the files have different schemas: nullability counts, too.
        UnsupportedError: an encrypted file: its statistics would be in plaintext.
        FormatError: a file with a broken footer.
    """
    place = placed(root, filesystem, storage_options, timeout)
    targets = _targets(place)
    if targets is None:
        raise SchemaError(f"{METADATA} belongs to a directory, and {root} is none")
    files, known, _ = list_dataset(place)
    names = [relative_path(DataFile(targets[0][0], targets[0][1], {}), file) for file in files]
    stamps = [file.stamp() or Stamp(None, None) for file in files]
    earlier = _earlier(known)

    def footer_of(number: int) -> fmt.FileMetaData:
        name = names[number]
        record = None if earlier is None else (earlier.records or {}).get(name)
        made = None if known is None else known.stamp()
        if earlier is not None and record is not None and made is not None and stamps[number].proves(record.stamp, made):
            footer = record.footer(earlier.whole, earlier.row_groups[name])
            if zlib.crc32(fmt.encode(footer)) == record.checksum:
                return footer
        return _read(files[number])

    is_remote = any(isinstance(file.where, RemotePath) for file in files)
    footers = list(run_ordered(footer_of, range(len(files)), REMOTE_FILES if is_remote else 1))
    records = {
        name: FileRecord(stamp, footer.version, footer.created_by, _entries_of(footer), zlib.crc32(fmt.encode(footer)))
        for name, stamp, footer in zip(names, stamps, footers, strict=True)
    }
    whole = _united(footers, files, records)
    _write(whole, targets, [] if is_remote else stamps)
    return [path for _, path in targets]


def remove_metadata(root: Any) -> None:
    """Remove ``_metadata`` and ``_common_metadata`` of a dataset, where they are."""
    for where, path in _targets(root) or ():
        with contextlib.suppress(FileNotFoundError):
            if isinstance(where, RemotePath):
                where.fs.rm_file(path)
            else:
                os.unlink(path)


def settle_metadata(root: Any, wanted: bool | None) -> None:
    """Write or remove ``_metadata`` after files were added to a dataset, as ``write_metadata_file`` of write_dataset asks.

    A failure with None is logged and no error, since the files are written: callers would write these again.
    """
    if wanted:
        write_dataset_metadata(root)
    elif wanted is not None:
        remove_metadata(root)
    else:
        try:
            if has_metadata(root):
                _rewrite_or_remove(root)
        except Exception as error:      # stores' packages have errors of their own
            _log.warning("%s of a dataset may be out of date: %s", METADATA, error)


def _rewrite_or_remove(root: Any) -> None:
    try:
        write_dataset_metadata(root)
    except ParquetError as error:
        remove_metadata(root)
        _log.info("%s of a dataset is removed: %s", METADATA, error)


def has_metadata(root: Any) -> bool:
    """Whether a dataset has one of the files ``_metadata`` and ``_common_metadata``."""
    for where, path in _targets(root) or ():
        if where.fs.exists(path) if isinstance(where, RemotePath) else os.path.exists(path):
            return True
    return False


def _targets(root: Any) -> list[tuple[str | RemotePath, str]] | None:
    """Place and path of both files; None for something other than a directory."""
    located = locate(root)
    if isinstance(located, str):
        paths = [os.path.join(located, name) for name in (METADATA, COMMON_METADATA)]
        return [(path, path) for path in paths] if os.path.isdir(located) else None
    if not isinstance(located, Remote):
        return None
    paths = [posixpath.join(located.path, name) for name in (METADATA, COMMON_METADATA)]
    return [(RemotePath(located.filesystem, path), path) for path in paths]


def _earlier(known: DataFile | None) -> Contents | None:
    """The contents of the present ``_metadata``; None without one, or with a broken one, which is written anew."""
    if known is None:
        return None
    try:
        with ParquetFile(known.where) as file:
            return contents_of(file.metadata)
    except (ParquetError, OSError):
        return None


def _read(file: DataFile) -> fmt.FileMetaData:
    try:
        with ParquetFile(file.where) as opened:
            found = opened.metadata.decoded()
    except KeyAccessError:
        raise _of_encrypted(file) from None
    if found.encryption_algorithm is not None or found.footer_signing_key_metadata is not None:
        raise _of_encrypted(file)
    if any(chunk.file_path is not None for group in found.row_groups for chunk in group.columns):
        raise UnsupportedError(f"a file with chunks in other files has no place in {METADATA}", path=file.path)
    return found


def _of_encrypted(file: DataFile) -> UnsupportedError:
    return UnsupportedError(f"{METADATA} has footers in plaintext, with statistics, and the file is encrypted", path=file.path)


def _entries_of(footer: fmt.FileMetaData) -> tuple[tuple[str, str | None], ...] | None:
    entries = footer.key_value_metadata
    return None if entries is None else tuple((entry.key, entry.value) for entry in entries)


def _united(
    footers: list[fmt.FileMetaData], files: list[DataFile], records: Mapping[str, FileRecord]
) -> fmt.FileMetaData:
    """The contents of ``_metadata``: the row groups of all files, with their paths.

    Raises:
        SchemaError: the footers do not agree.
    """
    first = footers[0]
    row_groups: list[fmt.RowGroup] = []
    for footer, file, (name, record) in zip(footers, files, records.items(), strict=True):
        _compare(first, footer, files[0], file)
        if record.footer(first, footer.row_groups) != footer:
            raise UnsupportedError(f"a footer with parts that {METADATA} does not keep", path=file.path)
        for group in footer.row_groups:
            for chunk in group.columns:
                chunk.file_path = name
        row_groups += footer.row_groups
    writers = [footer.created_by for footer in footers]
    return fmt.FileMetaData(
        version=max(footer.version for footer in footers), schema=first.schema,
        num_rows=sum(group.num_rows for group in row_groups), row_groups=row_groups, column_orders=first.column_orders,
        key_value_metadata=[*(first.key_value_metadata or ()), fmt.KeyValue(key=FILES_KEY, value=records_as_text(records))],
        # readers of the whole mistrust all statistics if those of one writer are known for mistakes
        created_by=next((writer for writer in writers if mistakes_of(writer)), writers[0]),
    )


def _compare(first: fmt.FileMetaData, other: fmt.FileMetaData, file: DataFile, other_file: DataFile) -> None:
    if first.schema == other.schema and first.column_orders == other.column_orders:
        entries = [dict(_entries_of(footer) or ()).get(ARROW_KEY) for footer in (first, other)]
        if entries[0] != entries[1]:
            raise SchemaError(f"the Arrow types are other ones than those of {file.path}", path=other_file.path)
        return
    pairs = zip(first.schema, other.schema, strict=False)
    name = next((mine.name for mine, theirs in pairs if mine != theirs), other.schema[-1].name)
    reason = f"the schema, with nullability, is another one than that of {file.path}, and {METADATA} has one schema for all files"
    raise SchemaError(reason, column=name, path=other_file.path)


def _write(whole: fmt.FileMetaData, targets: list[tuple[str | RemotePath, str]], stamps: list[Stamp]) -> None:
    """Write both files; ``_metadata`` when a tick of the clock has passed since the last change of a local data file."""
    newest = max((stamp.latest for stamp in stamps if stamp.latest is not None), default=0)
    passed = time.time() - newest / 1e9
    if 0 <= passed < _TICK:
        time.sleep(_TICK - passed)
    _write_footer(whole, targets[0][0])
    entries = [entry for entry in whole.key_value_metadata or () if entry.key != FILES_KEY]
    whole.key_value_metadata, whole.row_groups, whole.num_rows = entries or None, [], 0
    _write_footer(whole, targets[1][0])


def _write_footer(footer: fmt.FileMetaData, where: str | RemotePath) -> None:
    stored = fmt.encode(footer)
    if len(stored) > 2**31 - 1:
        raise FormatError(f"a footer of {len(stored)} bytes, and Parquet counts these in 31 bits")
    with open_sink(where) as sink:
        sink.write(MAGIC + stored + len(stored).to_bytes(4, "little") + MAGIC)
