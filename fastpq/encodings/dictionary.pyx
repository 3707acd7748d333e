"""PLAIN_DICTIONARY and RLE_DICTIONARY (Encodings.md, "Dictionary Encoding"): values as indices into a dictionary page."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import os

import numpy as np

from fastpq.encodings.interface cimport PageValues, ValueDecoder
from fastpq.encodings.levels cimport bitmap_count, compact
from fastpq.encodings.plain cimport plain_encode_slices
from fastpq.encodings.rle cimport HybridDecoder, hybrid_ensure, hybrid_next, hybrid_of, hybrid_skip, hybrid_start
from fastpq.encodings.status cimport BAD_INDEX, TRUNCATED, raise_status
from fastpq.encodings.views cimport Slice

cdef extern from "c/bitpack.h" nogil:
    uint32_t largest(const uint32_t* values, int64_t count) noexcept

cdef extern from "c/gather.h" nogil:
    void gather(const uint32_t* indices, int64_t count, const uint8_t* dictionary, uint8_t* out, size_t width) noexcept
    uint32_t gather_bits(const uint32_t* codes, int64_t count, uint64_t bits, uint8_t* out) noexcept
    void fill(uint8_t* out, int64_t count, const uint8_t* value, size_t width) noexcept

cdef extern from "c/hash_table.h" nogil:
    void table_end(hash_table* table) noexcept
    void table_free(hash_table* table) noexcept
    int64_t table_encode_fixed(hash_table* table, const uint8_t* values, int64_t n, int64_t most, uint32_t* codes) noexcept
    int64_t table_encode_slices(hash_table* table, const void* slices, int64_t n, int64_t limit, int64_t* size,
                                uint32_t* codes) noexcept

cdef extern from "c/value_sample.h" nogil:
    int64_t count_repeats(const uint8_t* values, int64_t count, size_t width) noexcept

cdef enum:
    BLOCK = 1024        # indices unpacked at a time: few enough to stay in the first-level cache until their entries are copied
    MANY = 1 << 18          # a sample of 4,096 tells too little about more values
    FEW = 1 << 16           # for fewer values a dictionary is tried, because this costs little
    # A dictionary for 4-byte or 8-byte values pays if each value occurs twice on average. A sample with 4,096 from 2^18 such
    # values has 32 repeats on average. It has fewer than 4 repeats in one case out of 10^10.
    FEWEST_REPEATS = 4

# Each process has its own seed, so that nobody can choose strings with equal hashes.
cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")


cdef int64_t decode_entries(PageValues* page, int64_t count, const uint8_t* bitmap, int64_t bit_offset,
                            uint8_t* out) noexcept nogil:
    """Decode the next count indices, and copy their entries to out. Returns count or a negative Status.

    If there is a bitmap, an index's entry is copied only if the index has a set bit, from bit_offset on. The others are checked.
    """
    cdef HybridDecoder* indices = hybrid_of(page)
    cdef const uint8_t* dictionary = page.entries.data
    cdef size_t width = page.entries.width
    cdef uint32_t block[BLOCK]
    cdef uint32_t chosen[BLOCK]
    cdef uint32_t* copied = block
    cdef int64_t done = 0, run, copied_count, status
    while done < count:
        status = hybrid_ensure(indices)
        if status < 0:
            return status
        if indices.rle_left:
            run = copied_count = min(indices.rle_left, count - done)
            if indices.rle_value >= page.entries.count:
                return BAD_INDEX
            if bitmap != NULL:
                copied_count = bitmap_count(bitmap, bit_offset + done, run)
            fill(out, copied_count, dictionary + <size_t>indices.rle_value * width, width)
            indices.rle_left -= run
        else:
            run = copied_count = min(min(indices.packed_count - indices.packed_next, count - done), <int64_t>BLOCK)
            status = hybrid_next(indices, block, run)
            if status < 0:
                return status
            if largest(block, run) >= page.entries.count:
                return BAD_INDEX
            if bitmap != NULL:
                copied = chosen
                copied_count = compact(
                    bitmap, bit_offset + done, run, <const uint8_t*>block, <uint8_t*>chosen, sizeof(uint32_t))
            gather(copied, copied_count, dictionary, out, width)
        out += <size_t>copied_count * width
        done += run
    return count


cdef int64_t dictionary_decode_bits(HybridDecoder* indices, uint64_t bits, int64_t size, uint8_t* out,
                                    int64_t count) noexcept nogil:
    cdef uint32_t block[BLOCK]
    cdef int64_t done = 0, run, status
    while done < count:
        status = hybrid_ensure(indices)
        if status < 0:
            return status
        if indices.rle_left:
            run = min(indices.rle_left, count - done)
            if indices.rle_value >= size:
                return BAD_INDEX
            memset(out + done, <int>(bits >> indices.rle_value & 1), <size_t>run)
            indices.rle_left -= run
        else:
            run = min(min(indices.packed_count - indices.packed_next, count - done), <int64_t>BLOCK)
            status = hybrid_next(indices, block, run)
            if status < 0:
                return status
            if gather_bits(block, run, bits, out + done) >= size:
                return BAD_INDEX
        done += run
    return count


cdef void dictionary_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start
    decoder.next = next_values
    decoder.skip = skip_values
    decoder.next_chosen = next_chosen
    decoder.uses_dictionary = True
    decoder.state_size = sizeof(HybridDecoder)


cdef int64_t start(PageValues* page) noexcept nogil:
    if page.entries.count < 0 or page.size < 1:
        return TRUNCATED
    return hybrid_start(hybrid_of(page), page.data + 1, <size_t>page.size - 1, page.data[0])


cdef int64_t next_values(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    return decode_entries(page, count, NULL, 0, out)


cdef int64_t skip_values(PageValues* page, int64_t count) noexcept nogil:
    return hybrid_skip(hybrid_of(page), count)


cdef int64_t next_chosen(PageValues* page, int64_t count, const uint8_t* bits, int64_t bit_offset, uint8_t* out) noexcept nogil:
    return decode_entries(page, count, bits, bit_offset, out)


cdef bint seldom_repeats(const uint8_t* values, int64_t count, size_t width) noexcept nogil:
    if count < FEW or count > MANY or (width != 4 and width != 8):
        return False
    return count_repeats(values, count, width) < FEWEST_REPEATS


cdef class DictionaryEncoder:
    """Numbers the distinct values in the order in which they first appear. A value's code is its number.

    Args:
        width: bytes of a value, or 0 for slices.
        borrows: whether the slices' bytes outlive the encoder. If not, the encoder copies new values.
    """

    def __cinit__(self, size_t width, bint borrows=False):
        memset(&self.table, 0, sizeof(hash_table))
        self.table.width = self.stored_width = width
        self.table.seed = SEED
        self.table.borrows = borrows
        self.use_memory(take_of_heap, give_to_heap)

    def __dealloc__(self):
        table_free(&self.table)

    @property
    def count(self):
        return self.table.count

    cdef void use_memory(self, take_memory take, give_memory give) noexcept nogil:
        self.table.take = take
        self.table.give = give

    cdef int64_t encode_fixed(self, const uint8_t* values, int64_t n, int64_t limit, uint32_t* codes) noexcept nogil:
        cdef int64_t done = table_encode_fixed(&self.table, values, n, limit // <int64_t>self.stored_width, codes)
        self.plain_size = self.table.count * <int64_t>self.stored_width
        return done

    cdef int64_t encode_slices(self, const Slice* values, int64_t n, int64_t limit, uint32_t* codes) noexcept nogil:
        return table_encode_slices(&self.table, values, n, limit, &self.plain_size, codes)

    cdef int64_t slices_size(self, const uint32_t* codes, int64_t count) noexcept nogil:
        cdef const Slice* entries = <const Slice*>self.table.values
        cdef int64_t size = 0, i
        for i in range(count):
            size += <int64_t>entries[codes[i]].size
        return size

    cdef int code_width(self) noexcept nogil:
        cdef int width = 0
        while <int64_t>self.table.count > <int64_t>1 << width:
            width += 1
        return width

    cdef void end(self) noexcept nogil:
        table_end(&self.table)

    cdef void write_plain(self, uint8_t* out) noexcept nogil:
        if self.table.width:
            memcpy(out, self.table.values, <size_t>self.plain_size)
        else:
            plain_encode_slices(<const Slice*>self.table.values, self.table.count, out)

    cdef const uint8_t* fixed_values(self) noexcept nogil:
        return self.table.values

    cdef const Slice* slice_values(self) noexcept nogil:
        return <const Slice*>self.table.values

    def encode(self, values, int64_t limit=0x7FFFFFFFFFFFFFFF):
        """Return the codes (uint32) for a contiguous array: fewer than values if the dictionary page would exceed limit bytes."""
        cdef const uint8_t[::1] source = np.ascontiguousarray(values).view(np.uint8)
        cdef uint32_t[::1] codes = np.empty(max(len(values), 1), dtype=np.uint32)
        if self.table.width == 0 or values.dtype.itemsize != self.table.width:
            raise ValueError(f"the encoder takes values with {self.table.width} bytes, not {values.dtype}")
        cdef int64_t count = len(values), done
        with nogil:
            done = self.encode_fixed(&source[0] if count else NULL, count, limit, &codes[0])
        raise_status(done, "dictionary")
        return np.asarray(codes)[:done]

    def values(self):
        """Return the dictionary page as bytes: PLAIN values, ordered by their codes."""
        cdef uint8_t[::1] out = np.empty(self.plain_size + 1, dtype=np.uint8)
        self.write_plain(&out[0])
        return np.asarray(out)[:self.plain_size].tobytes()


def renumber(int32_t[::1] codes not None, const int32_t[::1] places not None):
    """Replace each code by the place that its entry has in another dictionary.

    Args:
        codes: shape (n,), changed in place. Each code is below the length of places.
        places: shape (entries,). Without places, codes do not change.
    """
    cdef uint32_t* values
    cdef const uint32_t* new_codes
    cdef Py_ssize_t unchanged = 0
    if codes.shape[0] == 0 or places.shape[0] == 0:
        return
    values, new_codes = <uint32_t*>&codes[0], <const uint32_t*>&places[0]
    with nogil:
        while unchanged < places.shape[0] and places[unchanged] == unchanged:
            unchanged += 1
        if unchanged < places.shape[0]:
            gather(values, codes.shape[0], <const uint8_t*>new_codes, <uint8_t*>values, sizeof(uint32_t))


def flags_of_codes(const int32_t[::1] codes not None, flags not None):
    """Return for each code the flag that its dictionary entry has.

    Args:
        codes: shape (n,).
        flags: shape (entries,), bool. Without entries all values are null, and every result is False.

    Returns:
        Shape (n,), bool.

    Raises:
        FormatError: a code is outside the dictionary.
    """
    cdef const uint8_t[::1] entry_flags = np.ascontiguousarray(flags).view(np.uint8)
    cdef int64_t count = codes.shape[0], entries = entry_flags.shape[0], i
    cdef const uint32_t* indices
    cdef uint64_t bits = 0
    cdef bint outside
    if count == 0 or entries == 0:
        return np.zeros(count, np.bool_)
    out = np.empty(count, np.bool_)
    cdef uint8_t[::1] target = out.view(np.uint8)
    indices = <const uint32_t*>&codes[0]
    with nogil:
        if entries <= 64:
            for i in range(entries):
                bits |= <uint64_t>entry_flags[i] << i
            outside = gather_bits(indices, count, bits, &target[0]) >= entries
        else:
            outside = largest(indices, count) >= entries
            if not outside:
                gather(indices, count, &entry_flags[0], &target[0], 1)
    if outside:
        raise_status(BAD_INDEX, "dictionary codes")
    return out
