/* Split-block Bloom filters (BloomFilter.md). A block has eight 32-bit words. A hash sets one bit in each word of its block. */
#ifndef FASTPQ_SPLIT_BLOCK_H
#define FASTPQ_SPLIT_BLOCK_H

#include <stdint.h>
#include <string.h>

#include "../../encodings/c/clones.h"

#define FASTPQ_BLOCK_BYTES 32
#define FASTPQ_BLOCK_CACHED (1 << 18) /* a filter with at most this many bytes is in the caches and is used without prefetching */

/* Vector types of the compiler. From plain loops over eight words, GCC makes half vectors and shuffles. */
typedef uint32_t split_block __attribute__((vector_size(FASTPQ_BLOCK_BYTES)));
typedef uint64_t split_block_quarters __attribute__((vector_size(FASTPQ_BLOCK_BYTES)));

static const split_block split_block_salt = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                             0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
static const split_block split_block_ones = {1, 1, 1, 1, 1, 1, 1, 1};

#define FASTPQ_BLOCK_MASK(HASH) (split_block_ones << ((uint32_t)(HASH) * split_block_salt >> 27))

static inline uint64_t split_block_offset(uint64_t hash, uint64_t blocks) {
    return ((hash >> 32) * blocks >> 32) * FASTPQ_BLOCK_BYTES;
}

/* Prefetches the blocks for a batch of hashes. In a large filter, each block is a cache miss. */
static inline void split_block_prefetch(const uint8_t *bits, uint64_t blocks, const uint64_t *hashes, int64_t count) {
    if (blocks * FASTPQ_BLOCK_BYTES <= FASTPQ_BLOCK_CACHED) return;
    for (int64_t i = 0; i < count; i++) __builtin_prefetch(bits + split_block_offset(hashes[i], blocks));
}

FASTPQ_CLONES static void split_block_insert(uint8_t *bits, uint64_t blocks, const uint64_t *hashes, int64_t count) {
    split_block_prefetch(bits, blocks, hashes, count);
    for (int64_t i = 0; i < count; i++) {
        uint8_t *place = bits + split_block_offset(hashes[i], blocks);
        split_block block;
        memcpy(&block, place, sizeof block);
        block |= FASTPQ_BLOCK_MASK(hashes[i]);
        memcpy(place, &block, sizeof block);
    }
}

FASTPQ_CLONES static void split_block_probe_anywhere(const uint8_t *bits, uint64_t blocks, const uint64_t *hashes, int64_t count,
                                                     uint8_t *found) {
    split_block_prefetch(bits, blocks, hashes, count);
    for (int64_t i = 0; i < count; i++) {
        split_block block;
        memcpy(&block, bits + split_block_offset(hashes[i], blocks), sizeof block);
        split_block_quarters missing = (split_block_quarters)(FASTPQ_BLOCK_MASK(hashes[i]) & ~block);
        found[i] = (missing[0] | missing[1] | missing[2] | missing[3]) == 0;
    }
}

#if defined(__x86_64__) && !defined(FASTPQ_NO_CLONES)
#include <immintrin.h>

/* AVX2 has one instruction that tests whether a block has all bits of a mask. The compiler's vectors take a dozen. */
__attribute__((target("avx2"))) static void split_block_probe_avx2(const uint8_t *bits, uint64_t blocks, const uint64_t *hashes,
                                                                   int64_t count, uint8_t *found) {
    const __m256i salt = (__m256i)split_block_salt, ones = _mm256_set1_epi32(1);
    split_block_prefetch(bits, blocks, hashes, count);
    for (int64_t i = 0; i < count; i++) {
        __m256i block = _mm256_loadu_si256((const __m256i *)(bits + split_block_offset(hashes[i], blocks)));
        __m256i shifts = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_set1_epi32((int)hashes[i]), salt), 27);
        found[i] = (uint8_t)_mm256_testc_si256(block, _mm256_sllv_epi32(ones, shifts));
    }
}

static void split_block_probe(const uint8_t *bits, uint64_t blocks, const uint64_t *hashes, int64_t count, uint8_t *found) {
    if (__builtin_cpu_supports("avx2")) split_block_probe_avx2(bits, blocks, hashes, count, found);
    else split_block_probe_anywhere(bits, blocks, hashes, count, found);
}
#else
#define split_block_probe split_block_probe_anywhere
#endif

#endif
