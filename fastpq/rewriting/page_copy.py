"""Copies the pages in a column chunk. They are decrypted and encrypted again, but neither decompressed nor decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from fastpq import format as fmt
from fastpq.codecs.checksum import crc32
from fastpq.column.page_walker import PageWalker, WalkedPage
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError, LimitError, ParquetError, UnsupportedError
from fastpq.io.coalescing import Range
from fastpq.io.sink import Sink
from fastpq.io.source import Stored
from fastpq.options import ReaderProperties
from fastpq.read.page_errors import give_file_offset
from fastpq.rewriting.chunk_edits import ChunkEdit
from fastpq.rewriting.copied_chunk import CopiedPages

LARGEST_PAGE = 0x7FFFFFFF       # largest page size in bytes, because sizes in page headers are i32


class PageCopier:
    """Copies one chunk's pages. Size limits in ``properties`` do not apply.

    Args:
        chunk_bytes: the chunk's bytes from its first page on. Other chunks may follow.
        opener, sealer: the ciphers for the old and the new chunk.
        expect_dictionary: whether the metadata names a dictionary page as the first page.
        is_repeated: whether the column has repetition levels.
        properties: only ``verify_checksums`` is used. If it is off, an altered page without an authentication tag is copied with
            a new CRC-32 that fits the altered bytes.
        edit: what changes in the pages. If nothing changes, and checksums are verified, plaintext pages are copied byte for byte.
        ranges: where chunk_bytes stand in the file, as (offset, length). Errors name the offset in the file.
    """

    def __init__(
        self,
        chunk_bytes: Stored,
        opener: ModuleCipher,
        sealer: ModuleCipher,
        expect_dictionary: bool,
        is_repeated: bool,
        properties: ReaderProperties,
        edit: ChunkEdit,
        ranges: Sequence[Range],
    ) -> None:
        self._ranges = ranges
        self._edit = edit
        is_plaintext = not opener.overhead and not sealer.overhead
        self._is_verbatim = is_plaintext and not edit.changes_pages and properties.verify_checksums
        self._walker = PageWalker(chunk_bytes, opener, expect_dictionary, _without_page_limits(properties))
        self._opener, self._sealer = opener, sealer
        self._is_repeated = is_repeated
        self._pages = CopiedPages()

    def copy(self, size: int, num_values: int, sink: Sink) -> CopiedPages:
        """Copy all pages.

        Args:
            size: the chunk's size in bytes, according to its metadata. Old writers do not count the dictionary page's header.
            num_values: the chunk's value count, according to its metadata.
            sink: the new file.

        Raises:
            FormatError: the pages break the specification, or contradict the metadata.
            UnsupportedError: a page is neither a data page nor a dictionary page.
            TagVerificationError: a page was altered.
            CryptoError: an ordinal is over 32767.
        """
        pages = self._pages
        try:
            while pages.num_values < num_values:
                self._copy_page(sink, self._next_page())
            while self._walker.position < size and (page := self._page_after_values()) is not None:
                self._copy_page(sink, page)
        except ParquetError as error:
            give_file_offset(error, self._ranges)
            error.at(page=len(pages.sizes))
            raise
        if pages.num_values != num_values:
            raise FormatError(f"the pages hold {pages.num_values} values, but the metadata say {num_values}")
        return pages

    def _page_after_values(self) -> WalkedPage | None:
        """Return the next page in a chunk whose values are all copied. None for plaintext bytes that are not a page."""
        try:
            return self._next_page()
        except FormatError:
            if self._opener.overhead:
                raise
            return None

    def _copy_page(self, sink: Sink, page: WalkedPage) -> None:
        if self._is_verbatim:
            self._walker.verify_checksum(page)
            sink.write_together((page.header, page.body))
            self._count(page, len(page.header), page.size)
            return
        body_module = ModuleType.DICTIONARY_PAGE if page.is_dictionary else ModuleType.DATA_PAGE
        header_module = ModuleType.DICTIONARY_PAGE_HEADER if page.is_dictionary else ModuleType.DATA_PAGE_HEADER
        plain = self._open_body(page, body_module)
        page_header = _header_of(page)
        plain = self._edit.edit_page(page_header, plain, page.levels_size)
        body = memoryview(self._sealer.seal_body(body_module, page.ordinal, plain, page.levels_size))
        if len(body) > LARGEST_PAGE:
            raise LimitError(f"a stored page of {len(body)} bytes: no page can be larger than {LARGEST_PAGE}")
        header = memoryview(self._sealer.seal(header_module, page.ordinal, _encoded(page_header, body, self._sealer.uncounted)))
        sink.write_together((header, body))
        self._count(page, len(header), len(header) + len(body))

    def _next_page(self) -> WalkedPage:
        page = self._walker.next_page()
        if page is None:
            raise FormatError(
                "the chunk ends before its pages hold all values of its metadata",
                page=len(self._pages.sizes),
                offset=self._walker.position,
            )
        if not (page.is_data or page.is_dictionary):
            raise UnsupportedError(f"pages of type {page.type} cannot be copied", page=page.ordinal, offset=page.start)
        if page.is_dictionary and page.start:
            raise FormatError("a dictionary page that is not the first page", page=page.ordinal, offset=page.start)
        return page

    def _open_body(self, page: WalkedPage, module: ModuleType) -> memoryview:
        opened_body, is_authentic = self._opener.open_body(module, page.ordinal, page.body, page.levels_size)
        if not is_authentic:
            self._walker.verify_checksum(page)
        plain = memoryview(opened_body)
        size = min(len(plain), page.uncompressed_size)
        if page.levels_size > size:
            message = f"{page.levels_size} bytes of levels in a page that has {size}"
            raise FormatError(message, page=page.ordinal, offset=page.start)
        return plain

    def _count(self, page: WalkedPage, header_size: int, size: int) -> None:
        pages = self._pages
        pages.uncompressed_size += header_size + page.uncompressed_size
        key = page.type, page.encoding
        pages.counts[key] = pages.counts.get(key, 0) + 1
        if page.is_dictionary:
            pages.dictionary_size = size
            return
        pages.sizes.append(size)
        pages.places.append((page.start, page.size))
        pages.value_counts.append(page.num_values)
        pages.num_values += page.num_values
        if page.num_rows is not None:
            pages.rows.append(page.num_rows)
        else:
            pages.rows.append(None if self._is_repeated else page.num_values)


@lru_cache(maxsize=1)       # all chunks of a file have the same properties
def _without_page_limits(properties: ReaderProperties) -> ReaderProperties:
    return replace(properties, max_page_size=LARGEST_PAGE, max_dictionary_size=LARGEST_PAGE)


def _header_of(page: WalkedPage) -> fmt.PageHeader:
    try:
        header, _ = fmt.decode(fmt.PageHeader, page.header)
    except FormatError as error:
        error.context["offset"] = page.start
        raise
    return header


def _encoded(header: fmt.PageHeader, body: memoryview, uncounted: int) -> bytes:
    """Return a page's serialized header for a new stored body. Fields that fastpq does not know stay.

    Args:
        header: the header, which is changed.
        body: the body.
        uncounted: how many bytes of the body the header does not count, as for ModuleCipher.
    """
    header.compressed_page_size = len(body) - uncounted
    if header.crc is not None:
        header.crc = int.from_bytes(crc32(body).to_bytes(4, "little"), "little", signed=True)
    return fmt.encode(header)
