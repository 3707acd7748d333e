"""Files with altered pages. Offsets and sizes follow the new pages, so that only the alteration is wrong."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from fastpq import format as fmt
from tests.narrowing import present


@dataclass
class StoredPage:
    """A page, to be altered in place."""

    header: fmt.PageHeader
    body: bytes

    @property
    def v1(self) -> fmt.DataPageHeader:
        return present(self.header.data_page_header)

    @property
    def v2(self) -> fmt.DataPageHeaderV2:
        return present(self.header.data_page_header_v2)

    @property
    def dictionary(self) -> fmt.DictionaryPageHeader:
        return present(self.header.dictionary_page_header)

    def set_body(self, body: bytes) -> None:
        """Replace the body, and the sizes in the header. The page is not compressed."""
        self.body = body
        self.header.compressed_page_size = self.header.uncompressed_page_size = len(body)


@dataclass
class PageForgery:
    """A plaintext file of one row group without indexes, opened to be altered.

    Args:
        data: the file.

    Attributes:
        metadata: the footer.
        chunks: the pages of each column chunk.
        rest: bytes behind the pages of each chunk.
    """

    data: bytes
    metadata: fmt.FileMetaData = field(init=False)
    chunks: list[list[StoredPage]] = field(init=False)

    def __post_init__(self) -> None:
        (footer_size,) = struct.unpack("<I", self.data[-8:-4])
        self.metadata, _ = fmt.decode(fmt.FileMetaData, self.data, len(self.data) - 8 - footer_size)
        [group] = self.metadata.row_groups
        self.chunks = [self._pages(present(entry.meta_data)) for entry in group.columns]
        self.rest = [b"" for _ in self.chunks]

    def entry(self, column: int) -> fmt.ColumnMetaData:
        """The entry of a chunk. Its offsets and sizes are set when the file is written."""
        return present(self.metadata.row_groups[0].columns[column].meta_data)

    def _pages(self, metadata: fmt.ColumnMetaData) -> list[StoredPage]:
        start = place = metadata.dictionary_page_offset or metadata.data_page_offset
        pages = []
        while place < start + metadata.total_compressed_size:
            header, size = fmt.decode(fmt.PageHeader, self.data, place)
            body = self.data[place + size : place + size + header.compressed_page_size]
            pages.append(StoredPage(header, body))
            place += size + len(body)
        return pages

    def written(self) -> bytes:
        """The altered file."""
        body = bytearray(self.data[:4])
        total = stored = 0
        for number, (pages, rest) in enumerate(zip(self.chunks, self.rest, strict=True)):
            entry, start = self.entry(number), len(body)
            entry.dictionary_page_offset, entry.total_uncompressed_size = None, 0
            first = None
            for page in pages:
                if page.header.type == fmt.PageType.DICTIONARY_PAGE and entry.dictionary_page_offset is None:
                    entry.dictionary_page_offset = len(body)
                elif first is None and page.header.type in fmt.DATA_PAGE_TYPES:
                    first = len(body)
                header = fmt.encode(page.header)
                entry.total_uncompressed_size += len(header) + page.header.uncompressed_page_size
                body += header + page.body
            body += rest
            entry.data_page_offset = start if first is None else first
            entry.total_compressed_size = len(body) - start
            total += entry.total_uncompressed_size
            stored += entry.total_compressed_size
        [group] = self.metadata.row_groups
        group.total_byte_size, group.total_compressed_size, group.file_offset = total, stored, None
        footer = fmt.encode(self.metadata)
        return bytes(body) + footer + struct.pack("<I", len(footer)) + b"PAR1"
