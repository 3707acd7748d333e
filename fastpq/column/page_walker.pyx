"""The one walk over the page headers of a column chunk.

Readers, copies and surveys of a chunk step from page to page here. A header is decrypted, parsed and checked against the bytes
left, the bounds of ReaderProperties and the offset index; the caller opens the body. Recovery without a footer searches headers
byte by byte and shares parse_page alone (README.md of parquet-format, "Data Pages").
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

# Largest header in bytes. Only absurd statistics make a larger one; the bound limits parsing where the null cipher cannot tell
# the end of a header.
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
    return FormatError("the page's CRC-32 does not match", page=page.ordinal, offset=page.body)


cdef class PageWalker:
    """Walks the pages of one column chunk; ``next_page`` is the step for Python.

    Args:
        chunk: the stored bytes of the chunk from its first page, as uint8 or as a StoredBytes; bytes of other chunks may follow.
        cipher: the ModuleCipher of the chunk.
        expect_dictionary: whether the metadata names a dictionary page as the first page. The AAD of an encrypted header
            depends on the answer (Encryption.md, 4.4); GcmModuleCipher also opens headers of wrong metadata.
        properties: ReaderProperties, for max_page_size, max_dictionary_size and verify_checksums.
        directory: int64, shape (pages, 4), where chunk holds a selection of the data pages behind the dictionary page: ordinal,
            stored size, values and rows of each page, -1 for unknown values or rows. The walk checks sizes and values;
            NestedReader checks rows.
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
        self.listed = -1
        if directory is not None:
            self.directory = directory
            self.listed = self.directory.shape[0]
            self.listed_start = self.size
            for page in range(self.listed):
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
        cdef int64_t known = 0
        if self.window_start <= position < self.window_end:
            known = min(size, self.window_end - position)
            memcpy(out, self.window.data + (position - self.window_start), <size_t>known)
        self.source.copy(self.base + position + known, out + known, size - known)
        return 0

    cdef int _slide(self, int64_t position, int64_t size) except -1 nogil:
        """Read the bytes of a range, and of the piece that begins with the range; bytes at hand are kept."""
        cdef int64_t wanted = min(max(size, self.piece), self.size - position), known = 0
        cdef const uint8_t* at_hand = self.window.data + (position - self.window_start)
        if self.window_start <= position < self.window_end:
            known = self.window_end - position
        if <size_t>wanted + 64 <= self.window.size:
            memmove(self.window.data, at_hand, <size_t>known)
        else:
            known = 0       # read again rather than copied into larger memory
            scratch_reserve(&self.window, <size_t>wanted)
        self.window_start = self.window_end = position
        self.source.copy(self.base + position + known, self.window.data + known, wanted - known)
        self.window_end = position + wanted
        return 0

    cdef bint step(self, StoredPage* page) except -1 nogil:
        cdef int64_t available, fault
        cdef bint dictionary = self.expect_dictionary
        self.ordinal = self.next_ordinal
        if self.position >= self.size:
            return False
        if self.next_listed < self.listed and not dictionary:
            self.ordinal = self.directory[self.next_listed, 0]      # pages before the page may be left out of the bytes
        available = self._header_size()
        fault = self._parse(available, &dictionary, page)
        while fault < 0 and fault != BODY_OVERRUN and available < min(self.size - self.position, HEADER_BOUND):
            available = min(self.size - self.position, 16 * available)      # a long header in the clear, or a broken one
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
        """Bytes to look at for the next header: all of the chunk in memory, or enough for almost every header."""
        cdef int64_t left = self.size - self.position
        cdef uint32_t framed
        if self.source is None:
            return left
        if self.cipher.overhead == 0 or left < <int64_t>sizeof(framed):
            return min(left, <int64_t>USUAL_HEADER)
        memcpy(&framed, self.at(self.position, sizeof(framed)), sizeof(framed))
        return min(left, <int64_t>sizeof(framed) + <int64_t>framed)

    cdef int64_t _parse(self, int64_t available, bint* dictionary, StoredPage* page) except? -100 nogil:
        """Open and parse the next header in the next available bytes, as parse_page."""
        cdef int64_t plain_size = 0, stored_size = 0
        cdef const uint8_t* plain = self.cipher.open_header(
            dictionary, <int>self.ordinal, self.at(self.position, available), available, &plain_size, &stored_size)
        return parse_page(
            plain, min(plain_size, HEADER_BOUND), stored_size, self.position, self.size, self.cipher.uncounted, page)

    cdef int _refuse(self, int64_t fault, const StoredPage* page) except -1 nogil:
        """Raise the error of a fault found by parse_page."""
        with gil:
            if fault == BODY_OVERRUN:
                raise FormatError(
                    f"a page of {page.body_size} bytes in a chunk that has {self.size - page.body} left",
                    page=self.ordinal, offset=page.body)
            text = "the page header is cut off" if fault == PAGE_HEADER_TRUNCATED else "no valid page header"
            raise FormatError(text, page=self.ordinal, offset=self.position)

    cdef int _check_bounds(self, const StoredPage* page) except -1 nogil:
        """Check the sizes of a page against the bounds of ReaderProperties."""
        cdef int64_t bound = min(self.max_page_size, self.max_dictionary_size) if page.is_dictionary else self.max_page_size
        if page.header.uncompressed_page_size > bound or page.body_size > self.max_page_size:
            with gil:
                name = "max_dictionary_size" if page.is_dictionary else "max_page_size"
                raise LimitError(
                    f"a page of {page.header.uncompressed_page_size} bytes ({page.body_size} stored) is over {name}",
                    page=self.ordinal, offset=page.body)
        return 0

    cdef int _check_listed(self, const StoredPage* page) except -1 nogil:
        """Check a data page against the next entry of the directory."""
        cdef int64_t size = self.position - page.start, listed_size, values
        if self.listed < 0:
            return 0
        if self.next_listed >= self.listed:
            with gil:
                raise FormatError("more data pages than the offset index has", offset=page.start)
        if self.next_listed == 0 and page.start != self.listed_start:
            with gil:
                raise FormatError("a data page before the first one that the offset index has", offset=page.start)
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
        """Values in the headers of the next data pages, until the values are enough."""
        cdef StoredPage page
        cdef int64_t found = 0
        while found < enough and self.step(&page):
            if page.is_data:
                found += page.header.num_values
        return found

    def count_values(self):
        """The number of values in the headers of all pages from here on.

        Raises:
            FormatError, LimitError, TagVerificationError, CryptoError: as ``next_page``.
        """
        cdef int64_t found
        with nogil:
            found = self._count(INT64_MAX)
        return found

    def require_values(self, int64_t count):
        """Check by the headers alone that the pages hold count values.

        Raises:
            FormatError: the pages hold fewer values; or as ``next_page``.
            LimitError, TagVerificationError, CryptoError: as ``next_page``.
        """
        cdef int64_t found
        with nogil:
            found = self._count(count)
        if found < count:
            raise FormatError(f"the pages hold {found} of the {count} values that the metadata claim")

    def locate_pages(self, int64_t count):
        """Find the data pages of count values by the headers alone, up to the first broken header.

        Args:
            count: values of the chunk; bytes behind the page of the last value belong to other chunks.

        Returns:
            The data pages, int64, shape (n, 4): position in the chunk, stored size with header, values, and rows (-1 for a V1
            header, without rows); and the ParquetError of the broken header, or None.
        """
        cdef StoredPage page
        cdef int64_t found = 0
        cdef list pages = []
        stopped = None
        try:
            while found < count and self.step(&page):
                if page.is_data:
                    found += page.header.num_values
                    rows = page.header.num_rows if page.header.type == TYPE_DATA_PAGE_V2 else -1
                    pages.append((page.start, self.position - page.start, page.header.num_values, rows))
        except ParquetError as error:
            stopped = error
        return np.array(pages, dtype=np.int64).reshape(-1, 4), stopped

    def next_page(self):
        """Step to the next page, of any type.

        Returns:
            A WalkedPage, or None at the end of the chunk.

        Raises:
            FormatError: the bytes are no page header, the body overruns the chunk, or the page contradicts the directory.
            LimitError: a size over max_page_size or max_dictionary_size.
            TagVerificationError: an altered header.
            CryptoError: an ordinal over 32767.
        """
        cdef WalkedPage page = WalkedPage.__new__(WalkedPage)
        if not self.step(&page.stored):
            return None
        page.header = PyBytes_FromStringAndSize(<const char*>page.stored.plain, page.stored.plain_size)
        if self.source is None:
            start = self.base + page.stored.body
            page.body = memoryview(self.owner)[start:start + page.stored.body_size]
        else:
            page.body = memoryview(PyBytes_FromStringAndSize(
                <const char*>self.at(page.stored.body, page.stored.body_size), page.stored.body_size))
        return page

    def verify_checksum(self, WalkedPage page not None):
        """Check the CRC-32 of a page body, where the header has one and verify_checksums is set.

        Args:
            page: a page of this walker.

        Raises:
            FormatError: another CRC-32.
            ValueError: a page of a longer chunk.
        """
        if page.stored.body + page.stored.body_size > self.size:
            raise ValueError("a page of another walker")
        # of the bytes at hand: a file may hold others by now
        if page.stored.header.has_crc and self.verify_checksums and crc32(page.body) != <uint32_t>page.stored.header.crc:
            raise wrong_checksum(&page.stored)


