"""Loops over an OffsetIndex' page locations (PageIndex.md). They decode and check them, and choose the pages with some rows."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.encodings.levels cimport bitmap_count
from fastpq.format.cursor cimport I32, I64, STRUCT, Cursor, cursor_over, skip_value, take_field, take_list, take_zigzag
from fastpq.index.ranges cimport Growing, RowRanges

from enum import IntEnum

import numpy as np

from fastpq.errors import FormatError

cdef enum:              # field ids in PageLocation
    OFFSET = 1
    COMPRESSED_PAGE_SIZE = 2
    FIRST_ROW_INDEX = 3

cdef int64_t LARGEST_I32 = 0x7FFFFFFF
cdef int64_t LARGEST_I64 = 0x7FFFFFFFFFFFFFFF


def read_page_locations(const uint8_t[::1] data, int64_t offset):
    """Decode the page locations in an OffsetIndex.

    Args:
        data: the serialized struct.
        offset: the list's offset in data.

    Returns:
        Shape (3, pages), int64: offsets, stored sizes and first rows.

    Raises:
        FormatError: the bytes are not a list of page locations, or end before the list does.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    cdef int wire = 0
    cdef int64_t count, page
    cdef int64_t[:, ::1] out
    count = take_list(&cursor, &wire)
    if not cursor.failed and count and wire != STRUCT:
        raise FormatError("OffsetIndex.page_locations is not a list of structs", offset=offset)
    found = np.empty((3, count), np.int64)
    out = found
    for page in range(count):
        if not take_location(&cursor, out, page):
            raise FormatError(f"OffsetIndex.page_locations[{page}] is not a PageLocation", offset=cursor.pos - cursor.start)
    if cursor.failed:
        raise FormatError("OffsetIndex.page_locations is not a list", offset=offset)
    return found


cdef bint take_location(Cursor* cursor, int64_t[:, ::1] out, int64_t page) noexcept:
    """Decode one PageLocation into a column of out, and return whether it is valid and has all its fields."""
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
    """What is wrong with page locations."""

    NONE = 0
    CHUNK = 1           # the column chunk has a negative offset or length, or ends beyond the largest offset
    NO_PAGES = 2        # there are rows, but no page
    OUTSIDE = 3         # a page is outside the column chunk, or has no byte
    OVERLAP = 4         # a page begins before the previous page ends
    ROWS = 5            # first rows do not ascend from 0 within the row group
    ENDS = 6            # the first page is another one, or there are bytes behind the last page
    GAPS = 7            # there are bytes between pages


def location_fault(const int64_t[:, ::1] locations, int64_t num_rows, int64_t start, int64_t length, int64_t first_page):
    """Return the first fault in a column chunk's page locations.

    Pages must follow one another without gaps or overlaps up to the chunk's end, and their first rows must ascend from 0. The
    check finds pages that are left out or moved, and pages that have the rows of others. A consistent lie about pages that are
    never read passes. It does not pass in an encrypted file, where each page is sealed with its number: decryption finds it.

    Args:
        locations: the result of read_page_locations.
        num_rows: row count of the row group.
        start, length: the column chunk's place in the file.
        first_page: the first data page's offset, or -1 if unknown.

    Returns:
        A LocationFault, which is NONE if there is no fault.
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
    """Choose the data pages that have requested rows, and the dictionary page if there is one.

    Args:
        locations: page locations that have been checked.
        rows: the requested rows in the row group.
        start: the chunk's offset. The bytes from there to the first data page are the dictionary page.
        nested: whether a page may have more or fewer values than rows.

    Returns:
        None if every page has requested rows. Otherwise a tuple: the rows that the chosen pages have, (offset, length) for each
        run of adjacent chosen pages, the directory of the chosen data pages (fastpq.read.chunk_plan.PageSelection), and the
        requested rows (RowRanges), numbered among the chosen pages' rows.
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
    """Return the number and the stored bytes of the data pages that have requested rows. Arguments are as for choose_pages."""
    cdef int64_t pages = locations.shape[1], page, chosen = 0, size = 0
    cdef Finder wanted = Finder(rows)
    for page in range(pages):
        if wanted.any_of(locations[2, page], locations[2, page + 1] if page + 1 < pages else rows.num_rows):
            chosen += 1
            size += locations[1, page]
    return chosen, size


cdef class Finder:
    """Tells whether a row set has rows in a given range. The ranges ascend from call to call."""

    cdef const int64_t[:, ::1] bounds
    cdef const uint8_t[::1] bits
    cdef int64_t next       # the range to look at next

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
