"""PLAIN (Encodings.md, "Plain"): the stored form in memory, behind a length for BYTE_ARRAY. Also UTF-8 checks."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fastpq.encodings.interface cimport (
    BOOLEANS, BYTE_ARRAYS, PageValues, ValueDecoder, ValueEncoder, ValuesToEncode, start_anywhere,
)
from fastpq.encodings.levels cimport bitmap_to_bytes, bytes_to_bitmap
from fastpq.encodings.status cimport TRUNCATED
from fastpq.encodings.views cimport Slice, View

cdef extern from "c/strings.h" nogil:
    int64_t bytes_outside(const void* data, int64_t count) noexcept
    uint8_t* pack_outside(void* data, int64_t count, uint8_t* base, uint8_t* out) noexcept

cdef enum:
    SAMPLE = 1024           # pack_views looks at so many first values to decide whether to move any
    PACKED_SHARE = 8        # it moves values if long values take less than one in so many bytes


cdef uint8_t* pack_views(View* views, int64_t count, int64_t size, uint8_t* base, uint8_t* out) noexcept nogil:
    cdef int64_t first = min(count, <int64_t>SAMPLE)
    if count == 0 or bytes_outside(views, first) * PACKED_SHARE >= size * first // count:
        return NULL
    return pack_outside(views, count, base, out)


cdef int64_t plain_encode_slices(const Slice* values, int64_t count, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    cdef uint32_t size
    cdef int64_t i
    for i in range(count):
        size = <uint32_t>values[i].size
        memcpy(out, &size, 4)
        memcpy(out + 4, values[i].data, size)
        out += 4 + <size_t>size
    return out - start


cdef int64_t invalid_utf8_place(const Slice* values, int64_t count) noexcept nogil:
    cdef uint64_t bits = 0
    cdef int64_t i
    for i in range(count):
        bits |= utf8_high_bits(values[i].data, values[i].size)
    if bits == 0:
        return -1
    for i in range(count):
        if not utf8_is_valid(values[i].data, values[i].size):
            return i
    return -1


cdef void plain_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start_anywhere
    decoder.next = next_values
    decoder.skip = skip_values
    decoder.views_into_page = True
    decoder.stores_plain = True


cdef int64_t next_values(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    cdef const uint8_t* first = page.data
    cdef int64_t size
    if page.form == BOOLEANS:
        if (page.position + count + 7) // 8 > page.size:
            return TRUNCATED
        bitmap_to_bytes(first, page.position, count, out)
        return count
    if page.form == BYTE_ARRAYS:
        size = read_views(first, <uint64_t>page.size, count, out, page.buffer, first - page.base)
        page.bytes.data = first
        page.bytes.size = <size_t>size
    else:
        size = count * <int64_t>page.width
        if size > page.size:
            return TRUNCATED
        memcpy(out, first, <size_t>size)
    return move(page, size, count)


cdef int64_t skip_values(PageValues* page, int64_t count) noexcept nogil:
    cdef int64_t size = count * <int64_t>page.width, _i
    cdef uint32_t length
    if page.form == BOOLEANS:
        return count                # next_values finds its bit by the position
    if page.form == BYTE_ARRAYS:
        size = 0
        for _i in range(count):
            if page.size - size < 4:
                return TRUNCATED
            memcpy(&length, page.data + size, 4)
            size += 4 + <int64_t>length
    return TRUNCATED if size > page.size else move(page, size, count)


cdef inline int64_t move(PageValues* page, int64_t size, int64_t count) noexcept nogil:
    """Move behind count values that have size bytes, and return count. If size is a negative Status, return it instead."""
    if size < 0:
        return size
    page.data += size
    page.size -= size
    return count


cdef void plain_encoder(ValueEncoder* encoder) noexcept:
    encoder.bound = bound
    encoder.encode = encode_values


cdef int64_t bound(const ValuesToEncode* values) noexcept nogil:
    return values.plain_size + 1


cdef int64_t encode_values(const ValuesToEncode* values, uint8_t* out) noexcept nogil:
    if values.form == BOOLEANS:
        bytes_to_bitmap(values.values, values.count, out)
        return (values.count + 7) // 8
    if values.form == BYTE_ARRAYS:
        return plain_encode_slices(values.slices, values.count, out)
    memcpy(out, values.values, <size_t>values.count * values.width)
    return values.count * <int64_t>values.width
