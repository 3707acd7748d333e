"""Pages of a plaintext file, found by their headers alone; no footer tells their places.

PageWalker trusts a chunk: a page begins where the page before ends, and a broken header is an error. The search here trusts no
byte: a page may begin anywhere, and most bytes that look like a header are no header. The search therefore has its own loop and
its own tests of plausibility; parsing, placing of the body and the CRC-32 are of fastpq.column.page_walker.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr

import numpy as np

from fastpq.column.page_walker cimport BODY_OVERRUN, StoredPage, has_own_crc, parse_page
from fastpq.encodings.numbers cimport ALP
from fastpq.format.page_header cimport (
    PAGE_HEADER_INVALID, TYPE_DATA_PAGE, TYPE_DATA_PAGE_V2, TYPE_DICTIONARY_PAGE, levels_size,
)

from fastpq.errors import LimitError

cdef enum:
    NEXT_I32 = 0x15             # a field of the compact protocol: an i32, the id one above the last; fields 1 to 3 of a header
    HEADER_BOUND = 1 << 16      # most bytes of a header, with room for long statistics
    MOST_EFFORT = 8             # most bytes parsed in vain, as a multiple of the file's size


def find_pages(const uint8_t[::1] data not None, int64_t start, bint checksums):
    """Find the data pages and dictionary pages of a plaintext file.

    Args:
        data: uint8, the bytes of the file.
        start: position of the first byte to search.
        checksums: refuse a page whose header has another CRC-32 than the body.

    Returns:
        int64, shape (pages, 9), ascending: position, stored size with header, type, values, encoding, rows (-1 for a header
        without rows), bytes of the body, leading bytes of the body that are never compressed, and uncompressed bytes.

    Raises:
        LimitError: too many bytes look like page headers and are none.
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
    """Find the first page from position on; False without one."""
    cdef const uint8_t* found
    cdef bint good
    with nogil:
        while position < size:
            found = <const uint8_t*>memchr(base + position, NEXT_I32, <size_t>(size - position))
            if found == NULL:
                return False
            position = found - base
            good = parse_candidate(base, position, size, page, effort) == 0 and is_plausible(page)
            if good and page.header.has_crc and checksums:
                good = has_own_crc(base + page.body, page)
                effort[0] -= 0 if good else page.body_size
            if effort[0] < 0:
                with gil:
                    raise LimitError("too much of the file looks like pages and is none")
            if good:
                return True
            position += 1
    return False


cdef int64_t parse_candidate(const uint8_t* base, int64_t position, int64_t size, StoredPage* page,
                             int64_t* effort) noexcept nogil:
    """Parse bytes that may be no page header; returns as parse_page. Subtracts bytes parsed in vain from effort."""
    cdef const uint8_t* data = base + position
    cdef int64_t left = size - position, fault
    # writers put the fields in order: the first is the type of the page, as a zigzag varint
    if left < 3 or data[1] >> 1 not in (TYPE_DATA_PAGE, TYPE_DICTIONARY_PAGE, TYPE_DATA_PAGE_V2) or data[2] != NEXT_I32:
        return PAGE_HEADER_INVALID
    fault = parse_page(data, min(left, <int64_t>HEADER_BOUND), -1, position, size, 0, page)
    if fault < 0 and fault != BODY_OVERRUN:
        effort[0] -= page.plain_size
    return fault


cdef bint is_plausible(const StoredPage* page) noexcept nogil:
    """Whether a page may have the counts, sizes and encoding of the header; ALP is the encoding with the largest number."""
    if not (page.is_data or page.is_dictionary) or not 0 <= page.header.encoding <= ALP:
        return False
    if page.header.type != TYPE_DATA_PAGE_V2:
        return True
    return (levels_size(&page.header) <= min(page.body_size, <int64_t>page.header.uncompressed_page_size)
            and page.header.num_nulls <= page.header.num_values and page.header.num_rows <= page.header.num_values)


cdef tuple row_of(const StoredPage* page):
    """A page as a row of the result of find_pages."""
    cdef int64_t clear = levels_size(&page.header), num_rows = -1
    if page.header.type == TYPE_DATA_PAGE_V2:
        num_rows = page.header.num_rows
        if not page.header.is_compressed:
            clear = page.body_size
    return (page.start, page.body + page.body_size - page.start, page.header.type, page.header.num_values, page.header.encoding,
            num_rows, page.body_size, clear, page.header.uncompressed_page_size)
