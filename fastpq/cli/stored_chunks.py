"""Pages and dictionaries of column chunks as they are stored_bytes, decrypted where the user has the key.

The public interface has no page headers. This module reaches them through the reader's own parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from fastpq import format as fmt
from fastpq.column.page_walker import PageWalker
from fastpq.errors import FormatError, ParquetError
from fastpq.metadata.file_metadata import decryptor_of
from fastpq.read.page_errors import give_file_offset
from fastpq.read.plan import plan_read

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.read.chunk_plan import ChunkPlan
    from fastpq.schema.parquet_schema import ColumnDescriptor


class StoredPage(NamedTuple):
    """One page of a column chunk.

    Attributes:
        kind: ``dictionary``, ``data`` or ``data v2``.
        offset: offset of the page header in the file, in bytes.
        stored_size: bytes in the file, header included.
        decoded_size: bytes of the page before compression, header not included.
        encoding: number of the encoding of the values.
        num_values: values in the page, nulls included.
        num_rows: rows in the page, or None if only the levels tell.
        has_checksum: whether the header has a CRC-32.
    """

    kind: str
    offset: int
    stored_size: int
    decoded_size: int
    encoding: int
    num_values: int
    num_rows: int | None
    has_checksum: bool


_KINDS: dict[int, str] = {
    fmt.PageType.DATA_PAGE: "data",
    fmt.PageType.DICTIONARY_PAGE: "dictionary",
    fmt.PageType.DATA_PAGE_V2: "data v2",
}


def stored_pages(file: ParquetFile, row_group: int, column: ColumnDescriptor) -> Iterator[StoredPage]:
    """Yield the pages of a column chunk. Their bodies are passed over.

    Raises:
        FormatError: a page header is broken.
        KeyAccessError, TagVerificationError: the chunk is encrypted and cannot be opened.
    """
    chunk = _plan(file, row_group, column)
    if chunk is None:
        return
    source = file._file.source
    cipher = decryptor_of(file.metadata).chunk_cipher(chunk.metadata.chunk, chunk.metadata.row_group_ordinal, column.index)
    start, size = chunk.metadata.byte_range
    [stored_bytes] = source.walk([chunk.ranges], authentic=chunk.metadata.is_encrypted)
    walker = PageWalker(stored_bytes, cipher, chunk.metadata.dictionary_page_offset is not None, file._file.properties)
    num_values = 0
    while walker.position < size and num_values < chunk.metadata.num_values:
        try:
            page = walker.next_page()
        except ParquetError as error:
            give_file_offset(error, chunk.ranges)
            error.at(column=column.name, row_group=row_group)
            raise
        if page is None:
            return
        header = fmt.decode(fmt.PageHeader, page.header)[0]
        yield StoredPage(
            _KINDS.get(page.type, f"type {page.type}"),
            start + page.start,
            page.size,
            page.uncompressed_size,
            page.encoding,
            page.num_values,
            page.num_rows,
            header.crc is not None,
        )
        num_values += page.num_values if page.is_data else 0


def stored_dictionary(file: ParquetFile, row_group: int, column: ColumnDescriptor) -> Any:
    """Return the values in a chunk's dictionary page as a Column, or None if the chunk has no dictionary page.

    Raises:
        FormatError, UnsupportedError, CryptoError: the page cannot be read.
    """
    from fastpq.read.flat import leaf_column

    chunk = _plan(file, row_group, column)
    if chunk is None:
        return None
    offset = chunk.metadata.dictionary_page_offset
    if offset is None:
        return None
    size = chunk.metadata.data_page_offset - offset
    if size <= 0:
        raise FormatError("the dictionary page stands behind the data pages", column=column.name, row_group=row_group)
    opener = file._file.opener([column], "views")
    stored_bytes = opener.source.read(offset, size)
    with opener.placed(chunk):
        page = opener.flat(chunk, stored_bytes).dictionary()
    return leaf_column(opener, opener.type_of(column), page.values, page.buffers, (None, 0), False)


def _plan(file: ParquetFile, row_group: int, column: ColumnDescriptor) -> ChunkPlan | None:
    """Return the plan for a whole chunk, or None for a row group without rows."""
    plans = plan_read(file.metadata, [column], [row_group], file._file.source.size).chunks
    return plans[0] if plans else None
