/* ALP (AlpEncoding.md): floats as integers times a power of ten. The smallest integer is subtracted from all, and the differences
 * are bit-packed.
 *
 * The specification fixes every decoded bit. A value needs two multiplications in its own precision, by constants that the
 * compiler rounds correctly. Nothing here may be compiled with -ffast-math.
 */
#ifndef FASTPQ_ALP_H
#define FASTPQ_ALP_H

#include <stdint.h>
#include <string.h>

#include "bitpack.h"
#include "clones.h"

#define FASTPQ_ALP_EXPONENT32 10 /* greatest exponent for floats */
#define FASTPQ_ALP_EXPONENT64 18 /* greatest exponent for doubles */
#define FASTPQ_ALP_VECTOR 1024   /* values in a written vector */

static const float alp_tens32[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
static const float alp_tenths32[] = {1e0f, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-7f, 1e-8f, 1e-9f, 1e-10f};
static const double alp_tens64[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                    1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
static const double alp_tenths64[] = {1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8, 1e-9,
                                      1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18};

/* Writes count values to out: (deltas[i] + base) * ten * tenth. */
#define FASTPQ_ALP_VALUES(NAME, DELTA, UNSIGNED, SIGNED, VALUE)                                                               \
    FASTPQ_CLONES static void NAME(const DELTA *deltas, int64_t count, UNSIGNED base, VALUE ten, VALUE tenth, uint8_t *out) { \
        for (int64_t i = 0; i < count; i++) {                                                                                 \
            const VALUE value = (VALUE)(SIGNED)((UNSIGNED)deltas[i] + base) * ten * tenth;                                    \
            memcpy(out + sizeof(VALUE) * (size_t)i, &value, sizeof(VALUE));                                                   \
        }                                                                                                                     \
    }
FASTPQ_ALP_VALUES(alp_values32, uint32_t, uint32_t, int32_t, float)
FASTPQ_ALP_VALUES(alp_values64, uint64_t, uint64_t, int64_t, double)
FASTPQ_ALP_VALUES(alp_values64_any, uint32_t, uint64_t, int64_t, double)
#undef FASTPQ_ALP_VALUES

/* Like alp_values64_any, for a base between -2^52 and 2^52, so that base + delta is exact as a double. Vector instructions
 * convert the 32-bit deltas to doubles. Few processors have such instructions for 64-bit integers. */
FASTPQ_CLONES static void alp_values64_exact(const uint32_t *deltas, int64_t count, double base, double ten, double tenth,
                                             uint8_t *out) {
    for (int64_t i = 0; i < count; i++) {
        const double value = ((double)deltas[i] + base) * ten * tenth;
        memcpy(out + 8 * i, &value, 8);
    }
}

static inline void alp_values64_narrow(const uint32_t *deltas, int64_t count, uint64_t base, double ten, double tenth,
                                       uint8_t *out) {
    const int64_t least = (int64_t)base;
    if (least > -(INT64_C(1) << 52) && least < (INT64_C(1) << 52))
        alp_values64_exact(deltas, count, (double)least, ten, tenth, out);
    else alp_values64_any(deltas, count, base, ten, tenth, out);
}

#define FASTPQ_ALP_GROUPS 8 /* groups of 32 values unpacked at a time */

/* Decodes a vector's values [first, first + count) to size bytes each. The caller overwrites the exceptions. The packed deltas
 * start at in, and have `width` bits each. `available` bytes are readable there, and all bytes behind them count as zero. */
static void alp_unpacked(const uint8_t *in, int64_t available, int64_t first, int64_t count, int width, uint64_t base,
                         int exponent, int factor, size_t size, uint8_t *out) {
    uint8_t padded[FASTPQ_ALP_GROUPS * 4 * 64 + FASTPQ_UNPACK64_SLACK];
    uint32_t narrow[FASTPQ_ALP_GROUPS * 32];
    uint64_t wide[FASTPQ_ALP_GROUPS * 32];
    while (count > 0) {
        const int64_t skip = first % 32, at = (first - skip) / 8 * width;
        int64_t groups = (skip + count + 31) / 32, left = available - at;
        groups = groups < FASTPQ_ALP_GROUPS ? groups : FASTPQ_ALP_GROUPS;
        const int64_t some = groups * 32 - skip < count ? groups * 32 - skip : count, needed = groups * 4 * width;
        const uint8_t *from = in + at;
        if (left < needed + FASTPQ_UNPACK64_SLACK) {
            memset(padded, 0, sizeof(padded));
            memcpy(padded, from, (size_t)(left < needed ? left : needed));
            from = padded;
            left = (int64_t)sizeof(padded);
        }
        if (width == 0) memset(narrow, 0, sizeof(narrow));
        else if (width <= 32) unpack_groups(from, left, narrow, groups, width);
        else unpack_groups64(from, wide, groups, width);
        if (size == 4) alp_values32(narrow + skip, some, (uint32_t)base, alp_tens32[factor], alp_tenths32[exponent], out);
        else if (width <= 32) alp_values64_narrow(narrow + skip, some, base, alp_tens64[factor], alp_tenths64[exponent], out);
        else alp_values64(wide + skip, some, base, alp_tens64[factor], alp_tenths64[exponent], out);
        first += some;
        count -= some;
        out += (size_t)some * size;
    }
}

/* Converts count values to integers. Sets exceptional[i] to 1 if the integer does not restore every bit in the value. Returns how
 * many such exceptions there are. MAGIC is 1.5 * 2^(mantissa digits - 1). Adding and subtracting it rounds to an integer. */
#define FASTPQ_ALP_INTEGERS(NAME, UNSIGNED, VALUE, MAGIC, LIMIT, TENS, TENTHS, WHOLE, INTEGER)                            \
    FASTPQ_CLONES static int64_t NAME(const uint8_t *values, int64_t count, int exponent, int factor, UNSIGNED *integers, \
                                      uint8_t *exceptional) {                                                             \
        const VALUE up = TENS[exponent], down = TENTHS[factor], ten = TENS[factor], tenth = TENTHS[exponent];             \
        int64_t exceptions = 0;                                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                                             \
            VALUE value, again;                                                                                           \
            UNSIGNED bits, bits_again;                                                                                    \
            memcpy(&value, values + sizeof(VALUE) * (size_t)i, sizeof(VALUE));                                            \
            memcpy(&bits, values + sizeof(VALUE) * (size_t)i, sizeof(VALUE));                                             \
            VALUE rounded = value * up * down + MAGIC - MAGIC;                                                            \
            rounded = WHOLE(rounded > -LIMIT && rounded < LIMIT ? rounded : 0); /* NaN too */                             \
            again = rounded * ten * tenth;                                                                                \
            memcpy(&bits_again, &again, sizeof(VALUE));                                                                   \
            exceptional[i] = bits != bits_again;                                                                          \
            exceptions += bits != bits_again;                                                                             \
            integers[i] = INTEGER(rounded);                                                                               \
        }                                                                                                                 \
        return exceptions;                                                                                                \
    }

/* Returns the whole number that the integer stores. It may differ from `rounded`: if a number is below -2^22, its sum with MAGIC
 * can end in a half. */
static inline float alp_whole32(float rounded) { return (float)(int32_t)rounded; }

static inline uint32_t alp_integer32(float rounded) { return (uint32_t)(int32_t)rounded; }

/* Returns the number unchanged, because below LIMIT every sum with MAGIC is an integer. */
static inline double alp_whole64(double rounded) { return rounded; }

/* Returns a double below 2^51 as an integer, which is in the low bits of its sum with MAGIC. Few processors can convert vectors
 * to int64. */
static inline uint64_t alp_integer64(double rounded) {
    const double magic = 6755399441055744.0, sum = rounded + magic;
    uint64_t bits, bits_of_magic;
    memcpy(&bits, &sum, 8);
    memcpy(&bits_of_magic, &magic, 8);
    return bits - bits_of_magic;
}

FASTPQ_ALP_INTEGERS(alp_integers32, uint32_t, float, 12582912.0f, 2147483520.0f, alp_tens32, alp_tenths32, alp_whole32,
                    alp_integer32)
FASTPQ_ALP_INTEGERS(alp_integers64, uint64_t, double, 6755399441055744.0, 2251799813685248.0, alp_tens64, alp_tenths64,
                    alp_whole64, alp_integer64)
#undef FASTPQ_ALP_INTEGERS

/* Writes where the exceptions are among count values, and returns how many there are. positions has room for eight more. */
static int64_t alp_positions(const uint8_t *exceptional, int64_t count, uint16_t *positions) {
    int64_t size = 0, i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t word;
        memcpy(&word, exceptional + i, 8);
        if (word == 0) continue;
        for (int j = 0; j < 8; j++) {
            positions[size] = (uint16_t)(i + j);
            size += exceptional[i + j];
        }
    }
    for (; i < count; i++) {
        positions[size] = (uint16_t)i;
        size += exceptional[i];
    }
    return size;
}

