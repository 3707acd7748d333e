"""Files to files without decoding values: encrypt_file, decrypt_file, merge_files."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from fastpq import format as fmt
from fastpq.arrow.hints import ArrowFields, with_metadata
from fastpq.common.progress import Meter, Progress, Span
from fastpq.convert.dataframes import PANDAS_KEY, without_categories
from fastpq.encryption.encryptor import FileEncryptor
from fastpq.encryption.file_ciphers import open_file_encryptor
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import FormatError, LimitError, ParquetError, SchemaError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.index.output import PageIndexes, write_bloom_filter
from fastpq.io.sink import Sink, open_sink
from fastpq.io.source import Source, open_source
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
from fastpq.metadata.footer import read_finished, write_footer
from fastpq.options import ReaderProperties
from fastpq.read.plan import plan_chunk
from fastpq.rewriting.chunk_copy import CopiedChunk, copy_chunk
from fastpq.schema.parquet_schema import ParquetSchema

LARGEST_ROW_GROUP_ORDINAL = 32767

KeysOf: TypeAlias = Callable[[Any], FileDecryptionProperties | None]
FileKeys: TypeAlias = FileDecryptionProperties | KeysOf | None


def encrypt_file(
    source: Any,
    target: Any,
    encryption_properties: FileEncryptionProperties,
    *,
    decryption_properties: FileDecryptionProperties | None = None,
    properties: ReaderProperties | None = None,
    progress: Progress | None = None,
) -> None:
    """Encrypt a file, or encrypt it with other keys; its pages are neither decompressed nor decoded.

    Everything else stays as it is: schema, row groups, encodings, statistics, page indexes, bloom filters, sorting columns
    and key-value metadata, but for the categories that fastpq keeps there of a DataFrame, which are values. Of plaintext that
    lies, about bounds for example, the encrypted file says the same. Memory is bounded by a page, of a source that is not a
    local file by a column chunk, beside indexes and footer.

    Args:
        source: a path, a bytes-like object, a binary file object or a URL that fsspec knows.
        target: where to; it appears whole or not at all. It may be the source's own path.
        encryption_properties: keys of the new file, which are used with fresh nonces.
        decryption_properties: keys of the source; None if it is plaintext.
        properties: bounds and checks of reading.
        progress: called as ``progress(done, total)`` after each column chunk, in rows; the last call is
            ``(total, total)``. An exception from it leaves the target as it was.

    Raises:
        FormatError, UnsupportedError, LimitError: the source breaks the specification, or has what fastpq does not read.
        KeyAccessError: a column of the source is encrypted, and there is no key for it.
        TagVerificationError: the source was altered.
        SchemaError: keys for columns that there are not.
        CryptoError: more than 32768 row groups, columns or pages of a chunk.
    """
    merge_files(
        [source],
        target,
        encryption_properties=encryption_properties,
        decryption_properties=decryption_properties,
        properties=properties,
        progress=progress,
    )


def decrypt_file(
    source: Any,
    target: Any,
    decryption_properties: FileDecryptionProperties,
    *,
    properties: ReaderProperties | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the plaintext file of an encrypted one; its pages are neither decompressed nor decoded.

    Args:
        source: a path, a bytes-like object, a binary file object or a URL that fsspec knows.
        target: where to; it appears whole or not at all. It may be the source's own path.
        decryption_properties: keys of the source, for all of its columns.
        properties: bounds and checks of reading.
        progress: as for ``encrypt_file``.

    Raises:
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as encrypt_file.
    """
    merge_files([source], target, decryption_properties=decryption_properties, properties=properties, progress=progress)


