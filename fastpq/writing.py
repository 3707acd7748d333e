"""write_table: a file opened, written and closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.progress import Progress
from fastpq.properties import WriterProperties, spelled_out
from fastpq.schema import ParquetSchema
from fastpq.types import ColumnType
from fastpq.variant.writing import Shredding
from fastpq.writer import ParquetWriter
from fastpq.writer_options import WriterOptions


@spelled_out
def write_table(
    data: Any,
    where: Any,
    *,
    schema: Mapping[str, ColumnType] | ParquetSchema | None = None,
    properties: WriterProperties | None = None,
    threads: int | None = None,
    encryption_properties: FileEncryptionProperties | None = None,
    shred: Mapping[str, Shredding] | None = None,
    progress: Progress | None = None,
    **options: Unpack[WriterOptions],
) -> None:
    """Write columns as a Parquet file; the target is replaced whole, or not at all.

    Args:
        data: a Table, a dict of NumPy arrays, a structured array, a pandas DataFrame, or anything with the Arrow C data
            interface.
        where: a path, a writable binary file object or a URL that fsspec knows.
        schema: column types by name, where they should differ from those that the values suggest; or a ParquetSchema.
        properties: how to write; options go before it.
        threads: number of columns that are encoded at the same time; None for one a core.
        encryption_properties: keys; None writes a plaintext file.
        shred: how variant columns are shredded, by name, as for ParquetWriter.
        progress: called as ``progress(done, total)``, in rows (fastpq.progress); the last call is ``(total, total)``. An
            exception from it leaves the target as it was.
        **options: any of the fields of WriterProperties:

            - ``compression``: codec (``"snappy"``, ``"zstd"``, ``"gzip"``, ``"brotli"``, ``"lz4"``, ``"lzo"``; None or
              ``"none"`` for uncompressed), or a mapping from columns to codecs. Default ``"snappy"``.
            - ``compression_level``: level of the codec, or a mapping from columns to levels; None for the level that the codec
              takes by itself. Default ``None``.
            - ``column_encoding``: mapping from columns to encodings, by the names of Encodings.md; goes before ``use_dictionary``
              and ``encoding``. Default ``{}``.
            - ``encoding``: ``"auto"`` chooses an encoding for each column by a sample of its first rows; None takes a dictionary
              where it makes the chunk smaller, and PLAIN elsewhere. Default ``None``.
            - ``use_dictionary``: dictionary encoding for every column, for none, or for a list of columns. Default ``True``.
            - ``row_group_size``: most rows in a row group. Default ``1048576``.
            - ``row_group_bytes``: most uncompressed bytes in a row group. Default ``536870912``.
            - ``data_page_size``: target size of an uncompressed data page, in bytes. Default ``1048576``.
            - ``data_page_rows``: most rows in a data page. Default ``20000``.
            - ``data_page_version``: ``"1.0"`` or ``"2.0"``. Default ``"1.0"``.
            - ``dictionary_page_size``: most bytes in a dictionary page; with a larger dictionary the chunk falls back to PLAIN.
              Default ``1048576``.
            - ``write_statistics``: min, max and null count for every column, for none, or for a list of columns. Default
              ``True``.
            - ``statistics_truncation``: most bytes in a bound of a BYTE_ARRAY column. Default ``64``.
            - ``write_page_checksum``: write the CRC-32 of every page. Default ``True``.
            - ``write_page_index``: write an OffsetIndex for every column, and a ColumnIndex for columns with statistics and an
              order. Default ``True``.
            - ``float_order``: order of the bounds of floats: ``"type"``, known to every reader, or ``"total"``, IEEE 754 total
              order, which tells zeros of either sign apart and has bounds for NaNs; readers that do not know it do not use these
              bounds. Default ``"type"``.
            - ``bloom_filter``: mapping from columns to True, or to ``fpp`` (false positive rate, 0.01 unless given) and ``ndv``
              (number of distinct values; None sizes the filter by the values). Default ``{}``.
            - ``sorting_columns``: columns by which the rows of each row group are sorted already; the order is checked and
              recorded. Default ``()``.
            - ``sort_by``: columns by which the rows of each row group are sorted before writing; the order is recorded. Default
              ``()``.
            - ``arrow_schema``: keep in the footer (ARROW:schema) the Arrow types that Parquet does not have: timezones,
              dictionaries, layouts, durations, extension types; as pyarrow does. None does so for DataFrames of Arrow dtypes
              alone. Default ``None``.
            - ``key_value_metadata``: mapping from text to text, stored in the footer. Default ``{}``.
            - ``checkpoint_every``: number of row groups after which a footer of the row groups so far is written, so that an
              unfinished file can be read (``fastpq.recover_table``); None writes the last footer alone. Default ``None``.

    Raises:
        SchemaError: data that are no columns of equal length, or that the schema does not fit.
        UnsupportedError: a codec, an encoding or a type that fastpq does not write.
        TypeError: an option that there is not.
    """
    with ParquetWriter(
        where,
        schema,
        properties=properties,
        threads=threads,
        encryption_properties=encryption_properties,
        shred=shred,
        progress=progress,
        **options,
    ) as writer:
        writer.write_table(data)