/* Replaces the integers for exceptions by the first other integer, then subtracts the smallest integer from all. Returns the
 * smallest, and sets *bits to the bitwise OR of the differences. */
#define FASTPQ_ALP_FRAME(NAME, SIGNED, UNSIGNED)                                                                      \
    FASTPQ_CLONES static SIGNED NAME(UNSIGNED *integers, const uint8_t *exceptional, int64_t count, uint64_t *bits) { \
        UNSIGNED placeholder = 0, all = 0;                                                                            \
        SIGNED least;                                                                                                 \
        int64_t first = 0;                                                                                            \
        while (first < count && exceptional[first]) first++;                                                          \
        if (first < count) placeholder = integers[first];                                                             \
        least = (SIGNED)placeholder;                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                         \
            integers[i] = exceptional[i] ? placeholder : integers[i];                                                 \
            least = (SIGNED)integers[i] < least ? (SIGNED)integers[i] : least;                                        \
        }                                                                                                             \
        for (int64_t i = 0; i < count; i++) all |= integers[i] -= (UNSIGNED)least;                                    \
        *bits = all;                                                                                                  \
        return least;                                                                                                 \
    }
FASTPQ_ALP_FRAME(alp_frame32, int32_t, uint32_t)
FASTPQ_ALP_FRAME(alp_frame64, int64_t, uint64_t)
#undef FASTPQ_ALP_FRAME

#endif
