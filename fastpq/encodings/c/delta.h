/* DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding"): turns deltas into values and back, modulo 2^32 or 2^64. */
#ifndef FASTPQ_DELTA_H
#define FASTPQ_DELTA_H

#include <stdint.h>
#include <string.h>

#include "bitpack.h"
#include "clones.h"

/* Writes count running sums of deltas[i] + least, from `last` on. Returns the last sum. */
#define FASTPQ_SUM(NAME, DELTA, VALUE)                                                             \
    static VALUE NAME(const DELTA *deltas, int64_t count, VALUE least, VALUE last, uint8_t *out) { \
        for (int64_t i = 0; i < count; i++) {                                                      \
            last += (VALUE)deltas[i] + least;                                                      \
            memcpy(out + sizeof(VALUE) * (size_t)i, &last, sizeof(VALUE));                         \
        }                                                                                          \
        return last;                                                                               \
    }
FASTPQ_SUM(sum_deltas32, uint32_t, uint32_t)
FASTPQ_SUM(sum_deltas64, uint32_t, uint64_t)
FASTPQ_SUM(sum_wide_deltas64, uint64_t, uint64_t)
#undef FASTPQ_SUM

/* Like the functions above, for deltas that are all zero. */
#define FASTPQ_PROGRESSION(NAME, VALUE)                                                     \
    FASTPQ_CLONES static VALUE NAME(int64_t count, VALUE least, VALUE last, uint8_t *out) { \
        for (int64_t i = 0; i < count; i++) {                                               \
            const VALUE value = last + ((VALUE)i + 1) * least;                              \
            memcpy(out + sizeof(VALUE) * (size_t)i, &value, sizeof(VALUE));                 \
        }                                                                                   \
        return last + (VALUE)count * least;                                                 \
    }
FASTPQ_PROGRESSION(progression32, uint32_t)
FASTPQ_PROGRESSION(progression64, uint64_t)
#undef FASTPQ_PROGRESSION

/* Decodes groups * 32 values from deltas with 1 to 32 bits. in has `available` bytes. Returns the last value. */
#define FASTPQ_DECODE(NAME, VALUE, SUM)                                                                                         \
    static VALUE NAME(const uint8_t *in, int64_t available, int64_t groups, int width, VALUE least, VALUE last, uint8_t *out) { \
        uint32_t deltas[8 * 32];                                                                                                \
        while (groups) {                                                                                                        \
            const int64_t some = groups < 8 ? groups : 8;                                                                       \
            unpack_groups(in, available, deltas, some, width);                                                                  \
            last = SUM(deltas, some * 32, least, last, out);                                                                    \
            in += some * 4 * width;                                                                                             \
            available -= some * 4 * width;                                                                                      \
            out += some * 32 * (int64_t)sizeof(VALUE);                                                                          \
            groups -= some;                                                                                                     \
        }                                                                                                                       \
        return last;                                                                                                            \
    }
FASTPQ_DECODE(decode_deltas32, uint32_t, sum_deltas32)
FASTPQ_DECODE(decode_deltas64, uint64_t, sum_deltas64)
#undef FASTPQ_DECODE

/* Decodes groups * 32 values with 64 bits from deltas with 26 to 64 bits. FASTPQ_UNPACK64_SLACK bytes behind them are readable.
 * The compiler copies the loop for each width, with constant positions and shifts. Returns the last value. */
static inline __attribute__((always_inline)) uint64_t sum_wide_of_width(const uint8_t *in, int64_t groups, uint64_t least,
                                                                        uint64_t last, uint8_t *out, const int width) {
    const uint64_t mask = UINT64_MAX >> (64 - width);
    for (int64_t g = 0; g < groups; g++, in += 4 * width, out += 256) {
#pragma GCC unroll 32
        for (int i = 0; i < 32; i++) {
            const uint8_t *const first = in + i * width / 8;
            const int shift = i * width % 8;
            uint64_t delta;
            memcpy(&delta, first, 8);
            delta >>= shift;
            if (shift + width > 64) delta |= (uint64_t)first[8] << (64 - shift);
            last += (delta & mask) + least;
            memcpy(out + 8 * i, &last, 8);
        }
    }
    return last;
}

