"""Growing memory, and functions that append encoded variants to it (VariantEncoding.md)."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy
from fastpq.encodings.views cimport Slice


cdef struct Bytes:
    uint8_t* data
    size_t size
    size_t capacity


# A field whose value is already written. Its object is not finished.
cdef struct Field:
    Slice name
    uint32_t id         # the name's id in the metadata dictionary
    uint32_t start      # the value's offset from the object's first value


cdef void bytes_free(Bytes* bytes) noexcept nogil
cdef int bytes_grow(Bytes* bytes, size_t more) noexcept nogil


cdef inline uint8_t* bytes_add(Bytes* bytes, size_t more) noexcept nogil:
    # Add `more` bytes with undefined contents, and return their start. Return NULL if there is no memory.
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


# Each put_ function appends to out, and returns 0 or an error (Wrong in wire.pxd).
cdef int64_t put_primitive(Bytes* out, int kind, const void* data, size_t size) noexcept nogil
cdef int64_t put_decimal(Bytes* out, int kind, int scale, const void* unscaled, size_t size) noexcept nogil
cdef int64_t put_integer(Bytes* out, int64_t value) noexcept nogil
cdef int64_t put_text(Bytes* out, int kind, Slice text) noexcept nogil
# Both functions insert a header at start, which makes an array or an object from the values behind it. Element and field starts
# are relative to start.
cdef int64_t finish_array(Bytes* out, size_t start, uint32_t count, const uint32_t* starts) noexcept nogil
cdef int64_t finish_object(Bytes* out, size_t start, uint32_t count, const Field* fields) noexcept nogil
cdef void sort_fields(Field* fields, uint32_t count) noexcept nogil
# Append metadata that have count names.
cdef int64_t put_metadata(Bytes* out, uint32_t count, const Slice* names, bint sorted) noexcept nogil
