"""Converts streams of levels to validity bitmaps, LSB first (maximum level 1), or to bytes (any maximum level), and back."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from fastpq.format.varint cimport write_varint

cdef enum:
    SHORTEST_LIST = 64      # elements: the levels of shorter lists are about as small if they are bit-packed


# Decodes count levels with one bit each to the first count bits in bitmap. All (count + 7) / 8 bytes are written, with zeros as
# padding bits. data is the hybrid stream, without the four-byte length that V1 pages have. Returns how many levels are 1, or a
# negative Status.
cdef int64_t levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil
# Like levels_to_bitmap, for the deprecated BIT_PACKED encoding (MSB first). Reads (count + 7) / 8 bytes.
cdef int64_t bit_packed_levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil

# Encodes count bits from bit_offset on as a hybrid stream with bit width 1, without the length that V1 pages have. Returns how
# many bytes it wrote.
cdef int64_t bitmap_to_levels(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil
# Returns how many bytes a hybrid stream with count bits can have at most.
cdef int64_t levels_bound(int64_t count) noexcept nogil

cdef enum Stretch:
    CLEAR_STRETCH = 0
    SET_STRETCH = 1
    MIXED_STRETCH = 2

cdef extern from "c/bitmap.h" nogil:
    # Returns how many bits are set among count bits from bit_offset on.
    int64_t bitmap_count(const uint8_t* bitmap, int64_t bit_offset, int64_t count) noexcept
    # ORs the first count bits in source into target from bit_offset on, where target must be zero. The first and the last byte
    # are written atomically, because other threads may write the neighbouring bits at the same time.
    void bitmap_merge(uint8_t* target, int64_t bit_offset, const uint8_t* source, int64_t count) noexcept
    void bitmap_set_range(uint8_t* target, int64_t bit_offset, int64_t count) noexcept      # like bitmap_merge, with ones
    void bitmap_to_bytes(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept       # 0 or 1
    void bytes_to_bitmap(const uint8_t* flags, int64_t count, uint8_t* bitmap) noexcept     # nonzero is one

    # Returns how many runs of set bits there are among count bits from bit_offset on.
    int64_t bitmap_count_runs(const uint8_t* bitmap, int64_t bit_offset, int64_t count) noexcept
    # Writes for each run of set bits its first place, and the place behind it. The bit at bit_offset has the place `first`.
    # Returns how many places it wrote: two for each run.
    int64_t bitmap_runs(const uint8_t* bitmap, int64_t bit_offset, int64_t count, int64_t first, int64_t* places) noexcept
    # Copies count bits from bit_offset on to out, from its first bit on. Padding bits become zero.
    void bitmap_copy(const uint8_t* source, int64_t bit_offset, int64_t count, uint8_t* out) noexcept

    # Finds the first stretch among count bits, from bit_offset on. Returns how many bits it has, and sets its kind (Stretch).
    # A clear stretch has at least least_clear clear bits. least_clear is at most 64. A set stretch has at least least_set set
    # bits. If all count bits are alike, they are one stretch. Otherwise the stretch is mixed. It ends before 64 clear bits or
    # before least_set set bits, both counted in words of 64 bits from bit_offset on.
    int64_t bitmap_stretch(const uint8_t* bitmap, int64_t bit_offset, int64_t count, int64_t least_clear, int64_t least_set,
                           int* kind) noexcept
    # Chooses bits in source, from bit_offset on: those at the set bits among count bits in mask, from mask_offset on. Writes them
    # to out without gaps, and returns how many it wrote. Padding bits become zero.
    int64_t bitmap_pick(const uint8_t* source, int64_t bit_offset, const uint8_t* mask, int64_t mask_offset, int64_t count,
                        uint8_t* out) noexcept

    # Writes count values: out[i] is the next value in dense if bit i in bitmap is set, otherwise zero. dense holds one value for
    # each set bit, and may not overlap out. A value has width bytes: 1, 2, 4, 8 and 16 are fast.
    void expand "expand_values"(const uint8_t* bitmap, int64_t count, const uint8_t* dense, uint8_t* out, size_t width) noexcept
    # Writes to out, without gaps, the values whose bits are set. values[i] has the bit bit_offset + i. Returns how many it wrote.
    int64_t compact "compact_values"(const uint8_t* bitmap, int64_t bit_offset, int64_t count, const uint8_t* values,
                                     uint8_t* out, size_t width) noexcept

# Returns how many bits a level up to max_level needs.
cdef int level_width(int max_level) noexcept nogil
# Decodes count levels from a hybrid stream, to one byte each. No level is above max_level, which is at most 255. Returns count or
# a negative Status.
cdef int64_t levels_to_bytes(const uint8_t* data, size_t size, int64_t count, int max_level, uint8_t* out) noexcept nogil
# Checks that a hybrid stream has count levels, without decoding them. Returns count or a negative Status.
cdef int64_t levels_count(const uint8_t* data, size_t size, int64_t count, int max_level) noexcept nogil
# Like levels_to_bytes, for the deprecated BIT_PACKED encoding (MSB first).
cdef int64_t bit_packed_levels_to_bytes(const uint8_t* data, size_t size, int64_t count, int max_level,
                                        uint8_t* out) noexcept nogil
# Encodes count levels into out, which has room for hybrid_bound(count, level_width(max_level)) bytes. Returns how many bytes it
# wrote.
cdef int64_t bytes_to_levels(const uint8_t* levels, int64_t count, int max_level, uint8_t* out) noexcept nogil

# Returns whether list_levels writes lists with this length.
cdef bint has_list_levels(int64_t length) noexcept nogil
# Writes the repetition levels (maximum 1) for lists that all have the same length. Returns the stream's size in bytes. Together
# the lists take at most a bit per level.
cdef int64_t list_levels(int64_t lists, int64_t length, uint8_t* out) noexcept nogil
cdef int64_t put_length(uint8_t* out, int64_t prefix, int64_t size) noexcept nogil


cdef inline int64_t constant_levels(int64_t count, int level, uint8_t* out) noexcept nogil:
    """Write count equal levels. Returns the stream's size, at most 11 bytes."""
    cdef uint8_t* end = write_varint(out, <uint64_t>count << 1)
    end[0] = <uint8_t>level
    return end + 1 - out
