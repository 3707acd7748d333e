"""PLAIN_DICTIONARY and RLE_DICTIONARY (Encodings.md, "Dictionary Encoding"): values as indices into a dictionary page."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import os

import numpy as np

from fastpq.encodings.levels cimport bitmap_count, compact
from fastpq.encodings.plain cimport plain_encode_slices
from fastpq.encodings.rle cimport HybridDecoder, hybrid_ensure, hybrid_next, hybrid_start
from fastpq.encodings.status cimport BAD_INDEX, raise_status
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

cdef enum:
    BLOCK = 1024        # indices unpacked at a time; few enough to stay in the first-level cache until gathered

# Each process hashes with a seed of its own: nobody can choose strings with equal hashes.
cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")


cdef int64_t dictionary_decode(HybridDecoder* indices, const uint8_t* dictionary, int64_t size, size_t width, uint8_t* out,
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
            fill(out, run, dictionary + <size_t>indices.rle_value * width, width)
            indices.rle_left -= run
        else:
            run = min(min(indices.packed_count - indices.packed_next, count - done), <int64_t>BLOCK)
            status = hybrid_next(indices, block, run)
            if status < 0:
                return status
            if largest(block, run) >= size:
                return BAD_INDEX
            gather(block, run, dictionary, out, width)
        out += <size_t>run * width
        done += run
    return count


cdef int64_t dictionary_decode_chosen(HybridDecoder* indices, const uint8_t* dictionary, int64_t size, size_t width,
                                      const uint8_t* bitmap, int64_t bit_offset, uint8_t* out, int64_t count) noexcept nogil:
    cdef uint32_t block[BLOCK]
    cdef uint32_t chosen[BLOCK]
    cdef int64_t done = 0, run, kept, status
    while done < count:
        status = hybrid_ensure(indices)
        if status < 0:
            return status
        if indices.rle_left:
            run = min(indices.rle_left, count - done)
            if indices.rle_value >= size:
                return BAD_INDEX
            kept = bitmap_count(bitmap, bit_offset + done, run)
            fill(out, kept, dictionary + <size_t>indices.rle_value * width, width)
            indices.rle_left -= run
        else:
            run = min(min(indices.packed_count - indices.packed_next, count - done), <int64_t>BLOCK)
            status = hybrid_next(indices, block, run)
            if status < 0:
                return status
            if largest(block, run) >= size:
                return BAD_INDEX
            kept = compact(bitmap, bit_offset + done, run, <const uint8_t*>block, <uint8_t*>chosen, sizeof(uint32_t))
            gather(chosen, kept, dictionary, out, width)
        out += <size_t>kept * width
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


cdef class DictionaryEncoder:
    """Gives each distinct value a code, counting up in order of first appearance.

    Args:
        width: bytes of a value, or 0 for slices.
        borrows: whether the bytes of slices outlive the encoder; otherwise the encoder copies new values.
    """

    def __cinit__(self, size_t width, bint borrows=False):
        memset(&self.table, 0, sizeof(hash_table))
        self.table.width = width
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
        cdef int64_t done = table_encode_fixed(&self.table, values, n, limit // <int64_t>self.table.width, codes)
        self.plain_size = self.table.count * <int64_t>self.table.width
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
        """Codes (uint32) of a contiguous array; fewer than values where the dictionary page would grow beyond limit bytes."""
        cdef const uint8_t[::1] source = np.ascontiguousarray(values).view(np.uint8)
        cdef uint32_t[::1] codes = np.empty(max(len(values), 1), dtype=np.uint32)
        if self.table.width == 0 or values.dtype.itemsize != self.table.width:
            raise ValueError(f"{values.dtype} in a table of width {self.table.width}")
        cdef int64_t count = len(values), done
        with nogil:
            done = self.encode_fixed(&source[0] if count else NULL, count, limit, &codes[0])
        raise_status(done, "dictionary")
        return np.asarray(codes)[:done]

    def values(self):
        """The dictionary page: PLAIN values in the order of their codes, as bytes."""
        cdef uint8_t[::1] out = np.empty(self.plain_size + 1, dtype=np.uint8)
        self.write_plain(&out[0])
        return np.asarray(out)[:self.plain_size].tobytes()


def decode(const uint8_t[::1] indices, int bit_width, dictionary, Py_ssize_t count):
    """The dictionary values at the first count indices of a hybrid stream.

    Raises:
        FormatError: the stream is broken, or an index lies outside the dictionary.
    """
    cdef HybridDecoder decoder
    cdef const uint8_t[::1] values = np.ascontiguousarray(dictionary).view(np.uint8)
    out = np.empty(max(count, 1), dtype=dictionary.dtype)
    cdef uint8_t[::1] target = out.view(np.uint8)
    cdef int64_t size = len(dictionary), done
    cdef size_t width = <size_t>dictionary.dtype.itemsize
    raise_status(hybrid_start(&decoder, &indices[0] if indices.shape[0] else NULL, <size_t>indices.shape[0], bit_width),
                 "dictionary indices")
    with nogil:
        done = dictionary_decode(&decoder, &values[0] if values.shape[0] else NULL, size, width, &target[0], count)
    raise_status(done, "dictionary indices")
    return out[:count]


def renumber(int32_t[::1] codes not None, const int32_t[::1] places not None):
    """Replace each code by its place in another dictionary, in place.

    Args:
        codes: shape (n,), each below the number of places; unchanged without places.
        places: shape (entries,).
    """
    cdef uint32_t* values
    cdef const uint32_t* wanted
    cdef Py_ssize_t kept = 0
    if codes.shape[0] == 0 or places.shape[0] == 0:
        return
    values, wanted = <uint32_t*>&codes[0], <const uint32_t*>&places[0]
    with nogil:
        while kept < places.shape[0] and places[kept] == kept:
            kept += 1
        if kept < places.shape[0]:
            gather(values, codes.shape[0], <const uint8_t*>wanted, <uint8_t*>values, sizeof(uint32_t))


def flags_of_codes(const int32_t[::1] codes not None, flags not None):
    """The flag of the entry of each code; False where the dictionary has no entries, for all values are null then.

    Args:
        codes: shape (n,).
        flags: shape (entries,), bool.

    Returns:
        Shape (n,), bool.

    Raises:
        FormatError: a code lies outside the dictionary.
    """
    cdef const uint8_t[::1] known = np.ascontiguousarray(flags).view(np.uint8)
    cdef int64_t count = codes.shape[0], entries = known.shape[0], i
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
                bits |= <uint64_t>known[i] << i
            outside = gather_bits(indices, count, bits, &target[0]) >= entries
        else:
            outside = largest(indices, count) >= entries
            if not outside:
                gather(indices, count, &known[0], &target[0], 1)
    if outside:
        raise_status(BAD_INDEX, "dictionary codes")
    return out
