"""PLAIN_DICTIONARY and RLE_DICTIONARY (Encodings.md, "Dictionary Encoding"): values as indices into a dictionary page."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from fastpq.encodings.interface cimport ValueDecoder
from fastpq.encodings.rle cimport HybridDecoder
from fastpq.encodings.views cimport Slice

cdef void dictionary_decoder(ValueDecoder* decoder) noexcept

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

# Decodes the next count indices. For each index it writes the bit that `bits` has there, as a byte. The dictionary has size
# entries, at most 64.
cdef int64_t dictionary_decode_bits(HybridDecoder* indices, uint64_t bits, int64_t size, uint8_t* out,
                                    int64_t count) noexcept nogil


# Returns whether a sample shows that a dictionary would be about as large as the count values themselves. Returns False for few
# values, and for other widths than 4 and 8, so that a dictionary is tried for them.
cdef bint seldom_repeats(const uint8_t* values, int64_t count, size_t width) noexcept nogil


# A hash table from values to codes. Fixed-width values are compared as raw bytes. Variable-length values are slices, and the
# width is then 0. The table copies a new slice's bytes into its own memory, unless it borrows them.
cdef class DictionaryEncoder:
    cdef hash_table table
    cdef readonly int64_t plain_size            # bytes that the dictionary page has so far
    # Bytes that a fixed-width value has in the dictionary page. If the caller sets another width than the values have here, the
    # caller converts fixed_values for the page, and does not call write_plain.
    cdef size_t stored_width
    # Makes the table take large blocks from elsewhere than the heap. This must come before the first value.
    cdef void use_memory(self, take_memory take, give_memory give) noexcept nogil
    # Encode n values to codes, until plain_size would exceed limit. Return how many values were encoded, or NO_MEMORY.
    cdef int64_t encode_fixed(self, const uint8_t* values, int64_t n, int64_t limit, uint32_t* codes) noexcept nogil
    cdef int64_t encode_slices(self, const Slice* values, int64_t n, int64_t limit, uint32_t* codes) noexcept nogil
    cdef int64_t slices_size(self, const uint32_t* codes, int64_t count) noexcept nogil       # sum over the codes, in bytes
    cdef int code_width(self) noexcept nogil        # bits that the largest code needs
    cdef void end(self) noexcept nogil              # gives memory back. Afterwards no value can be encoded.
    cdef void write_plain(self, uint8_t* out) noexcept nogil      # writes the dictionary page: plain_size bytes
    cdef const uint8_t* fixed_values(self) noexcept nogil         # the values, width bytes each, for statistics
    cdef const Slice* slice_values(self) noexcept nogil           # the slices, for statistics
