"""Minimum, maximum and NaN count of values, compared in their column's order (parquet.thrift, ColumnOrder)."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.encodings.views cimport Slice


cpdef enum Order:
    ORDER_NONE = 0              # no defined order, so that there are no bounds
    ORDER_BOOLEAN = 1           # a value is one byte, false is 0
    ORDER_INT32 = 2
    ORDER_INT64 = 3
    ORDER_UINT32 = 4
    ORDER_UINT64 = 5
    ORDER_FLOAT16 = 6
    ORDER_FLOAT = 7
    ORDER_DOUBLE = 8
    ORDER_BYTES = 9             # unsigned, lexicographic. A prefix comes before longer values.
    ORDER_SIGNED_BYTES = 10     # decimals: big-endian two's complement with any length


# Write the smallest and the largest of `count` values to `minimum` and `maximum`, and return how many values are not NaN. NaNs
# are ignored. A float that is zero becomes -0.0 as minimum and +0.0 as maximum. Nothing is written if the result is 0, which it
# always is for ORDER_NONE. `width` is the number of bytes in a value. Only ORDER_BYTES and ORDER_SIGNED_BYTES use it.
cdef int64_t min_max_fixed(int order, const uint8_t* values, int64_t count, size_t width,
                           uint8_t* minimum, uint8_t* maximum) noexcept nogil
# The same for variable-length values, in ORDER_BYTES and ORDER_SIGNED_BYTES. The bounds point into the values' memory.
cdef int64_t min_max_slices(int order, const Slice* values, int64_t count, Slice* minimum, Slice* maximum) noexcept nogil

# Return -1, 0 or 1 if left is less than, equal to or greater than right. -0.0 equals +0.0. Neither value may be NaN. The result
# for ORDER_NONE is 0.
cdef int compare_fixed(int order, const uint8_t* left, const uint8_t* right, size_t width) noexcept nogil
cdef int compare_slices(int order, Slice left, Slice right) noexcept nogil

# Return how many of the `count` values are NaN. It is 0 for an order that is not for floats.
cdef int64_t count_nans(int order, const uint8_t* values, int64_t count) noexcept nogil
# Return how many bytes a value has in a column with this order. It is 0 for ORDER_NONE, and for ORDER_BYTES and
# ORDER_SIGNED_BYTES, whose values have no fixed width.
cdef size_t order_width(int order) noexcept nogil
