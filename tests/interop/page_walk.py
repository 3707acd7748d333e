"""A small pure-Python reader of page headers and stored pages of a Parquet file, for tests of page contents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

STRUCT, LIST, SET, BINARY = 12, 9, 10, 8
DATA_PAGE, DATA_PAGE_V2 = 0, 3


class Compact:
    """A decoder of Thrift's compact protocol; decodes a struct to a dict of values by field id."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def bytes(self, size: int) -> bytes:
        self.position += size
        return self.data[self.position - size : self.position]

    def value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.bytes(1)[0]
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 7:
            return self.bytes(8)
        if kind == BINARY:
            return self.bytes(self.varint())
        if kind in (LIST, SET):
            head = self.bytes(1)[0]
            size = head >> 4 if head >> 4 != 15 else self.varint()
            return [self.value(head & 15) for _ in range(size)]
        assert kind == STRUCT, kind
        return self.struct()

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        field = 0
        while head := self.bytes(1)[0]:
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            fields[field] = self.value(head & 15)
        return fields


@dataclass
class Page:
    """Header fields and stored bytes of one page.

    Attributes:
        codec: pyarrow's name of the codec.
        compressed: whether the header marks the page as compressed.
        plain_size: uncompressed size in bytes of body.
        body: stored bytes after the levels of a data page V2: the part to decompress.
        crc: checksum in the header, or None.
        stored: all stored bytes behind the header.
    """

    codec: str
    compressed: bool
    plain_size: int
    body: bytes
    crc: int | None
    stored: bytes


def pages(path: Path) -> Iterator[Page]:
    """The pages of all column chunks of a file, in order."""
    data = path.read_bytes()
    metadata = pq.read_metadata(path)
    for row_group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(row_group).column(column)
            position = chunk.data_page_offset
            if chunk.dictionary_page_offset:  # some writers store 0 for none
                position = min(position, chunk.dictionary_page_offset)
            values = 0  # counted, because some writers' chunk sizes are wrong
            while values < chunk.num_values:
                reader = Compact(data, position)
                header = reader.struct()
                stored = data[reader.position : reader.position + header[3]]
                position = reader.position + header[3]
                levels, compressed = 0, True
                if header[1] == DATA_PAGE:
                    values += header[5][1]
                elif header[1] == DATA_PAGE_V2:  # the levels stand before the compressed values
                    second = header[8]
                    values += second[1]
                    levels = second[5] + second[6]
                    compressed = second.get(7, True)
                crc = header[4] & 0xFFFFFFFF if 4 in header else None
                yield Page(chunk.compression, compressed, header[2] - levels, stored[levels:], crc, stored)
