"""Pages of a column chunk from file to file: opened and sealed anew, their values neither decompressed nor decoded."""

from __future__ import annotations

from dataclasses import dataclass, field

from fastpq import format as fmt
from fastpq.codecs.checksum import crc32
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError, LimitError, ParquetError, UnsupportedError
from fastpq.io.sink import Sink
from fastpq.options import ReaderProperties

LARGEST_PAGE = 0x7FFFFFFF       # sizes in page headers are i32
_DATA_PAGES = (fmt.PageType.DATA_PAGE, fmt.PageType.DATA_PAGE_V2)
_SIGN_BIT = 1 << 31


@dataclass(slots=True)
class CopiedPages:
    """What was copied of a chunk.

    Attributes:
        dictionary_size: stored bytes of the dictionary page in its new place, header included; 0 where there is none.
        sizes: the same of each data page.
        places: offset in the old chunk and stored size there of each data page.
        rows: rows of each data page; None where only its levels tell.
        uncompressed_size: bytes of all pages before compression and encryption, with the headers as they are stored.
        counts: pages by type and encoding.
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
    """Copies the pages of one chunk.

    Args:
        stored: the bytes of the chunk from its first page, and perhaps some behind its last.
        opener, sealer: the ciphers of the chunk in its old and in its new place.
        is_repeated: whether the column has repetition levels.
        properties: for verify_checksums: of what no tag authenticates, a page that was altered must not get a new CRC-32.
    """

    def __init__(
        self, stored: memoryview, opener: ModuleCipher, sealer: ModuleCipher, is_repeated: bool, properties: ReaderProperties
    ) -> None:
        self._stored = stored
        self._opener, self._sealer = opener, sealer
        self._is_repeated = is_repeated
        self._verify_checksums = properties.verify_checksums
        self._position = 0
        self._copied = CopiedPages()

    def copy(self, size: int, num_values: int, expect_dictionary: bool, sink: Sink) -> CopiedPages:
        """Copy all pages.

        Args:
            size: bytes of the chunk as its metadata have it; old writers leave the dictionary page's header out.
            num_values: values of the chunk as its metadata have it.
            expect_dictionary: whether the metadata say that the first page is a dictionary page.
            sink: where to.

        Raises:
            FormatError: pages that break the specification or contradict the metadata.
            UnsupportedError: pages that are neither of data nor of a dictionary.
            TagVerificationError: a page was altered.
            CryptoError: an ordinal over 32767.
        """
        copied = self._copied
        try:
            while self._position < size or copied.num_values < num_values:
                self._copy_page(expect_dictionary and not copied.sizes and not copied.dictionary_size, sink)
        except ParquetError as error:
            error.at(page=len(copied.sizes))
            raise
        if copied.num_values != num_values:
            raise FormatError(f"the pages hold {copied.num_values} values where the metadata claim {num_values}")
        return copied

    def _copy_page(self, expect_dictionary: bool, sink: Sink) -> None:
        copied, ordinal, start = self._copied, len(self._copied.sizes), self._position
        header = self._open_header(expect_dictionary, ordinal)
        encoding, levels_size = _checked(header)
        is_dictionary = header.type == fmt.PageType.DICTIONARY_PAGE
        if is_dictionary and (copied.sizes or copied.dictionary_size):
            raise FormatError("a dictionary page that is not the first page", offset=start)
        body_module = ModuleType.DICTIONARY_PAGE if is_dictionary else ModuleType.DATA_PAGE
        header_module = ModuleType.DICTIONARY_PAGE_HEADER if is_dictionary else ModuleType.DATA_PAGE_HEADER
        plain = self._open_body(header, body_module, ordinal, levels_size)
        if levels_size > len(plain):
            raise FormatError(f"{levels_size} bytes of levels in a page that has {len(plain)}", offset=start)
        body = memoryview(self._sealer.seal_body(body_module, ordinal, plain, levels_size))
        if len(body) > LARGEST_PAGE:
            raise LimitError(f"a stored page of {len(body)} bytes: no page can be larger than {LARGEST_PAGE}")
        header.compressed_page_size = len(body)
        if header.crc is not None:
            crc = crc32(body)
            header.crc = crc - (_SIGN_BIT << 1) if crc & _SIGN_BIT else crc
        sealed = memoryview(self._sealer.seal(header_module, ordinal, fmt.encode(header)))
        sink.write(sealed)
        sink.write(body)
        self._count(header, encoding, start, len(sealed), len(sealed) + len(body))

    def _count(self, header: fmt.PageHeader, encoding: int, start: int, header_size: int, size: int) -> None:
        copied = self._copied
        copied.uncompressed_size += header_size + header.uncompressed_page_size
        key = header.type, encoding
        copied.counts[key] = copied.counts.get(key, 0) + 1
        if header.type == fmt.PageType.DICTIONARY_PAGE:
            copied.dictionary_size = size
            return
        copied.sizes.append(size)
        copied.places.append((start, self._position - start))
        first, second = header.data_page_header, header.data_page_header_v2
        if second is not None:
            copied.num_values += second.num_values
            copied.rows.append(second.num_rows)
        elif first is not None:
            copied.num_values += first.num_values
            copied.rows.append(None if self._is_repeated else first.num_values)

    def _open_header(self, expect_dictionary: bool, ordinal: int) -> fmt.PageHeader:
        rest = self._stored[self._position :]
        if not rest:
            raise FormatError("the chunk ends before its pages hold the values that the metadata claim", offset=self._position)
        plain, size, _ = self._opener.open_page_header(expect_dictionary, ordinal, rest)
        try:
            header, parsed = fmt.decode(fmt.PageHeader, plain)
        except FormatError as error:
            error.context["offset"] = self._position
            raise
        self._position += parsed if size < 0 else size
        return header

    def _open_body(self, header: fmt.PageHeader, module: ModuleType, ordinal: int, levels_size: int) -> memoryview:
        size = header.compressed_page_size + self._opener.uncounted
        left = len(self._stored) - self._position
        if size > left:
            raise FormatError(f"a page of {size} bytes in a chunk that has {left} left", offset=self._position)
        stored = self._stored[self._position : self._position + size]
        plain, authentic = self._opener.open_body(module, ordinal, stored, levels_size)
        if header.crc is not None and self._verify_checksums and not authentic and crc32(stored) != header.crc % (1 << 32):
            raise FormatError("the page's CRC-32 does not match", offset=self._position)
        self._position += size
        return memoryview(plain)


def _checked(header: fmt.PageHeader) -> tuple[int, int]:
    """The encoding of a page's values, and how many bytes of levels its body begins with where these are never compressed.

    Raises:
        FormatError: sizes or counts are negative, or the header of its type is missing.
        UnsupportedError: a page of another type.
    """
    pages: fmt.DataPageHeader | fmt.DataPageHeaderV2 | fmt.DictionaryPageHeader | None
    levels = [0, 0]
    if header.type == fmt.PageType.DATA_PAGE_V2:
        pages = second = header.data_page_header_v2
        if second is not None:
            levels = [second.repetition_levels_byte_length, second.definition_levels_byte_length]
    elif header.type == fmt.PageType.DATA_PAGE:
        pages = header.data_page_header
    elif header.type == fmt.PageType.DICTIONARY_PAGE:
        pages = header.dictionary_page_header
    else:
        raise UnsupportedError(f"copying a page of type {header.type!r}")
    if pages is None:
        raise FormatError(f"a page of type {header.type!r} without its header")
    if min(header.compressed_page_size, header.uncompressed_page_size, pages.num_values, *levels) < 0:
        raise FormatError("a page header with negative sizes")
    if sum(levels) > header.uncompressed_page_size:
        raise FormatError(f"{sum(levels)} bytes of levels in a page that has {header.uncompressed_page_size}")
    return pages.encoding, sum(levels)
