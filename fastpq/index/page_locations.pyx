"""Loops over the page locations of an OffsetIndex: decoding, checking, choosing the pages of some rows (PageIndex.md)."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.encodings.levels cimport bitmap_count
from fastpq.format.cursor cimport I32, I64, STRUCT, Cursor, cursor_over, skip_value, take_field, take_list, take_zigzag
from fastpq.index.ranges cimport Growing, RowRanges

from enum import IntEnum

import numpy as np

from fastpq.errors import FormatError

cdef enum:              # field ids of PageLocation
    OFFSET = 1
    COMPRESSED_PAGE_SIZE = 2
    FIRST_ROW_INDEX = 3

cdef int64_t LARGEST_I32 = 0x7FFFFFFF
cdef int64_t LARGEST_I64 = 0x7FFFFFFFFFFFFFFF


def read_page_locations(const uint8_t[::1] data, int64_t offset):
    """Decode the page locations of an OffsetIndex.

    Args:
        data: the serialized struct.
        offset: offset of the list in data.

    Returns:
        Shape (3, pages), int64: offsets, stored sizes and first rows.

    Raises:
        FormatError: the bytes are no list of page locations, or end before the list does.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    cdef int wire = 0
    cdef int64_t count, page
    cdef int64_t[:, ::1] out
    count = take_list(&cursor, &wire)
    if not cursor.failed and count and wire != STRUCT:
        raise FormatError("OffsetIndex.page_locations is no list of structs", offset=offset)
    found = np.empty((3, count), np.int64)
    out = found
    for page in range(count):
        if not take_location(&cursor, out, page):
            raise FormatError(f"OffsetIndex.page_locations[{page}] is no PageLocation", offset=cursor.pos - cursor.start)
    if cursor.failed:
        raise FormatError("OffsetIndex.page_locations is no list", offset=offset)
    return found


cdef bint take_location(Cursor* cursor, int64_t[:, ::1] out, int64_t page) noexcept:
    """Decode one PageLocation into a column of out; returns whether all of its fields were there."""
    cdef int64_t id = 0
    cdef int wire, seen = 0
    while True:
        wire = take_field(cursor, &id)
        if wire == 0:
            return not cursor.failed and seen == 7
        if id == OFFSET and wire == I64 or id == COMPRESSED_PAGE_SIZE and wire == I32 or id == FIRST_ROW_INDEX and wire == I64:
            out[id - 1, page] = take_zigzag(cursor)
            if id == COMPRESSED_PAGE_SIZE and not -LARGEST_I32 - 1 <= out[id - 1, page] <= LARGEST_I32:
                return False
            seen |= 1 << (id - 1)
        else:
            skip_value(cursor, wire, 1, False)
        if cursor.failed:
            return False


class LocationFault(IntEnum):
    """Faults of page locations."""

    NONE = 0
    CHUNK = 1           # a negative offset or length of the column chunk
    NO_PAGES = 2        # rows, and no page
    OUTSIDE = 3         # a page outside the column chunk, or of no byte
    OVERLAP = 4         # a page before the end of the page before
    ROWS = 5            # first rows that do not ascend from 0 within the row group
    ENDS = 6            # another first page, or bytes behind the last page
    GAPS = 7            # bytes between pages


def location_fault(const int64_t[:, ::1] locations, int64_t num_rows, int64_t start, int64_t length, int64_t first_page):
    """The first fault of the pages of a column chunk: without gaps or overlaps, to the chunk's end, first rows ascending from 0.

    The check finds omitted and moved pages, and pages with the rows of others. A consistent lie about pages never read
    passes, except in an encrypted file: each page is sealed with its number there, and decryption finds the lie.

    Args:
        locations: the result of read_page_locations.
        num_rows: rows of the row group.
        start, length: place of the column chunk in the file.
        first_page: offset of the first data page; -1 where unknown.

    Returns:
        A LocationFault; NONE for pages without a fault.
    """
    cdef int64_t pages = locations.shape[1], stop, end = start, row = -1, page, offset, size
    cdef bint gaps = False
    if start < 0 or length < 0 or start > LARGEST_I64 - length:
        return LocationFault.CHUNK
    stop = start + length
    if pages == 0:
        return LocationFault.NO_PAGES if num_rows else LocationFault.NONE
    for page in range(pages):
        offset, size = locations[0, page], locations[1, page]
        if size <= 0 or offset < start or offset > stop or size > stop - offset:
            return LocationFault.OUTSIDE
        if offset < end:
            return LocationFault.OVERLAP
        gaps = gaps or page > 0 and offset != end
        end = offset + size
        if locations[2, page] <= row or page == 0 and locations[2, page] or locations[2, page] >= num_rows:
            return LocationFault.ROWS
        row = locations[2, page]
    if end != stop or first_page >= 0 and locations[0, 0] != first_page:
        return LocationFault.ENDS
    return LocationFault.GAPS if gaps else LocationFault.NONE


