"""Functions that append encoded variants to growing memory, in as few bytes as possible (VariantEncoding.md)."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memcpy, memmove

from fastpq.encodings.comparison cimport compare_byte_strings
from fastpq.encodings.views cimport Slice
from fastpq.variant.wire cimport (
    ARRAY, KIND_INT8, KIND_INT16, KIND_INT32, KIND_INT64, KIND_STRING, NO_ROOM, OBJECT, SHORT_STRING, TOO_LARGE,
)

cdef extern from "c/variant.h" nogil:
    void variant_store(uint8_t* p, uint32_t value, int width)
    int variant_width(uint32_t value)

cdef size_t LARGEST = 0x7FFFFFFF        # bytes in the largest variant, which is stored as a BYTE_ARRAY value
cdef enum:
    LONGEST_SHORT_STRING = 63           # in bytes, because the length has 6 bits


cdef void bytes_free(Bytes* bytes) noexcept nogil:
    free(bytes.data)
    bytes.data = NULL
    bytes.size = bytes.capacity = 0


cdef int bytes_grow(Bytes* bytes, size_t more) noexcept nogil:
    cdef size_t capacity = max(bytes.size + more, bytes.capacity + (bytes.capacity >> 1), <size_t>64)
    cdef uint8_t* data = <uint8_t*>realloc(bytes.data, capacity)
    if data == NULL:
        return -1
    bytes.data = data
    bytes.capacity = capacity
    return 0


cdef int64_t put_primitive(Bytes* out, int kind, const void* data, size_t size) noexcept nogil:
    cdef uint8_t* end = bytes_add(out, 1 + size)
    if end == NULL:
        return NO_ROOM
    end[0] = <uint8_t>(kind << 2)
    if size:
        memcpy(end + 1, data, size)
    return 0


cdef int64_t put_decimal(Bytes* out, int kind, int scale, const void* unscaled, size_t size) noexcept nogil:
    cdef uint8_t* end = bytes_add(out, 2 + size)
    if end == NULL:
        return NO_ROOM
    end[0] = <uint8_t>(kind << 2)
    end[1] = <uint8_t>scale
    memcpy(end + 2, unscaled, size)
    return 0


cdef int64_t put_integer(Bytes* out, int64_t value) noexcept nogil:
    if <int8_t>value == value:
        return put_primitive(out, KIND_INT8, &value, 1)
    if <int16_t>value == value:
        return put_primitive(out, KIND_INT16, &value, 2)
    if <int32_t>value == value:
        return put_primitive(out, KIND_INT32, &value, 4)
    return put_primitive(out, KIND_INT64, &value, 8)


cdef int64_t put_text(Bytes* out, int kind, Slice text) noexcept nogil:
    cdef uint8_t* end
    cdef size_t header = 1 if kind == KIND_STRING and text.size <= LONGEST_SHORT_STRING else 5
    if text.size > LARGEST - header:
        return TOO_LARGE
    end = bytes_add(out, header + text.size)
    if end == NULL:
        return NO_ROOM
    if header == 1:
        end[0] = <uint8_t>(text.size << 2) | SHORT_STRING
    else:
        end[0] = <uint8_t>(kind << 2)
        variant_store(end + 1, <uint32_t>text.size, 4)
    if text.size:
        memcpy(end + header, text.data, text.size)
    return 0


cdef uint8_t* _make_room(Bytes* out, size_t start, size_t header) noexcept nogil:
    """Insert room for a header at start, and return a pointer to it. The bytes that were there move to the end of the header."""
    cdef size_t size = out.size - start
    if bytes_add(out, header) == NULL:
        return NULL
    if size:
        memmove(out.data + start + header, out.data + start, size)
    return out.data + start


cdef int64_t finish_array(Bytes* out, size_t start, uint32_t count, const uint32_t* starts) noexcept nogil:
    cdef size_t size = out.size - start
    cdef int width, large = count > 0xFF
    cdef uint8_t* at
    cdef uint32_t i
    if size > LARGEST:
        return TOO_LARGE
    width = variant_width(<uint32_t>size)
    at = _make_room(out, start, 1 + (4 if large else 1) + (<size_t>count + 1) * width)
    if at == NULL:
        return NO_ROOM
    at[0] = <uint8_t>((large << 2 | (width - 1)) << 2 | ARRAY)
    variant_store(at + 1, count, 4 if large else 1)
    at += 5 if large else 2
    for i in range(count):
        variant_store(at, starts[i], width)
        at += width
    variant_store(at, <uint32_t>size, width)
    return TOO_LARGE if out.size - start > LARGEST else 0


cdef int64_t finish_object(Bytes* out, size_t start, uint32_t count, const Field* fields) noexcept nogil:
    cdef size_t size = out.size - start
    cdef int width, id_width, large = count > 0xFF
    cdef uint8_t* at
    cdef uint32_t i, highest = 0
    if size > LARGEST:
        return TOO_LARGE
    for i in range(count):
        highest = max(highest, fields[i].id)
    width = variant_width(<uint32_t>size)
    id_width = variant_width(highest)
    at = _make_room(out, start, 1 + (4 if large else 1) + <size_t>count * (id_width + width) + width)
    if at == NULL:
        return NO_ROOM
    at[0] = <uint8_t>((large << 4 | (id_width - 1) << 2 | (width - 1)) << 2 | OBJECT)
    variant_store(at + 1, count, 4 if large else 1)
    at += 5 if large else 2
    for i in range(count):
        variant_store(at, fields[i].id, id_width)
        at += id_width
    for i in range(count):
        variant_store(at, fields[i].start, width)
        at += width
    variant_store(at, <uint32_t>size, width)
    return TOO_LARGE if out.size - start > LARGEST else 0


cdef int _compare_fields(const void* left, const void* right) noexcept nogil:
    return compare_byte_strings((<const Field*>left).name, (<const Field*>right).name)


cdef void sort_fields(Field* fields, uint32_t count) noexcept nogil:
    cdef uint32_t i
    for i in range(1, count):
        if compare_byte_strings(fields[i - 1].name, fields[i].name) > 0:
            qsort(fields, count, sizeof(Field), _compare_fields)
            return


cdef int64_t put_metadata(Bytes* out, uint32_t count, const Slice* names, bint sorted) noexcept nogil:
    cdef uint64_t size = 0
    cdef uint32_t i, offset = 0
    cdef int width
    cdef uint8_t* at
    for i in range(count):
        size += names[i].size
    if size > LARGEST:
        return TOO_LARGE
    width = variant_width(max(<uint32_t>size, count))
    if 1 + (<uint64_t>count + 2) * width + size > LARGEST:
        return TOO_LARGE
    at = bytes_add(out, 1 + (<size_t>count + 2) * width + <size_t>size)
    if at == NULL:
        return NO_ROOM
    at[0] = <uint8_t>(1 | (0x10 if sorted else 0) | (width - 1) << 6)
    variant_store(at + 1, count, width)
    variant_store(at + 1 + width, 0, width)
    at += 1 + 2 * width
    for i in range(count):
        offset += <uint32_t>names[i].size
        variant_store(at, offset, width)
        at += width
    for i in range(count):
        if names[i].size:
            memcpy(at, names[i].data, names[i].size)
        at += names[i].size
    return 0
