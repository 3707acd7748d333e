/* Range checks for decimals: little-endian two's complement integers with 4, 8, 16 or 32 bytes. */
#ifndef FASTPQ_DECIMALS_H
#define FASTPQ_DECIMALS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../encodings/c/clones.h"

/* Sets limit to the largest number with `digits` digits, as 64-bit words, the lowest first. */
static inline void largest_decimal(int digits, uint64_t limit[4]) {
    memset(limit, 0, 4 * sizeof(uint64_t));
    for (; digits > 0; digits--) { /* ten times the number, and nine more */
        unsigned __int128 carry = 9;
        for (int word = 0; word < 4; word++) {
            carry += (unsigned __int128)limit[word] * 10;
            limit[word] = (uint64_t)carry;
            carry >>= 64;
        }
    }
}

FASTPQ_CLONES static int decimals_fit_4(const uint8_t *values, int64_t count, int32_t limit) {
    int32_t low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t value;
        memcpy(&value, values + 4 * i, 4);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    return low >= -limit && high <= limit;
}

FASTPQ_CLONES static int decimals_fit_8(const uint8_t *values, int64_t count, int64_t limit) {
    int64_t low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t value;
        memcpy(&value, values + 8 * i, 8);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    return low >= -limit && high <= limit;
}

/* -limit <= value <= limit is the same as value + limit <= 2 * limit in unsigned arithmetic, which has room for 2 * 10^38. */
static inline int decimals_fit_16(const uint8_t *values, int64_t count, unsigned __int128 limit) {
    int fit = 1;
    for (int64_t i = 0; i < count; i++) {
        unsigned __int128 value;
        memcpy(&value, values + 16 * i, 16);
        fit &= value + limit <= 2 * limit;
    }
    return fit;
}

static inline int decimals_fit_32(const uint8_t *values, int64_t count, const uint64_t limit[4]) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t value[4];
        unsigned __int128 sum = 0;
        int order = 0; /* compares value + limit to twice the limit, by the highest unequal word */
        uint64_t carried = 0;
        memcpy(value, values + 32 * i, 32);
        for (int word = 0; word < 4; word++) {
            const uint64_t twice = (limit[word] << 1) | carried;
            carried = limit[word] >> 63;
            sum += (unsigned __int128)value[word] + limit[word];
            order = (uint64_t)sum > twice ? 1 : (uint64_t)sum < twice ? -1 : order;
            sum >>= 64;
        }
        if (order > 0) return 0;
    }
    return 1;
}

static inline int decimals_fit(const uint8_t *values, size_t width, int64_t count, const uint64_t limit[4]) {
    switch (width) {
        case 4: return limit[0] > INT32_MAX || decimals_fit_4(values, count, (int32_t)limit[0]);
        case 8: return limit[0] > INT64_MAX || limit[1] || decimals_fit_8(values, count, (int64_t)limit[0]);
        case 16: return decimals_fit_16(values, count, ((unsigned __int128)limit[1] << 64) | limit[0]);
        case 32: return decimals_fit_32(values, count, limit);
    }
    return 0;
}

FASTPQ_CLONES static void extend_decimals_4(const uint8_t *stored, int64_t count, uint8_t *out, int64_t bounds[2]) {
    int32_t low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t value;
        int64_t words[2];
        memcpy(&value, stored + 4 * i, 4);
        low = value < low ? value : low;
        high = value > high ? value : high;
        words[0] = value;
        words[1] = words[0] >> 63;
        memcpy(out + 16 * i, words, 16);
    }
    bounds[0] = low, bounds[1] = high;
}

FASTPQ_CLONES static void extend_decimals_8(const uint8_t *stored, int64_t count, uint8_t *out, int64_t bounds[2]) {
    int64_t low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t words[2];
        memcpy(words, stored + 8 * i, 8);
        low = words[0] < low ? words[0] : low;
        high = words[0] > high ? words[0] : high;
        words[1] = words[0] >> 63;
        memcpy(out + 16 * i, words, 16);
    }
    bounds[0] = low, bounds[1] = high;
}

/* Extends the signs of `count` values with `size` bytes, which is 4 or 8, to 16 bytes. Returns whether no value is beyond the
 * limit. The limit 0 allows all values. */
static inline int extend_decimals(const uint8_t *stored, size_t size, int64_t count, uint8_t *out, const uint64_t limit[4]) {
    int64_t bounds[2];
    if (size == 4) extend_decimals_4(stored, count, out, bounds);
    else extend_decimals_8(stored, count, out, bounds);
    if (!limit[0] || limit[0] > INT64_MAX || limit[1]) return 1;
    return bounds[0] >= -(int64_t)limit[0] && bounds[1] <= (int64_t)limit[0];
}

#endif
