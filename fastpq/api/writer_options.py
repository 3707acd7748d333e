"""The options of writers as keyword arguments, for type checkers. A separate module: a plain read imports no TypedDict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from fastpq.options import BloomFilterOption, ColumnSwitch, Compression, CompressionLevel, SortingColumn


class WriterOptions(TypedDict, total=False):
    """The fields of WriterProperties as keyword arguments, for ``**options: Unpack[WriterOptions]``."""

    compression: Compression
    compression_level: CompressionLevel
    column_encoding: Mapping[str, str]
    encoding: Literal["auto"] | None
    use_dictionary: ColumnSwitch
    row_group_size: int
    row_group_bytes: int
    data_page_size: int
    data_page_rows: int
    data_page_version: Literal["1.0", "2.0"]
    dictionary_page_size: int
    write_statistics: ColumnSwitch
    statistics_truncation: int
    write_page_checksum: bool
    write_page_index: bool
    float_order: Literal["type", "total"]
    bloom_filter: Mapping[str, BloomFilterOption]
    sorting_columns: Sequence[str | SortingColumn]
    sort_by: Sequence[str | SortingColumn]
    arrow_schema: bool | None
    key_value_metadata: Mapping[str, str]
    checkpoint_every: int | None
    durable: bool
