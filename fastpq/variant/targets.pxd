"""Growing columns of a shredding schema, to which shredding adds rows."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.encodings.views cimport Slice
from fastpq.variant.emit cimport Bytes, bytes_put


# A growing column of strings or binary values.
cdef struct Texts:
    Bytes data
    Bytes ends                      # offsets, int64


# The growing value and typed_value columns of one place in the schema.
cdef struct Target:
    int64_t rows
    Texts values
    Bytes has_value                 # a byte a row
    int typed                       # Typed
    Bytes has_typed                 # a byte a row
    int kind                        # TYPED_FIXED, TYPED_TEXT: type id of the primitive
    int scale                       # of decimals
    int precision                   # of decimals
    size_t width                    # TYPED_FIXED: bytes of a value
    Bytes data                      # TYPED_FIXED
    Texts texts                     # TYPED_TEXT
    uint32_t field_count            # TYPED_OBJECT: fields in the order of their names
    Target* fields
    const Slice* names
    Bytes ends                      # TYPED_ARRAY: offsets, int64
    Target* elements


cdef inline int put_end(Bytes* ends, int64_t end) noexcept nogil:
    return bytes_put(ends, &end, sizeof(int64_t))


cdef inline int put_flag(Bytes* flags, uint8_t flag) noexcept nogil:
    return bytes_put(flags, &flag, 1)


# Each of these functions adds to one row, and returns 0 or NO_ROOM.
# Add a null typed_value, also to all columns inside typed_value.
cdef int64_t no_typed(Target* target) noexcept nogil
# Complete a row by its value: the bytes appended to values since the last row, or null. typed_value is complete already.
cdef int64_t end_row(Target* target, uint8_t has_value) noexcept nogil
# Add a whole row with neither value nor typed_value.
cdef int64_t missing(Target* target) noexcept nogil


cdef class Columns:
    cdef Target root
    cdef Bytes stack                # working memory of shredding
    cdef object schema
    cdef list blocks
    cdef int _open(self, Target* target, schema) except -1
    cdef int _open_object(self, Target* target, schema) except -1
    cdef void* _block(self, size_t size) except NULL
