"""Growing memory, and functions to append the parts of the Variant encoding (VariantEncoding.md)."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy
from fastpq.encodings.views cimport Slice


cdef struct Bytes:
    uint8_t* data
    size_t size
    size_t capacity


# A field of an object, already written.
cdef struct Field:
    Slice name
    uint32_t id         # of the name in the metadata dictionary
    uint32_t start      # offset of the value from the first value of the object


cdef void bytes_free(Bytes* bytes) noexcept nogil
cdef int bytes_grow(Bytes* bytes, size_t more) noexcept nogil


cdef inline uint8_t* bytes_add(Bytes* bytes, size_t more) noexcept nogil:
    # Extends bytes by more bytes of undefined content; returns their start, or NULL without memory.
    cdef uint8_t* end
    if (bytes.data == NULL or bytes.capacity - bytes.size < more) and bytes_grow(bytes, more) < 0:
        return NULL
    end = bytes.data + bytes.size
    bytes.size += more
    return end


cdef inline int bytes_put(Bytes* bytes, const void* data, size_t size) noexcept nogil:
    cdef uint8_t* end = bytes_add(bytes, size)
    if end == NULL:
        return -1
    if size:
        memcpy(end, data, size)
    return 0


# Each put_ function appends one value and returns 0 or an error (Wrong in wire.pxd).
cdef int64_t put_primitive(Bytes* out, int kind, const void* data, size_t size) noexcept nogil
cdef int64_t put_decimal(Bytes* out, int kind, int scale, const void* unscaled, size_t size) noexcept nogil
cdef int64_t put_integer(Bytes* out, int64_t value) noexcept nogil
cdef int64_t put_text(Bytes* out, int kind, Slice text) noexcept nogil
# Both turn values written from start on into an array or object, by inserting the header. starts are relative to start.
cdef int64_t finish_array(Bytes* out, size_t start, uint32_t count, const uint32_t* starts) noexcept nogil
cdef int64_t finish_object(Bytes* out, size_t start, uint32_t count, const Field* fields) noexcept nogil
cdef void sort_fields(Field* fields, uint32_t count) noexcept nogil
# Appends a metadata value of count names.
cdef int64_t put_metadata(Bytes* out, uint32_t count, const Slice* names, bint sorted) noexcept nogil
