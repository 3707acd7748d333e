"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (Encodings.md, "Delta-length byte array" and "Delta Strings").

The first stores all lengths, then all bytes; the second stores each value as the length of a prefix shared with the value before
and a suffix.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from fastpq.encodings.delta cimport delta_bound, delta_encode, delta_end, delta_next, delta_start
from fastpq.encodings.status cimport BAD_LENGTH, TRUNCATED, raise_status
from fastpq.encodings.views cimport Slice, View

cdef extern from "c/delta_strings.h" nogil:
    int64_t views_of_lengths(const int32_t* lengths, int64_t count, const uint8_t* data, uint64_t size, uint64_t* position,
                             void* out, int32_t buffer, int64_t base) noexcept
    int64_t measure_prefixes(const int32_t* prefixes, const int32_t* suffixes, int64_t count, int64_t previous,
                             int64_t left) noexcept
    void views_of_prefixes(const int32_t* prefixes, const int32_t* suffixes, int64_t count, const uint8_t* previous,
                           const uint8_t* suffix, void* out, uint8_t* memory, int32_t buffer) noexcept
    void values_of_prefixes(const int32_t* prefixes, const int32_t* suffixes, int64_t count, const uint8_t* previous,
                            const uint8_t* suffix, uint8_t* out) noexcept
    uint64_t common_prefix(const uint8_t* a, const uint8_t* b, uint64_t most) noexcept

cdef enum:
    BATCH = 1024        # lengths decoded at a time, before their values
    LENGTH = 4          # bytes of a length, an INT32


cdef int delta_lengths_start(DeltaLengths* decoder, const uint8_t* data, size_t size) noexcept nogil:
    cdef int status = delta_start(&decoder.lengths, data, size)
    if status < 0:
        return status
    decoder.data = delta_end(&decoder.lengths)
    if decoder.data == NULL:
        return TRUNCATED
    decoder.size = <uint64_t>(data + size - decoder.data)
    decoder.position = 0
    return 0


cdef int64_t delta_lengths_next(DeltaLengths* decoder, View* out, int64_t count, int32_t buffer, int64_t base) noexcept nogil:
    cdef int32_t lengths[1024]
    cdef int64_t done = 0, some, status
    while done < count:
        some = min(count - done, <int64_t>BATCH)
        status = delta_next(&decoder.lengths, <uint8_t*>lengths, some, LENGTH)
        if status >= 0:
            status = views_of_lengths(lengths, some, decoder.data, decoder.size, &decoder.position, out + done, buffer, base)
        if status < 0:
            return status
        done += some
    return count


cdef int delta_strings_start(DeltaStrings* decoder, const uint8_t* data, size_t size) noexcept nogil:
    cdef const uint8_t* suffixes
    cdef int status = delta_start(&decoder.prefixes, data, size)
    if status < 0:
        return status
    suffixes = delta_end(&decoder.prefixes)
    if suffixes == NULL:
        return TRUNCATED
    return delta_lengths_start(&decoder.suffixes, suffixes, <size_t>(data + size - suffixes))


cdef int64_t delta_strings_measure(DeltaStrings* decoder, int64_t count, int64_t previous, int32_t* prefixes,
                                   int32_t* suffixes) noexcept nogil:
    cdef int64_t status = delta_next(&decoder.prefixes, <uint8_t*>prefixes, count, LENGTH)
    if status >= 0:
        status = delta_next(&decoder.suffixes.lengths, <uint8_t*>suffixes, count, LENGTH)
    if status < 0:
        return status
    return measure_prefixes(prefixes, suffixes, count, previous, <int64_t>(decoder.suffixes.size - decoder.suffixes.position))


cdef void delta_strings_next(DeltaStrings* decoder, int64_t count, const uint8_t* previous, const int32_t* prefixes,
                             const int32_t* suffixes, View* out, uint8_t* memory, int32_t buffer) noexcept nogil:
    cdef DeltaLengths* data = &decoder.suffixes
    views_of_prefixes(prefixes, suffixes, count, previous, data.data + data.position, out, memory, buffer)
    data.position += <uint64_t>sum_of(suffixes, count)


cdef int64_t delta_strings_next_fixed(DeltaStrings* decoder, int64_t count, Slice previous, int32_t* lengths, size_t width,
                                      uint8_t* out) noexcept nogil:
    cdef DeltaLengths* data = &decoder.suffixes
    cdef int32_t* suffixes = lengths + count
    cdef int64_t i, status = delta_strings_measure(decoder, count, <int64_t>previous.size, lengths, suffixes)
    if status < 0:
        return status
    for i in range(count):
        if <size_t>(lengths[i] + suffixes[i]) != width:
            return BAD_LENGTH
    values_of_prefixes(lengths, suffixes, count, previous.data, data.data + data.position, out)
    data.position += <uint64_t>sum_of(suffixes, count)
    return count


cdef int64_t sum_of(const int32_t* lengths, int64_t count) noexcept nogil:
    cdef int64_t i, total = 0
    for i in range(count):
        total += lengths[i]
    return total


cdef int64_t delta_lengths_bound(int64_t count, int64_t total) noexcept nogil:
    return delta_bound(count, LENGTH) + total


