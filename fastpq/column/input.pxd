"""Converts the values of a Column to their stored form, a row range at a time."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.column.scratch cimport Scratch
from fastpq.column.leaf_entries cimport Levels
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SliceReader, SliceSource


# One of the columns that an input's values are in.
cdef struct Part:
    int64_t first                       # the number of its first value
    const uint8_t* data                 # fixed-width values
    const uint8_t* bits                 # validity bitmap, or NULL without nulls
    const SliceSource* source           # variable-length values


cdef class ColumnInput:
    cdef readonly int64_t rows
    cdef readonly Levels levels         # a nested column's levels. None for a flat column, where each row has one value.
    cdef readonly bint variable         # whether values are slices. If not, they have stored_width bytes each.
    cdef bint text                      # whether values are text, which must be UTF-8
    cdef readonly bint dense_in_place   # whether the column's memory already has the stored form
    cdef readonly bint has_integers     # whether the values are decimals that `integers` returns
    cdef readonly size_t stored_width
    cdef int conversion
    cdef size_t width
    cdef int64_t units
    cdef Part* parts                    # part_count parts, and the number behind the last value as `first` of one more
    cdef int64_t part_count
    cdef readonly list readers          # a reader for each part with variable-length values
    cdef readonly SliceReader reader    # the only reader, or None
    cdef const uint8_t* bits            # validity bitmap for all parts, or NULL without nulls
    cdef list owners
    cdef Scratch dense
    cdef Scratch stored
    cdef Scratch narrow                 # decimals as int64
    cdef Scratch slice_memory
    cdef Scratch places                 # uint32: the code that each entry in the column's own dictionary has in places_in
    cdef void* places_in                # the dictionary that encode was last called with

    # Frees scratch memory. The next read takes it again.
    cdef void free(self) noexcept nogil
    # Returns an empty dictionary for the values. It takes blocks that the next dictionary can reuse.
    cdef DictionaryEncoder new_dictionary(self)
    cdef int _add_part(self, Part* part, object column) except -1
    cdef const Part* _part_of(self, int64_t value) noexcept nogil
    cdef void _to_values(self, int64_t* start, int64_t* count) noexcept nogil
    cdef int64_t count_present(self, int64_t start, int64_t count) noexcept nogil
    # Returns how many rows, from start on and at most `most`, have no more than so many values together.
    cdef int64_t rows_of(self, int64_t start, int64_t most, int64_t values) noexcept nogil
    # Both set *values to the stored values in the rows [start, start + count), without nulls, and return how many there are. The
    # values are valid until the next call.
    cdef int64_t fixed(self, int64_t start, int64_t count, const uint8_t** values) except -1 nogil
    cdef int64_t slices(self, int64_t start, int64_t count, Slice** values) except -1 nogil
    # Does the same for decimals as int64, in memory order. stored_integers then returns the stored values of such integers.
    cdef int64_t integers(self, int64_t start, int64_t count, const uint8_t** values) except -1 nogil
    cdef const uint8_t* stored_integers(self, const uint8_t* integers, int64_t count) except NULL nogil
    cdef int _refuse_value(self, int64_t start, int64_t count) except -1 nogil
    # Writes mapping[code] for each dictionary code in the rows [start, start + count), without nulls. Returns how many it wrote.
    cdef int64_t mapped(self, int64_t start, int64_t count, const uint32_t* mapping, uint32_t* codes) except -1 nogil
    # Encodes the values in the rows [start, start + count), without nulls, to codes in a dictionary. It stops before the plain
    # values in the dictionary exceed limit bytes. If the column has codes, they are translated, and *slices is set to NULL.
    # Otherwise the values are looked up. Returns how many codes it wrote, or NO_MEMORY.
    cdef int64_t encode(self, int64_t start, int64_t count, DictionaryEncoder dictionary, int64_t limit, uint32_t* codes,
                        int64_t* present, Slice** slices) except? -100 nogil
    cdef int64_t _translate(self, int64_t start, int64_t count, DictionaryEncoder dictionary, int64_t limit,
                            uint32_t* codes) noexcept nogil
    cdef const uint8_t* _compacted(self, int64_t start, int64_t count, int64_t* present) except NULL nogil


# A buffer over stored bytes in a column's memory. It keeps the column alive.
cdef class StoredView:
    cdef ColumnInput input
    cdef const uint8_t* data
    cdef int64_t size

    @staticmethod
    cdef StoredView of(ColumnInput input, const uint8_t* data, int64_t size)
