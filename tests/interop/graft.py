"""Page indexes and bloom filters, made by our builders, added to a file that has none."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fastpq
from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.bloom_format import bytes_for, serialize
from fastpq.index.bounds import order_of
from fastpq.index.page_index_builder import PageIndexBuilder, PageStatistics
from fastpq.index.statistics import min_max, min_max_of, nan_count
from fastpq.layouts import BinaryOffsets
from fastpq.schema import ColumnDescriptor
from fastpq.slices import SliceReader
from fastpq.types import Type

DATA_PAGES = (fmt.PageType.DATA_PAGE, fmt.PageType.DATA_PAGE_V2)
FORMATS = {Type.INT32: "<i", Type.INT64: "<q", Type.FLOAT: "<f", Type.DOUBLE: "<d"}


def plain(value: Any, physical: Type) -> bytes:
    """A value as PLAIN stores it, a BYTE_ARRAY without its length."""
    if physical is Type.BYTE_ARRAY:
        return value.encode() if isinstance(value, str) else value
    return struct.pack(FORMATS[physical], value)


def page_statistics(column: ColumnDescriptor, offset: int, size: int, values: list[Any]) -> PageStatistics:
    """The statistics of a page of a flat column with these values."""
    stored = [plain(value, column.physical_type) for value in values if value is not None]
    order = order_of(column.type)
    if column.physical_type is Type.BYTE_ARRAY:
        _, low, high = min_max_of(order, stored)
        nans = 0
    else:
        raw = np.frombuffer(b"".join(stored), np.uint8)
        _, low, high = min_max(order, raw)
        nans = nan_count(order, raw)
    return PageStatistics(
        offset=offset,
        size=size,
        num_rows=len(values),
        num_values=len(values),
        null_count=len(values) - len(stored),
        bounds=None if low is None or high is None else (low, high),
        nan_count=nans,
        unencoded_byte_array_data_bytes=sum(map(len, stored)),
    )


def data_pages(data: bytes, start: int, length: int) -> Iterator[tuple[int, int, int]]:
    """Offset, stored size and number of values of each data page of a chunk."""
    position = start
    while position < start + length:
        header, size = fmt.decode(fmt.PageHeader, data, position)
        if header.type in DATA_PAGES:
            detail = header.data_page_header or header.data_page_header_v2
            assert detail is not None
            yield position, size + header.compressed_page_size, detail.num_values
        position += size + header.compressed_page_size


def builder_of(data: bytes, column: ColumnDescriptor, start: int, length: int, values: list[Any]) -> PageIndexBuilder:
    """The builder of a chunk's page index, fed with its pages and the values that they hold."""
    builder, row = PageIndexBuilder(column), 0
    for offset, size, rows in data_pages(data, start, length):
        builder.add(page_statistics(column, offset - start, size, values[row : row + rows]))
        row += rows
    assert row == len(values)
    return builder


def bloom_filter_of(column: ColumnDescriptor, values: list[Any], fpp: float = 0.01) -> SplitBlockBloomFilter:
    """The bloom filter of a chunk, sized for four times its values and folded to what they need."""
    stored = [plain(value, column.physical_type) for value in values if value is not None]
    made = SplitBlockBloomFilter(bytes_for(len(values) * 4, fpp))
    offsets = np.cumsum([0, *map(len, stored)]).astype(np.int32)
    made.insert_values(SliceReader(BinaryOffsets(offsets, np.frombuffer(b"".join(stored), np.uint8))))
    return made.folded(fpp)


def graft(path: Path, target: Path) -> None:
    """Write the file at path with page indexes and bloom filters for all columns: filters, column and offset indexes, footer."""
    data = path.read_bytes()
    (footer_size,) = struct.unpack("<I", data[-8:-4])
    body = bytearray(data[: -8 - footer_size])
    metadata, _ = fmt.decode(fmt.FileMetaData, data, len(body))
    columns: list[tuple[fmt.ColumnChunk, PageIndexBuilder, int]] = []
    with fastpq.ParquetFile(path) as file:
        for index, group in enumerate(metadata.row_groups):
            table = file.read(row_groups=[index])
            for chunk, column in zip(group.columns, file.schema.columns, strict=True):
                values = table[column.name].to_pylist()
                start, length = file.metadata.row_group(index).column(column.index).byte_range
                columns.append((chunk, builder_of(data, column, start, length, values), start))
                meta_data = chunk.meta_data
                assert meta_data is not None
                meta_data.bloom_filter_offset = len(body)
                for part in serialize(bloom_filter_of(column, values), ModuleCipher()):
                    body += bytes(part)
                meta_data.bloom_filter_length = len(body) - meta_data.bloom_filter_offset
    for chunk, builder, _ in columns:
        column_index = builder.column_index()
        if column_index is not None:
            stored = fmt.encode(column_index)
            chunk.column_index_offset, chunk.column_index_length = len(body), len(stored)
            body += stored
    for chunk, builder, start in columns:
        stored = fmt.encode(builder.offset_index(start))
        chunk.offset_index_offset, chunk.offset_index_length = len(body), len(stored)
        body += stored
    footer = fmt.encode(metadata)
    target.write_bytes(bytes(body) + footer + struct.pack("<I", len(footer)) + b"PAR1")
