/* A direct-address table from integers in a small range to dictionary codes. A value's code is at the place value - first. */
#ifndef FASTPQ_DIRECT_TABLE_H
#define FASTPQ_DIRECT_TABLE_H

#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "integer_range.h"

#define FASTPQ_EMPTY UINT32_MAX

enum {
    LEAST_PLACES = 1 << 10,
    MOST_PLACES = 1 << 18, /* 1 MiB, which fits into a core's cache */
    RANGE_A_VALUE = 4      /* most places for each value, because all places have to be cleared first */
};

typedef struct {
    uint32_t *codes; /* FASTPQ_EMPTY where a value has no code. NULL if there is no table. */
    size_t capacity; /* bytes of memory that codes has */
    uint64_t first;  /* the integer that has the first place, modulo 2^64 */
    uint64_t places; /* a power of two */
} direct_table;

/* Returns a native integer with 4 or 8 bytes, sign-extended. */
static inline int64_t integer_of(const uint8_t *value, size_t width) {
    int32_t narrow;
    int64_t wide;
    if (width == 4) {
        memcpy(&narrow, value, 4);
        return narrow;
    }
    memcpy(&wide, value, 8);
    return wide;
}

/* Widens the range from low to high, so that it includes n integers with 4 or 8 bytes. */
static inline void widen_range(const uint8_t *values, int64_t n, size_t width, int64_t *low, int64_t *high) {
    uint8_t least[8], greatest[8];
    if (n <= 0) return;
    if (width == 4) min_max_int32(values, n, least, greatest);
    else min_max_int64(values, n, least, greatest);
    if (integer_of(least, width) < *low) *low = integer_of(least, width);
    if (integer_of(greatest, width) > *high) *high = integer_of(greatest, width);
}

/* Returns whether each integer from low to high has a place. */
static inline int direct_reaches(const direct_table *table, int64_t low, int64_t high) {
    const uint64_t place = (uint64_t)low - table->first;
    return table->codes && place < table->places && (uint64_t)high - (uint64_t)low < table->places - place;
}

/* Returns how many places the integers from low to high need, with some more around them. Returns 0 if these are too many. */
static inline uint64_t direct_places(int64_t low, int64_t high, uint64_t most) {
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    uint64_t places = LEAST_PLACES;
    if (range >= most || range >= MOST_PLACES) return 0;
    while (places <= range) places *= 2;
    return places < MOST_PLACES ? 2 * places : places;
}

/* Begins a table with `places` places in codes. The integers from low to high have the places in the middle. */
static inline void direct_begin(direct_table *table, uint32_t *codes, uint64_t places, int64_t low, int64_t high) {
    table->codes = codes;
    table->places = places;
    table->first = (uint64_t)low - (places - 1 - ((uint64_t)high - (uint64_t)low)) / 2;
    memset(codes, 0xFF, places * sizeof(uint32_t));
}

/* Returns an integer's place. The mask keeps it within the table even if another thread changes the values meanwhile. */
static inline uint32_t *direct_place(const direct_table *table, int64_t value) {
    return table->codes + (((uint64_t)value - table->first) & (table->places - 1));
}

/* Looks up the codes for n integers that have places. Returns whether one of them is FASTPQ_EMPTY. */
#define FASTPQ_LOOK_UP(NAME, TYPE)                                                                                        \
    FASTPQ_CLONES static int NAME(const uint32_t *table, uint32_t first, uint32_t mask, const uint8_t *values, int64_t n, \
                                  uint32_t *codes) {                                                                      \
        uint32_t largest = 0;                                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                                 \
            TYPE value;                                                                                                   \
            memcpy(&value, values + (size_t)i * sizeof value, sizeof value);                                              \
            const uint32_t code = table[((uint32_t)value - first) & mask];                                                \
            largest = code > largest ? code : largest;                                                                    \
            codes[i] = code;                                                                                              \
        }                                                                                                                 \
        return largest == FASTPQ_EMPTY;                                                                                   \
    }

FASTPQ_LOOK_UP(look_up_4, uint32_t)
FASTPQ_LOOK_UP(look_up_8, uint64_t)
#undef FASTPQ_LOOK_UP

static inline int direct_look_up(const direct_table *table, const uint8_t *values, int64_t n, size_t width, uint32_t *codes) {
    const uint32_t first = (uint32_t)table->first, mask = (uint32_t)(table->places - 1);
    return width == 4 ? look_up_4(table->codes, first, mask, values, n, codes)
                      : look_up_8(table->codes, first, mask, values, n, codes);
}

#endif
