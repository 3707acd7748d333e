"""The Arrow interface's loops over bitmaps, offsets, views and decimals.

Each loop is a ``cdef`` function that takes pointers. The ``def`` function below it checks the sizes and calls it without the GIL.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fastpq.encodings.levels cimport bitmap_copy, bitmap_count

cdef extern from *:
    int lowest_bit "__builtin_ctz"(unsigned int) noexcept nogil

cdef extern from "../arrays/c/views.h" nogil:
    enum:
        VIEW_BYTES
    bint views_are_good(const void* views, int64_t count, const int64_t* sizes, int64_t buffer_count) noexcept

ctypedef fused offset_t:
    int32_t
    int64_t


cdef int require(bint condition, str message) except -1:
    if not condition:
        raise ValueError(message)
    return 0


# ---- bitmaps

cdef inline bint bit(const uint8_t* bits, size_t index) noexcept nogil:
    return (bits[index >> 3] >> (index & 7)) & 1


def copy_bits(const uint8_t[::1] source, size_t offset, size_t length, uint8_t[::1] target):
    """Copy consecutive bits, LSB first, to the start of a bitmap.

    Args:
        source: bitmap.
        offset: first bit to copy.
        length: bit count.
        target: at least (length + 7) // 8 bytes, all zero.
    """
    require(length <= source.shape[0] * 8 and offset <= source.shape[0] * 8 - length, "the bits are outside the source")
    require(length <= target.shape[0] * 8, "the bits are outside the target")
    if length > 0:
        with nogil:
            bitmap_copy(&source[0], <int64_t> offset, <int64_t> length, &target[0])


def count_bits(const uint8_t[::1] bits, size_t length):
    """Return how many of a bitmap's first ``length`` bits are ones."""
    cdef int64_t total
    require(length <= bits.shape[0] * 8, "the bits are outside the bitmap")
    if length == 0:
        return 0
    with nogil:
        total = bitmap_count(&bits[0], 0, <int64_t> length)
    return total


# ---- values under nulls

cdef inline bint all_zero(const uint8_t* value, size_t width) noexcept nogil:
    cdef size_t i = 0
    cdef uint64_t word, bits = 0
    while width - i >= 8:
        memcpy(&word, value + i, 8)
        bits |= word
        i += 8
    while i < width:
        bits |= value[i]
        i += 1
    return bits == 0


cdef int64_t dirty_loop(const uint8_t* values, size_t width, const uint8_t* validity, size_t length) noexcept nogil:
    cdef size_t i, group
    cdef unsigned int nulls
    for group in range((length + 7) >> 3):
        nulls = validity[group] ^ 0xFF
        while nulls:
            i = group * 8 + lowest_bit(nulls)
            if i >= length:
                break
            if not all_zero(values + i * width, width):
                return <int64_t> i
            nulls &= nulls - 1
    return -1


