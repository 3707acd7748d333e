"""The columns of a shredding schema while rows come in."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.encodings.views cimport Slice
from fastpq.variant.emit cimport Bytes, bytes_put


# Binary values of a column while they come in.
cdef struct Texts:
    Bytes data
    Bytes ends                      # int64


# The two columns of one place in the schema while rows come in.
cdef struct Target:
    int64_t rows
    Texts values
    Bytes has_value                 # a byte a row
    int typed
    Bytes has_typed                 # a byte a row
    int kind                        # TYPED_FIXED, TYPED_TEXT
    int scale
    int precision
    size_t width
    Bytes data
    Texts texts
    uint32_t field_count            # TYPED_OBJECT: in the order of their names
    Target* fields
    const Slice* names
    Bytes ends                      # TYPED_ARRAY, int64
    Target* elements


cdef inline int put_end(Bytes* ends, int64_t end) noexcept nogil:
    return bytes_put(ends, &end, sizeof(int64_t))


cdef inline int put_flag(Bytes* flags, uint8_t flag) noexcept nogil:
    return bytes_put(flags, &flag, 1)


# Each returns 0 or NO_ROOM. The row has no typed_value, nor have the columns inside it:
cdef int64_t no_typed(Target* target) noexcept nogil
# The row is complete but for value, which has its bytes already:
cdef int64_t end_row(Target* target, uint8_t has_value) noexcept nogil
# The row has nothing:
cdef int64_t missing(Target* target) noexcept nogil


cdef class Columns:
    cdef Target root
    cdef Bytes stack                # for whoever adds rows
    cdef object schema
    cdef list blocks
    cdef int _open(self, Target* target, schema) except -1
    cdef int _open_object(self, Target* target, schema) except -1
    cdef void* _block(self, size_t size) except NULL
