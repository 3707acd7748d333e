# distutils: language = c
"""The SNAPPY codec. fastpq has its own kernel, which is faster than the C++ library and needs no C++ runtime."""

from libc.stdint cimport UINT32_MAX, int64_t, uint8_t

from fastpq.codecs.codec cimport NO_CONTEXT, Codec

cdef extern from "c/snappy.h" nogil:
    int64_t snappy_decode(const uint8_t* stream, size_t size, uint8_t* target, size_t room) noexcept
    int64_t snappy_encode(const uint8_t* data, size_t size, uint8_t* out) noexcept


cdef class SnappyKernel(Codec):
    """The SNAPPY codec. A page is one stream in the raw format.

    Args:
        number, name, most_expansion: as for Codec.
        level: ignored, because Snappy has none.
    """

    def __cinit__(self, int number, str name, tuple most_expansion, int level):
        pass

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        return snappy_encode(data, <size_t>size, out) if size <= UINT32_MAX else NO_CONTEXT

    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil:
        return snappy_decode(stream, <size_t>size, target, <size_t>room)     # its errors are BROKEN_STREAM and STREAM_TOO_LONG
