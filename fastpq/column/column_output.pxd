"""The memory that chunks are decoded into."""

from libc.stdint cimport int64_t, uint8_t


cdef class Output:
    cdef readonly list buffers          # the arrays that views point into
    cdef readonly int64_t width


cdef class ColumnOutput(Output):
    cdef readonly object values         # uint8, rows * width bytes
    cdef readonly object validity       # uint8 bitmap with rows bits, or None
    cdef readonly int64_t rows
    cdef uint8_t* data
    cdef uint8_t* bits
