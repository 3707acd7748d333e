"""Options for a new file that is written from decoded values and shall be like an existing file."""

from __future__ import annotations

from typing import Any

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_read
from fastpq.encodings.registry import specified_encoding
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import with_options
from fastpq.rewriting.redaction import without_values
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.stats.writer_bugs import bugs_of
from fastpq.write.row_group_appending import specs_in_order
from fastpq.write.spec import ColumnSpec

_LEVEL_ENCODINGS = (fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED)
_DICTIONARY_ENCODINGS = (fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY)


def options_like(metadata: FileMetaData, keys: FileEncryptionProperties | None) -> dict[str, Any]:
    """Return writer options with the codecs, bloom filters and key-value metadata that a file has.

    Codecs and bloom filters are those of the first row group. Values from encrypted columns are left out of the key-value
    metadata, as in ``encrypt_file``.

    Args:
        metadata: the file's footer.
        keys: keys for the new file. None for a plaintext file.
    """
    entries = metadata.key_values
    if keys is not None:
        entries = without_values(metadata, closed_columns(keys, metadata.schema.paths))[0] or []
    options: dict[str, Any] = {"key_value_metadata": {entry.key: entry.value for entry in entries if entry.value is not None}}
    return options | settings_like(metadata)


def settings_like(metadata: FileMetaData) -> dict[str, Any]:
    """Return options of WriterProperties: the codecs and bloom filters of a file's first row group."""
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    chunks = {column.name: group.column(column.index).metadata for column in metadata.schema.columns}
    return {
        "compression": {name: codec_for_read(chunk.codec).name for name, chunk in chunks.items()},
        "bloom_filter": {name: True for name, chunk in chunks.items() if chunk.bloom_filter_offset},
    }


def writing_options_of(metadata: FileMetaData) -> dict[str, Any]:
    """Return options of WriterProperties: the codecs, encodings, page version and bloom filters of a file's first row group."""
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    chunks = {column.name: group.column(column.index).metadata for column in metadata.schema.columns}
    encodings = {name: _own_encoding(chunk) for name, chunk in chunks.items()}
    page_types = {stats.page_type for chunk in chunks.values() for stats in chunk.encoding_stats or ()}
    return settings_like(metadata) | {
        "use_dictionary": [name for name, chunk in chunks.items() if {*chunk.encodings} & {*_DICTIONARY_ENCODINGS}],
        "column_encoding": {name: encoding for name, encoding in encodings.items() if encoding is not None},
        "data_page_version": "2.0" if fmt.PageType.DATA_PAGE_V2 in page_types else "1.0",
    }


def specs_like(metadata: FileMetaData, schema: ParquetSchema) -> list[ColumnSpec]:
    """Return how columns are encoded that stand beside copied ones.

    Args:
        metadata: the old file's footer.
        schema: the new file's schema, with the same column names.
    """
    settings = writing_options_of(metadata)
    if bugs_of(metadata.created_by):        # readers take V2 pages for those of the buggy writer
        settings["data_page_version"] = "1.0"
    return specs_in_order(schema, metadata.column_orders, with_options(None, settings))


def _own_encoding(chunk: fmt.ColumnMetaData) -> str | None:
    """Return the name of the only encoding of a chunk's values, or None for PLAIN, a dictionary or several encodings."""
    data_pages = [stats.encoding for stats in chunk.encoding_stats or () if stats.page_type != fmt.PageType.DICTIONARY_PAGE]
    encodings = {*data_pages} if data_pages else {*chunk.encodings} - {*_LEVEL_ENCODINGS}
    [encoding, *others] = [*encodings] or [fmt.Encoding.PLAIN]
    if others or encoding in (fmt.Encoding.PLAIN, fmt.Encoding.BIT_PACKED, *_DICTIONARY_ENCODINGS):
        return None
    return specified_encoding(encoding).name
