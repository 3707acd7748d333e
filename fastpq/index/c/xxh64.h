/* XXH64 with seed 0, which split-block Bloom filters use as their hash (xxhash_spec.md 0.1.1). Only for little-endian machines,
 * like the whole package. */
#ifndef FASTPQ_XXH64_H
#define FASTPQ_XXH64_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../encodings/c/clones.h"

#define FASTPQ_PRIME1 0x9E3779B185EBCA87u
#define FASTPQ_PRIME2 0xC2B2AE3D27D4EB4Fu
#define FASTPQ_PRIME3 0x165667B19E3779F9u
#define FASTPQ_PRIME4 0x85EBCA77C2B2AE63u
#define FASTPQ_PRIME5 0x27D4EB2F165667C5u

static inline uint64_t xxh64_rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

static inline uint64_t xxh64_round(uint64_t lane, uint64_t input) {
    return xxh64_rotate(lane + input * FASTPQ_PRIME2, 31) * FASTPQ_PRIME1;
}

/* The steps for the rest of the input behind the stripes: they take eight bytes, four bytes, or one byte. */
static inline uint64_t xxh64_take8(uint64_t hash, uint64_t input) {
    return xxh64_rotate(hash ^ xxh64_round(0, input), 27) * FASTPQ_PRIME1 + FASTPQ_PRIME4;
}

static inline uint64_t xxh64_take4(uint64_t hash, uint32_t input) {
    return xxh64_rotate(hash ^ input * FASTPQ_PRIME1, 23) * FASTPQ_PRIME2 + FASTPQ_PRIME3;
}

static inline uint64_t xxh64_take1(uint64_t hash, uint8_t input) {
    return xxh64_rotate(hash ^ input * FASTPQ_PRIME5, 11) * FASTPQ_PRIME1;
}

static inline uint64_t xxh64_mix(uint64_t hash) {
    hash = (hash ^ hash >> 33) * FASTPQ_PRIME2;
    hash = (hash ^ hash >> 29) * FASTPQ_PRIME3;
    return hash ^ hash >> 32;
}

static inline uint64_t xxh64_load8(const uint8_t *data) {
    uint64_t value;
    memcpy(&value, data, 8);
    return value;
}

/* Hashes a long input's 32-byte stripes in four lanes. */
static inline uint64_t xxh64_stripes(const uint8_t *data, size_t stripes) {
    uint64_t lane[4] = {FASTPQ_PRIME1 + FASTPQ_PRIME2, FASTPQ_PRIME2, 0, 0 - FASTPQ_PRIME1};
    for (; stripes > 0; stripes--, data += 32)
        for (int i = 0; i < 4; i++) lane[i] = xxh64_round(lane[i], xxh64_load8(data + 8 * i));
    uint64_t hash = xxh64_rotate(lane[0], 1) + xxh64_rotate(lane[1], 7) + xxh64_rotate(lane[2], 12) + xxh64_rotate(lane[3], 18);
    for (int i = 0; i < 4; i++) hash = (hash ^ xxh64_round(0, lane[i])) * FASTPQ_PRIME1 + FASTPQ_PRIME4;
    return hash;
}

static inline __attribute__((always_inline)) uint64_t xxh64(const uint8_t *data, const size_t size) {
    uint64_t hash = (size < 32 ? FASTPQ_PRIME5 : xxh64_stripes(data, size / 32)) + size;
    size_t at = size / 32 * 32;
    for (; at + 8 <= size; at += 8) hash = xxh64_take8(hash, xxh64_load8(data + at));
    if (at + 4 <= size) {
        uint32_t four;
        memcpy(&four, data + at, 4);
        hash = xxh64_take4(hash, four);
        at += 4;
    }
    for (; at < size; at++) hash = xxh64_take1(hash, data[at]);
    return xxh64_mix(hash);
}

/* Hashes fixed-width values that follow one another. Each width that a physical type has gets a loop without inner branches. */
FASTPQ_CLONES static void xxh64_fixed(const uint8_t *values, size_t width, int64_t count, uint64_t *hashes) {
    if (width == 4)
        for (int64_t i = 0; i < count; i++) hashes[i] = xxh64(values + 4 * i, 4);
    else if (width == 8)
        for (int64_t i = 0; i < count; i++) hashes[i] = xxh64(values + 8 * i, 8);
    else if (width == 16)
        for (int64_t i = 0; i < count; i++) hashes[i] = xxh64(values + 16 * i, 16);
    else
        for (int64_t i = 0; i < count; i++) hashes[i] = xxh64(values + (size_t)i * width, width);
}

#endif
