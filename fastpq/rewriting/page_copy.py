"""Pages of a column chunk from file to file: decrypted and encrypted again, neither decompressed nor decoded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fastpq import format as fmt
from fastpq.codecs.checksum import crc32
from fastpq.column.page_walker import PageWalker, WalkedPage
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError, LimitError, ParquetError, UnsupportedError
from fastpq.io.sink import Sink
from fastpq.io.source import Stored
from fastpq.options import ReaderProperties

LARGEST_PAGE = 0x7FFFFFFF       # sizes in page headers are i32
_SIGN_BIT = 1 << 31


@dataclass(slots=True)
class CopiedPages:
    """Places and counts of the copied pages of a chunk.

    Attributes:
        dictionary_size: stored bytes of the copied dictionary page, header included; 0 without a dictionary page.
        sizes: stored bytes of each copied data page, header included.
        places: of each data page, position and stored bytes in the old chunk.
        rows: rows of each data page; None where only the levels of the page tell.
        num_values: values of all data pages.
        uncompressed_size: bytes of all page bodies before compression and encryption, and of all stored headers.
        counts: number of pages by type and encoding.
    """

    dictionary_size: int = 0
    sizes: list[int] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    rows: list[int | None] = field(default_factory=list)
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


class PageCopier:
    """Copies the pages of one chunk, of any size.

    Args:
        stored: the bytes of the chunk from its first page; bytes of other chunks may follow.
        opener, sealer: the ciphers of the old and of the new chunk.
        expect_dictionary: whether the metadata names a dictionary page as the first page.
        is_repeated: whether the column has repetition levels.
        properties: for verify_checksums. Without the check, an altered page that no tag authenticates gets a new, valid CRC-32.
    """

    def __init__(
        self,
        stored: Stored,
        opener: ModuleCipher,
        sealer: ModuleCipher,
        expect_dictionary: bool,
        is_repeated: bool,
        properties: ReaderProperties,
    ) -> None:
        unbounded = replace(properties, max_page_size=LARGEST_PAGE, max_dictionary_size=LARGEST_PAGE)
        self._walker = PageWalker(stored, opener, expect_dictionary, unbounded)
        self._opener, self._sealer = opener, sealer
        self._is_repeated = is_repeated
        self._copied = CopiedPages()

    def copy(self, size: int, num_values: int, sink: Sink) -> CopiedPages:
        """Copy all pages.

        Args:
            size: bytes of the chunk by its metadata; old writers leave out the header of the dictionary page.
            num_values: values of the chunk by its metadata.
            sink: the new file.

        Raises:
            FormatError: pages break the specification or contradict the metadata.
            UnsupportedError: a page is neither a data page nor a dictionary page.
            TagVerificationError: an altered page.
            CryptoError: an ordinal over 32767.
        """
        copied = self._copied
        try:
            while copied.num_values < num_values:
                self._copy_page(sink, self._next_page())
            while self._walker.position < size and (page := self._page_behind_values()) is not None:
                self._copy_page(sink, page)
        except ParquetError as error:
            error.at(page=len(copied.sizes))
            raise
        if copied.num_values != num_values:
            raise FormatError(f"the pages hold {copied.num_values} values where the metadata claim {num_values}")
        return copied

    def _page_behind_values(self) -> WalkedPage | None:
        """The next page of a chunk whose values are all copied; None for plaintext bytes other than a page, read by nobody."""
        try:
            return self._next_page()
        except FormatError:
            if self._opener.overhead:
                raise
            return None

    def _copy_page(self, sink: Sink, page: WalkedPage) -> None:
        body_module = ModuleType.DICTIONARY_PAGE if page.is_dictionary else ModuleType.DATA_PAGE
        header_module = ModuleType.DICTIONARY_PAGE_HEADER if page.is_dictionary else ModuleType.DATA_PAGE_HEADER
        plain = self._open_body(page, body_module)
        body = memoryview(self._sealer.seal_body(body_module, page.ordinal, plain, page.levels_size))
        if len(body) > LARGEST_PAGE:
            raise LimitError(f"a stored page of {len(body)} bytes: no page can be larger than {LARGEST_PAGE}")
        sealed = memoryview(self._sealer.seal(header_module, page.ordinal, _header_of(page, body)))
        sink.write(sealed)
        sink.write(body)
        self._count(page, len(sealed), len(sealed) + len(body))

    def _next_page(self) -> WalkedPage:
        page = self._walker.next_page()
        if page is None:
            raise FormatError(
                "the chunk ends before its pages hold the values that the metadata claim", offset=self._walker.position
            )
        if not (page.is_data or page.is_dictionary):
            raise UnsupportedError(f"copying a page of type {page.type}", offset=page.start)
        if page.is_dictionary and page.start:
            raise FormatError("a dictionary page that is not the first page", offset=page.start)
        return page

    def _open_body(self, page: WalkedPage, module: ModuleType) -> memoryview:
        opened, authentic = self._opener.open_body(module, page.ordinal, page.body, page.levels_size)
        if not authentic:
            self._walker.verify_checksum(page)
        plain = memoryview(opened)
        room = min(len(plain), page.uncompressed_size)
        if page.levels_size > room:
            raise FormatError(f"{page.levels_size} bytes of levels in a page that has {room}", offset=page.body_start)
        return plain

    def _count(self, page: WalkedPage, header_size: int, size: int) -> None:
        copied = self._copied
        copied.uncompressed_size += header_size + page.uncompressed_size
        key = page.type, page.encoding
        copied.counts[key] = copied.counts.get(key, 0) + 1
        if page.is_dictionary:
            copied.dictionary_size = size
            return
        copied.sizes.append(size)
        copied.places.append((page.start, page.size))
        copied.num_values += page.num_values
        if page.num_rows is not None:
            copied.rows.append(page.num_rows)
        else:
            copied.rows.append(None if self._is_repeated else page.num_values)


def _header_of(page: WalkedPage, body: memoryview) -> bytes:
    """The serialized header of a page with a new stored body; members unknown to fastpq stay."""
    try:
        header, _ = fmt.decode(fmt.PageHeader, page.header)
    except FormatError as error:
        error.context["offset"] = page.start
        raise
    header.compressed_page_size = len(body)
    if header.crc is not None:
        crc = crc32(body)
        header.crc = crc - (_SIGN_BIT << 1) if crc & _SIGN_BIT else crc
    return fmt.encode(header)