def merge_files(
    sources: Iterable[Any],
    target: Any,
    *,
    encryption_properties: FileEncryptionProperties | None = None,
    decryption_properties: FileKeys = None,
    properties: ReaderProperties | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the row groups of files, one file after another, as one file; pages are neither decompressed nor decoded.

    Args:
        sources: files of one schema and one writer, each as for encrypt_file. What the footers say beside is that of the
            first: key-value metadata above all.
        target: as for encrypt_file.
        encryption_properties: keys of the new file; None for a plaintext file, whatever the sources are.
        decryption_properties: keys of the sources, or a function from a source to its keys.
        properties: bounds and checks of reading.
        progress: as for ``encrypt_file``, in rows of all sources, whose footers are then read twice.

    Raises:
        SchemaError: no source, or sources of different schemas, column orders, units of durations or writers: what is known of
            a writer's mistakes is told by its name, of which a file has one.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as encrypt_file.
    """
    properties = properties or ReaderProperties()
    keys_of: KeysOf = decryption_properties if callable(decryption_properties) else lambda _: decryption_properties
    if progress is not None:
        sources = list(sources)
    total = 0 if progress is None else sum(_num_rows(where, properties, keys_of) for where in sources)
    with open_sink(target) as sink:
        merged = _MergedFile(sink, encryption_properties, properties, Meter(progress, total, holds_last=True))
        for where in sources:
            with _opened(where) as source:
                merged.add(source, keys_of(where))
        merged.finish()


@contextmanager
def _opened(where: Any) -> Iterator[Source]:
    """A source; errors say of which one they are."""
    with open_source(where) as source:
        try:
            yield source
        except ParquetError as error:
            error.at(path=source.name)
            raise


def _num_rows(where: Any, properties: ReaderProperties, keys_of: KeysOf) -> int:
    with _opened(where) as source:
        return read_finished(source, properties, keys_of(where)).num_rows


class _MergedFile:
    """A file that takes the row groups of others.

    Args:
        sink: where to.
        encryption_properties: its keys.
        properties: bounds and checks of reading.
        meter: told of the rows that are copied.
    """

    def __init__(
        self,
        sink: Sink,
        encryption_properties: FileEncryptionProperties | None,
        properties: ReaderProperties,
        meter: Meter,
    ) -> None:
        self._meter = meter
        self._sink = sink
        self._encryption_properties = encryption_properties
        self._properties = properties
        self._encryptor = FileEncryptor()
        self._page_indexes = PageIndexes()
        self._row_groups: list[fmt.RowGroup] = []
        self._first: FileMetaData | None = None

    def add(self, source: Source, keys: FileDecryptionProperties | None) -> None:
        """Copy the row groups of a file."""
        metadata = read_finished(source, self._properties, keys)
        if self._first is None:
            self._begin(metadata)
        else:
            _check_alike(self._first, metadata)
        for index in range(metadata.num_row_groups):
            self._add_row_group(source, metadata, metadata.row_group(index))

    def finish(self) -> None:
        """Write indexes and footer.

        Raises:
            SchemaError: there was no file.
        """
        if self._first is None:
            raise SchemaError("no files to merge")
        self._page_indexes.write(self._sink)
        footer = copy.copy(self._first.metadata)
        footer.schema = self._first.schema_elements
        footer.num_rows = sum(group.num_rows for group in self._row_groups)
        footer.row_groups = self._row_groups
        if self._encryption_properties is not None:
            footer.key_value_metadata = without_values(self._first)
        footer.column_orders = self._first.column_orders or None
        footer.encryption_algorithm = self._encryptor.encryption_algorithm
        footer.footer_signing_key_metadata = self._encryptor.footer_signing_key_metadata
        self._sink.write(write_footer(footer, self._encryptor))
        self._meter.finish()

    def _begin(self, metadata: FileMetaData) -> None:
        self._first = metadata
        paths = [column.path for column in metadata.schema.columns]
        self._encryptor = open_file_encryptor(self._encryption_properties, paths)
        self._sink.write(self._encryptor.magic)

    def _add_row_group(self, source: Source, metadata: FileMetaData, group: RowGroupMetaData) -> None:
        ordinal, offset = len(self._row_groups), self._sink.tell()
        if ordinal > LARGEST_ROW_GROUP_ORDINAL:
            raise LimitError(f"more than {LARGEST_ROW_GROUP_ORDINAL + 1} row groups")
        if group.num_rows < 0:
            raise FormatError(f"a row group of {group.num_rows} rows", row_group=group.index)
        if group.num_columns != metadata.num_columns:
            what = f"{group.num_columns} chunks in a row group of {metadata.num_columns} columns"
            raise FormatError(what, row_group=group.index)
        span = self._meter.span(group.num_rows)
        chunks = [self._copy(source, metadata, group, index, span) for index in range(group.num_columns)]
        row_group = copy.copy(group.metadata)
        entries = [chunk.entry.meta_data for chunk in chunks if chunk.entry.meta_data is not None]
        row_group.total_byte_size = sum(entry.total_uncompressed_size for entry in entries)
        row_group.total_compressed_size = sum(entry.total_compressed_size for entry in entries)
        row_group.file_offset, row_group.ordinal = offset, ordinal
        row_group.sorting_columns = self._encryptor.sorting_columns(group.metadata.sorting_columns)
        row_group.columns = [self._enter(chunk, metadata.schema, ordinal, index) for index, chunk in enumerate(chunks)]
        self._row_groups.append(row_group)

    def _copy(
        self, source: Source, metadata: FileMetaData, group: RowGroupMetaData, index: int, span: Span | None
    ) -> CopiedChunk:
        column = metadata.schema.columns[index]
        chunk = group.column(index)
        try:
            if chunk.file_path:
                raise UnsupportedError(f"a column chunk in another file ({chunk.file_path!r}) is not copied")
            plan = plan_chunk(chunk, column, group.index, 0, group.num_rows, source.size, metadata.created_by)
            opener = metadata.decryptor.chunk_cipher(chunk.chunk, group.ordinal, index)
            sealer = self._encryptor.chunk_cipher(column.path, len(self._row_groups), index)
            copied = copy_chunk(source, plan, opener, sealer, self._sink, self._properties)
        except ParquetError as error:
            error.at(column=column.name, row_group=group.index)
            raise
        if span is not None:
            span.reach(index + 1, group.num_columns)
        return copied

    def _enter(self, chunk: CopiedChunk, schema: ParquetSchema, ordinal: int, index: int) -> fmt.ColumnChunk:
        """Write a chunk's bloom filter and keep its page index; returns its entry in the footer as it is stored."""
        cipher = self._encryptor.chunk_cipher(schema.columns[index].path, ordinal, index)
        if chunk.bloom_filter is not None and chunk.entry.meta_data is not None:
            write_bloom_filter(self._sink, chunk.bloom_filter, chunk.entry.meta_data, cipher)
        stored = self._encryptor.column_chunk(chunk.entry, ordinal, index)
        self._page_indexes.add(stored, chunk.indexes.column_index, chunk.indexes.offset_index, cipher)
        return stored


def durations_of(metadata: FileMetaData) -> list[tuple[str, ...]]:
    """The columns whose numbers are durations, and their units, which the key-value metadata alone tell."""
    return ArrowFields(metadata.key_value_metadata.get(ARROW_KEY), metadata.schema.root.children).durations()


def without_values(metadata: FileMetaData) -> list[fmt.KeyValue] | None:
    """Key-value metadata for an encrypted file, whose footer more may read than its columns: pandas' categories are left out,
    also of the copy in an ARROW:schema."""
    entries = metadata.metadata.key_value_metadata or []
    kept = [
        fmt.KeyValue(key=entry.key, value=without_categories(entry.value))
        if entry.key == PANDAS_KEY and entry.value is not None
        else entry
        for entry in entries
    ]
    if kept != entries:
        told = {entry.key: entry.value for entry in kept if entry.value is not None and entry.key != ARROW_KEY}
        kept = [entry if entry.key != ARROW_KEY else _with_metadata(entry, metadata, told) for entry in kept]
    return [entry for entry in kept if entry.key != ARROW_KEY or entry.value is not None] or None


def _with_metadata(entry: fmt.KeyValue, metadata: FileMetaData, told: dict[str, str]) -> fmt.KeyValue:
    value = None if entry.value is None else with_metadata(entry.value, metadata.schema.root.children, told)
    return fmt.KeyValue(key=entry.key, value=value)


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
