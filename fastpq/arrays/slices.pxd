"""A column of variable-length values as a sequence of slices, in any layout."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.encodings.views cimport Slice, View

# Slices in one read: 16 KiB on the caller's stack, in the first-level cache.
cdef enum:
    SLICE_BLOCK = 1024


# Reads slices out of views, offsets or dictionary codes. Each slice is checked against the arrays of the layout: no bytes
# outside of the arrays are read, however the layout was made.
cdef class SliceReader:
    cdef readonly Py_ssize_t count      # number of values, nulls included
    cdef object owners                  # arrays to be kept alive
    cdef int layout
    cdef const uint8_t* validity        # NULL without nulls
    cdef const View* views
    cdef const uint8_t** buffers
    cdef int64_t* buffer_sizes
    cdef int64_t buffer_count
    cdef const uint8_t* offsets
    cdef const uint8_t* data
    cdef int64_t data_size
    cdef const uint8_t* codes
    cdef Slice* dictionary
    cdef int64_t dictionary_size
    cdef int _take_views(self, values) except -1
    cdef int _take_offsets(self, values) except -1
    cdef int _take_codes(self, codes, entries) except -1
    # Slices start to start + count - 1 into out; a null has data NULL and size 0, a value never data NULL. Returns count
    # or a negative Status (BAD_LENGTH, BAD_INDEX).
    cdef int64_t read(self, int64_t start, int64_t count, Slice* out) noexcept nogil
    # The number of dictionary entries; -1 in a layout without codes.
    cdef int64_t entries(self) noexcept nogil
    # Codes start to start + count - 1 into out, nulls left out, each code replaced by mapping[code]; mapping has a number for
    # each dictionary entry. Returns the number of values or a negative Status (BAD_LENGTH, BAD_INDEX).
    cdef int64_t read_codes(self, int64_t start, int64_t count, const uint32_t* mapping, uint32_t* out) noexcept nogil


cdef int raise_status(int64_t status) except -1
# First byte of a contiguous array; never NULL, also where the array is empty.
cdef const uint8_t* array_start(object array) except NULL
# The array itself if one-dimensional, contiguous, aligned and of the dtype; SchemaError otherwise, with the name given.
cdef object held(object array, object dtype, str what)
