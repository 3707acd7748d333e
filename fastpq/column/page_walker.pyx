"""Steps from page header to page header in a column chunk (README.md of parquet-format, "Data Pages").

All code that reads, copies or surveys a chunk uses a PageWalker. It decrypts and parses a header, and checks it against the chunk
size, the bounds in ReaderProperties and the offset index. The caller opens the body. There is one exception: recovery without a
footer searches for headers byte by byte, and calls parse_page.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memmove

import numpy as np

from fastpq.codecs.checksum cimport crc32_of
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.page_header cimport (
    PAGE_HEADER_TRUNCATED, TYPE_DATA_PAGE, TYPE_DATA_PAGE_V2, TYPE_DICTIONARY_PAGE, levels_size, read_page_header,
)
from fastpq.io.origin cimport StoredBytes

from fastpq.codecs.checksum import crc32
from fastpq.errors import FormatError, LimitError, ParquetError

# Largest size of a header, in bytes. Only absurd statistics make a larger one. The null cipher does not know where a header ends,
# so this bound limits how much is parsed.
cdef int64_t HEADER_BOUND = 16 << 20


cdef int64_t parse_page(const uint8_t* plain, int64_t plain_size, int64_t stored_size, int64_t start, int64_t end,
                        int64_t uncounted, StoredPage* page) noexcept nogil:
    cdef int64_t parsed = read_page_header(plain, <size_t>plain_size, &page.header, &page.plain_size)
    if parsed < 0:
        return parsed
    page.plain = plain
    page.start = start
    page.body = start + (parsed if stored_size < 0 else stored_size)
    page.body_size = page.header.compressed_page_size + uncounted
    page.is_data = page.header.type == TYPE_DATA_PAGE or page.header.type == TYPE_DATA_PAGE_V2
    page.is_dictionary = page.header.type == TYPE_DICTIONARY_PAGE
    return BODY_OVERRUN if page.body_size > end - page.body else 0


cdef int has_own_crc(const uint8_t* body, const StoredPage* page) except -1 nogil:
    return crc32_of(body, page.body_size) == <uint32_t>page.header.crc


cdef object wrong_checksum(const StoredPage* page):
    return FormatError("the page's CRC-32 does not match", page=page.ordinal, offset=page.start)


cdef class PageWalker:
    """Steps over the pages in one column chunk. Python calls ``next_page`` for a step.

    Args:
        chunk: the chunk's stored bytes from its first page on, as uint8 or as a StoredBytes. Other chunks may follow.
        cipher: the chunk's ModuleCipher.
        expect_dictionary: whether the first page is a dictionary page according to the metadata. An encrypted header's AAD
            depends on it (Encryption.md, 4.4). GcmModuleCipher also opens the header if the metadata are wrong.
        properties: ReaderProperties, for max_page_size, max_dictionary_size and verify_checksums.
        directory: lists the data pages behind the dictionary page, if chunk does not have all of them. It is int64, shape
            (pages, 4): each page's ordinal, stored size, value count and row count. An unknown count is -1. The walker checks
            sizes and value counts, and NestedReader checks row counts.
    """

    def __init__(self, chunk, ModuleCipher cipher not None, bint expect_dictionary, object properties, object directory=None):
        cdef int64_t page
        cdef const uint8_t[::1] view
        if isinstance(chunk, StoredBytes):
            self.source = chunk
            self.size = self.source.size
        else:
            view = chunk
            self.owner = chunk if isinstance(chunk, np.ndarray) else np.frombuffer(chunk, np.uint8)
            self.size = view.shape[0]
            self.data = &view[0] if self.size else NULL
        self.piece = PIECE
        self.cipher = cipher
        self.expect_dictionary = expect_dictionary
        self.verify_checksums = properties.verify_checksums
        self.max_page_size = properties.max_page_size
        self.max_dictionary_size = properties.max_dictionary_size
        self.listed_pages = -1
        if directory is not None:
            self.directory = directory
            self.listed_pages = self.directory.shape[0]
            self.listed_start = self.size
            for page in range(self.listed_pages):
                self.listed_start -= self.directory[page, 1]

    def __dealloc__(self):
        scratch_free(&self.window)

    cdef void move_to(self, int64_t base, int64_t size, bint expect_dictionary) noexcept nogil:
        self.base = base
        self.size = size
        self.expect_dictionary = expect_dictionary
        self.position = self.ordinal = self.next_ordinal = 0
        self.window_start = self.window_end = 0

    cdef const uint8_t* at(self, int64_t position, int64_t size) except NULL nogil:
        if self.source is None:
            return self.data + self.base + position
        if position < self.window_start or position + size > self.window_end or self.window.data == NULL:
            self._slide(position, size)
        return self.window.data + (position - self.window_start)

    cdef int copy_to(self, int64_t position, int64_t size, uint8_t* out) except -1 nogil:
        cdef int64_t at_hand = 0
        if self.window_start <= position < self.window_end:
            at_hand = min(size, self.window_end - position)
            memcpy(out, self.window.data + (position - self.window_start), <size_t>at_hand)
        self.source.copy(self.base + position + at_hand, out + at_hand, size - at_hand)
        return 0

    cdef int _slide(self, int64_t position, int64_t size) except -1 nogil:
        """Read a byte range, and more bytes behind it to fill a piece. Bytes in the last piece are not read again."""
        cdef int64_t requested_size = min(max(size, self.piece), self.size - position), kept_size = 0
        cdef const uint8_t* kept_bytes = self.window.data + (position - self.window_start)
        if self.window_start <= position < self.window_end:
            kept_size = self.window_end - position
        if <size_t>requested_size + 64 <= self.window.size:
            memmove(self.window.data, kept_bytes, <size_t>kept_size)
        else:
            kept_size = 0       # the memory must grow, and bytes are then read again, not copied
            scratch_reserve(&self.window, <size_t>requested_size)
        self.window_start = self.window_end = position
        self.source.copy(self.base + position + kept_size, self.window.data + kept_size, requested_size - kept_size)
        self.window_end = position + requested_size
        return 0

    cdef bint step(self, StoredPage* page) except -1 nogil:
        cdef int64_t available, fault
        cdef bint dictionary = self.expect_dictionary
        self.ordinal = self.next_ordinal
        if self.position >= self.size:
            return False
        if self.next_listed < self.listed_pages and not dictionary:
            self.ordinal = self.directory[self.next_listed, 0]      # the bytes may lack pages before this one
        available = self._header_size()
        fault = self._parse(available, &dictionary, page)
        while fault < 0 and fault != BODY_OVERRUN and available < min(self.size - self.position, HEADER_BOUND):
            available = min(self.size - self.position, 16 * available)      # a long unencrypted header, or a broken one
            dictionary = self.expect_dictionary
            fault = self._parse(available, &dictionary, page)
        if fault < 0:
            self._refuse(fault, page)
        self._check_bounds(page)
        page.ordinal = self.ordinal
        self.position = page.body + page.body_size
        if page.is_data:
            self._check_listed(page)
            self.next_ordinal = self.ordinal + 1
        if page.is_data or page.is_dictionary:
            self.expect_dictionary = False
        return True

    cdef int64_t _header_size(self) except -1 nogil:
        """Return how many bytes to parse for the next header: all bytes in memory, or enough for almost every header."""
        cdef int64_t remaining = self.size - self.position
        cdef uint32_t framed_size
        if self.source is None:
            return remaining
        if self.cipher.overhead == 0 or remaining < <int64_t>sizeof(framed_size):
            return min(remaining, <int64_t>USUAL_HEADER)
        memcpy(&framed_size, self.at(self.position, sizeof(framed_size)), sizeof(framed_size))
        return min(remaining, <int64_t>sizeof(framed_size) + <int64_t>framed_size)

    cdef int64_t _parse(self, int64_t available, bint* dictionary, StoredPage* page) except? -100 nogil:
        """Decrypt and parse the header that starts the next available bytes. Returns 0 or a fault, like parse_page."""
        cdef int64_t plain_size = 0, stored_size = 0
        cdef const uint8_t* plain = self.cipher.open_header(
            dictionary, <int>self.ordinal, self.at(self.position, available), available, &plain_size, &stored_size)
        return parse_page(
            plain, min(plain_size, HEADER_BOUND), stored_size, self.position, self.size, self.cipher.uncounted, page)

    cdef int _refuse(self, int64_t fault, const StoredPage* page) except -1 nogil:
        """Raise the error for a fault that parse_page returned."""
        with gil:
            if fault == BODY_OVERRUN:
                raise FormatError(
                    f"a page of {page.body_size} bytes in a chunk that has {self.size - page.body} left",
                    page=self.ordinal, offset=page.start)
            text = "the page header is cut off" if fault == PAGE_HEADER_TRUNCATED else "no valid page header"
            raise FormatError(text, page=self.ordinal, offset=self.position)

    cdef int _check_bounds(self, const StoredPage* page) except -1 nogil:
        """Check a page's sizes against the bounds in ReaderProperties."""
        cdef int64_t bound = min(self.max_page_size, self.max_dictionary_size) if page.is_dictionary else self.max_page_size
        if page.header.uncompressed_page_size > bound or page.body_size > self.max_page_size:
            with gil:
                name = "max_dictionary_size" if page.is_dictionary else "max_page_size"
                raise LimitError(
                    f"a page of {page.header.uncompressed_page_size} bytes ({page.body_size} stored) is over {name}",
                    page=self.ordinal, offset=page.start)
        return 0

    cdef int _check_listed(self, const StoredPage* page) except -1 nogil:
        """Check a data page against the next directory entry."""
        cdef int64_t size = self.position - page.start, listed_size, values
        if self.listed_pages < 0:
            return 0
        if self.next_listed >= self.listed_pages:
            with gil:
                raise FormatError("more data pages than the offset index has", page=self.ordinal, offset=page.start)
        if self.next_listed == 0 and page.start != self.listed_start:
            with gil:
                raise FormatError("a data page before the first one that the offset index has", page=self.ordinal,
                                  offset=page.start)
        listed_size = self.directory[self.next_listed, 1]
        values = self.directory[self.next_listed, 2]
        if size != listed_size or (values >= 0 and page.header.num_values != values):
            with gil:
                raise FormatError(
                    f"a page of {page.header.num_values} values in {size} bytes where the offset index has {values} in "
                    f"{listed_size}", page=self.directory[self.next_listed, 0])
        self.next_listed += 1
        return 0

    cdef int check_crc(self, const StoredPage* page, const uint8_t* body) except -1 nogil:
        if self._checks_crc(page) and not has_own_crc(body, page):
            with gil:
                raise wrong_checksum(page)
        return 0

    cdef bint _checks_crc(self, const StoredPage* page) noexcept nogil:
        return page.header.has_crc and self.verify_checksums

    cdef int64_t _count(self, int64_t enough) except -1 nogil:
        """Count the values in the next data pages, as their headers say. Stop as soon as there are enough."""
        cdef StoredPage page
        cdef int64_t values = 0
        while values < enough and self.step(&page):
            if page.is_data:
                values += page.header.num_values
        return values

    def count_values(self):
        """Count the values in all further pages, as their headers say.

        Raises:
            FormatError, LimitError, TagVerificationError, CryptoError: as ``next_page``.
        """
        cdef int64_t values
        with nogil:
            values = self._count(INT64_MAX)
        return values

    def require_values(self, int64_t count):
        """Check that the pages hold count values, according to their headers.

        Raises:
            FormatError: the pages hold fewer values, or a reason that ``next_page`` has.
            LimitError, TagVerificationError, CryptoError: as ``next_page``.
        """
        cdef int64_t values
        with nogil:
            values = self._count(count)
        if values < count:
            raise FormatError(f"the pages hold {values} of the {count} values that the metadata claim")

    def locate_pages(self, int64_t count):
        """Find the data pages that hold count values, by their headers. Stop at the first broken header.

        Args:
            count: how many values the chunk has. Bytes behind the page with the last value belong to other chunks.

        Returns:
            The data pages: int64, shape (n, 4), with the position in the chunk, the stored size with the header, the value count,
            and the row count (-1 for V1 pages, whose headers do not have it). Then the broken header's ParquetError, or None.
        """
        cdef StoredPage page
        cdef int64_t values = 0
        cdef list pages = []
        header_error = None
        try:
            while values < count and self.step(&page):
                if page.is_data:
                    values += page.header.num_values
                    rows = page.header.num_rows if page.header.type == TYPE_DATA_PAGE_V2 else -1
                    pages.append((page.start, self.position - page.start, page.header.num_values, rows))
        except ParquetError as error:
            header_error = error
        return np.array(pages, dtype=np.int64).reshape(-1, 4), header_error

    def next_page(self):
        """Step to the next page, whatever its type.

        Returns:
            A WalkedPage, or None at the chunk's end.

        Raises:
            FormatError: the bytes are not a page header, the body overruns the chunk, or the page contradicts the directory.
            LimitError: a size is over max_page_size or max_dictionary_size.
            TagVerificationError: the header was altered.
            CryptoError: the ordinal is over 32767.
        """
        cdef WalkedPage page = WalkedPage.__new__(WalkedPage)
        if not self.step(&page.stored):
            return None
        page.start, page.body_start = page.stored.start, page.stored.body
        page.size = page.stored.body + page.stored.body_size - page.stored.start
        page.ordinal = page.stored.ordinal
        page.is_dictionary, page.is_data = page.stored.is_dictionary, page.stored.is_data
        page.type = page.stored.header.type
        page.encoding, page.num_values = page.stored.header.encoding, page.stored.header.num_values
        page.num_rows = page.stored.header.num_rows if page.type == TYPE_DATA_PAGE_V2 else None
        page.levels_size = levels_size(&page.stored.header)
        page.uncompressed_size = page.stored.header.uncompressed_page_size
        page.header = PyBytes_FromStringAndSize(<const char*>page.stored.plain, page.stored.plain_size)
        if self.source is None:
            start = self.base + page.stored.body
            page.body = memoryview(self.owner)[start:start + page.stored.body_size]
        else:
            page.body = memoryview(PyBytes_FromStringAndSize(
                <const char*>self.at(page.stored.body, page.stored.body_size), page.stored.body_size))
        return page

    def verify_checksum(self, WalkedPage page not None):
        """Check a page body against the header's CRC-32, if the header has one and verify_checksums is set.

        Args:
            page: a page that this walker returned.

        Raises:
            FormatError: the body has another CRC-32.
            ValueError: the page is from a longer chunk.
        """
        if page.stored.body + page.stored.body_size > self.size:
            raise ValueError("a page of another walker")
        # page.body is checked, not the file, because the file may have changed
        if page.stored.header.has_crc and self.verify_checksums and crc32(page.body) != <uint32_t>page.stored.header.crc:
            raise wrong_checksum(&page.stored)


cdef class WalkedPage:
    """A stored page, for Python. ``PageWalker.next_page`` returns it.

    Attributes:
        header: the decrypted PageHeader, serialized.
        body: the stored body, a memoryview.
        start, body_start: where the stored header and the stored body start in the chunk.
        size: stored bytes in header and body.
        ordinal: the data page's number; for another page, the next data page's number.
        is_dictionary, is_data: whether the page is a dictionary page, or a data page (V1 or V2).
        type: the PageType's number. fastpq may not know the type.
        encoding, num_values: the encoding and the value count. Only data and dictionary pages have them.
        num_rows: row count for a V2 data page; None for other pages.
        levels_size: bytes of levels at the start of a V2 body; 0 for other pages.
        uncompressed_size: bytes in the body before compression and encryption.
    """
