"""View, Arrow's 16-byte string view, written by decoders; Slice, a pointer and a size, read by encoders."""

from libc.stdint cimport int32_t, int64_t, uint8_t


# Arrow's 16-byte string view, the output of decoders. A value of at most 12 bytes stands inline (zero-padded) in the place of
# the last three members; a longer value has its first four bytes, a buffer number and an offset.
cdef struct View:
    int32_t length
    uint8_t prefix[4]
    int32_t buffer
    int32_t offset


# A value anywhere in memory, the input of encoders.
cdef struct Slice:
    const uint8_t* data
    size_t size


cdef inline int64_t slices_size(const Slice* slices, int64_t count) noexcept nogil:
    # The number of bytes in slices.
    cdef int64_t size = 0, i
    for i in range(count):
        size += <int64_t>slices[i].size
    return size
