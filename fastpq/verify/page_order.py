"""Pages with dictionary indexes that come after pages with values in the same chunk.

The format allows them, and Spark misreads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fastpq import format as fmt
from fastpq.column.page_walker import PageWalker
from fastpq.io.source import Source
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData, decryptor_of
from fastpq.options import ReaderProperties

DICTIONARY_ENCODINGS = frozenset({fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY})
MOST_BYTES = 256 << 20      # stored bytes of chunks that ``late_indexes`` looks at

LATE_INDEXES = (
    "pages with values before pages with dictionary indexes",
    "Spark reads other values without an error, or fails",
    "reads each page by its own encoding",
)


class PageOrder:
    """The order of the encodings in one chunk."""

    def __init__(self) -> None:
        self._has_values = False

    def has_late_indexes(self, encoding: int) -> bool:
        """Take the encoding of the next data page. Return whether it is a dictionary, and an earlier page has values."""
        if encoding in DICTIONARY_ENCODINGS:
            return self._has_values
        self._has_values = True
        return False


def late_indexes(
    source: Source, metadata: FileMetaData, properties: ReaderProperties, leaves: Sequence[int]
) -> Counter[int]:
    """Return for each of some leaf numbers how many chunks have a page with dictionary indexes after a page with values.

    Only page headers are read, and only in chunks whose footer entry allows such pages, up to ``MOST_BYTES``.

    Raises:
        FormatError: a page header is broken.
        KeyAccessError, TagVerificationError: a chunk is encrypted and cannot be opened.
    """
    counts: Counter[int] = Counter()
    size = 0
    for group in metadata.row_groups:
        for leaf in leaves:
            chunk = group.column(leaf)
            if chunk.file_path is not None or not _may_mix(chunk):
                continue
            size += chunk.total_compressed_size
            if size > MOST_BYTES:
                return counts
            cipher = decryptor_of(metadata).chunk_cipher(chunk.chunk, group.ordinal, leaf)
            [stored_bytes] = source.walk([[chunk.byte_range]], authentic=chunk.is_encrypted)
            walker = PageWalker(stored_bytes, cipher, chunk.dictionary_page_offset is not None, properties)
            counts[leaf] += _has_late_indexes(walker, chunk.num_values)
    return +counts


def _may_mix(chunk: ColumnChunkMetaData) -> bool:
    """Return whether a chunk may have data pages of both kinds, according to the footer."""
    data_encodings = {stats.encoding for stats in chunk.encoding_stats if stats.page_type in fmt.DATA_PAGE_TYPES}
    encodings = data_encodings or {*chunk.encodings}
    return bool(encodings & DICTIONARY_ENCODINGS) and bool(encodings - DICTIONARY_ENCODINGS)


def _has_late_indexes(walker: PageWalker, num_values: int) -> bool:
    order = PageOrder()
    while num_values > 0 and (page := walker.next_page()) is not None:
        if page.is_data:
            if order.has_late_indexes(page.encoding):
                return True
            num_values -= page.num_values
    return False
