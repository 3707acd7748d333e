"""ALP (AlpEncoding.md), a preview encoding: floats and doubles as bit-packed decimal integers.

A page is a header, each vector's offset, and the vectors. A vector is up to VECTOR values with one exponent and one factor. Some
values cannot be restored from such an integer. These exceptions are stored unchanged.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastpq.encodings.interface cimport (
    PageValues, ValueDecoder, ValueEncoder, ValuesToEncode, skip_by_position, start_anywhere,
)
from fastpq.encodings.status cimport BAD_LENGTH, BAD_RUN, TRUNCATED

cdef extern from "c/bitpack.h" nogil:
    void pack_groups(const uint32_t* values, uint8_t* out, int64_t groups, int width) noexcept
    void pack_groups64(const uint64_t* values, uint8_t* out, int64_t groups, int width) noexcept

cdef extern from "c/delta.h" nogil:
    void narrow64(const uint64_t* values, int64_t count, uint32_t* out) noexcept
    int width_of(uint64_t bits) noexcept

cdef extern from "c/alp.h" nogil:
    int EXPONENT32 "FASTPQ_ALP_EXPONENT32"
    int EXPONENT64 "FASTPQ_ALP_EXPONENT64"
    void alp_unpacked(const uint8_t* data, int64_t available, int64_t first, int64_t count, int width, uint64_t base,
                      int exponent, int factor, size_t size, uint8_t* out) noexcept
    int64_t alp_integers32(const uint8_t* values, int64_t count, int exponent, int factor, uint32_t* integers,
                           uint8_t* exceptional) noexcept
    int64_t alp_integers64(const uint8_t* values, int64_t count, int exponent, int factor, uint64_t* integers,
                           uint8_t* exceptional) noexcept
    int64_t alp_positions(const uint8_t* exceptional, int64_t count, uint16_t* positions) noexcept
    int32_t alp_frame32(uint32_t* integers, const uint8_t* exceptional, int64_t count, uint64_t* bits) noexcept
    int64_t alp_frame64(uint64_t* integers, const uint8_t* exceptional, int64_t count, uint64_t* bits) noexcept

cdef enum:
    HEADER = 7                  # bytes in a page header
    SMALLEST_LOG = 3            # a vector has at least 2^3 values
    LARGEST_LOG = 15            # a vector has at most 2^15 values
    VECTOR_LOG = 10             # a written vector has 2^10 values, which is the specification's default
    VECTOR = 1 << VECTOR_LOG
    SAMPLE = 256                # values from a page that are tried with each exponent and factor
    VECTOR_SAMPLE = 32          # values from a vector that are tried with each of the page's candidate pairs
    PAIRS = 5                   # candidate pairs (exponent, factor) for a page


cdef struct AlpVector:
    int exponent
    int factor
    int64_t exceptions
    uint64_t base               # the smallest integer, which is subtracted from all
    int bits                    # bit width of a packed difference
    const uint8_t* packed
    int64_t available           # bytes from packed to the end of the page
    const uint8_t* positions    # where the exceptions are in the vector, two bytes each
    const uint8_t* values       # the exceptions themselves


cdef inline int64_t load32(const uint8_t* data) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, data, 4)
    return value


cdef int64_t read_vector(AlpVector* vector, const uint8_t* data, int64_t available, int64_t count, size_t width) noexcept nogil:
    """Read the header of a vector with count values. Returns how many bytes the whole vector has, or a negative Status."""
    cdef int64_t packed_size, head = 5 + <int64_t>width, size
    cdef uint16_t exceptions
    cdef int32_t base
    if available < head:
        return TRUNCATED
    vector.exponent = data[0]
    vector.factor = data[1]
    memcpy(&exceptions, data + 2, 2)
    vector.exceptions = exceptions
    if width == 4:
        memcpy(&base, data + 4, 4)
        vector.base = <uint64_t>base
    else:
        memcpy(&vector.base, data + 4, 8)
    vector.bits = data[4 + width]
    if vector.exponent > (EXPONENT32 if width == 4 else EXPONENT64) or vector.factor > vector.exponent:
        return BAD_RUN
    if vector.bits > 8 * <int>width:
        return BAD_RUN
    if vector.exceptions > count:
        return BAD_LENGTH
    packed_size = (count * vector.bits + 7) // 8
    size = head + packed_size + vector.exceptions * (2 + <int64_t>width)
    if size > available:
        return TRUNCATED
    vector.packed = data + head
    vector.available = available - head
    vector.positions = vector.packed + packed_size
    vector.values = vector.positions + 2 * vector.exceptions
    return size


cdef int64_t patch(const AlpVector* vector, int64_t size, int64_t first, int64_t count, size_t width,
                   uint8_t* out) noexcept nogil:
    """Put the exceptions in their places among the decoded values [first, first + count) in out. Returns 0 or BAD_LENGTH.

    size: how many values the vector has.
    """
    cdef uint16_t position
    cdef int64_t i
    for i in range(vector.exceptions):
        memcpy(&position, vector.positions + 2 * i, 2)
        if position >= size:
            return BAD_LENGTH
        if first <= position < first + count:
            memcpy(out + <size_t>(position - first) * width, vector.values + <size_t>i * width, width)
    return 0


cdef int64_t next_values(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    cdef int64_t size = page.size, start = page.position, done = 0
    cdef int64_t total, vector_size, vectors, index, first, part, in_vector, offset, vector_bytes, status
    cdef size_t width = page.width
    cdef const uint8_t* data = page.data
    cdef const uint8_t* offsets = data + HEADER
    cdef AlpVector vector
    if size < HEADER:
        return TRUNCATED
    total = load32(data + 3)
    if data[0] != 0 or data[1] != 0 or not SMALLEST_LOG <= data[2] <= LARGEST_LOG:
        return BAD_RUN
    if total > INT32_MAX:
        return BAD_LENGTH
    if start > total or count > total - start:
        return TRUNCATED
    vector_size = <int64_t>1 << data[2]
    vectors = (total + vector_size - 1) // vector_size
    size -= HEADER
    if vectors > size // 4:
        return TRUNCATED
    if vectors and load32(offsets) != 4 * vectors:
        return BAD_LENGTH
    while done < count:
        index = (start + done) // vector_size
        first = (start + done) % vector_size
        in_vector = min(vector_size, total - index * vector_size)
        part = min(count - done, in_vector - first)
        offset = load32(offsets + 4 * index)
        if offset < 4 * vectors or offset > size:
            return BAD_LENGTH
        vector_bytes = read_vector(&vector, offsets + offset, size - offset, in_vector, width)
        if vector_bytes < 0:
            return vector_bytes
        if index + 1 < vectors and load32(offsets + 4 * index + 4) != offset + vector_bytes:
            return BAD_LENGTH
        alp_unpacked(vector.packed, vector.available, first, part, vector.bits, vector.base, vector.exponent, vector.factor,
                     width, out + <size_t>done * width)
        status = patch(&vector, in_vector, first, part, width, out + <size_t>done * width)
        if status < 0:
            return status
        done += part
    return count


cdef void alp_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start_anywhere
    decoder.next = next_values
    decoder.skip = skip_by_position


cdef struct Pair:
    int exponent
    int factor
    int64_t cost                # bits in the encoded sample


cdef union Integers:
    uint32_t narrow[VECTOR]
    uint64_t wide[VECTOR]


cdef int64_t to_integers(const uint8_t* values, int64_t count, size_t width, int exponent, int factor, Integers* integers,
                         uint8_t* exceptional, uint64_t* base, int* bits) noexcept nogil:
    """Convert at most VECTOR values to integers, and subtract the smallest. Returns how many exceptions there are.

    base is set to the smallest integer, and bits to the bit width that the widest difference needs.
    """
    cdef int64_t exceptions
    cdef uint64_t all_bits
    if width == 4:
        exceptions = alp_integers32(values, count, exponent, factor, integers.narrow, exceptional)
        base[0] = <uint64_t>alp_frame32(integers.narrow, exceptional, count, &all_bits)
    else:
        exceptions = alp_integers64(values, count, exponent, factor, integers.wide, exceptional)
        base[0] = <uint64_t>alp_frame64(integers.wide, exceptional, count, &all_bits)
    bits[0] = width_of(all_bits)
    return exceptions


cdef int64_t cost_of(const uint8_t* values, int64_t count, size_t width, const Pair* pair) noexcept nogil:
    cdef Integers integers
    cdef uint8_t exceptional[VECTOR]
    cdef uint64_t base
    cdef int bits
    cdef int64_t exceptions
    exceptions = to_integers(values, count, width, pair.exponent, pair.factor, &integers, exceptional, &base, &bits)
    return count * bits + exceptions * (16 + 8 * <int64_t>width)


cdef inline void copy_value(const uint8_t* values, int64_t place, size_t width, uint8_t* out) noexcept nogil:
    if width == 4:          # memcpy with a constant size needs no call
        memcpy(out, values + 4 * place, 4)
    else:
        memcpy(out, values + 8 * place, 8)


cdef int64_t copy_sample(const uint8_t* values, int64_t count, size_t width, int64_t most, uint8_t* out) noexcept nogil:
    """Copy at most `most` values to out, evenly spread. Returns how many it copied."""
    cdef int64_t i, part = min(count, most)
    for i in range(part):
        copy_value(values, i * count // part, width, out + <size_t>i * width)
    return part


cdef int choose_pairs(const uint8_t* values, int64_t count, size_t width, Pair* pairs) noexcept nogil:
    """Choose a page's candidate pairs, which encode a sample in the fewest bits. Returns how many pairs there are."""
    cdef uint8_t sample[SAMPLE * 8]
    cdef int64_t part = copy_sample(values, count, width, SAMPLE, sample)
    cdef int exponent, factor, place, pairs_count = 0
    cdef Pair pair
    for exponent in range((EXPONENT32 if width == 4 else EXPONENT64) + 1):
        for factor in range(exponent + 1):
            pair.exponent = exponent
            pair.factor = factor
            pair.cost = cost_of(sample, part, width, &pair)
            if pairs_count == PAIRS and pair.cost >= pairs[PAIRS - 1].cost:
                continue
            pairs_count = min(pairs_count + 1, <int>PAIRS)
            place = pairs_count - 1
            while place and pairs[place - 1].cost > pair.cost:
                pairs[place] = pairs[place - 1]
                place -= 1
            pairs[place] = pair
    return pairs_count


