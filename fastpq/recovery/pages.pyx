"""Pages found by their headers alone, where no footer tells where they are."""

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr

import numpy as np

from fastpq.format.page_header cimport PAGE_HEADER_INVALID, PageHeader, try_page_header

from fastpq.codecs.checksum import crc32
from fastpq.errors import LimitError

cdef enum:
    NEXT_I32 = 0x15             # the next field is an i32: fields 1 to 3 of a header are
    HEADER_BOUND = 1 << 16      # bytes of a header that is believed; statistics in it may be long
    MOST_EFFORT = 8             # times the bytes of the file, looked at to find out that something is no page
    TYPE_DATA_PAGE = 0
    TYPE_DICTIONARY_PAGE = 2
    TYPE_DATA_PAGE_V2 = 3


def find_pages(const uint8_t[::1] data not None, int64_t start, bint checksums):
    """The data pages and dictionary pages of a plaintext file.

    Args:
        data: the bytes of the file.
        start: where to begin.
        checksums: whether a page must have the CRC-32 of its header, if that has one.

    Returns:
        int64, shape (pages, 9), ascending: position, stored size with header, type, values, encoding, rows (-1 where the header
        does not tell), bytes of the body, those of them in front that are never compressed, and uncompressed bytes.

    Raises:
        LimitError: too much looks like pages that are none.
    """
    cdef int64_t position = start, size = data.shape[0], parsed, clear
    cdef int64_t effort = MOST_EFFORT * size
    cdef const uint8_t* base = &data[0] if size else NULL
    cdef const uint8_t* found
    cdef PageHeader header
    cdef bint good
    cdef list pages = []
    while position < size:
        with nogil:
            good = False
            while position < size and not good:
                found = <const uint8_t*>memchr(base + position, NEXT_I32, <size_t>(size - position))
                if found == NULL:
                    position = size
                    break
                position = found - base
                parsed = find_header(found, size - position, &header, &effort)
                good = parsed > 0 and is_plausible(&header, size - position - parsed)
                if good and header.has_crc and checksums:
                    with gil:
                        body = PyMemoryView_FromMemory(<char*>found + parsed, header.compressed_page_size, PyBUF_READ)
                        good = crc32(body) == <uint32_t>header.crc
                        effort -= 0 if good else <int64_t>header.compressed_page_size
                if effort < 0:
                    with gil:
                        raise LimitError("too much of the file looks like pages and is none")
                if not good:
                    position += 1
        if not good:
            break
        clear = 0
        if header.type == TYPE_DATA_PAGE_V2:
            clear = <int64_t>header.repetition_levels_byte_length + header.definition_levels_byte_length
            if not header.is_compressed:
                clear = header.compressed_page_size
        pages.append((
            position, parsed + header.compressed_page_size, header.type, header.num_values, header.encoding,
            header.num_rows if header.type == TYPE_DATA_PAGE_V2 else -1,
            header.compressed_page_size, clear, header.uncompressed_page_size))
        position += parsed + header.compressed_page_size
    return np.array(pages, dtype=np.int64).reshape(-1, 9)


cdef int64_t find_header(const uint8_t* data, int64_t left, PageHeader* header, int64_t* effort) noexcept nogil:
    """As read_page_header; the bytes of what is none are paid for."""
    cdef int64_t walked = 0, parsed
    # writers put the fields in order, and the type of a page that is looked for is one of these, as zigzag
    if left < 3 or data[1] >> 1 not in (TYPE_DATA_PAGE, TYPE_DICTIONARY_PAGE, TYPE_DATA_PAGE_V2) or data[2] != NEXT_I32:
        return PAGE_HEADER_INVALID
    parsed = try_page_header(data, <size_t>min(left, <int64_t>HEADER_BOUND), header, &walked)
    if parsed < 0:
        effort[0] -= walked
    return parsed


cdef bint is_plausible(const PageHeader* header, int64_t left) noexcept nogil:
    """Whether what was parsed as a header says nothing that no page can have."""
    if header.compressed_page_size > left or not 0 <= header.encoding <= 10:
        return False
    if header.type == TYPE_DATA_PAGE_V2:
        return (<int64_t>header.repetition_levels_byte_length + header.definition_levels_byte_length
                <= min(header.compressed_page_size, header.uncompressed_page_size)
                and header.num_nulls <= header.num_values and header.num_rows <= header.num_values)
    return header.type == TYPE_DATA_PAGE or header.type == TYPE_DICTIONARY_PAGE
