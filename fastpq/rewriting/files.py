"""Files to files without decoding values: encrypt_file, decrypt_file, merge_files."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from fastpq.arrow.hints import ArrowFields
from fastpq.common.progress import Meter, Progress, Span
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import FormatError, ParquetError, SchemaError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.io.location import placed_each
from fastpq.io.sink import Sink, open_sink
from fastpq.io.source import Source, open_source
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties
from fastpq.read.plan import plan_chunk
from fastpq.rewriting.chunk_copy import copy_chunk
from fastpq.rewriting.redaction import without_values
from fastpq.rewriting.report import DroppedIndex, DroppedMetadata, RewritingReport
from fastpq.stats.quirks import for_writer
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
    """Encrypt a file, or encrypt a file again with other keys; pages are neither decompressed nor decoded.

    Schema, row groups, encodings, statistics, page indexes, bloom filters, sorting columns and key-value metadata are kept. Known
    key-value metadata with values of encrypted columns, as bounding boxes or categories, are left out where readers of the footer
    may lack the column's key. False statements of the source, about bounds for example, are copied. Broken page indexes and bloom
    filters of a readable file are left out. Memory is bounded by indexes, footer and a page; with a remote source, by a column
    chunk.

    Args:
        source: a path, a bytes-like object, a binary file object or an fsspec URL.
        target: a path, a writable binary file object or an fsspec URL; the new file appears whole or not at all. The source's own
            path is allowed.
        encryption_properties: keys of the new file, used with fresh nonces.
        decryption_properties: keys of the source; None for plaintext.
        properties: bounds and checks of reading.
        keep_metadata: keys of key-value metadata to copy unchanged, with values of encrypted columns in them.
        progress: called as ``progress(done, total)`` after each column chunk, in rows; the last call is
            ``(total, total)``. An exception from progress leaves the target unchanged.
        filesystem: filesystem of all paths, of fsspec or of pyarrow.fs; None finds one by the URL.
        storage_options: options of the fsspec filesystem of the URLs, as for pandas and Polars.
        timeout: most seconds without a byte from a server, for URLs of HTTP and S3.

    Returns:
        A RewritingReport of the parts of the source left out.

    Raises:
        FormatError: the source breaks the specification.
        UnsupportedError: the source has a feature without a reader.
        LimitError: a bound of the properties, or more than 32768 row groups.
        KeyAccessError: an encrypted column of the source without a key.
        TagVerificationError: the source was altered.
        SchemaError: keys for unknown columns.
        CryptoError: more than 32768 columns, or pages of a chunk.
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
    """Write the plaintext file of an encrypted one; its pages are neither decompressed nor decoded.

    Args:
        source: a path, a bytes-like object, a binary file object or an fsspec URL.
        target: a path, a writable binary file object or an fsspec URL; the new file appears whole or not at all. The source's own
            path is allowed.
        decryption_properties: keys of the source, for all of its columns.
        properties: bounds and checks of reading.
        progress: as for ``encrypt_file``.
        filesystem, storage_options, timeout: as for ``encrypt_file``.

    Returns:
        A RewritingReport of the parts of the source left out.

    Raises:
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as encrypt_file.
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
    """Write the row groups of files, one file after another, as one file; pages are neither decompressed nor decoded.

    Args:
        sources: files of one schema and one writer, each as for encrypt_file. The first source gives the key-value metadata.
        target: as for encrypt_file.
        encryption_properties: keys of the new file; None for a plaintext file, also of encrypted sources.
        decryption_properties: keys of the sources, or a function from a source to its keys.
        properties: bounds and checks of reading.
        keep_metadata: as for ``encrypt_file``.
        progress: as for ``encrypt_file``, in rows of all sources; the footers are read a second time for the total.
        filesystem, storage_options, timeout: as for ``encrypt_file``.

    Returns:
        A RewritingReport of the parts of the sources left out.

    Raises:
        SchemaError: no source, or sources of different schemas, column orders, units of durations or writers. Readers find the
            known faults of a writer by its name, and a file has one name.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as encrypt_file.
    """
    properties = properties or ReaderProperties()
    if isinstance(keep_metadata, str):
        raise TypeError(f"keep_metadata is a list of names, not the one name {keep_metadata!r}")
    keep = frozenset(keep_metadata)
    keys_of: KeysOf = decryption_properties if callable(decryption_properties) else lambda _: decryption_properties
    named: Iterable[tuple[Any, Any]] = ((where, where) for where in sources)    # as given, and where it is
    if progress is not None or (filesystem, storage_options, timeout) != (None, None, None):
        given = list(sources)
        *places, target = placed_each([*given, target], filesystem, storage_options, timeout)
        named = list(zip(given, places, strict=True))
    total = 0 if progress is None else sum(_num_rows(place, properties, keys_of(where)) for where, place in named)
    meter = Meter(progress, total, holds_last=True)
    with open_sink(target) as sink:
        merged: _MergedFile | None = None
        for where, place in named:
            with _opened(place) as source:
                metadata = read_finished(source, properties, keys_of(where))
                if merged is None:
                    merged = _MergedFile(sink, metadata, encryption_properties, properties, keep, meter)
                merged.add(source, metadata)
        if merged is None:
            raise SchemaError("no files to merge")
        return merged.finish()


@contextmanager
def _opened(where: Any) -> Iterator[Source]:
    """An open source; errors get its name."""
    with open_source(where) as source:
        try:
            yield source
        except ParquetError as error:
            error.at(path=source.name)
            raise


def _num_rows(place: Any, properties: ReaderProperties, keys: FileDecryptionProperties | None) -> int:
    with _opened(place) as source:
        return read_finished(source, properties, keys).num_rows


class _MergedFile:
    """A new file with the row groups of others.

    Args:
        sink: the new file.
        first: metadata of the first source; the new footer has its schema and key-value metadata.
        encryption_properties: keys of the new file; None for plaintext.
        properties: bounds and checks of reading.
        keep_metadata: keys of key-value metadata to copy unchanged.
        meter: told of the rows copied.
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
        self._closed = frozenset() if keys is None else closed_columns(keys, first.schema.paths)
        self._is_encrypted = encryption_properties is not None
        self._properties = properties
        self._first = first
        self._row_groups = RowGroups(sink, first.schema, encryption_properties)
        self._dropped: list[DroppedIndex] = []

    def add(self, source: Source, metadata: FileMetaData) -> None:
        """Copy the row groups of a file.

        Raises:
            SchemaError: the file does not fit the first one.
        """
        if metadata is not self._first:
            _check_alike(self._first, metadata)
        for index in range(metadata.num_row_groups):
            self._add_row_group(source, metadata, metadata.row_group(index))

    def finish(self) -> RewritingReport:
        """Write indexes and footer."""
        footer = copy.copy(self._first.metadata)
        footer.schema = self._first.schema_elements
        dropped: list[DroppedMetadata] = []
        footer.key_value_metadata = self._first.key_values or None
        if self._is_encrypted:
            footer.key_value_metadata, dropped = without_values(self._first, self._closed, self._keep_metadata)
        if self._closed:
            footer.unknown = ()     # fields of newer specifications might disclose values
        footer.column_orders = self._first.column_orders or None
        self._row_groups.write_footer(footer)
        self._meter.finish()
        return RewritingReport(tuple(self._dropped), tuple(dropped))

    def _add_row_group(self, source: Source, metadata: FileMetaData, group: RowGroupMetaData) -> None:
        self._row_groups.next_ordinal(1)
        if group.num_rows < 0:
            raise FormatError(f"a row group of {group.num_rows} rows", row_group=group.index)
        if group.num_columns != metadata.num_columns:
            what = f"{group.num_columns} chunks in a row group of {metadata.num_columns} columns"
            raise FormatError(what, row_group=group.index)
        span = self._meter.span(group.num_rows)
        chunks = (self._copy(source, metadata, group, index, span) for index in range(group.num_columns))
        entry = copy.copy(group.metadata)
        entry.sorting_columns = group.sorting_columns or None
        if self._closed:
            entry.unknown = ()
        self._row_groups.add(entry, chunks)

    def _copy(
        self, source: Source, metadata: FileMetaData, group: RowGroupMetaData, index: int, span: Span | None
    ) -> PlacedChunk:
        column = metadata.schema.columns[index]
        chunk = group.column(index)
        try:
            if chunk.file_path:
                raise UnsupportedError(f"a column chunk in another file ({chunk.file_path!r}) is not copied")
            plan = plan_chunk(metadata, group.index, column, 0, source.size)
            opener = metadata.decryptor.chunk_cipher(chunk.chunk, group.ordinal, index)
            sealer = self._row_groups.cipher(len(self._row_groups), index)
            properties = for_writer(self._properties, metadata)
            copied, broken = copy_chunk(source, plan, opener, sealer, self._sink, properties)
        except ParquetError as error:
            error.at(column=column.name, row_group=group.index)
            raise
        self._dropped += [
            DroppedIndex(source.name, group.index, column.name, kind, error.message) for kind, error in broken.items()
        ]
        if span is not None:
            span.reach(index + 1, group.num_columns)
        return copied


def durations_of(metadata: FileMetaData) -> list[tuple[str, ...]]:
    """The columns of durations with their units, from the Arrow schema in the key-value metadata."""
    return ArrowFields(metadata.key_value(ARROW_KEY), metadata.schema.root.children).durations()


def _check_alike(first: FileMetaData, other: FileMetaData) -> None:
    """Raises SchemaError for files whose chunks do not go into one file."""
    for what, one, another in (
        ("schemas", first.schema_elements, other.schema_elements),
        ("column orders", first.column_orders, other.column_orders),
        ("writers", first.created_by, other.created_by),
        ("durations", durations_of(first), durations_of(other)),
    ):
        if one != another:
            raise SchemaError(f"files of different {what} cannot be merged page by page")
