"""A column chunk whose pages were copied to a new file: the places of its pages, its metadata and its indexes."""

from __future__ import annotations

from dataclasses import dataclass, field

from fastpq import format as fmt
from fastpq.errors import ParquetError
from fastpq.index.bloom_filter import SplitBlockBloomFilter


@dataclass(slots=True)
class CopiedPages:
    """Places and counts of a chunk's copied pages.

    Attributes:
        dictionary_size: the copied dictionary page's stored size in bytes, with its header. 0 without a dictionary page.
        sizes: each copied data page's stored size in bytes, with its header.
        places: each data page's position and stored size in the old chunk, in bytes.
        rows: each data page's row count. None if only the levels in the page tell.
        value_counts: each data page's value count. Nulls and empty lists count too.
        num_values: value count in all data pages.
        uncompressed_size: bytes in all page bodies before compression and encryption, and in all stored headers.
        counts: page count by type and encoding.
    """

    dictionary_size: int = 0
    sizes: list[int] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    rows: list[int | None] = field(default_factory=list)
    value_counts: list[int] = field(default_factory=list)
    num_values: int = 0
    uncompressed_size: int = 0
    counts: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def stored_size(self) -> int:
        return self.dictionary_size + sum(self.sizes)

    @property
    def encoding_stats(self) -> list[fmt.PageEncodingStats]:
        return [
            fmt.PageEncodingStats(page_type=page_type, encoding=encoding, count=count)
            for (page_type, encoding), count in sorted(self.counts.items())
        ]


@dataclass(slots=True)
class CopiedChunk:
    """A chunk whose pages are in the new file, and whose indexes are not sealed yet.

    Attributes:
        pages: places and counts of its pages.
        metadata: its metadata for the footer.
        column_index, offset_index, bloom_filter: its indexes, with offsets in the new file. None if it has none.
        errors: the error for each index that is left out.
    """

    pages: CopiedPages
    metadata: fmt.ColumnMetaData
    column_index: fmt.ColumnIndex | None
    offset_index: fmt.OffsetIndex | None
    bloom_filter: SplitBlockBloomFilter | None
    errors: dict[str, ParquetError]