def dirty_null(const uint8_t[::1] values, size_t width, const uint8_t[::1] validity, size_t length):
    """Return the position of the first null whose value is not all zero bytes, or -1.

    Args:
        values: ``length`` values of ``width`` bytes each.
        width: value width in bytes, at least 1.
        validity: bitmap with ``length`` bits.
        length: value count.
    """
    cdef int64_t index
    require(width > 0 and length <= values.shape[0] // width, "the values are outside the buffer")
    require(length <= validity.shape[0] * 8, "the bits are outside the bitmap")
    if length == 0:
        return -1
    with nogil:
        index = dirty_loop(&values[0], width, &validity[0], length)
    return index


cdef void clear_loop(uint8_t* values, size_t width, const uint8_t* validity, size_t length) noexcept nogil:
    cdef size_t i
    for i in range(length):
        if not bit(validity, i):
            memset(values + i * width, 0, width)


def clear_nulls(uint8_t[::1] values, size_t width, const uint8_t[::1] validity, size_t length):
    """Write zeros to every null's value. The arguments are as in dirty_null."""
    require(width > 0 and length <= values.shape[0] // width, "the values are outside the buffer")
    require(length <= validity.shape[0] * 8, "the bits are outside the bitmap")
    if length > 0:
        with nogil:
            clear_loop(&values[0], width, &validity[0], length)


# ---- offsets

cdef int64_t bad_offset_loop(const offset_t* offsets, size_t length) noexcept nogil:
    cdef size_t i
    cdef bint decreasing = offsets[0] < 0
    for i in range(length):  # no early exit, so that the compiler vectorises the loop
        decreasing |= offsets[i + 1] < offsets[i]
    if not decreasing:
        return -1
    if offsets[0] < 0:
        return 0
    for i in range(length):
        if offsets[i + 1] < offsets[i]:
            return <int64_t> i + 1
    return -1


def bad_offset(const offset_t[::1] offsets):
    """Return the position of the first offset that is negative or less than the previous one, or -1."""
    cdef int64_t index
    require(offsets.shape[0] > 0, "there are no offsets")
    with nogil:
        index = bad_offset_loop(&offsets[0], offsets.shape[0] - 1)
    return index


# ---- views

cdef int64_t bad_view_loop(const uint8_t* views, int64_t length, const uint8_t* validity, const int64_t* sizes,
                           int64_t buffers) noexcept nogil:
    cdef int64_t i
    if validity == NULL and views_are_good(views, length, sizes, buffers):
        return -1
    for i in range(length):
        if (validity == NULL or bit(validity, <size_t> i)) and not views_are_good(views + i * VIEW_BYTES, 1, sizes, buffers):
            return i
    return -1


def bad_view(const uint8_t[::1] views, const uint8_t[::1] validity, const int64_t[::1] sizes):
    """Return the position of the first view that is outside its buffer or inline without zero padding, or -1.

    Args:
        views: string views, 16 bytes each.
        validity: bitmap, or None. Views under nulls are not checked.
        sizes: buffer sizes in bytes.
    """
    cdef int64_t index, length = views.shape[0] // VIEW_BYTES, buffers = sizes.shape[0]
    cdef const uint8_t* bits = NULL
    cdef int64_t* all_sizes
    if validity is not None:
        require(length <= validity.shape[0] * 8, "the bits are outside the bitmap")
        bits = &validity[0] if validity.shape[0] > 0 else NULL
    if length == 0:
        return -1
    all_sizes = <int64_t*> malloc(<size_t> (buffers + 1) * sizeof(int64_t))
    if all_sizes == NULL:
        raise MemoryError
    if buffers:
        memcpy(all_sizes, &sizes[0], <size_t> buffers * sizeof(int64_t))
    all_sizes[buffers] = -1         # no view fits into a buffer that does not exist
    with nogil:
        index = bad_view_loop(&views[0], length, bits, all_sizes, buffers)
        free(all_sizes)
    return index


# ---- decimals

cdef void widen_loop(const offset_t* values, size_t length, uint8_t* out) noexcept nogil:
    cdef size_t i
    cdef int64_t words[2]
    for i in range(length):
        words[0] = values[i]
        words[1] = words[0] >> 63
        memcpy(out + i * 16, words, 16)


def widen_into(const offset_t[::1] values, uint8_t[::1] out):
    """Sign-extend int32 or int64 values to 16-byte little-endian integers in ``out``."""
    require(values.shape[0] <= out.shape[0] // 16, "the values are outside the output")
    if values.shape[0] > 0:
        with nogil:
            widen_loop(&values[0], values.shape[0], &out[0])


cdef int64_t narrow_loop(const uint8_t* values, size_t length, uint8_t* out) noexcept nogil:
    cdef size_t i
    cdef int64_t words[4]
    cdef int64_t sign
    for i in range(length):
        memcpy(words, values + i * 32, 32)
        sign = words[1] >> 63
        if words[2] != sign or words[3] != sign:
            return <int64_t> i
        memcpy(out + i * 16, words, 16)
    return -1


def narrow_into(const uint8_t[::1] values, uint8_t[::1] out):
    """Shorten 32-byte little-endian integers to 16 bytes in ``out``.

    Return the position of the first value that is too large, or -1.
    """
    cdef int64_t index
    cdef size_t length = values.shape[0] // 32
    require(length <= out.shape[0] // 16, "the values are outside the output")
    if length == 0:
        return -1
    with nogil:
        index = narrow_loop(&values[0], length, &out[0])
    return index
