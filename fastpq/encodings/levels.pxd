"""Definition and repetition levels: encoded streams <-> validity bitmaps (maximum level 1), LSB first, or bytes (any maximum)."""

from libc.stdint cimport int64_t, uint8_t


# Decodes count levels of bit width 1 to bits 0 to count - 1 of bitmap. All (count + 7) / 8 bytes of bitmap are written, padding
# bits as zero. data is the hybrid stream without the four-byte length of V1 pages. Returns the number of ones, or a negative
# Status.
cdef int64_t levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil
# Decodes like levels_to_bitmap, from the deprecated BIT_PACKED encoding (MSB first). Consumes (count + 7) / 8 bytes.
cdef int64_t bit_packed_levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil

# Encodes count bits from bit_offset on as a hybrid stream of bit width 1, without the length of V1 pages; returns the number of
# bytes written.
cdef int64_t bitmap_to_levels(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil
# Writes the hybrid stream of count ones (all values present); returns the number of bytes written.
cdef int64_t levels_all_valid(int64_t count, uint8_t* out) noexcept nogil
# Greatest size of the hybrid stream of count bits, in bytes.
cdef int64_t levels_bound(int64_t count) noexcept nogil

# Number of ones among count bits from bit_offset on.
cdef int64_t bitmap_count(const uint8_t* bitmap, int64_t bit_offset, int64_t count) noexcept nogil
# ORs the first count bits of source into target at bit_offset, where target must be zero. The first and the last byte are
# written atomically: other threads may write the neighbouring bits at the same time.
cdef void bitmap_merge(uint8_t* target, int64_t bit_offset, const uint8_t* source, int64_t count) noexcept nogil
cdef void bitmap_set_range(uint8_t* target, int64_t bit_offset, int64_t count) noexcept nogil      # as bitmap_merge, with ones
cdef void bitmap_to_bytes(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil   # 0 or 1
cdef void bytes_to_bitmap(const uint8_t* flags, int64_t count, uint8_t* bitmap) noexcept nogil     # nonzero is one

# Number of runs of ones among count bits from bit_offset on.
cdef int64_t bitmap_count_runs(const uint8_t* bitmap, int64_t bit_offset, int64_t count) noexcept nogil
# Writes the place of the first bit of each run of ones, and the place behind the run; bit bit_offset has the place first. Returns
# the number of places written, twice the number of runs.
cdef int64_t bitmap_runs(const uint8_t* bitmap, int64_t bit_offset, int64_t count, int64_t first, int64_t* places) noexcept nogil
# Copies count bits from bit_offset on to bit 0 of out; padding bits become zero.
cdef void bitmap_copy(const uint8_t* source, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil

cdef enum Stretch:
    CLEAR_STRETCH = 0
    SET_STRETCH = 1
    MIXED_STRETCH = 2

# Number of bits, and kind, of the first stretch of count bits from bit_offset on. At least least_clear clear bits (at most 64) or
# least_set set bits at the begin are a stretch of their own, as are all count bits if they are alike. A mixed stretch ends before
# 64 clear bits and before least_set set bits, both counted from a multiple of 64 bits behind bit_offset.
cdef int64_t bitmap_stretch(const uint8_t* bitmap, int64_t bit_offset, int64_t count, int64_t least_clear, int64_t least_set,
                            int* kind) noexcept nogil
# Writes to out, without gaps, the bits of source (from bit_offset on) at the set bits among count bits of mask (from mask_offset
# on); returns their number. Padding bits become zero.
cdef int64_t bitmap_pick(const uint8_t* source, int64_t bit_offset, const uint8_t* mask, int64_t mask_offset, int64_t count,
                         uint8_t* out) noexcept nogil

# Writes the next value of dense to out[i] where bit i of bitmap is set, zero elsewhere, for the first count bits. dense holds one
# value for each set bit and may not overlap out. width is in bytes; 1, 2, 4, 8 and 16 are fast.
cdef void expand(const uint8_t* bitmap, int64_t count, const uint8_t* dense, uint8_t* out, size_t width) noexcept nogil
# Writes values[i] to out where bit bit_offset + i is set, for count bits; returns the number of values written.
cdef int64_t compact(const uint8_t* bitmap, int64_t bit_offset, int64_t count, const uint8_t* values, uint8_t* out,
                     size_t width) noexcept nogil

# Bits of a level of at most max_level.
cdef int level_width(int max_level) noexcept nogil
# Decodes count levels of at most max_level (up to 255), one byte each, from a hybrid stream; returns count or a negative Status.
cdef int64_t levels_to_bytes(const uint8_t* data, size_t size, int64_t count, int max_level, uint8_t* out) noexcept nogil
# Checks for count levels in a hybrid stream without decoding levels; returns count or a negative Status.
cdef int64_t levels_count(const uint8_t* data, size_t size, int64_t count, int max_level) noexcept nogil
# Decodes like levels_to_bytes, from the deprecated BIT_PACKED encoding (MSB first).
cdef int64_t bit_packed_levels_to_bytes(const uint8_t* data, size_t size, int64_t count, int max_level,
                                        uint8_t* out) noexcept nogil
# Encodes count levels into out, a buffer of hybrid_bound(count, level_width(max_level)) bytes; returns the bytes written.
cdef int64_t bytes_to_levels(const uint8_t* levels, int64_t count, int max_level, uint8_t* out) noexcept nogil
