/* Bit packing for the RLE / bit-packing hybrid (Encodings.md, "RLE"): LSB first, in groups of 32 values with 4 * width bytes.
 *
 * Each loop is written once, with the width as a constant argument. The compiler unrolls a copy for each width.
 */
#ifndef FASTPQ_BITPACK_H
#define FASTPQ_BITPACK_H

#include <stdint.h>
#include <string.h>

#include "clones.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "fastpq stores little-endian words as they are in memory; big-endian machines need byte swaps here"
#endif

#define FASTPQ_SHUFFLED_WIDTH 25 /* bits: a value this wide is within four bytes, whatever its first bit */
/* clang-format off */
#define FASTPQ_EACH_SHUFFLED_WIDTH(DO) \
    DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) \
    DO(14) DO(15) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25)
/* clang-format on */
#define FASTPQ_EACH_OTHER_WIDTH(DO) DO(26) DO(27) DO(28) DO(29) DO(30) DO(31) DO(32)
#define FASTPQ_EACH_WIDTH(DO) FASTPQ_EACH_SHUFFLED_WIDTH(DO) FASTPQ_EACH_OTHER_WIDTH(DO)

static inline __attribute__((always_inline)) void unpack_of_width(const uint8_t *in, uint32_t *out, int64_t groups,
                                                                  const int width) {
    const uint32_t mask = width == 32 ? UINT32_MAX : (1u << width) - 1;
    for (int64_t g = 0; g < groups; g++, in += 4 * width, out += 32) {
        uint32_t words[33];
        memcpy(words, in, 4 * width);
#pragma GCC unroll 32
        for (int i = 0; i < 32; i++) {
            const int word = i * width / 32, shift = i * width % 32;
            uint32_t value = words[word] >> shift;
            if (shift + width > 32) value |= words[word + 1] << (32 - shift);
            out[i] = value & mask;
        }
    }
}

#define UNPACK(w) \
    case w: unpack_of_width(in, out, groups, w); break;

/* Compiled without clones, because processors with AVX2 shuffle values with these widths (unpack_shuffled). */
static void unpack_narrow(const uint8_t *in, uint32_t *out, int64_t groups, int width) {
    switch (width) { FASTPQ_EACH_SHUFFLED_WIDTH(UNPACK) }
}

FASTPQ_CLONES static void unpack_wide(const uint8_t *in, uint32_t *out, int64_t groups, int width) {
    switch (width) { FASTPQ_EACH_OTHER_WIDTH(UNPACK) }
}

#undef UNPACK

#ifdef FASTPQ_X86_CLONES
#include <immintrin.h>

#define FASTPQ_SHUFFLE_SLACK 32 /* readable bytes that the last shuffle needs behind a group */

/* Shuffle tables for each width. Eight values are loaded as two halves with four values each. shuffled_bytes has the four bytes
 * around each value, counted from its half's first byte. shuffled_shifts tells at which of their bits the value starts. */
#define UPPER(w) (4 * (w) / 8) /* first byte of the upper four values */
#define BYTE(w, i) ((i) * (w) / 8 - ((i) < 4 ? 0 : UPPER(w)))
#define FOUR(w, i) BYTE(w, i), BYTE(w, i) + 1, BYTE(w, i) + 2, BYTE(w, i) + 3
#define BYTES(w) {FOUR(w, 0), FOUR(w, 1), FOUR(w, 2), FOUR(w, 3), FOUR(w, 4), FOUR(w, 5), FOUR(w, 6), FOUR(w, 7)},
#define SHIFT(w, i) ((i) * (w) % 8)
#define SHIFTS(w) {SHIFT(w, 0), SHIFT(w, 1), SHIFT(w, 2), SHIFT(w, 3), SHIFT(w, 4), SHIFT(w, 5), SHIFT(w, 6), SHIFT(w, 7)},
static const uint8_t shuffled_bytes[33][32] = {{0}, FASTPQ_EACH_WIDTH(BYTES)};
static const uint32_t shuffled_shifts[33][8] = {{0}, FASTPQ_EACH_WIDTH(SHIFTS)};
#undef BYTE
#undef FOUR
#undef BYTES
#undef SHIFT
#undef SHIFTS

/* How to unpack eight values at a time: the four bytes around each value are shuffled into its lane, then shifted and masked.
 * This is twice as fast as unpack_of_width, where the compiler does not find the shuffles. */
typedef struct {
    __m256i shuffle, shift, mask;
    int upper, width;
} shuffled;

__attribute__((target("avx2"))) static inline shuffled shuffled_of(int width) {
    shuffled how;
    how.shuffle = _mm256_loadu_si256((const __m256i *)shuffled_bytes[width]);
    how.shift = _mm256_loadu_si256((const __m256i *)shuffled_shifts[width]);
    how.mask = _mm256_set1_epi32((int)((1u << width) - 1));
    how.upper = UPPER(width);
    how.width = width;
    return how;
}
#undef UPPER

__attribute__((target("avx2"))) static inline __m256i unpack_eight(const shuffled *how, const uint8_t *in) {
    const __m128i low = _mm_loadu_si128((const __m128i *)in), high = _mm_loadu_si128((const __m128i *)(in + how->upper));
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    return _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(bytes, how->shuffle), how->shift), how->mask);
}

