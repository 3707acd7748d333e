"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (Encodings.md, "Delta-length byte array" and "Delta Strings").

The first stores all lengths, then all bytes. The second cuts each value into a prefix, which it shares with the value before it,
and a suffix. It stores all prefix lengths. Then it stores the suffixes as the first encoding stores values.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from fastpq.codecs.codec cimport Streams
from fastpq.encodings.delta cimport DeltaDecoder, delta_bound, delta_encode, delta_end, delta_next, delta_start
from fastpq.encodings.interface cimport BYTE_ARRAYS, PageValues, ValueDecoder, ValueEncoder, ValuesToEncode
from fastpq.encodings.status cimport BAD_LENGTH, TRUNCATED
from fastpq.encodings.views cimport Slice

cdef extern from "c/delta_strings.h" nogil:
    int64_t views_of_lengths(const int32_t* lengths, int64_t count, const uint8_t* data, uint64_t size, uint64_t* position,
                             void* out, int32_t buffer, int64_t base) noexcept
    int64_t measure_prefixes(const int32_t* prefixes, const int32_t* suffixes, int64_t count, int64_t previous,
                             int64_t remaining) noexcept
    void views_of_prefixes(const int32_t* prefixes, const int32_t* suffixes, int64_t count, const uint8_t* previous,
                           const uint8_t* suffix, void* out, uint8_t* memory, int32_t buffer) noexcept
    void values_of_prefixes(const int32_t* prefixes, const int32_t* suffixes, int64_t count, const uint8_t* previous,
                            const uint8_t* suffix, uint8_t* out) noexcept
    uint64_t common_prefix(const uint8_t* a, const uint8_t* b, uint64_t most) noexcept

cdef enum:
    BATCH = 1024        # lengths that are decoded at a time
    LENGTH = 4          # bytes in a length
    VIEW = 16           # bytes in a view


# Positions in a page, where decoding continues.
cdef struct DeltaLengths:
    DeltaDecoder lengths
    const uint8_t* data             # all values' bytes, without gaps
    uint64_t size                   # bytes in data
    uint64_t position               # where the next value is in data

cdef struct DeltaStrings:
    DeltaDecoder prefixes
    DeltaLengths suffixes


cdef void delta_lengths_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start_lengths
    decoder.next = next_of_lengths
    decoder.skip = skip_lengths
    decoder.views_into_page = True
    decoder.state_size = sizeof(DeltaLengths)


cdef int64_t start_lengths(PageValues* page) noexcept nogil:
    return start_at(<DeltaLengths*>page.state, page.data, page.data + page.size)


cdef int64_t start_at(DeltaLengths* decoder, const uint8_t* data, const uint8_t* end) noexcept nogil:
    """Start a decoder at lengths that values follow. Returns 0 or a negative Status."""
    cdef int status = delta_start(&decoder.lengths, data, <size_t>(end - data))
    if status < 0:
        return status
    decoder.data = delta_end(&decoder.lengths)
    if decoder.data == NULL:
        return TRUNCATED
    decoder.size = <uint64_t>(end - decoder.data)
    decoder.position = 0
    return 0


