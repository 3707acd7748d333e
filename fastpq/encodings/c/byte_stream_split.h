/* BYTE_STREAM_SPLIT (Encodings.md, "Byte Stream Split"): values become byte streams, and back, by interleaving vectors in rounds.
 *
 * Sixteen values with K bytes each fill K vectors with 16 bytes each. K is a power of two. One round interleaves vector j with
 * vector j + K/2, for every j. A byte's address is its stream number and its place in the stream, with log2(K) + 4 bits together.
 * A round rotates these bits by one. log2(K) rounds turn streams into values. Four more rounds complete the rotation, so four
 * rounds turn values into streams.
 */
#ifndef FASTPQ_BYTE_STREAM_SPLIT_H
#define FASTPQ_BYTE_STREAM_SPLIT_H

#include <stdint.h>
#include <string.h>

#include "clones.h"

#define FASTPQ_SPLIT_BLOCK 16 /* values interleaved together: the bytes in a vector */
#define FASTPQ_SPLIT_STEP 512 /* values in a pass: widths other than 2, 4, 8 need several, over values in the cache */

typedef uint8_t split_vector __attribute__((vector_size(FASTPQ_SPLIT_BLOCK)));

#if defined(__clang__)
#define FASTPQ_INTERLEAVE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define FASTPQ_INTERLEAVE(a, b, ...) __builtin_shuffle(a, b, (split_vector){__VA_ARGS__})
#endif