cdef Pair choose_pair(const uint8_t* values, int64_t count, size_t width, const Pair* pairs, int pairs_count) noexcept nogil:
    """Return the candidate pair that encodes a sample from a vector in the fewest bits."""
    cdef uint8_t sample[VECTOR_SAMPLE * 8]
    cdef int64_t part = copy_sample(values, count, width, VECTOR_SAMPLE, sample), cost, least = 0
    cdef int i, best = 0
    for i in range(pairs_count):
        cost = cost_of(sample, part, width, &pairs[i])
        if i == 0 or cost < least:
            best = i
            least = cost
    return pairs[best]


cdef int64_t write_packed(Integers* integers, int64_t count, size_t width, int bits, uint8_t* out) noexcept nogil:
    """Write count integers with `bits` bits each to out. Returns how many bytes it wrote.

    Integers are packed in whole groups of 32. The last group may not fit into out, so they are packed into a buffer first.
    """
    cdef uint8_t packed[VECTOR * 8]
    cdef int64_t groups = (count + 31) // 32, size = (count * bits + 7) // 8
    if bits == 0:
        return 0
    if width == 4:
        memset(integers.narrow + count, 0, <size_t>(groups * 32 - count) * 4)
        pack_groups(integers.narrow, packed, groups, bits)
    else:
        memset(integers.wide + count, 0, <size_t>(groups * 32 - count) * 8)
        if bits > 32:
            pack_groups64(integers.wide, packed, groups, bits)
        else:
            narrow64(integers.wide, groups * 32, integers.narrow)
            pack_groups(integers.narrow, packed, groups, bits)
    memcpy(out, packed, <size_t>size)
    return size