cdef int64_t next_of_lengths(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    cdef DeltaLengths* values = <DeltaLengths*>page.state
    cdef int32_t lengths[BATCH]
    cdef int64_t done = 0, part, status
    page.bytes.data = values.data + values.position
    while done < count:
        part = min(count - done, <int64_t>BATCH)
        status = delta_next(&values.lengths, <uint8_t*>lengths, part, LENGTH)
        if status >= 0:
            status = views_of_lengths(lengths, part, values.data, values.size, &values.position, out + done * VIEW, page.buffer,
                                      values.data - page.base)
        if status < 0:
            return status
        done += part
    page.bytes.size = <size_t>(values.data + values.position - page.bytes.data)
    return count


cdef int64_t skip_lengths(PageValues* page, int64_t count) noexcept nogil:
    cdef DeltaLengths* values = <DeltaLengths*>page.state
    cdef int32_t lengths[BATCH]
    cdef int64_t remaining = count, part, status, size
    while remaining:
        part = min(remaining, <int64_t>BATCH)
        status = delta_next(&values.lengths, <uint8_t*>lengths, part, LENGTH)
        if status < 0:
            return status
        size = size_of_lengths(lengths, part)
        if size < 0 or <uint64_t>size > values.size - values.position:
            return BAD_LENGTH
        values.position += <uint64_t>size
        remaining -= part
    return count


cdef int64_t sum_of(const int32_t* lengths, int64_t count) noexcept nogil:
    cdef int64_t i, total = 0
    for i in range(count):
        total += lengths[i]
    return total


cdef int64_t size_of_lengths(const int32_t* lengths, int64_t count) noexcept nogil:
    """Return the sum of some lengths, or -1 if one is negative."""
    cdef int32_t signs = 0
    cdef int64_t i
    for i in range(count):
        signs |= lengths[i]
    return -1 if signs < 0 else sum_of(lengths, count)


cdef void delta_strings_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start_strings
    decoder.next = next_strings
    decoder.measure = measure
    decoder.shares_prefixes = True
    decoder.scratch = 2 * sizeof(int32_t)       # for a prefix length and a suffix length
    decoder.state_size = sizeof(DeltaStrings)


cdef int64_t start_strings(PageValues* page) noexcept nogil:
    cdef DeltaStrings* values = <DeltaStrings*>page.state
    cdef const uint8_t* suffixes
    cdef int status = delta_start(&values.prefixes, page.data, <size_t>page.size)
    if status < 0:
        return status
    suffixes = delta_end(&values.prefixes)
    return TRUNCATED if suffixes == NULL else start_at(&values.suffixes, suffixes, page.data + page.size)


cdef int64_t measure(PageValues* page, int64_t count) noexcept nogil:
    """Decode the next prefix and suffix lengths. Returns how many bytes of memory the values need, or a negative Status."""
    cdef DeltaStrings* values = <DeltaStrings*>page.state
    cdef int32_t* prefixes = <int32_t*>page.scratch
    cdef int32_t* suffixes = prefixes + count
    cdef int64_t status = delta_next(&values.prefixes, <uint8_t*>prefixes, count, LENGTH)
    if status >= 0:
        status = delta_next(&values.suffixes.lengths, <uint8_t*>suffixes, count, LENGTH)
    if status < 0:
        return status
    return measure_prefixes(
        prefixes, suffixes, count, <int64_t>page.previous.size, <int64_t>(values.suffixes.size - values.suffixes.position))


cdef int64_t next_strings(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    cdef DeltaLengths* data = &(<DeltaStrings*>page.state).suffixes
    cdef int32_t* prefixes = <int32_t*>page.scratch
    cdef int32_t* suffixes = prefixes + count
    cdef int64_t status, i
    if page.form != BYTE_ARRAYS:        # the reader does not measure fixed-width values
        status = measure(page, count)
        if status < 0:
            return status
        for i in range(count):
            if <size_t>(prefixes[i] + suffixes[i]) != page.width:
                return BAD_LENGTH
    page.bytes.data = data.data + data.position
    page.bytes.size = <size_t>sum_of(suffixes, count)
    data.position += page.bytes.size
    if page.form == BYTE_ARRAYS:
        views_of_prefixes(
            prefixes, suffixes, count, page.previous.data, page.bytes.data, out, page.memory, page.buffer)
    else:
        values_of_prefixes(prefixes, suffixes, count, page.previous.data, page.bytes.data, out)
    return count


cdef void delta_lengths_encoder(ValueEncoder* encoder) noexcept:
    encoder.bound = bound_of_lengths
    encoder.encode = encode_lengths
    encoder.streams = lengths_and_bytes
    encoder.scratch = sizeof(int32_t)


cdef int64_t bound_of_lengths(const ValuesToEncode* values) noexcept nogil:
    return delta_bound(values.count, LENGTH) + values.plain_size


cdef int64_t encode_lengths(const ValuesToEncode* values, uint8_t* out) noexcept nogil:
    cdef int32_t* lengths = <int32_t*>values.scratch
    cdef uint8_t* start = out
    cdef int64_t i
    for i in range(values.count):
        lengths[i] = <int32_t>values.slices[i].size
    out += delta_encode(<uint8_t*>lengths, values.count, LENGTH, out)
    for i in range(values.count):
        memcpy(out, values.slices[i].data, values.slices[i].size)
        out += values.slices[i].size
    return out - start


cdef Streams lengths_and_bytes(const ValuesToEncode* values, int64_t size) noexcept nogil:
    cdef Streams streams
    streams.each = values.plain_size - values.count * <int64_t>sizeof(int32_t)      # PLAIN has four bytes for each length
    streams.first = size - streams.each
    return streams


cdef void delta_strings_encoder(ValueEncoder* encoder) noexcept:
    encoder.bound = bound_of_strings
    encoder.encode = encode_strings
    encoder.streams = lengths_and_suffixes
    encoder.takes_slices = True
    encoder.scratch = 2 * sizeof(int32_t)       # for a prefix length and a suffix length


cdef int64_t bound_of_strings(const ValuesToEncode* values) noexcept nogil:
    return 2 * delta_bound(values.count, LENGTH) + values.plain_size


cdef int64_t encode_strings(const ValuesToEncode* values, uint8_t* out) noexcept nogil:
    cdef const Slice* value = values.slices
    cdef int32_t* prefixes = <int32_t*>values.scratch
    cdef int32_t* suffixes = prefixes + values.count
    cdef uint8_t* start = out
    cdef int64_t i
    cdef uint64_t shared = 0
    for i in range(values.count):
        if i:
            shared = common_prefix(value[i - 1].data, value[i].data, min(value[i - 1].size, value[i].size))
        prefixes[i] = <int32_t>shared
        suffixes[i] = <int32_t>(value[i].size - shared)
    out += delta_encode(<uint8_t*>prefixes, values.count, LENGTH, out)
    out += delta_encode(<uint8_t*>suffixes, values.count, LENGTH, out)
    for i in range(values.count):
        memcpy(out, value[i].data + prefixes[i], <size_t>suffixes[i])
        out += suffixes[i]
    return out - start


cdef Streams lengths_and_suffixes(const ValuesToEncode* values, int64_t size) noexcept nogil:
    cdef const int32_t* suffixes = <const int32_t*>values.scratch + values.count      # encode_strings left them there
    cdef Streams streams
    cdef int64_t i
    streams.each = 0
    for i in range(values.count):
        streams.each += suffixes[i]
    streams.first = size - streams.each
    return streams
