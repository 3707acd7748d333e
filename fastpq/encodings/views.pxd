"""The two forms that variable-length values have: decoders write Views (Arrow's string views), and encoders read Slices."""

from libc.stdint cimport int32_t, int64_t, uint8_t


# Arrow's 16-byte string view. A value with at most 12 bytes is inline: its bytes, padded with zeros, replace the last three
# members. For a longer value, the view has the first four bytes, a buffer number, and the offset in this buffer.
cdef struct View:
    int32_t length
    uint8_t prefix[4]
    int32_t buffer
    int32_t offset


# A value anywhere in memory.
cdef struct Slice:
    const uint8_t* data
    size_t size


cdef inline int64_t slices_size(const Slice* slices, int64_t count) noexcept nogil:
    # Return how many bytes all slices have together.
    cdef int64_t size = 0, i
    for i in range(count):
        size += <int64_t>slices[i].size
    return size


cdef inline const uint8_t* view_start(const View* view, const uint8_t* base) noexcept nogil:
    # Return where a value's bytes start: in its view, or in the buffer that starts at base.
    return <const uint8_t*>&view.prefix[0] if view.length <= 12 else base + view.offset