def choose_pages(const int64_t[:, ::1] locations, RowRanges rows not None, int64_t start, bint nested):
    """Choose the data pages with some wanted rows, and the dictionary page, if any.

    Args:
        locations: page locations, checked.
        rows: wanted rows of the row group.
        start: offset of the chunk. The bytes from there to the first data page are the dictionary page.
        nested: whether a page may have more or fewer values than rows.

    Returns:
        None where every page has wanted rows. Otherwise: the rows of the chosen pages; (offset, length) of each run of
        adjacent chosen pages; the directory of the chosen data pages (fastpq.read.plan.PageSelection); and the wanted rows
        (RowRanges), numbered among the rows of the chosen pages.
    """
    cdef int64_t pages = locations.shape[1], chosen = 0, page, first, end, offset, size
    cdef int64_t run_start = -1, run_end = -1
    cdef list runs = []
    cdef Growing covered
    cdef Finder wanted = Finder(rows)
    found = np.empty((pages, 4), np.int64)
    cdef int64_t[:, ::1] directory = found
    covered = Growing(pages)
    if pages and start < locations[0, 0]:
        run_start, run_end = start, locations[0, 0]
    for page in range(pages):
        first = locations[2, page]
        end = locations[2, page + 1] if page + 1 < pages else rows.num_rows
        if not wanted.any_of(first, end):
            continue
        covered.add(first, end)
        offset, size = locations[0, page], locations[1, page]
        directory[chosen, 0] = page
        directory[chosen, 1] = size
        directory[chosen, 2] = -1 if nested else end - first
        directory[chosen, 3] = end - first
        chosen += 1
        if offset != run_end:
            if run_start >= 0:
                runs.append((run_start, run_end - run_start))
            run_start = offset
        run_end = offset + size
    if chosen == pages:
        return None
    if run_start >= 0:
        runs.append((run_start, run_end - run_start))
    held = covered.ranges(rows.num_rows)
    return held, runs, found[:chosen], rows.within(held) if rows.bits is None else rows.cut_out(held)


def pages_of(const int64_t[:, ::1] locations, RowRanges rows not None):
    """Number and stored bytes of the data pages with some wanted rows; arguments as in choose_pages."""
    cdef int64_t pages = locations.shape[1], page, chosen = 0, size = 0
    cdef Finder wanted = Finder(rows)
    for page in range(pages):
        if wanted.any_of(locations[2, page], locations[2, page + 1] if page + 1 < pages else rows.num_rows):
            chosen += 1
            size += locations[1, page]
    return chosen, size


cdef class Finder:
    """Looks for rows of a set between given rows, which ascend from call to call."""

    cdef const int64_t[:, ::1] bounds
    cdef const uint8_t[::1] bits
    cdef int64_t next       # range to look at

    def __cinit__(self, RowRanges rows):
        self.next = 0
        self.bits = rows.bits
        if self.bits is None:
            self.bounds = rows.bounds

    cdef bint any_of(self, int64_t first, int64_t end) noexcept:
        if self.bits is not None:
            return bitmap_count(&self.bits[0], first, end - first) > 0
        while self.next < self.bounds.shape[0] and self.bounds[self.next, 1] <= first:
            self.next += 1
        return self.next < self.bounds.shape[0] and self.bounds[self.next, 0] < end
