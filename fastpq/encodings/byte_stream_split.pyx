"""BYTE_STREAM_SPLIT (Encodings.md, "Byte Stream Split"): the first byte of every value, then the second byte, and so on."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.codecs.codec cimport Streams
from fastpq.encodings.interface cimport (
    PageValues, ValueDecoder, ValueEncoder, ValuesToEncode, skip_by_position, start_anywhere,
)
from fastpq.encodings.status cimport BAD_LENGTH, TRUNCATED

cdef extern from "c/byte_stream_split.h" nogil:
    void join_streams(const uint8_t* streams, int64_t stride, int64_t count, uint8_t* out, int64_t width) noexcept
    void split_values(const uint8_t* values, int64_t count, uint8_t* streams, int64_t width) noexcept


cdef void split_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start_anywhere
    decoder.next = next_values
    decoder.skip = skip_by_position


cdef int64_t next_values(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    cdef int64_t values, width = <int64_t>page.width
    if width == 0 or page.size % width:
        return BAD_LENGTH       # the page size alone says where each stream starts, so padding would shift them
    values = page.size // width
    if page.position > values or count > values - page.position:
        return TRUNCATED
    join_streams(page.data + page.position, values, count, out, width)
    return count


cdef void split_encoder(ValueEncoder* encoder) noexcept:
    encoder.bound = bound
    encoder.encode = encode_values
    encoder.streams = streams_of_values


cdef int64_t bound(const ValuesToEncode* values) noexcept nogil:
    return values.plain_size


cdef int64_t encode_values(const ValuesToEncode* values, uint8_t* out) noexcept nogil:
    split_values(values.values, values.count, out, <int64_t>values.width)
    return values.count * <int64_t>values.width


cdef Streams streams_of_values(const ValuesToEncode* values, int64_t size) noexcept nogil:
    cdef Streams streams
    streams.first = streams.each = values.count
    return streams
