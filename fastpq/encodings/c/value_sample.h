/* Counts equal values in a sample from an array, to find out whether its numbers repeat. */
#ifndef FASTPQ_VALUE_SAMPLE_H
#define FASTPQ_VALUE_SAMPLE_H

#include <stdint.h>
#include <string.h>

enum {
    SAMPLE = 4096,            /* values looked at */
    SAMPLE_SLOTS = 2 * SAMPLE /* a power of two */
};

/* Returns how many sampled values were already sampled at another position. The positions are pseudo-random, and the same in
 * every run. Regular steps would miss values that repeat with the same period. Values have 4 or 8 bytes, and there are fewer than
 * 2^32. */
static int64_t count_repeats(const uint8_t *values, int64_t count, size_t width) {
    uint64_t seen[SAMPLE_SLOTS];
    uint32_t positions[SAMPLE_SLOTS]; /* each position plus one. 0 in a free slot. */
    uint64_t random = 0x9E3779B97F4A7C15u;
    int64_t repeats = 0;
    memset(positions, 0, sizeof positions);
    for (int i = 0; i < SAMPLE; i++) {
        uint64_t value = 0;
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint32_t position = (uint32_t)(((random >> 32) * (uint64_t)count) >> 32);
        memcpy(&value, values + (size_t)position * width, width);
        size_t slot = (size_t)((value * 0x9FB21C651E98DF25u) >> 51) & (SAMPLE_SLOTS - 1);
        while (positions[slot] && seen[slot] != value) slot = (slot + 1) & (SAMPLE_SLOTS - 1);
        if (!positions[slot]) {
            seen[slot] = value;
            positions[slot] = position + 1;
        } else if (positions[slot] != position + 1) {
            repeats++;
        }
    }
    return repeats;
}

#endif
