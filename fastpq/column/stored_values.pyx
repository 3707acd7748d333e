"""Converts between values in pages and values in Columns, and checks decoded values.

LogicalTypes.md describes the stored forms. INT96 timestamps have the form that Impala and Spark write.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from fastpq.encodings.plain cimport utf8_is_valid
from fastpq.encodings.status cimport BAD_LENGTH, OUT_OF_RANGE
from fastpq.encodings.views cimport Slice, View, view_start

cdef extern from "c/int96.h" nogil:
    bint ticks_of_int96(int64_t nanoseconds, uint32_t day, int64_t units, int64_t* ticks) noexcept
    bint int96_of_ticks(int64_t ticks, int64_t units, int64_t* nanoseconds, uint32_t* day) noexcept
    int64_t finest_int96_units(const uint8_t* stored, const uint8_t* valid, int64_t count) noexcept
    void timestamps_of_int96(const uint8_t* stored, const uint8_t* valid, int64_t count, int64_t units, uint8_t* out) noexcept

cdef extern from "c/big_endian.h" nogil:
    int64_t reverse_decimals(const uint8_t* stored, size_t size, int64_t count, uint8_t* out, size_t width) noexcept
    int64_t store_decimals(const uint8_t* values, size_t width, int64_t count, uint8_t* out, size_t size) noexcept
    bint narrow_decimals(const uint8_t* values, size_t width, int64_t count, uint8_t* out, size_t size) noexcept

cdef extern from "c/decimals.h" nogil:
    void largest_decimal(int digits, uint64_t* limit) noexcept
    bint extend_decimals(const uint8_t* stored, size_t size, int64_t count, uint8_t* out, const uint64_t* limit) noexcept
    bint decimals_fit(const uint8_t* values, size_t width, int64_t count, const uint64_t* limit) noexcept

cdef extern from "c/times.h" nogil:
    bint times_fit(const uint8_t* values, size_t width, int64_t count, int64_t ticks) noexcept

from fastpq.arrays import memory
from fastpq.errors import FormatError


def int96_units(const uint8_t[::1] stored not None, const uint8_t[::1] validity):
    """Return the ticks per second in the finest unit, from milliseconds to nanoseconds, that fits all INT96 timestamps.

    Args:
        stored: 12 bytes for each value.
        validity: bitmap with a set bit for each value that is not null; None without nulls.
    """
    cdef int64_t count, units
    cdef const uint8_t* valid
    count = stored_int96(stored, validity, &valid)
    if not count:
        return 1_000_000_000
    with nogil:
        units = finest_int96_units(&stored[0], valid, count)
    return units


def int96_ticks(const uint8_t[::1] stored not None, const uint8_t[::1] validity, int64_t units):
    """Convert INT96 timestamps to ticks since the epoch. A null becomes 0.

    Args:
        stored: 12 bytes for each value.
        validity: bitmap with a set bit for each value that is not null; None without nulls.
        units: ticks per second: what ``int96_units`` returned, or fewer for a coarser unit.

    Returns:
        uint8 array with 8 bytes for each int64.
    """
    cdef int64_t count
    cdef const uint8_t* valid
    cdef uint8_t[::1] out
    count = stored_int96(stored, validity, &valid)
    if units not in (1_000, 1_000_000, 1_000_000_000):
        raise ValueError(f"{units} ticks a second")
    ticks = memory.empty(8 * count)
    if count:
        out = ticks
        with nogil:
            timestamps_of_int96(&stored[0], valid, count, units, &out[0])
    return ticks


cdef int64_t stored_int96(const uint8_t[::1] stored, const uint8_t[::1] validity, const uint8_t** valid) except -1:
    """Check the sizes of both buffers, and return how many INT96 values there are."""
    cdef int64_t count = stored.shape[0] // 12
    valid[0] = NULL
    if stored.shape[0] % 12:
        raise ValueError(f"{stored.shape[0]} bytes of INT96 values")
    if validity is not None and count:
        if validity.shape[0] < (count + 7) // 8:
            raise ValueError(f"a bitmap of {validity.shape[0]} bytes for {count} values")
        valid[0] = &validity[0]
    return count


cdef int64_t from_stored(int conversion, const uint8_t* stored, size_t stored_width, int64_t count, uint8_t* out,
                         size_t out_width, int64_t units, const ValueChecks* checks) noexcept nogil:
    if conversion == COPY:
        memcpy(out, stored, <size_t>count * out_width)
    elif conversion == SIGNED or conversion == UNSIGNED:
        narrow(stored, count, out, out_width)
    elif conversion == TIMESTAMP96:
        return timestamps_from_int96(stored, count, out, units)
    elif conversion == DECIMAL:
        return decimals_from_fixed(stored, stored_width, count, out, out_width)
    elif conversion == WIDE_DECIMAL:
        return count if extend_decimals(stored, stored_width, count, out, checks.largest) else OUT_OF_RANGE
    else:
        return BAD_LENGTH
    return count


cdef int64_t to_stored(int conversion, const uint8_t* values, size_t width, int64_t count, uint8_t* out,
                       size_t stored_width, int64_t units) noexcept nogil:
    if conversion == COPY:
        memcpy(out, values, <size_t>count * width)
    elif conversion == SIGNED or conversion == UNSIGNED:
        widen(values, width, conversion == SIGNED, count, out)
    elif conversion == TIMESTAMP96:
        return timestamps_to_int96(values, count, out, units)
    elif conversion == DECIMAL:
        return decimals_to_fixed(values, width, count, out, stored_width)
    else:
        return BAD_LENGTH
    return count


cdef void narrow(const uint8_t* stored, int64_t count, uint8_t* out, size_t width) noexcept nogil:
    # INT(8) and INT(16) keep their low bytes. A value outside the annotated range wraps around, as in every reader.
    cdef int64_t i
    if width == 1:
        for i in range(count):
            out[i] = stored[4 * i]
    else:
        for i in range(count):
            memcpy(out + 2 * i, stored + 4 * i, 2)


cdef void widen(const uint8_t* values, size_t width, bint signed_, int64_t count, uint8_t* out) noexcept nogil:
    cdef int64_t i
    cdef int32_t wide
    cdef uint16_t half
    for i in range(count):
        if width == 1:
            half = values[i]
            wide = <int32_t>half - 0x100 if signed_ and half & 0x80 else <int32_t>half
        else:
            memcpy(&half, values + 2 * i, 2)
            wide = <int32_t>half - 0x10000 if signed_ and half & 0x8000 else <int32_t>half
        memcpy(out + 4 * i, &wide, 4)


cdef int64_t timestamps_from_int96(const uint8_t* stored, int64_t count, uint8_t* out, int64_t units) noexcept nogil:
    # The first eight bytes are the nanoseconds within the day. The last four bytes are the Julian day number.
    cdef int64_t i, nanoseconds, ticks
    cdef uint32_t day
    for i in range(count):
        memcpy(&nanoseconds, stored + 12 * i, 8)
        memcpy(&day, stored + 12 * i + 8, 4)
        if not ticks_of_int96(nanoseconds, day, units, &ticks):
            return OUT_OF_RANGE
        memcpy(out + 8 * i, &ticks, 8)
    return count


cdef int64_t timestamps_to_int96(const uint8_t* values, int64_t count, uint8_t* out, int64_t units) noexcept nogil:
    cdef int64_t i, ticks, nanoseconds
    cdef uint32_t day
    for i in range(count):
        memcpy(&ticks, values + 8 * i, 8)
        if not int96_of_ticks(ticks, units, &nanoseconds, &day):
            return OUT_OF_RANGE
        memcpy(out + 12 * i, &nanoseconds, 8)
        memcpy(out + 12 * i + 8, &day, 4)
    return count


cdef inline bint decimal_from_big_endian(const uint8_t* data, size_t size, uint8_t* out, size_t width) noexcept nogil:
    # Bytes that the output has no room for must only extend the sign.
    cdef size_t i
    cdef uint8_t sign = 0xFF if size and data[0] & 0x80 else 0
    while size > width:
        if data[0] != sign or (data[1] ^ sign) & 0x80 and size == width + 1:
            return False
        data += 1
        size -= 1
    for i in range(size):
        out[i] = data[size - 1 - i]
    memset(out + size, sign, width - size)
    return True


cdef int64_t decimals_from_fixed(const uint8_t* stored, size_t stored_width, int64_t count, uint8_t* out,
                                 size_t width) noexcept nogil:
    cdef int64_t first = reverse_decimals(stored, stored_width, count, out, width), i
    for i in range(first):
        if not decimal_from_big_endian(stored + <size_t>i * stored_width, stored_width, out + <size_t>i * width, width):
            return OUT_OF_RANGE
    return count


cdef int64_t decimals_to_fixed(const uint8_t* values, size_t width, int64_t count, uint8_t* out,
                               size_t stored_width) noexcept nogil:
    cdef int64_t i, first = store_decimals(values, width, count, out, stored_width)
    cdef size_t j, size
    cdef uint8_t sign
    cdef const uint8_t* value
    cdef uint8_t* target
    if first < 0:
        return OUT_OF_RANGE
    for i in range(first, count):
        value = values + <size_t>i * width
        target = out + <size_t>i * stored_width
        sign = 0xFF if value[width - 1] & 0x80 else 0
        size = significant_bytes(value, width)
        if size > stored_width:
            return OUT_OF_RANGE
        for j in range(stored_width):
            target[stored_width - 1 - j] = value[j] if j < width else sign
    return count


cdef bint decimals_have_integers(int conversion, size_t width, size_t stored_width) noexcept nogil:
    return conversion == DECIMAL and width in (4, 8, 16) and 0 < stored_width <= sizeof(int64_t)


cdef int64_t decimals_to_integers(const uint8_t* values, size_t width, int64_t count, uint8_t* out,
                                  size_t stored_width) noexcept nogil:
    return count if narrow_decimals(values, width, count, out, stored_width) else OUT_OF_RANGE


cdef void integers_to_decimals(const uint8_t* integers, int64_t count, uint8_t* out, size_t stored_width) noexcept nogil:
    decimals_to_fixed(integers, sizeof(int64_t), count, out, stored_width)


cdef inline size_t significant_bytes(const uint8_t* value, size_t width) noexcept nogil:
    """Return how many low bytes are enough to hold the value of a little-endian two's complement integer."""
    cdef uint8_t sign = 0xFF if value[width - 1] & 0x80 else 0
    while width > 1 and value[width - 1] == sign and (value[width - 2] ^ sign) & 0x80 == 0:
        width -= 1
    return width