cdef int64_t delta_strings_bound(int64_t count, int64_t total) noexcept nogil:
    return 2 * delta_bound(count, LENGTH) + total


cdef int64_t delta_lengths_encode(const Slice* values, int64_t count, int32_t* lengths, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    cdef int64_t i
    for i in range(count):
        lengths[i] = <int32_t>values[i].size
    out += delta_encode(<uint8_t*>lengths, count, LENGTH, out)
    for i in range(count):
        memcpy(out, values[i].data, values[i].size)
        out += values[i].size
    return out - start


cdef int64_t delta_strings_encode(const Slice* values, int64_t count, int32_t* lengths, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    cdef int32_t* suffixes = lengths + count
    cdef int64_t i
    cdef uint64_t shared = 0
    for i in range(count):
        if i:
            shared = common_prefix(values[i - 1].data, values[i].data, min(values[i - 1].size, values[i].size))
        lengths[i] = <int32_t>shared
        suffixes[i] = <int32_t>(values[i].size - shared)
    out += delta_encode(<uint8_t*>lengths, count, LENGTH, out)
    out += delta_encode(<uint8_t*>suffixes, count, LENGTH, out)
    for i in range(count):
        memcpy(out, values[i].data + lengths[i], <size_t>suffixes[i])
        out += suffixes[i]
    return out - start


def decode_lengths(const uint8_t[::1] data, Py_ssize_t count, int buffer=0):
    """The first count values of a DELTA_LENGTH_BYTE_ARRAY page, as views (dtype V16) into data.

    Raises:
        FormatError: the data end early or a length points outside the data.
    """
    cdef DeltaLengths decoder
    cdef const uint8_t* first = &data[0] if data.shape[0] else NULL
    cdef int64_t done
    out = np.zeros(max(count, 1), dtype="V16")
    cdef uint8_t[::1] views = out.view(np.uint8)
    raise_status(delta_lengths_start(&decoder, first, <size_t>data.shape[0]), "DELTA_LENGTH_BYTE_ARRAY")
    with nogil:
        done = delta_lengths_next(&decoder, <View*>&views[0], count, buffer, decoder.data - first)
    raise_status(done, "DELTA_LENGTH_BYTE_ARRAY")
    return out[:count]


def decode_strings(const uint8_t[::1] data, Py_ssize_t count, bytes previous=b"", int buffer=0):
    """The first count values of a DELTA_BYTE_ARRAY page, as (views of dtype V16, bytes behind the views).

    Args:
        data: the values of a page.
        count: number of values to decode.
        previous: the last value of the page before; some writers share prefixes across pages (PARQUET-246).
        buffer: number of the returned bytes in the views.

    Raises:
        FormatError: the data end early, or a prefix is longer than the value before.
    """
    cdef DeltaStrings decoder
    cdef const uint8_t* first = &data[0] if data.shape[0] else NULL
    cdef int64_t size
    cdef const uint8_t* before = <const uint8_t*>previous
    out = np.zeros(max(count, 1), dtype="V16")
    cdef uint8_t[::1] views = out.view(np.uint8)
    cdef int32_t[::1] lengths = np.empty(2 * max(count, 1), dtype=np.int32)
    raise_status(delta_strings_start(&decoder, first, <size_t>data.shape[0]), "DELTA_BYTE_ARRAY")
    size = delta_strings_measure(&decoder, count, len(previous), &lengths[0], &lengths[max(count, 1)])
    raise_status(size, "DELTA_BYTE_ARRAY")
    cdef uint8_t[::1] memory = np.empty(size + 1, dtype=np.uint8)
    with nogil:
        delta_strings_next(&decoder, count, before, &lengths[0], &lengths[max(count, 1)], <View*>&views[0], &memory[0], buffer)
    return out[:count], np.asarray(memory)[:size]


def encode(const uint8_t[::1] data, const int64_t[::1] offsets, bint prefixes):
    """The page of the values data[offsets[i]:offsets[i + 1]], as bytes.

    Args:
        data: the bytes of all values.
        offsets: start of each value in data, and the end of the last value.
        prefixes: encode as DELTA_BYTE_ARRAY; else as DELTA_LENGTH_BYTE_ARRAY.
    """
    cdef int64_t count = offsets.shape[0] - 1, i, size
    cdef int32_t[::1] lengths = np.empty(2 * max(count, 1), dtype=np.int32)
    cdef const uint8_t* first = &data[0] if data.shape[0] else <const uint8_t*>&lengths[0]     # any address will do
    cdef uint8_t[::1] out = np.empty(delta_strings_bound(count, data.shape[0]), dtype=np.uint8)
    for i in range(count):
        if not 0 <= offsets[i] <= offsets[i + 1] <= data.shape[0]:
            raise ValueError(f"value {i} lies outside the data")
    cdef Slice* values = <Slice*>malloc(<size_t>(count + 1) * sizeof(Slice))
    if values == NULL:
        raise MemoryError
    for i in range(count):
        values[i].data = first + offsets[i]
        values[i].size = <size_t>(offsets[i + 1] - offsets[i])
    with nogil:
        if prefixes:
            size = delta_strings_encode(values, count, &lengths[0], &out[0])
        else:
            size = delta_lengths_encode(values, count, &lengths[0], &out[0])
    free(values)
    return np.asarray(out)[:size].tobytes()
