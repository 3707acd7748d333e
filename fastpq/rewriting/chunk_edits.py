"""ChunkEdit: what changes in a column chunk while its pages are copied without decoding. Its subclasses recompress and strip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpq import format as fmt
from fastpq.codecs.catalogue import check_claimed_size, codec_for_read
from fastpq.codecs.codec import Codec
from fastpq.errors import FormatError

if TYPE_CHECKING:
    from fastpq.rewriting.copied_chunk import CopiedChunk

UNCOMPRESSED = fmt.CompressionCodec.UNCOMPRESSED


class ChunkEdit:
    """Edit that changes nothing: the pages of plaintext chunks are copied byte for byte.

    Attributes:
        changes_pages: whether ``edit_page`` may change a page.
        kept_indexes: whether the chunk keeps its OffsetIndex, its ColumnIndex and its bloom filter.
        decoded_pages: how many copied pages were decoded too, after the chunk was copied.
    """

    changes_pages = False
    decoded_pages = 0
    kept_indexes = (True, True, True)

    def edit_page(self, header: fmt.PageHeader, body: memoryview, levels_size: int) -> memoryview:
        """Return a page's new body, not encrypted. The header may be changed. Its size and CRC-32 are set later.

        Args:
            header: the page header.
            body: the stored body, not encrypted.
            levels_size: bytes at the start of a V2 page's body that are never compressed.
        """
        return body

    def edit_metadata(self, metadata: fmt.ColumnMetaData) -> None:
        """Change the footer's metadata for the chunk."""

    def complete(self, chunk: CopiedChunk) -> None:
        """Add indexes or statistics that the chunk lacks. Its pages are in the new file."""


COPIED_AS_IT_IS = ChunkEdit()


class Recompression(ChunkEdit):
    """Edit that compresses pages with another codec.

    Args:
        old_codec: number of the chunk's codec.
        v2_is_compressed: whether V2 pages are compressed even if their headers deny it.
        codec: the new codec.
    """

    changes_pages = True

    def __init__(self, old_codec: int, v2_is_compressed: bool, codec: Codec) -> None:
        self._old_codec, self._v2_is_compressed, self._codec = old_codec, v2_is_compressed, codec

    def edit_page(self, header: fmt.PageHeader, body: memoryview, levels_size: int) -> memoryview:
        version_2 = header.data_page_header_v2
        is_compressed = self._old_codec != UNCOMPRESSED
        if version_2 is not None:
            is_compressed = is_compressed and (version_2.is_compressed is not False or self._v2_is_compressed)
        plain_size = header.uncompressed_page_size - levels_size
        values = body[levels_size:]
        if not plain_size:
            values = memoryview(b"")
        elif is_compressed:
            check_claimed_size(self._old_codec, len(values), plain_size)
            plain_values = bytearray(plain_size)
            codec_for_read(self._old_codec).decompress_into(values, plain_values)
            values = memoryview(plain_values)
        elif len(values) != plain_size:
            raise FormatError(f"an uncompressed page of {len(values)} bytes whose header says {plain_size}")
        compressed_values = memoryview(self._codec.compress(values))
        if version_2 is not None:
            is_smaller = len(compressed_values) < len(values) or self._v2_is_compressed     # which readers of this writer assume
            version_2.is_compressed = self._codec.number != UNCOMPRESSED and is_smaller
            compressed_values = compressed_values if version_2.is_compressed else values
        return memoryview(bytes(body[:levels_size]) + compressed_values) if levels_size else compressed_values

    def edit_metadata(self, metadata: fmt.ColumnMetaData) -> None:
        metadata.codec = fmt.CompressionCodec(self._codec.number)


class Stripping(ChunkEdit):
    """Edit that leaves out statistics and indexes.

    Args:
        statistics: whether to leave out statistics: in the footer, in page headers, and in the ColumnIndex.
        page_index: whether to leave out the OffsetIndex and the ColumnIndex.
        bloom_filters: whether to leave out bloom filters.
    """

    def __init__(self, *, statistics: bool, page_index: bool, bloom_filters: bool) -> None:
        self.changes_pages = self._drops_statistics = statistics
        self.kept_indexes = (not page_index, not page_index and not statistics, not bloom_filters)

    def edit_page(self, header: fmt.PageHeader, body: memoryview, levels_size: int) -> memoryview:
        for own_header in (header.data_page_header, header.data_page_header_v2):
            if own_header is not None:
                own_header.statistics = None
        return body

    def edit_metadata(self, metadata: fmt.ColumnMetaData) -> None:
        if self._drops_statistics:
            metadata.statistics = metadata.size_statistics = metadata.geospatial_statistics = None
