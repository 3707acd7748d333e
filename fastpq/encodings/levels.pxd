"""Levels: those of flat columns (maximum level 1) <-> validity bitmaps, LSB first, and spreading values by them; those of
nested columns <-> bytes."""

from libc.stdint cimport int64_t, uint8_t


# Hybrid-encoded levels of bit width 1 -> count bits from bit 0 of bitmap (which holds (count + 7) / 8 bytes, all
# written, padding bits zero). Returns the number of ones, or a negative Status. data is the hybrid stream itself,
# without the four-byte length that precedes it in V1 pages.
cdef int64_t levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil
# The deprecated BIT_PACKED encoding (MSB first), bit width 1; same contract. Consumes (count + 7) / 8 bytes.
cdef int64_t bit_packed_levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil

# Bitmap -> hybrid stream of bit width 1, and back-patched length left to the caller. bits start at bit_offset.
cdef int64_t bitmap_to_levels(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil
# A hybrid stream of count ones (all values present).
cdef int64_t levels_all_valid(int64_t count, uint8_t* out) noexcept nogil
cdef int64_t levels_bound(int64_t count) noexcept nogil

cdef int64_t bitmap_count(const uint8_t* bitmap, int64_t bit_offset, int64_t count) noexcept nogil
# ORs count bits of source (from bit 0) into target at bit_offset. target is zero there. The first and the last byte are
# touched atomically, so that neighbours may be written by other threads at the same time.
cdef void bitmap_merge(uint8_t* target, int64_t bit_offset, const uint8_t* source, int64_t count) noexcept nogil
cdef void bitmap_set_range(uint8_t* target, int64_t bit_offset, int64_t count) noexcept nogil      # the same, all ones
cdef void bitmap_to_bytes(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil   # 0 or 1
cdef void bytes_to_bitmap(const uint8_t* flags, int64_t count, uint8_t* bitmap) noexcept nogil     # nonzero is one

# dense[0..] -> out[i] where bit i is set, zero elsewhere. width in bytes; 1, 2, 4, 8, 16 are fast. dense must hold as many
# values
# as there are ones in the first count bits. out may not overlap dense.
cdef void expand(const uint8_t* bitmap, int64_t count, const uint8_t* dense, uint8_t* out, size_t width) noexcept nogil
# The reverse; returns the number of values written.
cdef int64_t compact(const uint8_t* bitmap, int64_t bit_offset, int64_t count, const uint8_t* values, uint8_t* out,
                     size_t width) noexcept nogil

# Levels of any maximum up to 255 <-> one byte each. Decoding returns count or a negative Status.
cdef int level_width(int max_level) noexcept nogil
cdef int64_t levels_to_bytes(const uint8_t* data, size_t size, int64_t count, int max_level, uint8_t* out) noexcept nogil
# Whether the stream holds count levels: count or a negative Status.
cdef int64_t levels_count(const uint8_t* data, size_t size, int64_t count, int max_level) noexcept nogil
cdef int64_t bit_packed_levels_to_bytes(const uint8_t* data, size_t size, int64_t count, int max_level,
                                        uint8_t* out) noexcept nogil
# Returns the bytes written into out, which holds hybrid_bound(count, level_width(max_level)).
cdef int64_t bytes_to_levels(const uint8_t* levels, int64_t count, int max_level, uint8_t* out) noexcept nogil
