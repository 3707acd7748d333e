/* Minimum, maximum, NaN count and comparison for fixed-width values: plain loops, which the compiler vectorises. */
#ifndef FASTPQ_MIN_MAX_H
#define FASTPQ_MIN_MAX_H

#include <stdint.h>
#include <string.h>

#include "../../encodings/c/clones.h"
#include "../../encodings/c/integer_range.h"

/* Returns the number of NaNs, which are the values above infinity once the sign bit is cleared. Values are counted in blocks of
 * 32768, so that the counters can be as narrow as the values and vectors have more lanes. */
#define FASTPQ_COUNT_NANS(NAME, UNSIGNED, MAGNITUDE, INFINITE)                         \
    FASTPQ_CLONES static int64_t NAME(const uint8_t *values, int64_t count) {          \
        int64_t nans = 0, i = 0;                                                       \
        while (i < count) {                                                            \
            int64_t end = count - i < 32768 ? count : i + 32768;                       \
            UNSIGNED in_block = 0, bits;                                               \
            for (; i < end; i++) {                                                     \
                memcpy(&bits, values + (size_t)i * sizeof bits, sizeof bits);          \
                in_block = (UNSIGNED)(in_block + ((bits & (MAGNITUDE)) > (INFINITE))); \
            }                                                                          \
            nans += (int64_t)in_block;                                                 \
        }                                                                              \
        return nans;                                                                   \
    }

FASTPQ_COUNT_NANS(count_nans_float16, uint16_t, 0x7fff, 0x7c00)
FASTPQ_COUNT_NANS(count_nans_float, uint32_t, 0x7fffffff, 0x7f800000)
FASTPQ_COUNT_NANS(count_nans_double, uint64_t, 0x7fffffffffffffff, 0x7ff0000000000000)
#undef FASTPQ_COUNT_NANS

/* Computes the bounds of floats. At least one float must not be NaN. Floats are compared as integers. If the magnitude is
 * inverted below zero, the bits have the same order as the values, and -0.0 (-1) is right before +0.0 (0). NaNs are replaced by
 * the greatest integer for the minimum, and by the least for the maximum. GCC vectorises the masks, but not conditions in their
 * place. A zero is written as -0.0 in a minimum and as +0.0 in a maximum (parquet.thrift, ColumnOrder). */
#define FASTPQ_MIN_MAX_FLOATS(NAME, SIGNED, MAGNITUDE, INFINITE)                                               \
    FASTPQ_CLONES static void NAME(const uint8_t *values, int64_t count, uint8_t *minimum, uint8_t *maximum) { \
        SIGNED low = (MAGNITUDE), high = (SIGNED) ~(SIGNED)(MAGNITUDE);                                        \
        for (int64_t i = 0; i < count; i++) {                                                                  \
            SIGNED bits;                                                                                       \
            memcpy(&bits, values + (size_t)i * sizeof bits, sizeof bits);                                      \
            SIGNED magnitude = (SIGNED)(bits & (MAGNITUDE));                                                   \
            SIGNED nan = (SIGNED) - (SIGNED)(magnitude > (INFINITE));                                          \
            SIGNED key = (SIGNED)(bits ^ ((SIGNED) - (SIGNED)(bits < 0) & (MAGNITUDE)));                       \
            SIGNED for_low = (SIGNED)((key & ~nan) | ((MAGNITUDE) & nan));                                     \
            SIGNED for_high = (SIGNED)((key & ~nan) | (~(SIGNED)(MAGNITUDE) & nan));                           \
            low = for_low < low ? for_low : low;                                                               \
            high = for_high > high ? for_high : high;                                                          \
        }                                                                                                      \
        if (low == 0) low = -1;                                                                                \
        if (high == -1) high = 0;                                                                              \
        low = (SIGNED)(low < 0 ? low ^ (MAGNITUDE) : low);                                                     \
        high = (SIGNED)(high < 0 ? high ^ (MAGNITUDE) : high);                                                 \
        memcpy(minimum, &low, sizeof low);                                                                     \
        memcpy(maximum, &high, sizeof high);                                                                   \
    }