cdef class WalkedPage:
    """A stored page, for Python; made by ``PageWalker.next_page``.

    Attributes:
        header: the serialized PageHeader in the clear.
        body: the stored body, a memoryview.
        start, body_start: positions of the stored header and of the stored body in the chunk.
        size: stored bytes of header and body.
        ordinal: of the data page; of the next data page where the page is another.
        is_dictionary, is_data: whether the page is a dictionary page, or a data page of either version.
        type: PageType, or a number of the future.
        encoding, num_values: of a data or dictionary page.
        num_rows: rows of a data page V2; None for other pages.
        levels_size: bytes of levels at the start of a V2 body; 0 for other pages.
        uncompressed_size: bytes of the body before compression and encryption.
    """

    @property
    def start(self):
        return self.stored.start

    @property
    def body_start(self):
        return self.stored.body

    @property
    def size(self):
        return self.stored.body + self.stored.body_size - self.stored.start

    @property
    def ordinal(self):
        return self.stored.ordinal

    @property
    def is_dictionary(self):
        return self.stored.is_dictionary

    @property
    def is_data(self):
        return self.stored.is_data

    @property
    def type(self):
        return self.stored.header.type

    @property
    def encoding(self):
        return self.stored.header.encoding

    @property
    def num_values(self):
        return self.stored.header.num_values

    @property
    def num_rows(self):
        return self.stored.header.num_rows if self.stored.header.type == TYPE_DATA_PAGE_V2 else None

    @property
    def levels_size(self):
        return levels_size(&self.stored.header)

    @property
    def uncompressed_size(self):
        return self.stored.header.uncompressed_page_size