__attribute__((target("avx2"))) static void unpack_shuffled(const uint8_t *in, uint32_t *out, int64_t groups, int width) {
    const shuffled how = shuffled_of(width);
    for (int64_t eight = 0; eight < 4 * groups; eight++, in += width, out += 8)
        _mm256_storeu_si256((__m256i *)out, unpack_eight(&how, in));
}

static inline int can_shuffle(int width) { return width <= FASTPQ_SHUFFLED_WIDTH && __builtin_cpu_supports("avx2"); }

/* Returns how many first groups shuffles can unpack without loading bytes behind the available ones. */
static inline int64_t shuffled_groups(int64_t available, int64_t groups, int width) {
    available -= FASTPQ_SHUFFLE_SLACK;
    if (groups * 4 * width <= available) return groups; /* the usual case, without a division */
    return available < 0 ? 0 : available / (4 * width);
}
#endif

/* Unpacks groups * 32 values with `width` bits each. in has `available` bytes, at least groups * 4 * width. */
static void unpack_groups(const uint8_t *in, int64_t available, uint32_t *out, int64_t groups, int width) {
#ifdef FASTPQ_X86_CLONES
    if (can_shuffle(width)) {
        const int64_t safe = shuffled_groups(available, groups, width), left = groups - safe;
        unpack_shuffled(in, out, safe, width);
        if (left) { /* bytes: at most the slack and one group */
            uint8_t padded[FASTPQ_SHUFFLE_SLACK + 4 * FASTPQ_SHUFFLED_WIDTH + FASTPQ_SHUFFLE_SLACK] = {0};
            memcpy(padded, in + safe * 4 * width, (size_t)(left * 4 * width));
            unpack_shuffled(padded, out + safe * 32, left, width);
        }
        return;
    }
#endif
    if (width <= FASTPQ_SHUFFLED_WIDTH) unpack_narrow(in, out, groups, width);
    else unpack_wide(in, out, groups, width);
}

#define FASTPQ_UNPACK64_SLACK 9 /* readable bytes that unpack_groups64 needs behind its input */

/* Unpacks groups * 32 values with 1 to 64 bits to 64 bits each. FASTPQ_UNPACK64_SLACK bytes behind the input are readable. */
FASTPQ_CLONES static void unpack_groups64(const uint8_t *in, uint64_t *out, int64_t groups, int width) {
    const uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    for (int64_t i = 0; i < 32 * groups; i++) {
        const uint8_t *first = in + i * width / 8;
        const int shift = (int)(i * width % 8);
        uint64_t value;
        memcpy(&value, first, 8);
        value = value >> shift | (uint64_t)first[8] << 1 << (63 - shift);
        out[i] = value & mask;
    }
}

static inline __attribute__((always_inline)) void pack_of_width(const uint32_t *in, uint8_t *out, int64_t groups,
                                                                const int width) {
    for (int64_t g = 0; g < groups; g++, in += 32, out += 4 * width) {
        uint32_t words[33] = {0};
#pragma GCC unroll 32
        for (int i = 0; i < 32; i++) {
            const int word = i * width / 32, shift = i * width % 32;
            words[word] |= in[i] << shift;
            if (shift + width > 32) words[word + 1] |= in[i] >> (32 - shift);
        }
        memcpy(out, words, 4 * width);
    }
}

/* Packs groups * 32 values, each below 2^width. */
FASTPQ_CLONES static void pack_groups(const uint32_t *in, uint8_t *out, int64_t groups, int width) {
    switch (width) {
#define PACK(w) \
    case w: pack_of_width(in, out, groups, w); break;
        FASTPQ_EACH_WIDTH(PACK)
#undef PACK
    }
}

/* Packs groups * 32 values, which have 64 bits and are below 2^width. width is 1 to 64. */
static void pack_groups64(const uint64_t *in, uint8_t *out, int64_t groups, int width) {
    uint64_t word = 0;
    int used = 0;
    for (int64_t i = 0; i < 32 * groups; i++) {
        word |= in[i] << used;
        used += width;
        if (used >= 64) {
            memcpy(out, &word, 8);
            out += 8;
            used -= 64;
            word = used ? in[i] >> (width - used) : 0;
        }
    }
    memcpy(out, &word, (size_t)(used / 8)); /* an odd number of 32-bit halves leaves half a word */
}

static inline __attribute__((always_inline)) int differs(const uint32_t *eight, uint32_t value) {
    uint32_t difference = 0;
    for (int i = 0; i < 8; i++) difference |= eight[i] ^ value;
    return difference != 0;
}

/* Returns how many first groups have eight values that all equal values[0]. */
FASTPQ_CLONES static int64_t constant_groups(const uint32_t *values, int64_t groups) {
    int64_t g = 0;
    while (g < groups && !differs(values + 8 * g, values[0])) g++;
    return g;
}

/* Returns how many first groups have eight values that are not all equal. */
FASTPQ_CLONES static int64_t varied_groups(const uint32_t *values, int64_t groups) {
    int64_t g = 0;
    while (g < groups && differs(values + 8 * g, values[8 * g])) g++;
    return g;
}

FASTPQ_CLONES static uint32_t largest(const uint32_t *values, int64_t count) {
    uint32_t result = 0;
    for (int64_t i = 0; i < count; i++) result = values[i] > result ? values[i] : result;
    return result;
}

#endif