static inline __attribute__((always_inline)) void interleave(split_vector *vectors, const int count, const int rounds) {
    split_vector before[8];
    for (int round = 0; round < rounds; round++) {
        for (int j = 0; j < count; j++) before[j] = vectors[j];
        for (int j = 0; j < count / 2; j++) {
            const split_vector a = before[j], b = before[j + count / 2];
            vectors[2 * j] = FASTPQ_INTERLEAVE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            vectors[2 * j + 1] = FASTPQ_INTERLEAVE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
    }
}

#ifdef FASTPQ_X86_CLONES
#include <immintrin.h>

/* Like interleave, for two blocks at once: one in each half of the registers. */
__attribute__((target("avx2"), always_inline)) static inline void interleave_two(__m256i *vectors, const int count,
                                                                                 const int rounds) {
    __m256i before[8];
    for (int round = 0; round < rounds; round++) {
        for (int j = 0; j < count; j++) before[j] = vectors[j];
        for (int j = 0; j < count / 2; j++) {
            vectors[2 * j] = _mm256_unpacklo_epi8(before[j], before[j + count / 2]);
            vectors[2 * j + 1] = _mm256_unpackhi_epi8(before[j], before[j + count / 2]);
        }
    }
}

#define FASTPQ_TWO_BLOCKS (2 * FASTPQ_SPLIT_BLOCK)

/* Joins values with K bytes, two blocks at a time. Returns how many values it joined. */
__attribute__((target("avx2"), always_inline)) static inline int64_t join_two(const uint8_t *streams, int64_t stride,
                                                                              int64_t count, uint8_t *out, const int K,
                                                                              const int rounds) {
    int64_t i = 0;
    for (; i + FASTPQ_TWO_BLOCKS <= count; i += FASTPQ_TWO_BLOCKS) {
        __m256i vectors[8];
        for (int k = 0; k < K; k++) vectors[k] = _mm256_loadu_si256((const __m256i *)(streams + k * stride + i));
        interleave_two(vectors, K, rounds);
        for (int j = 0; j < K; j += 2) {
            uint8_t *const first = out + i * K + FASTPQ_SPLIT_BLOCK * j;
            const __m256i a = _mm256_permute2x128_si256(vectors[j], vectors[j + 1], 0x20);
            const __m256i b = _mm256_permute2x128_si256(vectors[j], vectors[j + 1], 0x31);
            _mm256_storeu_si256((__m256i *)first, a);
            _mm256_storeu_si256((__m256i *)(first + FASTPQ_SPLIT_BLOCK * K), b);
        }
    }
    return i;
}

/* Splits values with K bytes, two blocks at a time. Returns how many values it split. */
__attribute__((target("avx2"), always_inline)) static inline int64_t split_two(const uint8_t *values, int64_t count,
                                                                               uint8_t *streams, int64_t stride, const int K) {
    int64_t i = 0;
    for (; i + FASTPQ_TWO_BLOCKS <= count; i += FASTPQ_TWO_BLOCKS) {
        __m256i vectors[8];
        for (int j = 0; j < K; j += 2) {
            const uint8_t *const first = values + i * K + FASTPQ_SPLIT_BLOCK * j;
            const __m256i a = _mm256_loadu_si256((const __m256i *)first);
            const __m256i b = _mm256_loadu_si256((const __m256i *)(first + FASTPQ_SPLIT_BLOCK * K));
            vectors[j] = _mm256_permute2x128_si256(a, b, 0x20);
            vectors[j + 1] = _mm256_permute2x128_si256(a, b, 0x31);
        }
        interleave_two(vectors, K, 4);
        for (int k = 0; k < K; k++) _mm256_storeu_si256((__m256i *)(streams + k * stride + i), vectors[k]);
    }
    return i;
}

/* Calls join_two for values with 2, 4 or 8 bytes. Returns 0 for others. */
__attribute__((target("avx2"))) static int64_t join_pairs(const uint8_t *streams, int64_t stride, int64_t count, uint8_t *out,
                                                          int64_t width) {
    switch (width) {
        case 2: return join_two(streams, stride, count, out, 2, 1);
        case 4: return join_two(streams, stride, count, out, 4, 2);
        case 8: return join_two(streams, stride, count, out, 8, 3);
        default: return 0;
    }
}

/* Calls split_two for values with 2, 4 or 8 bytes. Returns 0 for others. */
__attribute__((target("avx2"))) static int64_t split_pairs(const uint8_t *values, int64_t count, uint8_t *streams, int64_t stride,
                                                           int64_t width) {
    switch (width) {
        case 2: return split_two(values, count, streams, stride, 2);
        case 4: return split_two(values, count, streams, stride, 4);
        case 8: return split_two(values, count, streams, stride, 8);
        default: return 0;
    }
}
#endif

/* Joins K streams to count values. The streams are `stride` bytes apart. In each value, which has `width` bytes, they fill K
 * neighbouring bytes. */
static inline __attribute__((always_inline)) void join_some(const uint8_t *streams, int64_t stride, int64_t count, uint8_t *out,
                                                            const int64_t width, const int K, const int rounds) {
    int64_t i = 0;
#ifdef FASTPQ_X86_CLONES
    if (width == K && __builtin_cpu_supports("avx2")) i = join_pairs(streams, stride, count, out, width);
#endif
    for (; K > 1 && i + FASTPQ_SPLIT_BLOCK <= count; i += FASTPQ_SPLIT_BLOCK) {
        split_vector vectors[8];
        for (int k = 0; k < K; k++) memcpy(vectors + k, streams + k * stride + i, FASTPQ_SPLIT_BLOCK);
        interleave(vectors, K, rounds);
        if (width == K) memcpy(out + i * width, vectors, (size_t)(FASTPQ_SPLIT_BLOCK * K));
        else
            for (int v = 0; v < FASTPQ_SPLIT_BLOCK; v++)
                memcpy(out + (i + v) * width, (const uint8_t *)vectors + v * K, (size_t)K);
    }
    for (; i < count; i++)
        for (int k = 0; k < K; k++) out[i * width + k] = streams[k * stride + i];
}

/* Splits count values into K streams. The streams are `stride` bytes apart. In each value, which has `width` bytes, only K
 * neighbouring bytes are split. */
static inline __attribute__((always_inline)) void split_some(const uint8_t *values, int64_t count, uint8_t *streams,
                                                             int64_t stride, const int64_t width, const int K) {
    int64_t i = 0;
#ifdef FASTPQ_X86_CLONES
    if (width == K && __builtin_cpu_supports("avx2")) i = split_pairs(values, count, streams, stride, width);
#endif
    for (; K > 1 && i + FASTPQ_SPLIT_BLOCK <= count; i += FASTPQ_SPLIT_BLOCK) {
        split_vector vectors[8];
        if (width == K) memcpy(vectors, values + i * width, (size_t)(FASTPQ_SPLIT_BLOCK * K));
        else
            for (int v = 0; v < FASTPQ_SPLIT_BLOCK; v++) memcpy((uint8_t *)vectors + v * K, values + (i + v) * width, (size_t)K);
        interleave(vectors, K, 4);
        for (int k = 0; k < K; k++) memcpy(streams + k * stride + i, vectors + k, FASTPQ_SPLIT_BLOCK);
    }
    for (; i < count; i++)
        for (int k = 0; k < K; k++) streams[k * stride + i] = values[i * width + k];
}

/* Joins streams to count values with `width` bytes. Byte k in value i is streams[k * stride + i]. */
static void join_streams(const uint8_t *streams, int64_t stride, int64_t count, uint8_t *out, int64_t width) {
    switch (width) {
        case 2: join_some(streams, stride, count, out, 2, 2, 1); return;
        case 4: join_some(streams, stride, count, out, 4, 4, 2); return;
        case 8: join_some(streams, stride, count, out, 8, 8, 3); return;
    }
    for (int64_t i = 0; i < count; i += FASTPQ_SPLIT_STEP, streams += FASTPQ_SPLIT_STEP, out += FASTPQ_SPLIT_STEP * width) {
        const int64_t some = count - i < FASTPQ_SPLIT_STEP ? count - i : FASTPQ_SPLIT_STEP;
        int64_t k = 0;
        for (; k + 8 <= width; k += 8) join_some(streams + k * stride, stride, some, out + k, width, 8, 3);
        if (width & 4) join_some(streams + k * stride, stride, some, out + k, width, 4, 2), k += 4;
        if (width & 2) join_some(streams + k * stride, stride, some, out + k, width, 2, 1), k += 2;
        if (width & 1) join_some(streams + k * stride, stride, some, out + k, width, 1, 0);
    }
}

/* Splits count values with `width` bytes into streams with count bytes each. */
static void split_values(const uint8_t *values, int64_t count, uint8_t *streams, int64_t width) {
    switch (width) {
        case 2: split_some(values, count, streams, count, 2, 2); return;
        case 4: split_some(values, count, streams, count, 4, 4); return;
        case 8: split_some(values, count, streams, count, 8, 8); return;
    }
    for (int64_t i = 0; i < count; i += FASTPQ_SPLIT_STEP, values += FASTPQ_SPLIT_STEP * width, streams += FASTPQ_SPLIT_STEP) {
        const int64_t some = count - i < FASTPQ_SPLIT_STEP ? count - i : FASTPQ_SPLIT_STEP;
        int64_t k = 0;
        for (; k + 8 <= width; k += 8) split_some(values + k, some, streams + k * count, count, width, 8);
        if (width & 4) split_some(values + k, some, streams + k * count, count, width, 4), k += 4;
        if (width & 2) split_some(values + k, some, streams + k * count, count, width, 2), k += 2;
        if (width & 1) split_some(values + k, some, streams + k * count, count, width, 1);
    }
}

#endif
