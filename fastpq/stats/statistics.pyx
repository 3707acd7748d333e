# distutils: language = c
"""Minimum, maximum and NaN count of values, compared in their column's order (parquet.thrift, ColumnOrder)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from fastpq.encodings.comparison cimport compare_byte_strings
from fastpq.encodings.views cimport Slice

cdef extern from "c/min_max.h" nogil:
    void min_max_int32(const uint8_t* values, int64_t count, uint8_t* minimum, uint8_t* maximum)
    void min_max_int64(const uint8_t* values, int64_t count, uint8_t* minimum, uint8_t* maximum)
    void min_max_uint32(const uint8_t* values, int64_t count, uint8_t* minimum, uint8_t* maximum)
    void min_max_uint64(const uint8_t* values, int64_t count, uint8_t* minimum, uint8_t* maximum)
    void min_max_bytes(const uint8_t* values, int64_t count, uint8_t* minimum, uint8_t* maximum)
    void min_max_float16(const uint8_t* values, int64_t count, uint8_t* minimum, uint8_t* maximum)
    void min_max_float(const uint8_t* values, int64_t count, uint8_t* minimum, uint8_t* maximum)
    void min_max_double(const uint8_t* values, int64_t count, uint8_t* minimum, uint8_t* maximum)
    int compare_int32(const uint8_t* left, const uint8_t* right)
    int compare_int64(const uint8_t* left, const uint8_t* right)
    int compare_uint32(const uint8_t* left, const uint8_t* right)
    int compare_uint64(const uint8_t* left, const uint8_t* right)
    int compare_float(const uint8_t* left, const uint8_t* right)
    int compare_double(const uint8_t* left, const uint8_t* right)
    int compare_float16(const uint8_t* left, const uint8_t* right)
    int compare_bytes(const uint8_t* left, const uint8_t* right)
    uint64_t prefix_key(const uint8_t* data, size_t size)
    void min_max_two_words(const uint8_t* values, int64_t count, size_t width, uint64_t flipped, uint8_t* minimum,
                           uint8_t* maximum)
    int64_t count_nans_float16(const uint8_t* values, int64_t count)
    int64_t count_nans_float(const uint8_t* values, int64_t count)
    int64_t count_nans_double(const uint8_t* values, int64_t count)

cdef size_t order_width(int order) noexcept nogil:
    if order == ORDER_BOOLEAN:
        return 1
    if order == ORDER_FLOAT16:
        return 2
    if order in (ORDER_INT32, ORDER_UINT32, ORDER_FLOAT):
        return 4
    if order in (ORDER_INT64, ORDER_UINT64, ORDER_DOUBLE):
        return 8
    return 0


cdef int64_t count_nans(int order, const uint8_t* values, int64_t count) noexcept nogil:
    if count <= 0:
        return 0
    if order == ORDER_FLOAT:
        return count_nans_float(values, count)
    if order == ORDER_DOUBLE:
        return count_nans_double(values, count)
    if order == ORDER_FLOAT16:
        return count_nans_float16(values, count)
    return 0


cdef int64_t min_max_fixed(int order, const uint8_t* values, int64_t count, size_t width,
                           uint8_t* minimum, uint8_t* maximum) noexcept nogil:
    cdef int64_t numbers = count - count_nans(order, values, count)
    if count <= 0 or numbers == 0 or order == ORDER_NONE:
        return 0
    if order == ORDER_INT32:
        min_max_int32(values, count, minimum, maximum)
    elif order == ORDER_INT64:
        min_max_int64(values, count, minimum, maximum)
    elif order == ORDER_UINT32:
        min_max_uint32(values, count, minimum, maximum)
    elif order == ORDER_UINT64:
        min_max_uint64(values, count, minimum, maximum)
    elif order == ORDER_FLOAT:
        min_max_float(values, count, minimum, maximum)
    elif order == ORDER_DOUBLE:
        min_max_double(values, count, minimum, maximum)
    elif order == ORDER_FLOAT16:
        min_max_float16(values, count, minimum, maximum)
    elif order == ORDER_BOOLEAN:
        min_max_bytes(values, count, minimum, maximum)
        minimum[0] = minimum[0] != 0
        maximum[0] = maximum[0] != 0
    else:
        _min_max_rows(order, values, count, width, minimum, maximum)
    return numbers


cdef void _min_max_rows(int order, const uint8_t* values, int64_t count, size_t width,
                        uint8_t* minimum, uint8_t* maximum) noexcept nogil:
    cdef const uint8_t* low = values
    cdef const uint8_t* high = values
    cdef const uint8_t* value = values
    cdef uint64_t low_key = _key(order, values, width)
    cdef uint64_t high_key = low_key, key
    cdef int64_t _
    if 8 <= width <= 16:
        min_max_two_words(values, count, width, <uint64_t>(order == ORDER_SIGNED_BYTES) << 63, minimum, maximum)
        return
    for _ in range(1, count):
        value += width
        key = _key(order, value, width)
        if key < low_key or (key == low_key and width > 8 and compare_fixed(order, value, low, width) < 0):
            low = value
            low_key = key
        if key > high_key or (key == high_key and width > 8 and compare_fixed(order, value, high, width) > 0):
            high = value
            high_key = key
    memcpy(minimum, low, width)
    memcpy(maximum, high, width)


cdef inline uint64_t _key(int order, const uint8_t* data, size_t size) noexcept nogil:
    # Two keys that differ have the same order as their values. For ORDER_SIGNED_BYTES, the values must have equal sizes.
    cdef uint64_t prefix = prefix_key(data, size)
    return prefix ^ (<uint64_t>1 << 63) if order == ORDER_SIGNED_BYTES else prefix


cdef int64_t min_max_slices(int order, const Slice* values, int64_t count, Slice* minimum, Slice* maximum) noexcept nogil:
    if count <= 0 or (order != ORDER_BYTES and order != ORDER_SIGNED_BYTES):
        return 0
    minimum[0] = values[0]
    maximum[0] = values[0]
    if order == ORDER_BYTES:
        _min_max_bytes(values, count, minimum, maximum)
        return count
    cdef int64_t i
    for i in range(1, count):
        if compare_slices(order, values[i], minimum[0]) < 0:
            minimum[0] = values[i]
        if compare_slices(order, values[i], maximum[0]) > 0:
            maximum[0] = values[i]
    return count


cdef void _min_max_bytes(const Slice* values, int64_t count, Slice* minimum, Slice* maximum) noexcept nogil:
    cdef uint64_t low_key = prefix_key(values[0].data, values[0].size)
    cdef uint64_t high_key = low_key, key
    cdef int64_t i
    for i in range(1, count):
        key = prefix_key(values[i].data, values[i].size)
        if key < low_key or (key == low_key and compare_byte_strings(values[i], minimum[0]) < 0):
            minimum[0] = values[i]
            low_key = key
        if key > high_key or (key == high_key and compare_byte_strings(values[i], maximum[0]) > 0):
            maximum[0] = values[i]
            high_key = key


cdef int compare_fixed(int order, const uint8_t* left, const uint8_t* right, size_t width) noexcept nogil:
    if order == ORDER_INT32:
        return compare_int32(left, right)
    if order == ORDER_INT64:
        return compare_int64(left, right)
    if order == ORDER_UINT32:
        return compare_uint32(left, right)
    if order == ORDER_UINT64:
        return compare_uint64(left, right)
    if order == ORDER_FLOAT:
        return compare_float(left, right)
    if order == ORDER_DOUBLE:
        return compare_double(left, right)
    if order == ORDER_FLOAT16:
        return compare_float16(left, right)
    if order == ORDER_BOOLEAN:
        return compare_bytes(left, right)
    return compare_slices(order, Slice(left, width), Slice(right, width))


cdef int compare_slices(int order, Slice left, Slice right) noexcept nogil:
    if order == ORDER_BYTES:
        return compare_byte_strings(left, right)
    if order == ORDER_SIGNED_BYTES:
        return _compare_signed(left, right)
    return 0


cdef inline int _compare_signed(Slice left, Slice right) noexcept nogil:
    # An empty value is the number zero. Leading sign bytes are skipped. Then the longer number is farther from zero.
    cdef bint negative = left.size > 0 and left.data[0] >= 0x80
    cdef bint right_negative = right.size > 0 and right.data[0] >= 0x80
    if negative != right_negative:
        return -1 if negative else 1
    left = _without_sign_bytes(left, 0xFF if negative else 0)
    right = _without_sign_bytes(right, 0xFF if negative else 0)
    if left.size != right.size:
        return 1 if (left.size > right.size) != negative else -1
    return compare_byte_strings(left, right)


cdef inline Slice _without_sign_bytes(Slice value, uint8_t sign) noexcept nogil:
    while value.size > 0 and value.data[0] == sign:
        value.data += 1
        value.size -= 1
    return value


cpdef int compare(int order, bytes left, bytes right) except? -2:
    """Return -1, 0 or 1 if left is less than, equal to or greater than right.

    Args:
        order: an Order.
        left: a value in PLAIN encoding, but BYTE_ARRAY without its length, as in statistics.
        right: another value.

    Raises:
        ValueError: a value does not have the size that the order demands.
    """
    cdef Py_ssize_t width = <Py_ssize_t>order_width(order)
    if left is None or right is None:
        raise TypeError("bounds are bytes, not None")
    if width and (len(left) != width or len(right) != width):
        raise ValueError(f"values of {len(left)} and {len(right)} bytes where {width} are due")
    if width:
        return compare_fixed(order, _slice(left).data, _slice(right).data, width)
    return compare_slices(order, _slice(left), _slice(right))


def extreme(int order, list bounds not None, int sign):
    """Return the smallest or largest bound.

    Args:
        order: an Order.
        bounds: values as for compare. An unknown bound is None and is ignored.
        sign: -1 for the smallest, 1 for the largest.

    Returns:
        One of the bounds, or None if all are None.
    """
    cdef bytes bound
    found = None
    for bound in bounds:
        if bound is not None and (found is None or compare(order, bound, found) == sign):
            found = bound
    return found


def is_monotonic(int order, list bounds not None, int sign):
    """Return whether bounds ascend (sign 1) or descend (-1). Equal bounds are allowed.

    Args, raises: as compare, but bounds is a list of bytes.
    """
    cdef Py_ssize_t i
    for i in range(1, len(bounds)):
        if compare(order, bounds[i - 1], bounds[i]) == sign:
            return False
    return True


def exceed(int order, list left not None, list right not None):
    """Return whether any bound in one list exceeds the bound at the same place in another list.

    Args, raises: as compare, but left and right are two lists of bytes that are equally long.
    """
    cdef Py_ssize_t i
    if len(left) != len(right):
        raise ValueError(f"{len(left)} bounds beside {len(right)}")
    for i in range(len(left)):
        if compare(order, left[i], right[i]) > 0:
            return True
    return False


def nan_count(int order, const uint8_t[::1] values not None):
    """Return the number of NaNs among values. It is 0 for an order that is not for floats.

    Args:
        order: an Order.
        values: uint8, as for min_max.
    """
    cdef size_t size = order_width(order)
    if size == 0 or values.shape[0] == 0:
        return 0
    return count_nans(order, &values[0], values.shape[0] // <Py_ssize_t>size)


cdef inline Slice _slice(bytes value):
    return Slice(<const uint8_t*>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value))
