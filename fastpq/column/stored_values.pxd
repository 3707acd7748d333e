"""Converts between values in pages and values in Columns, and checks decoded values."""

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
    WIDE_DECIMAL = 8        # INT32, INT64 -> 16-byte little-endian integer


cdef struct ValueChecks:
    int digits                  # most digits that a decimal may have; 0 without a check
    uint64_t[4] largest         # the largest decimal with so many digits
    int64_t ticks               # ticks per day, for times of day; 0 without a check


# Converts `count` stored values, which have `stored_width` bytes each, and writes them to `out`. `units` is the number of ticks
# per second that TIMESTAMP96 has in memory. Returns `count` or a negative Status. WIDE_DECIMAL alone is checked on the way, since
# stored decimals have a quarter or half of the bytes: OUT_OF_RANGE means that one has too many digits for `checks`.
cdef int64_t from_stored(int conversion, const uint8_t* stored, size_t stored_width, int64_t count, uint8_t* out,
                         size_t out_width, int64_t units, const ValueChecks* checks) noexcept nogil
# Does the reverse, for all conversions but BOOLEAN, VARIABLE, VARIABLE_DECIMAL and WIDE_DECIMAL.
cdef int64_t to_stored(int conversion, const uint8_t* values, size_t width, int64_t count, uint8_t* out,
                       size_t stored_width, int64_t units) noexcept nogil

# Converts big-endian decimals to little-endian integers. The views point into one buffer. Returns `count` or a negative Status.
cdef int64_t decimals_from_views(const View* views, int64_t count, const uint8_t* buffer, uint8_t* out,
                                 size_t width) noexcept nogil
# Converts little-endian integers to big-endian ones with the fewest bytes. Writes them to `out`, which has `count * width` bytes,
# and makes the slices point to them. Returns `count`.
cdef int64_t decimals_to_slices(const uint8_t* values, size_t width, int64_t count, uint8_t* out, Slice* slices) noexcept nogil


# Returns whether decimals can be handled as int64 until they are stored: they then have at most 8 stored bytes.
cdef bint decimals_have_integers(int conversion, size_t width, size_t stored_width) noexcept nogil
# Converts decimals in memory to int64. Returns `count`, or OUT_OF_RANGE if a value needs more than stored_width bytes.
cdef int64_t decimals_to_integers(const uint8_t* values, size_t width, int64_t count, uint8_t* out,
                                  size_t stored_width) noexcept nogil
# Stores such integers. `out` has `count * stored_width` bytes.
cdef void integers_to_decimals(const uint8_t* integers, int64_t count, uint8_t* out, size_t stored_width) noexcept nogil


cdef ValueChecks value_checks(int digits, int64_t ticks) noexcept nogil
# Checks `count` values: no decimal may have too many digits, and no time of day may be outside of a day. The error names the page
# with the number `page`.
cdef int check_decoded(const ValueChecks* checks, const uint8_t* values, size_t width, int64_t count,
                       int64_t page) except -1 nogil
# Raises the error for a decimal with too many digits.
cdef int refuse_decimal(const ValueChecks* checks, int64_t page) except -1 nogil
# Checks that the text of `count` views is UTF-8. The error names the page with the number `page`, and the value's number. The
# first value has the number `first`.
cdef int check_text(const View* views, int64_t count, const uint8_t* base, int64_t first, int64_t page) except -1 nogil
