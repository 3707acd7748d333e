"""Keyword arguments of readers and writers. ``python -m tools.keywords`` writes this file from the tables of options."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from fastpq import encryption
from fastpq.arrays.valid_text import TextChoice
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.legacy_calendar import CalendarChoice
from fastpq.options import (
    BloomFilterOption,
    ColumnSwitch,
    Compression,
    CompressionLevel,
    MemoryMap,
    OnError,
    OnMissingKey,
    ReaderProperties,
    SortingColumn,
)
from fastpq.read.opener import DecimalLayout, StringLayout
from fastpq.schema.parquet_schema import Int96UnitName

class DatasetReaderOptions(TypedDict, total=False):
    memory_map: MemoryMap
    threads: int | None
    strings: StringLayout
    decimals: DecimalLayout
    coerce_int96_timestamp_unit: Int96UnitName
    arrow_schema: bool
    invalid_utf8: TextChoice
    legacy_calendar: CalendarChoice
    properties: ReaderProperties | None
    on_error: OnError
    on_missing_key: OnMissingKey
    filesystem: Any
    storage_options: Mapping[str, Any] | None
    timeout: float | None
    check_metadata: bool

class ReaderOptions(DatasetReaderOptions, total=False):
    decryption_properties: encryption.FileDecryptionProperties | None
    metadata: FileMetaData | None

class WriterOptions(TypedDict, total=False):
    compression: Compression
    compression_level: CompressionLevel
    column_encoding: Mapping[str, str]
    encoding: Literal["auto"] | None
    compatibility: Literal["v1"] | None
    use_dictionary: ColumnSwitch
    row_group_size: int
    row_group_bytes: int
    data_page_size: int
    data_page_rows: int
    use_content_defined_chunking: bool | Mapping[str, int]
    data_page_version: Literal["1.0", "2.0"]
    dictionary_page_size: int
    write_statistics: ColumnSwitch
    statistics_truncation: int
    write_page_checksum: bool
    write_page_index: bool
    write_path_in_schema: bool
    float_order: Literal["type", "total"]
    bloom_filter: Mapping[str, BloomFilterOption]
    sorting_columns: Sequence[str | SortingColumn]
    sort_by: Sequence[str | SortingColumn]
    arrow_schema: bool | None
    field_ids: Mapping[str, int]
    key_value_metadata: Mapping[str, str]
    checkpoint_every: int | None
    invalid_utf8: Literal["error", "replace", "binary"]
    coerce_timestamps: Literal["ms", "us"] | None
    allow_truncated_timestamps: bool
    store_decimal_as_integer: bool | None
    durable: bool
