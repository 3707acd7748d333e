"""Minimum, maximum and NaN count of values in the order of their column (parquet.thrift, ColumnOrder)."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.encodings.views cimport Slice


cpdef enum Order:
    ORDER_NONE = 0              # no defined order: no bounds
    ORDER_BOOLEAN = 1           # a value is one byte, false is 0
    ORDER_INT32 = 2
    ORDER_INT64 = 3
    ORDER_UINT32 = 4
    ORDER_UINT64 = 5
    ORDER_FLOAT16 = 6
    ORDER_FLOAT = 7
    ORDER_DOUBLE = 8
    ORDER_BYTES = 9             # unsigned, lexicographic; a prefix comes first
    ORDER_SIGNED_BYTES = 10     # big-endian two's complement of any length: decimals


# Writes the bounds of count values to minimum and maximum. NaNs are ignored; a zero float becomes -0.0 as minimum and +0.0 as
# maximum. Returns the number of values without NaNs; with 0 values, and for ORDER_NONE, nothing is written. width, the size of a
# value in bytes, matters for ORDER_BYTES and ORDER_SIGNED_BYTES alone.
cdef int64_t min_max_fixed(int order, const uint8_t* values, int64_t count, size_t width,
                           uint8_t* minimum, uint8_t* maximum) noexcept nogil
# The bounds of values of variable length, for ORDER_BYTES and ORDER_SIGNED_BYTES; the bounds point into the memory of the values.
cdef int64_t min_max_slices(int order, const Slice* values, int64_t count, Slice* minimum, Slice* maximum) noexcept nogil

# Widen bounds by other bounds; the bounds of a chunk are the merged bounds of its pages.
cdef void merge_fixed(int order, size_t width, uint8_t* minimum, uint8_t* maximum,
                      const uint8_t* other_minimum, const uint8_t* other_maximum) noexcept nogil
cdef void merge_slices(int order, Slice* minimum, Slice* maximum, Slice other_minimum, Slice other_maximum) noexcept nogil

# Return -1, 0 or 1: left less than, equal to or greater than right. -0.0 equals +0.0; neither value may be NaN. ORDER_NONE: 0.
cdef int compare_fixed(int order, const uint8_t* left, const uint8_t* right, size_t width) noexcept nogil
cdef int compare_slices(int order, Slice left, Slice right) noexcept nogil

# Number of NaNs among count values; 0 for orders other than floats.
cdef int64_t count_nans(int order, const uint8_t* values, int64_t count) noexcept nogil
# Bytes of one value of an order; 0 for ORDER_NONE, ORDER_BYTES and ORDER_SIGNED_BYTES.
cdef size_t order_width(int order) noexcept nogil
