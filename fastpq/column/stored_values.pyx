"""Conversion between the values of pages and the values of Columns, and checks of decoded values.

LogicalTypes.md; INT96 as written by Impala and Spark.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from fastpq.encodings.plain cimport slices_check_utf8
from fastpq.encodings.status cimport BAD_LENGTH, OUT_OF_RANGE
from fastpq.encodings.views cimport Slice, View

cdef extern from "c/int96.h" nogil:
    bint ticks_of_int96(int64_t nanoseconds, uint32_t day, int64_t units, int64_t* ticks) noexcept
    bint int96_of_ticks(int64_t ticks, int64_t units, int64_t* nanoseconds, uint32_t* day) noexcept

cdef extern from "c/big_endian.h" nogil:
    int64_t reverse_decimals(const uint8_t* stored, size_t size, int64_t count, uint8_t* out, size_t width) noexcept
    int64_t store_decimals(const uint8_t* values, size_t width, int64_t count, uint8_t* out, size_t size) noexcept

cdef extern from "c/decimals.h" nogil:
    void largest_decimal(int digits, uint64_t* limit) noexcept
    bint decimals_fit(const uint8_t* values, size_t width, int64_t count, const uint64_t* limit) noexcept

cdef extern from "c/times.h" nogil:
    bint times_fit(const uint8_t* values, size_t width, int64_t count, int64_t ticks) noexcept

from fastpq.errors import FormatError


cdef int64_t from_stored(int conversion, const uint8_t* stored, size_t stored_width, int64_t count, uint8_t* out,
                         size_t out_width, int64_t units) noexcept nogil:
    if conversion == COPY:
        memcpy(out, stored, <size_t>count * out_width)
    elif conversion == SIGNED or conversion == UNSIGNED:
        narrow(stored, count, out, out_width)
    elif conversion == TIMESTAMP96:
        return timestamps_from_int96(stored, count, out, units)
    elif conversion == DECIMAL:
        return decimals_from_fixed(stored, stored_width, count, out, out_width)
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
    # INT(8) and INT(16) keep their low bytes; values outside the annotated range are wrapped, as every reader does.
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
    # Eight bytes of nanoseconds within the day, then four of the Julian day number.
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
    # bytes beyond the output's width must be sign extension
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
    cdef size_t j, kept
    cdef uint8_t sign
    cdef const uint8_t* value
    cdef uint8_t* target
    if first < 0:
        return OUT_OF_RANGE
    for i in range(first, count):
        value = values + <size_t>i * width
        target = out + <size_t>i * stored_width
        sign = 0xFF if value[width - 1] & 0x80 else 0
        kept = significant_bytes(value, width)
        if kept > stored_width:
            return OUT_OF_RANGE
        for j in range(stored_width):
            target[stored_width - 1 - j] = value[j] if j < width else sign
    return count


cdef inline size_t significant_bytes(const uint8_t* value, size_t width) noexcept nogil:
    # The fewest low bytes of a little-endian two's complement integer with the same value.
    cdef uint8_t sign = 0xFF if value[width - 1] & 0x80 else 0
    while width > 1 and value[width - 1] == sign and (value[width - 2] ^ sign) & 0x80 == 0:
        width -= 1
    return width


cdef int64_t decimals_from_views(const View* views, int64_t count, const uint8_t* buffer, uint8_t* out,
                                 size_t width) noexcept nogil:
    cdef int64_t i
    cdef const uint8_t* data
    for i in range(count):
        data = <const uint8_t*>&views[i].prefix[0] if views[i].length <= 12 else buffer + views[i].offset
        if not decimal_from_big_endian(data, <size_t>views[i].length, out + <size_t>i * width, width):
            return OUT_OF_RANGE
    return count


cdef int64_t decimals_to_slices(const uint8_t* values, size_t width, int64_t count, uint8_t* out,
                                Slice* slices) noexcept nogil:
    cdef int64_t i
    cdef size_t j, kept
    cdef const uint8_t* value
    cdef uint8_t* target
    for i in range(count):
        value = values + <size_t>i * width
        target = out + <size_t>i * width
        kept = significant_bytes(value, width)
        for j in range(kept):
            target[kept - 1 - j] = value[j]
        slices[i].data = target
        slices[i].size = kept
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
        with gil:
            raise FormatError(f"a decimal of more than {checks.digits} digits (verify_decimals=False reads it)", page=page)
    if checks.ticks and count and not times_fit(values, width, count, checks.ticks):
        with gil:
            raise FormatError("a TIME outside of a day (verify_times=False reads it)", page=page)
    return 0


cdef int check_text(const View* views, int64_t count, const uint8_t* base, int64_t first, int64_t page) except -1 nogil:
    cdef int64_t i, where
    cdef Slice value
    for i in range(count):
        value.size = <size_t>views[i].length
        value.data = <const uint8_t*>&views[i].prefix[0] if views[i].length <= 12 else base + views[i].offset
        if slices_check_utf8(&value, 1, &where) < 0:
            with gil:
                raise FormatError(f"value {first + i} of the page is not UTF-8", page=page)
    return 0
