"""Functions that rewrite files without decoding values: encrypt_file, decrypt_file, merge_files."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from fastpq import format as fmt
from fastpq.arrow.hints import ArrowFields
from fastpq.common.progress import Meter, Progress, Span
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import SchemaError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.io.location import placed_each
from fastpq.io.sink import Sink
from fastpq.io.sink_opening import open_sink
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties
from fastpq.rewriting.chunk_copy import check_copyable, copy_leaf, opened_source
from fastpq.rewriting.redaction import without_values
from fastpq.rewriting.report import DroppedIndex, DroppedMetadata, RewritingReport
from fastpq.stats.writer_bugs import for_writer
from fastpq.write.entries_about_rows import corrected_entries
from fastpq.write.row_groups import PlacedChunk, RowGroups

KeysOf: TypeAlias = Callable[[Any], FileDecryptionProperties | None]
FileKeys: TypeAlias = FileDecryptionProperties | KeysOf | None


def encrypt_file(
    source: Any,
    target: Any,
    encryption_properties: FileEncryptionProperties,
    *,
    decryption_properties: FileDecryptionProperties | None = None,
    properties: ReaderProperties | None = None,
    keep_metadata: Iterable[str] = (),
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> RewritingReport:
    """Encrypt a file, or encrypt an encrypted file with other keys. Pages are neither decompressed nor decoded.

    Schema, row groups, encodings, statistics, page indexes, bloom filters, sorting columns and key-value metadata are kept. Some
    key-value entries are known to hold column values, for example bounding boxes or categories. They are left out if somebody who
    can read the footer may lack the column's key. False statements in the source, for example about bounds, are copied. Broken
    page indexes and bloom filters in a readable file are left out. Memory holds indexes, the footer and one page. With a remote
    source it holds one column chunk.

    Args:
        source: a path, a bytes-like object, a binary file object or an fsspec URL.
        target: a path, a writable binary file object or an fsspec URL. The new file appears completely or not at all. The path
            may be the source's path.
        encryption_properties: keys for the new file. Fresh nonces are used.
        decryption_properties: keys for the source. None for a plaintext source.
        properties: limits and checks for reading.
        keep_metadata: keys of key-value entries that are copied unchanged, even if they hold values from encrypted columns.
        progress: called as ``progress(done, total)`` after each column chunk, in rows. The last call is ``(total, total)``. An
            exception from progress leaves the target unchanged.
        filesystem: filesystem for all paths, from fsspec or pyarrow.fs. None finds one by the URL.
        storage_options: options for the URLs' fsspec filesystem, as in pandas and Polars.
        timeout: an HTTP or S3 URL fails after this many seconds without a byte from the server.

    Returns:
        A RewritingReport, which lists the parts of the source that were left out.

    Raises:
        FormatError: the source breaks the specification.
        UnsupportedError: the source has a feature that fastpq cannot read or copy.
        LimitError: a limit in the properties was reached, or there are more than 32768 row groups.
        KeyAccessError: there is no key for an encrypted column in the source.
        TagVerificationError: the source was altered.
        SchemaError: there is a key for a column that the file does not have.
        CryptoError: there are more than 32768 columns, or more than 32768 pages in a chunk.
    """
    return merge_files(
        [source],
        target,
        encryption_properties=encryption_properties,
        decryption_properties=decryption_properties,
        properties=properties,
        keep_metadata=keep_metadata,
        progress=progress,
        filesystem=filesystem,
        storage_options=storage_options,
        timeout=timeout,
    )


def decrypt_file(
    source: Any,
    target: Any,
    decryption_properties: FileDecryptionProperties,
    *,
    properties: ReaderProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> RewritingReport:
    """Decrypt a file, and write it as a plaintext file. Its pages are neither decompressed nor decoded.

    Args:
        source: a path, a bytes-like object, a binary file object or an fsspec URL.
        target: a path, a writable binary file object or an fsspec URL. The new file appears completely or not at all. The path
            may be the source's path.
        decryption_properties: keys for all columns in the source.
        properties: limits and checks for reading.
        progress: as in ``encrypt_file``.
        filesystem, storage_options, timeout: as in ``encrypt_file``.

    Returns:
        A RewritingReport, which lists the parts of the source that were left out.

    Raises:
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    return merge_files(
        [source],
        target,
        decryption_properties=decryption_properties,
        properties=properties,
        progress=progress,
        filesystem=filesystem,
        storage_options=storage_options,
        timeout=timeout,
    )


