"""Conversion between the values of pages and the values of Columns, and checks of decoded values."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from fastpq.encodings.views cimport Slice, View


cdef enum Conversion:
    COPY = 0                # the same bytes
    SIGNED = 1              # INT32 <-> int8, int16
    UNSIGNED = 2            # INT32 <-> uint8, uint16
    BOOLEAN = 3             # one bit <-> one byte
    TIMESTAMP96 = 4         # INT96 <-> int64 since the epoch
    DECIMAL = 5             # big-endian FIXED_LEN_BYTE_ARRAY <-> 16- or 32-byte little-endian integer
    VARIABLE = 6            # BYTE_ARRAY <-> views
    VARIABLE_DECIMAL = 7    # big-endian BYTE_ARRAY <-> 16- or 32-byte little-endian integer


# count stored values of stored_width bytes -> out; units is the number of the output's ticks in a second (TIMESTAMP96).
# Returns count, or a negative Status.
cdef int64_t from_stored(int conversion, const uint8_t* stored, size_t stored_width, int64_t count, uint8_t* out,
                         size_t out_width, int64_t units) noexcept nogil
# The reverse, for all conversions but BOOLEAN, VARIABLE and VARIABLE_DECIMAL.
cdef int64_t to_stored(int conversion, const uint8_t* values, size_t width, int64_t count, uint8_t* out,
                       size_t stored_width, int64_t units) noexcept nogil

# Views into one buffer -> little-endian integers.
cdef int64_t decimals_from_views(const View* views, int64_t count, const uint8_t* buffer, uint8_t* out,
                                 size_t width) noexcept nogil
# Little-endian integers -> big-endian in the fewest bytes, written to out (count * width bytes) and described by slices.
cdef int64_t decimals_to_slices(const uint8_t* values, size_t width, int64_t count, uint8_t* out, Slice* slices) noexcept nogil


cdef struct ValueChecks:
    int digits                  # most digits of a decimal; 0 without a check
    uint64_t[4] largest         # decimal of `digits` digits
    int64_t ticks               # in a day, for a time of day; 0 without a check


cdef ValueChecks value_checks(int digits, int64_t ticks) noexcept nogil
# No decimal among count values has more digits than the column's type, and no time is outside a day; page is for the error.
cdef int check_decoded(const ValueChecks* checks, const uint8_t* values, size_t width, int64_t count,
                       int64_t page) except -1 nogil
# The bytes of count views are UTF-8. first: number of the first value in the page, for the error.
cdef int check_text(const View* views, int64_t count, const uint8_t* base, int64_t first, int64_t page) except -1 nogil