cdef int64_t decimals_from_views(const View* views, int64_t count, const uint8_t* buffer, uint8_t* out,
                                 size_t width) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if not decimal_from_big_endian(
                view_start(&views[i], buffer), <size_t>views[i].length, out + <size_t>i * width, width):
            return OUT_OF_RANGE
    return count


cdef int64_t decimals_to_slices(const uint8_t* values, size_t width, int64_t count, uint8_t* out,
                                Slice* slices) noexcept nogil:
    cdef int64_t i
    cdef size_t j, size
    cdef const uint8_t* value
    cdef uint8_t* target
    for i in range(count):
        value = values + <size_t>i * width
        target = out + <size_t>i * width
        size = significant_bytes(value, width)
        for j in range(size):
            target[size - 1 - j] = value[j]
        slices[i].data = target
        slices[i].size = size
    return count


cdef ValueChecks value_checks(int digits, int64_t ticks) noexcept nogil:
    cdef ValueChecks checks
    checks.digits = digits
    checks.ticks = ticks
    largest_decimal(digits, checks.largest)
    return checks


cdef int check_decoded(const ValueChecks* checks, const uint8_t* values, size_t width, int64_t count,
                       int64_t page) except -1 nogil:
    if checks.digits and count and not decimals_fit(values, width, count, checks.largest):
        refuse_decimal(checks, page)
    if checks.ticks and count and not times_fit(values, width, count, checks.ticks):
        with gil:
            raise FormatError("a TIME outside of a day (verify_times=False reads it)", page=page)
    return 0


cdef int refuse_decimal(const ValueChecks* checks, int64_t page) except -1 nogil:
    with gil:
        raise FormatError(f"a decimal of more than {checks.digits} digits (verify_decimals=False reads it)", page=page)


cdef int check_text(const View* views, int64_t count, const uint8_t* base, int64_t first, int64_t page) except -1 nogil:
    cdef int64_t i
    for i in range(count):
        if not utf8_is_valid(view_start(&views[i], base), <size_t>views[i].length):
            with gil:
                raise FormatError(f"value {first + i} of the page is not UTF-8 (invalid_utf8 reads it)", page=page)
    return 0