#define FASTPQ_WIDE_FROM 26 /* bits: decode_wide_deltas64 needs at least this width. Shuffles unpack narrower deltas. */
/* clang-format off */
#define FASTPQ_EACH_WIDE(DO) \
    DO(26) DO(27) DO(28) DO(29) DO(30) DO(31) DO(32) DO(33) DO(34) DO(35) DO(36) DO(37) DO(38) \
    DO(39) DO(40) DO(41) DO(42) DO(43) DO(44) DO(45) DO(46) DO(47) DO(48) DO(49) DO(50) DO(51) \
    DO(52) DO(53) DO(54) DO(55) DO(56) DO(57) DO(58) DO(59) DO(60) DO(61) DO(62) DO(63) DO(64)
/* clang-format on */

static uint64_t decode_wide_deltas64(const uint8_t *in, int64_t groups, int width, uint64_t least, uint64_t last, uint8_t *out) {
    switch (width) {
#define SUM_WIDE(w) \
    case w: return sum_wide_of_width(in, groups, least, last, out, w);
        FASTPQ_EACH_WIDE(SUM_WIDE)
#undef SUM_WIDE
    }
    return last;
}

/* The miniblocks that a block still has, from the current one on. */
typedef struct {
    const uint8_t *widths;
    int64_t miniblocks, size; /* how many miniblocks there are, and how many values each has */
    const uint8_t *in, *end;  /* where the current miniblock starts, and where the page ends */
    uint64_t least, last;
} delta_block;

#ifdef FASTPQ_X86_CLONES
/* Returns the running sums over eight lanes. Each half is summed in steps of one and two lanes. Then the lower half's total is
 * added to the upper half. */
__attribute__((target("avx2"))) static inline __m256i sums_of_eight(__m256i values) {
    values = _mm256_add_epi32(values, _mm256_slli_si256(values, 4));
    values = _mm256_add_epi32(values, _mm256_slli_si256(values, 8));
    return _mm256_add_epi32(values, _mm256_shuffle_epi32(_mm256_permute2x128_si256(values, values, 0x08), 0xFF));
}

__attribute__((target("avx2"))) static inline __m256i last_of_eight(__m256i values) {
    return _mm256_shuffle_epi32(_mm256_permute2x128_si256(values, values, 0x11), 0xFF);
}

/* Unpacks and sums a group of 32 values in registers. For eight values, only one addition waits for the values before them, not
 * one for each value. Returns the last value in all lanes. */
__attribute__((target("avx2"))) static inline __m256i sum_group32(const shuffled *how, const uint8_t *in, __m256i least,
                                                                  __m256i last, uint8_t *out) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256i sums = sums_of_eight(_mm256_add_epi32(unpack_eight(how, in + i * how->width), least));
        _mm256_storeu_si256((__m256i *)(out + 32 * i), _mm256_add_epi32(sums, last));
        last = _mm256_add_epi32(last, last_of_eight(sums));
    }
    return last;
}

/* Like sum_group32, for 64-bit values. The deltas have at most 25 bits, so that the sum of 32 deltas fits into a 32-bit lane. If
 * l is the least delta, the lanes in `least` are l, 2 l, 3 l, 4 l, and all lanes in `four` are 4 l. */
__attribute__((target("avx2"))) static inline __m256i sum_group64(const shuffled *how, const uint8_t *in, __m256i least,
                                                                  __m256i four, __m256i last, uint8_t *out) {
    __m256i carry = _mm256_setzero_si256(), base = _mm256_add_epi64(last, least);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256i sums = sums_of_eight(unpack_eight(how, in + i * how->width)), all = _mm256_add_epi32(sums, carry);
        const __m256i low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(all));
        const __m256i high = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(all, 1));
        _mm256_storeu_si256((__m256i *)(out + 64 * i), _mm256_add_epi64(low, base));
        base = _mm256_add_epi64(base, four);
        last = _mm256_add_epi64(high, base);
        _mm256_storeu_si256((__m256i *)(out + 64 * i + 32), last);
        base = _mm256_add_epi64(base, four);
        carry = _mm256_add_epi32(carry, last_of_eight(sums));
    }
    return _mm256_permute4x64_epi64(last, 0xFF);
}

/* Decodes whole miniblocks by shuffles, at most count values. Stops before a miniblock that is wider than FASTPQ_SHUFFLED_WIDTH,
 * or that ends less than FASTPQ_SHUFFLE_SLACK bytes before the page's end. Updates block->in and block->last. Returns how many
 * miniblocks it decoded. */
