"""The loops of the Arrow interface over bitmaps, offsets, views and decimals.

Each loop is a ``cdef`` function over pointers. The ``def`` function below the loop checks sizes and calls the loop without
the GIL.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from *:
    int popcount "__builtin_popcountll"(unsigned long long) noexcept nogil
    int lowest_bit "__builtin_ctz"(unsigned int) noexcept nogil

cdef enum:
    VIEW_SIZE = 16      # bytes of a string view
    INLINE_SIZE = 12    # most bytes of a string stored in its view

ctypedef fused offset_t:
    int32_t
    int64_t


cdef int require(bint holds, str what) except -1:
    if not holds:
        raise ValueError(what)
    return 0


# ---- bitmaps

cdef inline bint bit(const uint8_t* bits, size_t index) noexcept nogil:
    return (bits[index >> 3] >> (index & 7)) & 1


cdef void copy_bits_loop(const uint8_t* source, size_t offset, size_t length, uint8_t* target) noexcept nogil:
    cdef size_t i, whole = length >> 3
    cdef unsigned int shift = offset & 7
    source += offset >> 3
    if shift == 0:
        memcpy(target, source, whole)
    else:  # bits ``shift`` to ``shift`` + 7 end in the next byte
        for i in range(whole):
            target[i] = <uint8_t> ((source[i] >> shift) | (source[i + 1] << (8 - shift)))
    for i in range(whole * 8, length):
        target[i >> 3] |= <uint8_t> (bit(source, shift + i) << (i & 7))


def copy_bits(const uint8_t[::1] source, size_t offset, size_t length, uint8_t[::1] target):
    """Copy a run of bits, LSB first, to the start of a bitmap.

    Args:
        source: bitmap.
        offset: first bit to copy.
        length: number of bits.
        target: zeros, at least (length + 7) // 8 bytes.
    """
    require(length <= source.shape[0] * 8 and offset <= source.shape[0] * 8 - length, "bits outside the source")
    require(length <= target.shape[0] * 8, "bits outside the target")
    if length > 0:
        with nogil:
            copy_bits_loop(&source[0], offset, length, &target[0])


cdef size_t count_bits_loop(const uint8_t* bits, size_t length) noexcept nogil:
    cdef size_t i, total = 0
    cdef uint64_t word
    for i in range(length >> 6):
        memcpy(&word, bits + i * 8, 8)
        total += popcount(word)
    for i in range(length & ~<size_t> 63, length):
        total += bit(bits, i)
    return total


def count_bits(const uint8_t[::1] bits, size_t length):
    """Number of set bits among the first ``length`` of a bitmap."""
    cdef size_t total
    require(length <= bits.shape[0] * 8, "bits outside the bitmap")
    if length == 0:
        return 0
    with nogil:
        total = count_bits_loop(&bits[0], length)
    return total


# ---- values under nulls

cdef inline bint all_zero(const uint8_t* value, size_t width) noexcept nogil:
    cdef size_t i = 0
    cdef uint64_t word, seen = 0
    while width - i >= 8:
        memcpy(&word, value + i, 8)
        seen |= word
        i += 8
    while i < width:
        seen |= value[i]
        i += 1
    return seen == 0


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
    """The position of the first null with a value other than zero bytes, or -1.

    Args:
        values: ``length`` values of ``width`` bytes each.
        width: bytes of a value, at least 1.
        validity: bitmap of ``length`` bits.
        length: number of values.
    """
    cdef int64_t index
    require(width > 0 and length <= values.shape[0] // width, "values outside the buffer")
    require(length <= validity.shape[0] * 8, "bits outside the bitmap")
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
    """Zero the value of every null; arguments as in dirty_null."""
    require(width > 0 and length <= values.shape[0] // width, "values outside the buffer")
    require(length <= validity.shape[0] * 8, "bits outside the bitmap")
    if length > 0:
        with nogil:
            clear_loop(&values[0], width, &validity[0], length)


# ---- offsets

cdef int64_t bad_offset_loop(const offset_t* offsets, size_t length) noexcept nogil:
    cdef size_t i
    cdef bint decreasing = offsets[0] < 0
    for i in range(length):  # without an early exit, for the compiler to vectorise the loop
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
    """The position of the first offset below 0 or below the offset before, or -1."""
    cdef int64_t index
    require(offsets.shape[0] > 0, "no offsets")
    with nogil:
        index = bad_offset_loop(&offsets[0], offsets.shape[0] - 1)
    return index


# ---- views

# PADDING[n]: a mask of the padding, zero bytes, of an inline view of n bytes
cdef uint8_t[13][16] PADDING

cdef int _length, _byte
for _length in range(INLINE_SIZE + 1):
    for _byte in range(VIEW_SIZE):
        PADDING[_length][_byte] = 0xFF if _byte >= 4 + _length else 0


cdef bint good_view(const uint8_t* view, const int64_t* sizes, size_t buffers) noexcept nogil:
    """Whether a view lies in its buffer, or is inline and padded with zeros."""
    cdef int32_t length, buffer, offset
    cdef uint64_t words[2]
    cdef uint64_t padding[2]
    memcpy(&length, view, 4)
    if length < 0:
        return False
    if length <= INLINE_SIZE:
        memcpy(words, view, VIEW_SIZE)
        memcpy(padding, PADDING[length], VIEW_SIZE)
        return not (words[0] & padding[0] | words[1] & padding[1])
    memcpy(&buffer, view + 8, 4)
    memcpy(&offset, view + 12, 4)
    return (buffer >= 0 and <size_t> buffer < buffers and offset >= 0 and length <= sizes[buffer]
            and offset <= sizes[buffer] - length)


cdef int64_t bad_view_loop(const uint8_t* views, size_t length, const uint8_t* validity, const int64_t* sizes,
                           size_t buffers) noexcept nogil:
    cdef size_t i
    for i in range(length):
        if (validity == NULL or bit(validity, i)) and not good_view(views + i * VIEW_SIZE, sizes, buffers):
            return <int64_t> i
    return -1


def bad_view(const uint8_t[::1] views, const uint8_t[::1] validity, const int64_t[::1] sizes):
    """The position of the first view outside its buffer, or inline without zero padding, or -1.

    Args:
        views: string views, 16 bytes each.
        validity: bitmap, or None; views under nulls are not checked.
        sizes: the size of each buffer in bytes.
    """
    cdef int64_t index
    cdef size_t length = views.shape[0] // VIEW_SIZE
    cdef const uint8_t* bits = NULL
    cdef const int64_t* known = NULL
    if validity is not None:
        require(length <= validity.shape[0] * 8, "bits outside the bitmap")
        bits = &validity[0] if validity.shape[0] > 0 else NULL
    if sizes.shape[0] > 0:
        known = &sizes[0]
    if length == 0:
        return -1
    with nogil:
        index = bad_view_loop(&views[0], length, bits, known, sizes.shape[0])
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
    require(values.shape[0] <= out.shape[0] // 16, "values outside the output")
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
    """Cut 32-byte little-endian integers to 16 bytes in ``out``; returns the position of the first too large one, or -1."""
    cdef int64_t index
    cdef size_t length = values.shape[0] // 32
    require(length <= out.shape[0] // 16, "values outside the output")
    if length == 0:
        return -1
    with nogil:
        index = narrow_loop(&values[0], length, &out[0])
    return index
