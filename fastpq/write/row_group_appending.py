"""AppendedFile: an existing file that gets more row groups. Its own row groups are neither decoded nor encrypted again."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import KeyAccessError, SchemaError, UnsupportedError
from fastpq.format.stored_footer import stored_footer
from fastpq.io.appended_file import CopySink, InPlaceSink, LockedFile
from fastpq.io.location import Remote, RemotePath, locate
from fastpq.io.object_store import find_store
from fastpq.io.sink import NO_CONDITIONS, Conditions, Sink
from fastpq.io.sink_opening import open_sink
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData, decoded_footer, decryptor_of
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties, WriterProperties
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.write.entries_about_rows import corrected_entries
from fastpq.write.row_groups import EarlierRowGroups, RowGroups
from fastpq.write.spec import ColumnSpec, column_specs

COPY_SIZE = 8 << 20         # bytes of a remote file that are copied at a time


class AppendedFile(NamedTuple):
    """An existing file, opened so that row groups can be added.

    Attributes:
        sink: the destination, which has all bytes in front of the new row groups.
        schema: the file's schema.
        footer: the file's footer, with row groups as they are stored.
        encryption: the file's own keys and its ``aad_file_unique``, or None for a plaintext file.
    """

    sink: Sink
    schema: ParquetSchema
    footer: fmt.FileMetaData
    encryption: tuple[FileEncryptionProperties, bytes] | None

    @classmethod
    def open(
        cls, where: Any, decryption_properties: FileDecryptionProperties | None, *, in_place: bool, durable: bool
    ) -> AppendedFile:
        """Open a file.

        Args:
            where: a local path, or a path on an fsspec filesystem.
            decryption_properties: keys for an encrypted file.
            in_place: whether the file itself is extended. Otherwise a copy takes its place.
            durable: whether a copy is on disk at the commit. A file that is extended in place always is.

        Raises:
            BlockingIOError: another append to the file is at work.
            SchemaError: this is not a path, or a remote file cannot be extended in place.
            UnsupportedError: the file has parts to which rows cannot be added.
            FormatError, KeyAccessError, OSError: the file cannot be read.
        """
        place = None if isinstance(where, bytes | bytearray | memoryview) else locate(where)
        if place is None:
            raise SchemaError(f"rows are appended to a file that has a path or a URL, not to a {type(where).__name__}")
        if isinstance(place, Remote):
            if in_place:
                raise SchemaError("in_place=True extends local files. Objects in stores cannot be extended")
            return cls._open_remote(place, decryption_properties)
        old = LockedFile(place, writable=in_place)
        try:
            with open_source(old.path) as source:
                metadata, start, encryption = _described(source, decryption_properties)
            sink = InPlaceSink(old) if in_place else CopySink(old, start, durable=durable)
        except BaseException:
            old.close()
            raise
        return cls(sink, metadata.schema, decoded_footer(metadata), encryption)

    @classmethod
    def _open_remote(cls, place: Remote, decryption_properties: FileDecryptionProperties | None) -> AppendedFile:
        store = find_store(place.filesystem)
        where = RemotePath(place.filesystem, place.path, name=place.name)
        conditions = NO_CONDITIONS
        if store is not None:
            place.filesystem.invalidate_cache(place.path)
            conditions = Conditions(if_match=store.version(place.filesystem.info(place.path)))
        with open_source(where) as source:
            metadata, start, encryption = _described(source, decryption_properties)
            sink = open_sink(where, conditions)
            try:
                for position in range(0, start, COPY_SIZE):
                    sink.write(source.read(position, min(COPY_SIZE, start - position)).data)
            except BaseException:
                sink.abort()
                raise
        return cls(sink, metadata.schema, decoded_footer(metadata), encryption)

    def row_groups(self) -> RowGroups:
        """Return the file's row groups, to which others can be added."""
        properties, unique = self.encryption or (None, None)
        return RowGroups(self.sink, self.schema, properties, EarlierRowGroups(self.footer.row_groups, unique))

    def specs(self, properties: WriterProperties) -> list[ColumnSpec]:
        """Return how each column's new chunks are written. The order of floats is the one that the footer states."""
        return specs_in_order(self.schema, self.footer.column_orders, properties)

    def new_footer(self, num_new_rows: int, entries: Mapping[str, str]) -> fmt.FileMetaData:
        """Return a footer for all row groups, without the row groups.

        Entries that make statements about all rows are corrected, or left out if only their writer could correct them.

        Args:
            num_new_rows: how many rows were added.
            entries: more key-value metadata. They replace entries that have the same key.
        """
        footer = copy.copy(self.footer)
        old_entries = [entry for entry in footer.key_value_metadata or () if entry.key not in entries]
        if num_new_rows:
            old_entries = corrected_entries(old_entries, self.schema, self.footer.num_rows + num_new_rows)
        new_entries = (fmt.KeyValue(key=key, value=value) for key, value in entries.items())
        footer.key_value_metadata = [*old_entries, *new_entries] or None
        return footer


def specs_in_order(
    schema: ParquetSchema, orders: Sequence[fmt.ColumnOrder] | None, properties: WriterProperties
) -> list[ColumnSpec]:
    """Return how columns are written in a file that states the columns' orders already."""
    by_order = {order: column_specs(schema, replace(properties, float_order=order)) for order in ("type", "total")}
    totals = [order.IEEE_754_TOTAL_ORDER is not None for order in orders or ()] or [False] * len(schema.columns)
    return [by_order["total" if is_total else "type"][number] for number, is_total in enumerate(totals)]


def _described(
    source: Source, decryption_properties: FileDecryptionProperties | None
) -> tuple[FileMetaData, int, tuple[FileEncryptionProperties, bytes] | None]:
    """Return a file's footer, the offset where it starts, and how the file is encrypted."""
    properties = ReaderProperties()
    metadata = read_finished(source, properties, decryption_properties)
    footer = stored_footer(source.size, source.read, properties.max_footer_size, with_head=True)
    if any(metadata.calendar.kinds):
        raise UnsupportedError(
            "rows cannot be appended: the file says that its dates or timestamps are in Spark's legacy calendar, and new "
            "ones would be read as if they were too",
            path=source.name,
        )
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    chunks = {}
    if groups:
        chunks = {column.path: groups[-1].column(column.index).chunk for column in metadata.schema.columns}
        if any(chunk.file_path for chunk in chunks.values()):
            raise UnsupportedError("rows cannot be appended to a file whose chunks are in other files", path=source.name)
    if metadata.encryption_algorithm is None and not footer.is_encrypted:
        return metadata, footer.start, None
    if not groups:
        raise UnsupportedError("an encrypted file without row groups does not say which columns are encrypted: write a new file")
    if any(group.ordinal >= len(groups) for group in groups):
        raise UnsupportedError("row groups in the encrypted file have ordinals that a new row group would have again")
    encryption = decryptor_of(metadata).own_encryption(chunks, plaintext_footer=not footer.is_encrypted)
    if encryption is None:
        raise KeyAccessError("the file is encrypted: appending needs decryption_properties", path=source.name)
    return metadata, footer.start, encryption
