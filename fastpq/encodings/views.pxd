"""The two shapes in which kernels hand variable-length values around."""

from libc.stdint cimport int32_t, uint8_t


# Arrow's 16-byte string view. At most 12 bytes stand inline in the place of the last three members
# (zero-padded); longer values have their first four bytes, a buffer number and an offset.
cdef struct View:
    int32_t length
    uint8_t prefix[4]
    int32_t buffer
    int32_t offset


# A value anywhere in memory: what encoders read.
cdef struct Slice:
    const uint8_t* data
    size_t size
