/* Functions for numbers in the Variant encoding: offsets and counts with one to four bytes, integers, and unscaled decimals. */
#ifndef FASTPQ_VARIANT_H
#define FASTPQ_VARIANT_H

#include <stdint.h>
#include <string.h>

typedef __int128 fastpq_int128;

/* Return an unsigned little-endian number that has one to four bytes. */
static inline uint32_t variant_load(const uint8_t *p, int width) {
    uint32_t v = p[0];
    if (width > 1) v |= (uint32_t)p[1] << 8;
    if (width > 2) v |= (uint32_t)p[2] << 16;
    if (width > 3) v |= (uint32_t)p[3] << 24;
    return v;
}

static inline void variant_store(uint8_t *p, uint32_t v, int width) {
    for (int i = 0; i < width; i++) p[i] = (uint8_t)(v >> (8 * i));
}

/* Return how many bytes an unsigned number needs: one to four. */
static inline int variant_width(uint32_t v) { return v <= 0xFF ? 1 : v <= 0xFFFF ? 2 : v <= 0xFFFFFF ? 3 : 4; }

/* Return a signed little-endian number that has 1, 2, 4, 8 or 16 bytes. */
static inline fastpq_int128 variant_signed(const uint8_t *p, int width) {
    uint64_t low = 0, high;
    memcpy(&low, p, width < 8 ? (size_t)width : 8);
    if (width < 8) {
        const int shift = 64 - 8 * width;
        return (fastpq_int128)((int64_t)(low << shift) >> shift);
    }
    if (width == 8) return (fastpq_int128)(int64_t)low;
    memcpy(&high, p + 8, 8);
    return (fastpq_int128)(((unsigned __int128)high << 64) | low);
}

static inline fastpq_int128 power_of_ten(int exponent) {
    fastpq_int128 power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

/* Return whether a signed number, which has width bytes, needs at most this many decimal digits. digits is at most 38. */
static inline int variant_has_digits(const uint8_t *p, int width, int digits) {
    const fastpq_int128 v = variant_signed(p, width), bound = power_of_ten(digits);
    return -bound < v && v < bound;
}

/* Convert a decimal's unscaled number to another scale, and write it in out_width bytes. Return whether the result is exact and
 * has at most precision digits. Both scales and the precision are at most 38. */
static inline int variant_rescale(const uint8_t *p, int width, int from, int to, int precision, uint8_t *out, int out_width) {
    fastpq_int128 v = variant_signed(p, width);
    const fastpq_int128 bound = power_of_ten(precision);
    for (; from < to && v; from++) {
        if (v >= bound / 10 || v <= -bound / 10) return 0; /* too many digits: check this before v overflows */
        v *= 10;
    }
    for (; from > to && v; from--) {
        if (v % 10) return 0;
        v /= 10;
    }
    if (v >= bound || v <= -bound) return 0;
    memcpy(out, &v, (size_t)out_width);
    return 1;
}

/* Return a position's hash. Two multisets whose hashes have equal sums are equal, almost certainly. */
static inline uint64_t variant_spread(uint64_t position) {
    uint64_t v = position + 0x9E3779B97F4A7C15u;
    v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9u;
    v = (v ^ (v >> 27)) * 0x94D049BB133111EBu;
    return v ^ (v >> 31);
}

#endif
