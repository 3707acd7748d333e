"""Content-defined chunking: the values of a column choose the rows at which its pages begin."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from fastpq.column.input cimport ColumnInput
from fastpq.column.leaf_entries cimport Entries
from fastpq.encodings.views cimport Slice

import numpy as np

cdef extern from "c/content_chunks.h" nogil:
    ctypedef struct ContentChunker:
        uint64_t mask
        int64_t min_size
        int64_t max_size
    void fill_gear_tables()
    void chunker_roll(ContentChunker* chunker, const uint8_t* bytes, int64_t count)
    bint chunker_cuts(ContentChunker* chunker)

cdef enum:
    MOST_ROWS = 4096            # that are looked at together
    MOST_ENTRIES = 1 << 16

fill_gear_tables()


def content_cuts(ColumnInput column not None, int64_t start, int64_t stop, int max_definition_level, sizes):
    """Return the rows at which pages begin, counted from the start. Shape (cuts,), int64.

    Args:
        column: the column.
        start, stop: the rows of the chunk.
        max_definition_level: the column's highest definition level.
        sizes: least and most bytes of a page, and the mask of the hash.
    """
    cdef ContentChunker chunker
    cdef int64_t row = start, rows, count
    cdef int64_t[::1] page_rows = np.empty(min(<int64_t>MOST_ROWS, max(<int64_t>1, stop - start)), np.int64)
    memset(&chunker, 0, sizeof(ContentChunker))
    chunker.min_size, chunker.max_size, chunker.mask = sizes
    parts = []
    while row < stop:
        rows = min(<int64_t>MOST_ROWS, stop - row)
        while rows > 1 and entries_of(column, row, rows) > MOST_ENTRIES:
            rows //= 2
        with nogil:
            count = cuts_of_rows(column, row, rows, max_definition_level, &chunker, &page_rows[0])
        if count:
            parts.append(np.asarray(page_rows)[:count] - start)
        row += rows
    cuts = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return cuts[cuts > 0]


cdef int64_t entries_of(ColumnInput column, int64_t row, int64_t rows) noexcept nogil:
    """Return how many entries some rows have."""
    if column.levels is None:
        return rows
    return column.levels.entry_start(row + rows) - column.levels.entry_start(row)


cdef int64_t cuts_of_rows(ColumnInput column, int64_t first, int64_t rows, int max_definition_level, ContentChunker* chunker,
                          int64_t* page_rows) except -1 nogil:
    """Write each of these rows at which a page begins, and return how many there are."""
    cdef const uint8_t* values = NULL
    cdef Slice* slices = NULL
    cdef Entries nested
    cdef uint8_t levels[2]
    cdef int64_t row, entry = 0, value = 0, count = 0, place, width = <int64_t>column.stored_width
    cdef bint is_present
    if column.variable:
        column.slices(first, rows, &slices)
    else:
        column.fixed(first, rows, &values)
    memset(&nested, 0, sizeof(Entries))
    if column.levels is not None:
        column.levels.make(first, rows, &nested)
    for row in range(first, first + rows):
        for place in range(entries_of(column, row, 1)):
            if column.levels is not None:
                levels[0] = max_definition_level if nested.definition == NULL else nested.definition[entry]
                levels[1] = nested.repetition[entry] if nested.repetition != NULL else place > 0
                is_present = levels[0] == max_definition_level
            else:
                is_present = column.bits == NULL or (column.bits[row >> 3] >> (row & 7)) & 1
                levels[0], levels[1] = max_definition_level if is_present else 0, 0
            if max_definition_level:
                chunker_roll(chunker, levels, 2)
            if is_present and column.variable:
                chunker_roll(chunker, slices[value].data, <int64_t>slices[value].size)
            elif is_present:
                chunker_roll(chunker, values + value * width, width)
            value += is_present
            entry += 1
        if chunker_cuts(chunker):
            page_rows[count] = row
            count += 1
    return count