def merge_files(
    sources: Iterable[Any],
    target: Any,
    *,
    encryption_properties: FileEncryptionProperties | None = None,
    decryption_properties: FileKeys = None,
    properties: ReaderProperties | None = None,
    keep_metadata: Iterable[str] = (),
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> RewritingReport:
    """Write the row groups from several files, one file after another, to one file. Pages are neither decompressed nor decoded.

    Args:
        sources: files with the same schema from the same writer, each as in encrypt_file. The new file gets the first one's
            key-value metadata, without statements that are not true of all rows (a bounding box of GeoParquet, for example).
        target: as in encrypt_file.
        encryption_properties: keys for the new file. None for a plaintext file, even if sources are encrypted.
        decryption_properties: keys for the sources, or a function that takes a source and returns its keys.
        properties: limits and checks for reading.
        keep_metadata: as in ``encrypt_file``.
        progress: as in ``encrypt_file``, in rows from all sources. The footers are read once more for the total.
        filesystem, storage_options, timeout: as in ``encrypt_file``.

    Returns:
        A RewritingReport, which lists the parts of the sources that were left out.

    Raises:
        SchemaError: there is no source, or the sources differ in schema, column orders, duration units or writer. Readers find a
            writer's known bugs by its name, and a file can name only one writer.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    properties = properties or ReaderProperties()
    if isinstance(keep_metadata, str):
        raise TypeError(f"keep_metadata must be a list of names, not the name {keep_metadata!r}")
    keep = frozenset(keep_metadata)
    keys_of: KeysOf = decryption_properties if callable(decryption_properties) else lambda _: decryption_properties
    # each source as the caller passed it, and the place where it is
    sources_and_places: Iterable[tuple[Any, Any]] = ((where, where) for where in sources)
    if progress is not None or (filesystem, storage_options, timeout) != (None, None, None):
        all_sources = list(sources)
        *places, target = placed_each([*all_sources, target], filesystem, storage_options, timeout)
        sources_and_places = list(zip(all_sources, places, strict=True))
    total = 0
    if progress is not None:
        total = sum(_num_rows(place, properties, keys_of(where)) for where, place in sources_and_places)
    meter = Meter(progress, total, holds_last=True)
    with open_sink(target) as sink:
        merged_file: MergedFile | None = None
        num_files = num_rows = 0
        for where, place in sources_and_places:
            with opened_source(place) as source:
                metadata = read_finished(source, properties, keys_of(where))
                if merged_file is None:
                    merged_file = MergedFile(sink, metadata, encryption_properties, properties, keep, meter)
                merged_file.add(source, metadata)
                num_files, num_rows = num_files + 1, num_rows + metadata.num_rows
        if merged_file is None:
            raise SchemaError("there are no files to merge")
        return merged_file.finish(num_rows=num_rows if num_files > 1 else None)


def _num_rows(place: Any, properties: ReaderProperties, keys: FileDecryptionProperties | None) -> int:
    with opened_source(place) as source:
        return read_finished(source, properties, keys).num_rows


class MergedFile:
    """A new file that gets other files' row groups.

    Args:
        sink: the new file.
        first: the first source's metadata. The new footer gets its schema and key-value metadata.
        encryption_properties: keys for the new file. None for a plaintext file.
        properties: limits and checks for reading.
        keep_metadata: keys of key-value entries that are copied unchanged.
        meter: counts the copied rows.

    Attributes:
        row_groups: the row groups so far.
    """

    def __init__(
        self,
        sink: Sink,
        first: FileMetaData,
        encryption_properties: FileEncryptionProperties | None,
        properties: ReaderProperties,
        keep_metadata: Collection[str],
        meter: Meter,
    ) -> None:
        self._meter = meter
        self._sink = sink
        self._keep_metadata = keep_metadata
        keys = encryption_properties
        self._closed_columns = frozenset() if keys is None else closed_columns(keys, first.schema.paths)
        self._is_encrypted = encryption_properties is not None
        self._properties = properties
        self._first = first
        self.row_groups = RowGroups(sink, first.schema, encryption_properties)
        self._dropped_indexes: list[DroppedIndex] = []

    def add(self, source: Source, metadata: FileMetaData) -> None:
        """Copy a file's row groups.

        Raises:
            SchemaError: the file differs from the first one.
        """
        if metadata is not self._first:
            _check_alike(self._first, metadata)
        for index in range(metadata.num_row_groups):
            self.add_row_group(source, metadata, metadata.row_group(index))

    def finish(
        self,
        created_by: str | None = None,
        column_orders: Sequence[fmt.ColumnOrder] | None = None,
        num_rows: int | None = None,
    ) -> RewritingReport:
        """Write the indexes and the footer.

        Args:
            created_by: name of the writer. None takes the first source's.
            column_orders: orders of the columns' bounds. None takes the first source's.
            num_rows: number of all rows, with which the first source's key-value metadata is corrected. None leaves it as it is.
        """
        footer = copy.copy(self._first.metadata)
        footer.schema = self._first.schema_elements
        dropped_metadata: list[DroppedMetadata] = []
        footer.key_value_metadata = self._first.key_values or None
        if self._is_encrypted:
            footer.key_value_metadata, dropped_metadata = without_values(
                self._first, self._closed_columns, self._keep_metadata
            )
        if self._closed_columns:
            footer.unknown_fields = ()     # fields from a newer specification might disclose values
        if num_rows is not None and footer.key_value_metadata:
            entries = corrected_entries(footer.key_value_metadata, self._first.schema, num_rows, self._keep_metadata)
            footer.key_value_metadata = entries or None
        footer.created_by = created_by or footer.created_by
        footer.column_orders = [*(column_orders or self._first.column_orders)] or None
        self.row_groups.write_footer(footer)
        self._meter.finish()
        return RewritingReport(tuple(self._dropped_indexes), tuple(dropped_metadata))

    def add_row_group(self, source: Source, metadata: FileMetaData, group: RowGroupMetaData) -> None:
        """Copy one row group of a file.

        Raises:
            ParquetError: a chunk cannot be read or copied.
        """
        self.row_groups.next_ordinal(1)
        check_copyable(metadata, group)
        span = self._meter.span(group.num_rows)
        chunks = (self._copy(source, metadata, group, index, span) for index in range(group.num_columns))
        entry = copy.copy(group.metadata)
        entry.sorting_columns = group.sorting_columns or None
        if self._closed_columns:
            entry.unknown_fields = ()
        self.row_groups.add(entry, chunks)

    def _copy(
        self, source: Source, metadata: FileMetaData, group: RowGroupMetaData, index: int, span: Span | None
    ) -> PlacedChunk:
        properties = for_writer(self._properties, metadata)
        chunk, _, dropped_indexes = copy_leaf(source, metadata, group, index, self.row_groups, self._sink, properties)
        self._dropped_indexes += dropped_indexes
        if span is not None:
            span.reach(index + 1, group.num_columns)
        return chunk


def durations_of(metadata: FileMetaData) -> list[tuple[str, ...]]:
    """Return the duration columns with their units, and lists of one size with it, as the ARROW:schema says."""
    return ArrowFields(metadata.key_value(ARROW_KEY), metadata.schema.root.children).durations()


def _check_alike(first: FileMetaData, other: FileMetaData) -> None:
    """Refuse files whose chunks cannot be put into one file."""
    for what, value, other_value in (
        ("schemas", first.schema_elements, other.schema_elements),
        ("column orders", first.column_orders, other.column_orders),
        ("writers", first.created_by, other.created_by),
        ("durations or list sizes", durations_of(first), durations_of(other)),
        ("calendars", first.calendar.kinds, other.calendar.kinds),
    ):
        if value != other_value:
            raise SchemaError(f"files of different {what} cannot be merged page by page")