__attribute__((target("avx2"), always_inline)) static inline int64_t sum_shuffled(delta_block *block, int64_t count,
                                                                                  const size_t value, uint8_t *out) {
    const __m256i each = value == 4 ? _mm256_set1_epi32((int)block->least) : _mm256_set1_epi64x((int64_t)block->least);
    const __m256i two = _mm256_add_epi64(each, each), four = _mm256_add_epi64(two, two);
    const __m256i least =
        _mm256_add_epi64(_mm256_blend_epi32(each, two, 0xCC), _mm256_blend_epi32(_mm256_setzero_si256(), two, 0xF0));
    const uint8_t *in = block->in, *const end = block->end - FASTPQ_SHUFFLE_SLACK, *const widths = block->widths;
    const int64_t size = block->size, groups = size / 32;
    const int64_t most = block->miniblocks;
    __m256i last = value == 4 ? _mm256_set1_epi32((int)block->last) : _mm256_set1_epi64x((int64_t)block->last);
    int64_t done = 0;
    for (; done < most && count >= size && widths[done] <= FASTPQ_SHUFFLED_WIDTH; done++, count -= size) {
        const shuffled how = shuffled_of(widths[done]);
        if (end - in < groups * 4 * how.width) break;
        for (int64_t g = 0; g < groups; g++, in += 4 * how.width, out += 32 * value)
            if (value == 4) last = sum_group32(&how, in, each, last, out);
            else last = sum_group64(&how, in, least, four, last, out);
    }
    block->in = in;
    block->last = value == 4 ? (uint32_t)_mm256_extract_epi32(last, 0) : (uint64_t)_mm256_extract_epi64(last, 0);
    return done;
}
#endif

#ifdef FASTPQ_X86_CLONES
__attribute__((target("avx2"))) static int64_t sum_shuffled32(delta_block *block, int64_t count, uint8_t *out) {
    return sum_shuffled(block, count, 4, out);
}

__attribute__((target("avx2"))) static int64_t sum_shuffled64(delta_block *block, int64_t count, uint8_t *out) {
    return sum_shuffled(block, count, 8, out);
}
#endif

/* Calls sum_shuffled on processors with AVX2. Returns how many miniblocks it decoded: 0 on other processors. */
static inline int64_t sum_miniblocks(delta_block *block, int64_t count, size_t width, uint8_t *out) {
#ifdef FASTPQ_X86_CLONES
    if (__builtin_cpu_supports("avx2")) return width == 8 ? sum_shuffled64(block, count, out) : sum_shuffled32(block, count, out);
#endif
    return 0;
}

/* Sets deltas[i] to values[i] - values[i - 1] - least, for count values. values[-1] is readable. Returns least, which is the
 * smallest difference as a signed number. The deltas from count to room - 1 become zero. */
#define FASTPQ_DIFFERENCES(NAME, SIGNED, UNSIGNED, SMALLEST)                                                  \
    FASTPQ_CLONES static int64_t NAME(const uint8_t *values, int64_t count, int64_t room, UNSIGNED *deltas) { \
        SIGNED least = SMALLEST;                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                 \
            UNSIGNED value, before;                                                                           \
            memcpy(&value, values + (int64_t)sizeof(value) * i, sizeof(value));                               \
            memcpy(&before, values + (int64_t)sizeof(value) * (i - 1), sizeof(value));                        \
            deltas[i] = value - before;                                                                       \
            least = (SIGNED)deltas[i] < least ? (SIGNED)deltas[i] : least;                                    \
        }                                                                                                     \
        for (int64_t i = 0; i < count; i++) deltas[i] -= (UNSIGNED)least;                                     \
        memset(deltas + count, 0, sizeof(UNSIGNED) * (size_t)(room - count));                                 \
        return least;                                                                                         \
    }
FASTPQ_DIFFERENCES(differences32, int32_t, uint32_t, INT32_MAX)
FASTPQ_DIFFERENCES(differences64, int64_t, uint64_t, INT64_MAX)
#undef FASTPQ_DIFFERENCES

/* Returns the bitwise OR of count values. */
FASTPQ_CLONES static uint64_t bits_of32(const uint32_t *values, int64_t count) {
    uint32_t bits = 0;
    for (int64_t i = 0; i < count; i++) bits |= values[i];
    return bits;
}

FASTPQ_CLONES static uint64_t bits_of64(const uint64_t *values, int64_t count) {
    uint64_t bits = 0;
    for (int64_t i = 0; i < count; i++) bits |= values[i];
    return bits;
}

/* Copies the low halves of count values. out may be the same memory as values. */
FASTPQ_CLONES static void narrow64(const uint64_t *values, int64_t count, uint32_t *out) {
    for (int64_t i = 0; i < count; i++) out[i] = (uint32_t)values[i];
}

/* Returns how many bits there are up to the highest set bit. */
static inline int width_of(uint64_t bits) { return bits ? 64 - __builtin_clzll(bits) : 0; }

#endif