cdef uint8_t* write_vector(const uint8_t* values, int64_t count, size_t width, Pair pair, uint8_t* out) noexcept nogil:
    cdef Integers integers
    cdef uint8_t exceptional[VECTOR]
    cdef uint64_t base
    cdef int bits
    cdef uint16_t positions[VECTOR + 8]
    cdef uint16_t exceptions
    cdef int64_t i
    exceptions = <uint16_t>to_integers(values, count, width, pair.exponent, pair.factor, &integers, exceptional, &base, &bits)
    out[0] = <uint8_t>pair.exponent
    out[1] = <uint8_t>pair.factor
    memcpy(out + 2, &exceptions, 2)
    memcpy(out + 4, &base, width)       # for floats, only the first four bytes: the machine is little-endian
    out[4 + width] = <uint8_t>bits
    out += 5 + width
    out += write_packed(&integers, count, width, bits, out)
    if exceptions:
        alp_positions(exceptional, count, positions)
        memcpy(out, positions, 2 * <size_t>exceptions)
        out += 2 * <size_t>exceptions
        for i in range(exceptions):
            copy_value(values, positions[i], width, out + <size_t>i * width)
        out += exceptions * width
    return out


cdef void alp_encoder(ValueEncoder* encoder) noexcept:
    encoder.bound = bound
    encoder.encode = encode_values


cdef int64_t bound(const ValuesToEncode* values) noexcept nogil:
    cdef int64_t count = values.count, width = <int64_t>values.width
    return HEADER + (count // VECTOR + 1) * (4 + 5 + width) + count * (2 + 2 * width)


cdef int64_t encode_values(const ValuesToEncode* values, uint8_t* out) noexcept nogil:
    cdef int64_t count = values.count, vectors = (count + VECTOR - 1) // VECTOR, index, part
    cdef size_t width = values.width
    cdef uint8_t* offsets = out + HEADER
    cdef uint8_t* end = offsets + 4 * vectors
    cdef const uint8_t* first
    cdef uint32_t number = <uint32_t>count
    cdef Pair pairs[PAIRS]
    cdef int pairs_count = choose_pairs(values.values, count, width, pairs)
    out[0] = out[1] = 0
    out[2] = VECTOR_LOG
    memcpy(out + 3, &number, 4)
    for index in range(vectors):
        number = <uint32_t>(end - offsets)
        memcpy(offsets + 4 * index, &number, 4)
        first = values.values + <size_t>(index * VECTOR) * width
        part = min(count - index * VECTOR, <int64_t>VECTOR)
        end = write_vector(first, part, width, choose_pair(first, part, width, pairs, pairs_count), end)
    return end - out