FASTPQ_MIN_MAX_FLOATS(min_max_float16, int16_t, 0x7fff, 0x7c00)
FASTPQ_MIN_MAX_FLOATS(min_max_float, int32_t, 0x7fffffff, 0x7f800000)
FASTPQ_MIN_MAX_FLOATS(min_max_double, int64_t, 0x7fffffffffffffff, 0x7ff0000000000000)
#undef FASTPQ_MIN_MAX_FLOATS

/* Returns -1, 0 or 1 if left is less than, equal to or greater than right. */
#define FASTPQ_COMPARE(NAME, TYPE)                                      \
    static inline int NAME(const uint8_t *left, const uint8_t *right) { \
        TYPE a, b;                                                      \
        memcpy(&a, left, sizeof a);                                     \
        memcpy(&b, right, sizeof b);                                    \
        return (a > b) - (a < b);                                       \
    }

FASTPQ_COMPARE(compare_int32, int32_t)
FASTPQ_COMPARE(compare_int64, int64_t)
FASTPQ_COMPARE(compare_uint32, uint32_t)
FASTPQ_COMPARE(compare_uint64, uint64_t)
FASTPQ_COMPARE(compare_float, float)
FASTPQ_COMPARE(compare_double, double)
FASTPQ_COMPARE(compare_bytes, uint8_t)
#undef FASTPQ_COMPARE

/* Returns a FLOAT16's magnitude with its sign as an integer. The integers have the same order as the values. Both zeros are 0. */
static inline int float16_value(const uint8_t *data) {
    uint16_t bits;
    memcpy(&bits, data, sizeof bits);
    return bits & 0x8000 ? -(int)(bits & 0x7fff) : (int)bits;
}

static inline int compare_float16(const uint8_t *left, const uint8_t *right) {
    int a = float16_value(left), b = float16_value(right);
    return (a > b) - (a < b);
}

/* Returns a value's first eight bytes, padded with zeros, as an integer. Two prefixes that differ have the same lexicographic
 * order as their values. */
static inline uint64_t prefix_key(const uint8_t *data, size_t size) {
    uint64_t prefix = 0;
    if (size >= 8) {
        return (uint64_t)data[0] << 56 | (uint64_t)data[1] << 48 | (uint64_t)data[2] << 40 | (uint64_t)data[3] << 32 |
               (uint64_t)data[4] << 24 | (uint64_t)data[5] << 16 | (uint64_t)data[6] << 8 | (uint64_t)data[7];
    }
    for (size_t i = 0; i < size; i++) prefix |= (uint64_t)data[i] << (56 - 8 * i);
    return prefix;
}

/* Computes the bounds of values with 8 to 16 bytes in lexicographic order. There must be at least one value. The bits set in
 * `flipped` are inverted in the first eight bytes. For signed big-endian integers, this is the first bit. If the first eight
 * bytes are equal, the last eight bytes decide. The two may overlap. */
static inline __attribute__((always_inline)) void min_max_two_words_of(const uint8_t *values, int64_t count, const size_t width,
                                                                       uint64_t flipped, uint8_t *minimum, uint8_t *maximum) {
    uint64_t low = prefix_key(values, 8) ^ flipped, low_rest = prefix_key(values + width - 8, 8);
    uint64_t high = low, high_rest = low_rest;
    int64_t low_place = 0, high_place = 0;
    for (int64_t i = 1; i < count; i++) {
        const uint8_t *value = values + (size_t)i * width;
        const uint64_t first = prefix_key(value, 8) ^ flipped, rest = prefix_key(value + width - 8, 8);
        if (first < low || (first == low && rest < low_rest)) {
            low = first;
            low_rest = rest;
            low_place = i;
        } else if (first > high || (first == high && rest > high_rest)) {
            high = first;
            high_rest = rest;
            high_place = i;
        }
    }
    memcpy(minimum, values + (size_t)low_place * width, width);
    memcpy(maximum, values + (size_t)high_place * width, width);
}

static void min_max_two_words(const uint8_t *values, int64_t count, size_t width, uint64_t flipped, uint8_t *minimum,
                              uint8_t *maximum) {
    if (width == 16) min_max_two_words_of(values, count, 16, flipped, minimum, maximum);
    else min_max_two_words_of(values, count, width, flipped, minimum, maximum);
}

#endif
