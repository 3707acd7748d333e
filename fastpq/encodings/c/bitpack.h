/* Bit packing as the RLE / bit-packing hybrid has it: LSB first, groups of 32 values in 4 * width bytes (Encodings.md, "RLE").
 *
 * The loops are written once with the width as a constant argument; the compiler unrolls one copy a width.
 */
#ifndef FASTPQ_BITPACK_H
#define FASTPQ_BITPACK_H

#include <stdint.h>
#include <string.h>

#include "clones.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "fastpq stores little-endian words as they are in memory; big-endian machines need byte swaps here"
#endif

#define FASTPQ_EACH_WIDTH(DO) \
    DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15) DO(16) \
    DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26) DO(27) DO(28) DO(29) DO(30) DO(31) DO(32)

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

FASTPQ_CLONES static void unpack_portable(const uint8_t *in, uint32_t *out, int64_t groups, int width) {
    switch (width) {
#define UNPACK(w) case w: unpack_of_width(in, out, groups, w); break;
        FASTPQ_EACH_WIDTH(UNPACK)
#undef UNPACK
    }
}

#ifdef FASTPQ_X86_CLONES
#include <immintrin.h>

#define FASTPQ_SHUFFLED_WIDTH 25 /* a value of this width lies within four bytes, wherever it begins */
#define FASTPQ_SHUFFLE_SLACK 32  /* bytes that the last shuffle of a group may load behind it */

/* Eight values at a time: four bytes around each are shuffled into its lane, shifted and masked; twice as fast as the
 * portable loop, which the compiler does not turn into this. */
__attribute__((target("avx2"))) static void unpack_shuffled(const uint8_t *in, uint32_t *out, int64_t groups, int width) {
    uint8_t bytes[32];
    uint32_t shifts[8];
    const int upper = 4 * width / 8; /* first byte of the upper four values */
    for (int i = 0; i < 8; i++) {
        const int first = i * width / 8 - (i < 4 ? 0 : upper);
        for (int j = 0; j < 4; j++) bytes[4 * i + j] = (uint8_t)(first + j);
        shifts[i] = (uint32_t)(i * width % 8);
    }
    const __m256i shuffle = _mm256_loadu_si256((const __m256i *)bytes);
    const __m256i shift = _mm256_loadu_si256((const __m256i *)shifts);
    const __m256i mask = _mm256_set1_epi32((int)((1u << width) - 1));
    for (int64_t eight = 0; eight < 4 * groups; eight++, in += width, out += 8) {
        const __m128i low = _mm_loadu_si128((const __m128i *)in), high = _mm_loadu_si128((const __m128i *)(in + upper));
        __m256i values = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        values = _mm256_srlv_epi32(_mm256_shuffle_epi8(values, shuffle), shift);
        _mm256_storeu_si256((__m256i *)out, _mm256_and_si256(values, mask));
    }
}
#endif

/* groups * 32 values; in holds available bytes, at least groups * 4 * width. */
static void unpack_groups(const uint8_t *in, int64_t available, uint32_t *out, int64_t groups, int width) {
#ifdef FASTPQ_X86_CLONES
    if (width <= FASTPQ_SHUFFLED_WIDTH && groups > 1 && __builtin_cpu_supports("avx2")) {
        int64_t safe = (available - FASTPQ_SHUFFLE_SLACK) / (4 * width);
        if (safe > groups) safe = groups;
        if (safe > 0) {
            unpack_shuffled(in, out, safe, width);
            in += safe * 4 * width;
            out += safe * 32;
            groups -= safe;
        }
    }
#endif
    unpack_portable(in, out, groups, width);
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

/* groups * 32 values, each below 2^width. */
FASTPQ_CLONES static void pack_groups(const uint32_t *in, uint8_t *out, int64_t groups, int width) {
    switch (width) {
#define PACK(w) case w: pack_of_width(in, out, groups, w); break;
        FASTPQ_EACH_WIDTH(PACK)
#undef PACK
    }
}

static inline __attribute__((always_inline)) int differs(const uint32_t *eight, uint32_t value) {
    uint32_t difference = 0;
    for (int i = 0; i < 8; i++) difference |= eight[i] ^ value;
    return difference != 0;
}

/* How many of the leading groups of eight values hold nothing but values[0]. */
FASTPQ_CLONES static int64_t constant_groups(const uint32_t *values, int64_t groups) {
    int64_t g = 0;
    while (g < groups && !differs(values + 8 * g, values[0])) g++;
    return g;
}

/* How many of the leading groups of eight values hold more than one value. */
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
