"""PLAIN_DICTIONARY and RLE_DICTIONARY (Encodings.md, "Dictionary Encoding"): values as indices into a dictionary page."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from fastpq.encodings.rle cimport HybridDecoder
from fastpq.encodings.views cimport Slice

cdef extern from "c/hash_table.h" nogil:
    ctypedef void* (*take_memory)(size_t size, size_t* capacity) noexcept nogil
    ctypedef void (*give_memory)(void* memory, size_t capacity) noexcept nogil
    void* take_of_heap(size_t size, size_t* capacity) noexcept
    void give_to_heap(void* memory, size_t capacity) noexcept
    ctypedef struct hash_table:
        take_memory take
        give_memory give
        size_t width
        uint64_t seed
        bint borrows
        int64_t count
        uint8_t* values

# Decodes the next count indices and copies their values from a dictionary of size values of width bytes each (views are values
# of width 16). Returns count or a negative Status (BAD_INDEX, TRUNCATED, BAD_RUN).
cdef int64_t dictionary_decode(HybridDecoder* indices, const uint8_t* dictionary, int64_t size, size_t width, uint8_t* out,
                               int64_t count) noexcept nogil

# Passes over the next count indices, and copies the values of the indices at the set bits among count bits of bitmap, from
# bit_offset on. Indices without a set bit are checked too. Returns count or a negative Status.
cdef int64_t dictionary_decode_chosen(HybridDecoder* indices, const uint8_t* dictionary, int64_t size, size_t width,
                                      const uint8_t* bitmap, int64_t bit_offset, uint8_t* out, int64_t count) noexcept nogil
# Decodes the next count indices into bits of a word, one byte each, for a dictionary of size (at most 64) bits.
cdef int64_t dictionary_decode_bits(HybridDecoder* indices, uint64_t bits, int64_t size, uint8_t* out,
                                    int64_t count) noexcept nogil


# Hash table value -> code, in order of first appearance. Fixed width (compared as raw bytes) or, with width 0, slices
# (copied into the table's own memory on first sight, unless the table borrows their bytes).
cdef class DictionaryEncoder:
    cdef hash_table table
    cdef readonly int64_t plain_size            # bytes of the dictionary page so far
    # Takes large memory elsewhere than from the heap; before the first value.
    cdef void use_memory(self, take_memory take, give_memory give) noexcept nogil
    # Encode n values to codes until plain_size would exceed limit; return the number of values encoded, or NO_MEMORY.
    cdef int64_t encode_fixed(self, const uint8_t* values, int64_t n, int64_t limit, uint32_t* codes) noexcept nogil
    cdef int64_t encode_slices(self, const Slice* values, int64_t n, int64_t limit, uint32_t* codes) noexcept nogil
    cdef int64_t slices_size(self, const uint32_t* codes, int64_t count) noexcept nogil       # bytes of the slices of codes
    cdef int code_width(self) noexcept nogil        # bits of the largest code
    cdef void end(self) noexcept nogil              # gives memory back: no more values are encoded
    cdef void write_plain(self, uint8_t* out) noexcept nogil      # the dictionary page: plain_size bytes
    cdef const uint8_t* fixed_values(self) noexcept nogil         # count values of width bytes, for statistics
    cdef const Slice* slice_values(self) noexcept nogil           # count slices, for statistics
