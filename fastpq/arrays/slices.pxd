"""A column's variable-length values as a sequence of slices, whatever their layout is."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.encodings.views cimport Slice, View

# Number of slices that one SliceReader.read call fills. They take 16 KiB on the caller's stack, which fits the first-level cache.
cdef enum:
    SLICE_BLOCK = 1024


# Where a column's variable-length values are in memory.
cdef struct SliceSource:
    int64_t count                       # value count, including nulls
    int layout
    const uint8_t* validity             # NULL if no value is null
    const View* views
    const uint8_t** buffers             # buffer_count items, and a last one for views that name none of them
    int64_t* buffer_sizes               # in bytes, likewise
    int64_t buffer_count
    const uint8_t* offsets
    const uint8_t* data
    int64_t data_size
    const uint8_t* codes
    Slice* dictionary
    int64_t dictionary_size


# Writes slices start to start + count - 1 into out. A null has data NULL and size 0. A value's data is never NULL.
# Returns count, or a negative Status (BAD_LENGTH, BAD_INDEX).
cdef int64_t read_slices(const SliceSource* source, int64_t start, int64_t count, Slice* out) noexcept nogil


# Reads slices from views, offsets or dictionary codes. It checks each slice against the layout's arrays, so that it never reads
# bytes outside these arrays, even if the layout is wrong.
cdef class SliceReader:
    cdef readonly Py_ssize_t count      # value count, including nulls
    cdef SliceSource source             # valid as long as the reader lives
    cdef object owners                  # the arrays, which must stay alive
    cdef int _take_views(self, values) except -1
    cdef int _take_offsets(self, offsets, data) except -1
    cdef int _take_codes(self, codes, entries) except -1
    cdef int64_t read(self, int64_t start, int64_t count, Slice* out) noexcept nogil
    # Return the dictionary's entry count, or -1 if the layout has no codes.
    cdef int64_t entries(self) noexcept nogil
    # Write mapping[code] into out for each code from start to start + count - 1, and skip nulls. mapping has a number for each
    # dictionary entry. Return the value count, or a negative Status (BAD_LENGTH, BAD_INDEX).
    cdef int64_t read_codes(self, int64_t start, int64_t count, const uint32_t* mapping, uint32_t* out) noexcept nogil


# Raise the error that belongs to a negative Status. Do nothing for other numbers.
cdef int raise_status(int64_t status) except -1
# Return the address of a contiguous array's first byte. It is not NULL even if the array is empty.
cdef const uint8_t* array_start(object array) except NULL
# Return the array itself if it is one-dimensional, contiguous, aligned and has the dtype. Otherwise raise SchemaError with a
# message that begins with array_name.
cdef object checked_array(object array, object dtype, str array_name)
