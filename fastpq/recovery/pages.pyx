"""Search for pages in a plaintext file by their headers alone, without a footer that tells their places.

PageWalker trusts a chunk: a page begins where the page before it ends, and a broken header is an error. The search here trusts no
byte: a page may begin anywhere, and most bytes that look like a header are not one. So the search has its own loop and its own
plausibility tests. It uses fastpq.column.page_walker to parse a header, place the body and compute the CRC-32.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr

import numpy as np

from fastpq.column.page_walker cimport BODY_OVERRUN, StoredPage, has_own_crc, parse_page
from fastpq.encodings.encoding_table cimport decoder_of
from fastpq.format.page_header cimport (
    PAGE_HEADER_INVALID, TYPE_DATA_PAGE, TYPE_DATA_PAGE_V2, TYPE_DICTIONARY_PAGE, levels_size,
)

from fastpq.errors import LimitError

cdef enum:
    NEXT_I32 = 0x15             # compact protocol: an i32 field whose id is one above the last, as fields 1 to 3 in a header are
    HEADER_BOUND = 1 << 16      # largest header in bytes, with room for long statistics
    MOST_EFFORT = 8             # bytes that may be parsed in vain, as a multiple of the file's size


def find_pages(const uint8_t[::1] data not None, int64_t start, bint checksums):
    """Find the data pages and dictionary pages in a plaintext file.

    Args:
        data: uint8, the file's bytes.
        start: position of the first byte to search.
        checksums: whether to refuse a page if the CRC-32 in its header does not match its body.

    Returns:
        int64, shape (pages, 9), ascending: position, stored size with header, type, value count, encoding, row count (-1 if the
        header has none), body size, size of the body's leading bytes that are never compressed, and uncompressed size. Sizes are
        in bytes.

    Raises:
        LimitError: too many bytes look like page headers, but are not.
    """
    cdef int64_t position = start, size = data.shape[0]
    cdef int64_t effort = MOST_EFFORT * size
    cdef const uint8_t* base = &data[0] if size else NULL
    cdef StoredPage page
    cdef list pages = []
    while find_page(base, size, position, checksums, &effort, &page):
        pages.append(row_of(&page))
        position = page.body + page.body_size
    return np.array(pages, dtype=np.int64).reshape(-1, 9)


cdef bint find_page(const uint8_t* base, int64_t size, int64_t position, bint checksums, int64_t* effort,
                    StoredPage* page) except -1:
    """Find the first page from position on. Return False if there is none."""
    cdef const uint8_t* match
    cdef bint is_page
    with nogil:
        while position < size:
            match = <const uint8_t*>memchr(base + position, NEXT_I32, <size_t>(size - position))
            if match == NULL:
                return False
            position = match - base
            is_page = parse_candidate(base, position, size, page, effort) == 0 and is_plausible(page)
            if is_page and page.header.has_crc and checksums:
                is_page = has_own_crc(base + page.body, page)
                effort[0] -= 0 if is_page else page.body_size
            if effort[0] < 0:
                with gil:
                    raise LimitError("the search for pages was given up: too much of the file looks like pages, but is not")
            if is_page:
                return True
            position += 1
    return False


cdef int64_t parse_candidate(const uint8_t* base, int64_t position, int64_t size, StoredPage* page,
                             int64_t* effort) noexcept nogil:
    """Parse bytes that may not be a page header. Return as parse_page does. Subtract bytes parsed in vain from effort."""
    cdef const uint8_t* data = base + position
    cdef int64_t available = size - position, fault
    # writers put the fields in order: the first is the page type, as a zigzag varint
    if available < 3 or data[1] >> 1 not in (TYPE_DATA_PAGE, TYPE_DICTIONARY_PAGE, TYPE_DATA_PAGE_V2) or data[2] != NEXT_I32:
        return PAGE_HEADER_INVALID
    fault = parse_page(data, min(available, <int64_t>HEADER_BOUND), -1, position, size, 0, page)
    if fault < 0 and fault != BODY_OVERRUN:
        effort[0] -= page.plain_size
    return fault


cdef bint is_plausible(const StoredPage* page) noexcept nogil:
    """Return whether a page can have the counts and sizes in its header, in an encoding that fastpq reads."""
    if not (page.is_data or page.is_dictionary) or decoder_of(page.header.encoding).next == NULL:
        return False
    if page.header.type != TYPE_DATA_PAGE_V2:
        return True
    return (levels_size(&page.header) <= min(page.body_size, <int64_t>page.header.uncompressed_page_size)
            and page.header.num_nulls <= page.header.num_values and page.header.num_rows <= page.header.num_values)


cdef tuple row_of(const StoredPage* page):
    """Return a page as a row in the array that find_pages returns."""
    cdef int64_t clear = levels_size(&page.header), num_rows = -1
    if page.header.type == TYPE_DATA_PAGE_V2:
        num_rows = page.header.num_rows
        if not page.header.is_compressed:
            clear = page.body_size
    return (page.start, page.body + page.body_size - page.start, page.header.type, page.header.num_values, page.header.encoding,
            num_rows, page.body_size, clear, page.header.uncompressed_page_size)
