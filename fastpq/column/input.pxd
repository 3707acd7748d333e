"""The values of a Column in stored form, page by page."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.column.scratch cimport Scratch
from fastpq.column.leaf_entries cimport Levels
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SliceReader


cdef class ColumnInput:
    cdef readonly int64_t rows
    cdef readonly Levels levels         # of a nested column; None for a flat one, with one value a row
    cdef readonly bint variable         # values are slices; otherwise of stored_width bytes each
    cdef readonly bint dense_in_place   # the column's memory is the stored form
    cdef readonly size_t stored_width
    cdef int conversion
    cdef size_t width
    cdef int64_t units
    cdef const uint8_t* data            # fixed-width values
    cdef readonly SliceReader reader    # variable-length values; None for fixed-width ones
    cdef const uint8_t* bits            # validity bitmap, or NULL
    cdef tuple owners
    cdef Scratch dense
    cdef Scratch stored
    cdef Scratch slice_memory
    cdef Scratch places                 # uint32: the code of each entry of the column's own in the dictionary of encode
    cdef void* places_in                # that dictionary

    # Frees scratch memory; the next read takes it anew.
    cdef void free(self) noexcept nogil
    # An empty dictionary for the values, in blocks that serve the next one.
    cdef DictionaryEncoder new_dictionary(self)
    cdef void _to_values(self, int64_t* start, int64_t* count) noexcept nogil
    cdef int64_t count_present(self, int64_t start, int64_t count) noexcept nogil
    # The largest number of rows from start on, at most most, with at most so many values.
    cdef int64_t rows_of(self, int64_t start, int64_t most, int64_t values) noexcept nogil
    # The stored values of rows [start, start + count), nulls left out; valid until the next call. Returns the number of values.
    cdef int64_t fixed(self, int64_t start, int64_t count, const uint8_t** values) except -1 nogil
    cdef int64_t slices(self, int64_t start, int64_t count, Slice** values) except -1 nogil
    # The dictionary codes of rows [start, start + count), nulls left out, each replaced by mapping[code]. Returns their number.
    cdef int64_t mapped(self, int64_t start, int64_t count, const uint32_t* mapping, uint32_t* codes) except -1 nogil
    # The code of each value of rows [start, start + count) in a dictionary, nulls left out, until its plain values would exceed
    # limit bytes: codes of the column's own are translated (slices is NULL then), other values compared. Returns the number of
    # codes, or NO_MEMORY.
    cdef int64_t encode(self, int64_t start, int64_t count, DictionaryEncoder dictionary, int64_t limit, uint32_t* codes,
                        int64_t* present, Slice** slices) except? -100 nogil
    cdef int64_t _translate(self, int64_t start, int64_t count, DictionaryEncoder dictionary, int64_t limit,
                            uint32_t* codes) noexcept nogil
    cdef const uint8_t* _compacted(self, int64_t start, int64_t count, int64_t* present) except NULL nogil


# Stored bytes in the memory of a column: a buffer that keeps the column.
cdef class StoredView:
    cdef ColumnInput input
    cdef const uint8_t* data
    cdef int64_t size

    @staticmethod
    cdef StoredView of(ColumnInput input, const uint8_t* data, int64_t size)
