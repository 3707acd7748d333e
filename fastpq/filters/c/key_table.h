/* Tables of filter values ("keys"). They tell for each stored value whether it is one of the keys. A table is built once for a
 * filter, and several threads read it. Keys with 1 to 8 bytes are kept in a bitmap or in a hash table. Other keys are kept in a
 * hash table of slices. */
#ifndef FASTPQ_KEY_TABLE_H
#define FASTPQ_KEY_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../encodings/c/clones.h"
#include "../../encodings/c/hash_table.h"

enum {
    KEY_BLOCK = 64,            /* values that are looked up together, so that their cache misses overlap */
    KEY_BITS_PER_KEY = 64,     /* a bitmap has at most this many bits for each key ... */
    KEY_BITS_ALWAYS = 1 << 19, /* ... or this many bits in all, which the second-level cache holds */
    KEY_FILTER_BITS = 16,      /* the filter before the slots has at least this many bits for each key */
    KEY_CACHED = 1 << 18       /* a table with at most this many bytes is read without prefetching */
};

/* Keys that have one width, as unsigned numbers. Either a bitmap covers their range, or they are in slots with a filter before
 * them. The filter is a bitmap over hashes. It is small enough for the second-level cache, and rejects most values that are not
 * keys. All pointers are NULL in an empty table. */
typedef struct {
    uint64_t base;  /* key at bit 0 in range_bits */
    uint64_t range; /* number of the last bit in range_bits */
    uint64_t *range_bits;
    uint64_t *filter;
    void *slots;         /* unsigned integers as wide as the keys */
    uint64_t mask;       /* slot count less 1. The slot count is a power of two. */
    uint64_t empty;      /* marks an empty slot: a number that is not a key */
    uint64_t multiplier; /* multiplier for hashing: odd, and random, so that no file can be made with values that collide */
    int filter_shift;    /* a hash, shifted right by this, is a bit number in the filter */
    int slot_shift;      /* a hash, shifted right by this, is a slot number */
} key_table;

static inline void key_table_free(key_table *table) {
    free(table->range_bits);
    free(table->filter);
    free(table->slots);
    table->range_bits = table->filter = NULL;
    table->slots = NULL;
}

/* Returns the binary logarithm of a table's size for ``count`` keys. The size is at least 64 places. */
static inline int key_size_log2(int64_t count, int64_t places_per_key) {
    int log2 = 6;
    while (INT64_C(1) << log2 < places_per_key * count) log2++;
    return log2;
}

/* Functions for keys that have one unsigned type. ``keys`` are distinct, and ascend as signed or as unsigned numbers. */
#define FASTPQ_KEY_TABLE(SUFFIX, TYPE)                                                                                        \
    static int key_table_build_##SUFFIX(key_table *table, const uint8_t *keys, int64_t count) {                               \
        TYPE first, last, key;                                                                                                \
        memcpy(&first, keys, sizeof first);                                                                                   \
        memcpy(&last, keys + (size_t)(count - 1) * sizeof last, sizeof last);                                                 \
        const uint64_t range = (TYPE)(last - first);                                                                          \
        if (range < KEY_BITS_ALWAYS || range / KEY_BITS_PER_KEY < (uint64_t)count) {                                          \
            table->base = first;                                                                                              \
            table->range = range;                                                                                             \
            table->range_bits = calloc((size_t)(range / 64 + 1), sizeof(uint64_t));                                           \
            if (!table->range_bits) return FASTPQ_NO_MEMORY;                                                                  \
            for (int64_t i = 0; i < count; i++) {                                                                             \
                memcpy(&key, keys + (size_t)i * sizeof key, sizeof key);                                                      \
                const TYPE bit = (TYPE)(key - first);                                                                         \
                table->range_bits[bit / 64] |= UINT64_C(1) << bit % 64;                                                       \
            }                                                                                                                 \
            return 0;                                                                                                         \
        }                                                                                                                     \
        const int slots_log2 = key_size_log2(count, 2), filter_log2 = key_size_log2(count, KEY_FILTER_BITS);                  \
        const uint64_t slots = UINT64_C(1) << slots_log2;                                                                     \
        TYPE *places = malloc((size_t)slots * sizeof(TYPE));                                                                  \
        table->slots = places;                                                                                                \
        table->filter = calloc((size_t)1 << (filter_log2 - 6), sizeof(uint64_t));                                             \
        if (!places || !table->filter) return FASTPQ_NO_MEMORY;                                                               \
        table->mask = slots - 1;                                                                                              \
        table->slot_shift = 64 - slots_log2;                                                                                  \
        table->filter_shift = 64 - filter_log2;                                                                               \
        TYPE empty = (TYPE)(first + 1); /* keys are farther apart than 1 somewhere, because the range exceeds their number */ \
        for (int64_t i = 1; i < count; i++) {                                                                                 \
            memcpy(&key, keys + (size_t)i * sizeof key, sizeof key);                                                          \
            if (key != empty) break;                                                                                          \
            empty = (TYPE)(key + 1);                                                                                          \
        }                                                                                                                     \
        table->empty = empty;                                                                                                 \
        for (uint64_t i = 0; i < slots; i++) places[i] = empty;                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                                 \
            memcpy(&key, keys + (size_t)i * sizeof key, sizeof key);                                                          \
            const uint64_t hash = key * table->multiplier, bit = hash >> table->filter_shift;                                 \
            uint64_t place = hash >> table->slot_shift;                                                                       \
            while (places[place] != empty) place = (place + 1) & table->mask;                                                 \
            places[place] = key;                                                                                              \
            table->filter[bit / 64] |= UINT64_C(1) << bit % 64;                                                               \
        }                                                                                                                     \
        return 0;                                                                                                             \
    }                                                                                                                         \
                                                                                                                              \
    FASTPQ_CLONES static void key_range_find_##SUFFIX(const key_table *table, const uint8_t *data, int64_t count,             \
                                                      uint8_t *is_key) {                                                      \
        const TYPE base = (TYPE)table->base;                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                                 \
            TYPE value;                                                                                                       \
            memcpy(&value, data + (size_t)i * sizeof value, sizeof value);                                                    \
            const uint64_t bit = (TYPE)(value - base), is_inside = bit <= table->range, place = is_inside ? bit : 0;          \
            is_key[i] = (uint8_t)(table->range_bits[place / 64] >> place % 64 & is_inside);                                   \
        }                                                                                                                     \
    }                                                                                                                         \
                                                                                                                              \
    FASTPQ_CLONES static void key_filter_##SUFFIX(const key_table *table, const TYPE *values, uint8_t *may_be_key) {          \
        for (int64_t i = 0; i < KEY_BLOCK; i++) {                                                                             \
            const uint64_t bit = values[i] * table->multiplier >> table->filter_shift;                                        \
            may_be_key[i] = (uint8_t)(table->filter[bit / 64] >> bit % 64 & 1);                                               \
        }                                                                                                                     \
    }                                                                                                                         \
                                                                                                                              \
    static void key_table_find_##SUFFIX(const key_table *table, const uint8_t *data, int64_t count, uint8_t *is_key) {        \
        const TYPE *slots = table->slots, empty = (TYPE)table->empty;                                                         \
        TYPE values[KEY_BLOCK] = {0};                                                                                         \
        uint8_t may_be_key[KEY_BLOCK];                                                                                        \
        if (table->range_bits) {                                                                                              \
            key_range_find_##SUFFIX(table, data, count, is_key);                                                              \
            return;                                                                                                           \
        }                                                                                                                     \
        for (int64_t done = 0; done < count; done += KEY_BLOCK) {                                                             \
            const int64_t size = count - done < KEY_BLOCK ? count - done : KEY_BLOCK;                                         \
            memcpy(values, data + (size_t)done * sizeof(TYPE), (size_t)size * sizeof(TYPE));                                  \
            key_filter_##SUFFIX(table, values, may_be_key);                                                                   \
            for (int64_t i = 0; i < size; i++)                                                                                \
                if (may_be_key[i]) __builtin_prefetch(slots + (values[i] * table->multiplier >> table->slot_shift));          \
            for (int64_t i = 0; i < size; i++) {                                                                              \
                if (!may_be_key[i]) continue;                                                                                 \
                uint64_t place = values[i] * table->multiplier >> table->slot_shift;                                          \
                while (slots[place] != empty && slots[place] != values[i]) place = (place + 1) & table->mask;                 \
                may_be_key[i] = slots[place] == values[i] && values[i] != empty;                                              \
            }                                                                                                                 \
            memcpy(is_key + done, may_be_key, (size_t)size);                                                                  \
        }                                                                                                                     \
    }

FASTPQ_KEY_TABLE(1, uint8_t)
FASTPQ_KEY_TABLE(2, uint16_t)
FASTPQ_KEY_TABLE(4, uint32_t)
FASTPQ_KEY_TABLE(8, uint64_t)
#undef FASTPQ_KEY_TABLE

static int key_table_build(key_table *table, const uint8_t *keys, int64_t count, size_t width, uint64_t seed) {
    if (count == 0) return 0;
    table->multiplier = seed | 1;
    if (width == 1) return key_table_build_1(table, keys, count);
    if (width == 2) return key_table_build_2(table, keys, count);
    if (width == 4) return key_table_build_4(table, keys, count);
    return key_table_build_8(table, keys, count);
}

static void key_table_find(const key_table *table, const uint8_t *values, int64_t count, size_t width, uint8_t *is_key) {
    if (!table->range_bits && !table->slots) memset(is_key, 0, (size_t)count);
    else if (width == 1) key_table_find_1(table, values, count, is_key);
    else if (width == 2) key_table_find_2(table, values, count, is_key);
    else if (width == 4) key_table_find_4(table, values, count, is_key);
    else key_table_find_8(table, values, count, is_key);
}

/* A table slot for a key of any length. */
typedef struct {
    uint32_t number; /* key number plus 1, or 0 in an empty slot */
    uint32_t tag;    /* the upper half of the key's hash */
} slice_slot;

typedef struct {
    const byte_slice *keys; /* their bytes outlive the table */
    slice_slot *slots;
    uint64_t mask;
    uint64_t seed;
} slice_table;

static int slice_table_build(slice_table *table, const byte_slice *keys, int64_t count, uint64_t seed) {
    const uint64_t slots = UINT64_C(1) << key_size_log2(count, 2);
    table->keys = keys;
    table->mask = slots - 1;
    table->seed = seed;
    table->slots = calloc((size_t)slots, sizeof(slice_slot));
    if (!table->slots) return FASTPQ_NO_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t hash = hash_bytes(keys[i].data, keys[i].size, seed);
        uint64_t place = hash & table->mask;
        while (table->slots[place].number) place = (place + 1) & table->mask;
        table->slots[place].number = (uint32_t)(i + 1);
        table->slots[place].tag = (uint32_t)(hash >> 32);
    }
    return 0;
}

static inline int slice_table_has(const slice_table *table, byte_slice value, uint64_t hash) {
    for (uint64_t place = hash & table->mask; table->slots[place].number; place = (place + 1) & table->mask) {
        if (table->slots[place].tag != (uint32_t)(hash >> 32)) continue;
        const byte_slice key = table->keys[table->slots[place].number - 1];
        if (key.size == value.size && (value.size == 0 || memcmp(key.data, value.data, value.size) == 0)) return 1;
    }
    return 0;
}

/* ``is_key`` is 0 for a null, a slice without data. */
static void slice_table_find(const slice_table *table, const byte_slice *values, int64_t count, uint8_t *is_key) {
    uint64_t hashes[KEY_BLOCK];
    const int prefetches = (table->mask + 1) * sizeof(slice_slot) > KEY_CACHED;
    for (int64_t done = 0; done < count; done += KEY_BLOCK) {
        const int64_t size = count - done < KEY_BLOCK ? count - done : KEY_BLOCK;
        for (int64_t i = 0; i < size; i++) {
            const byte_slice value = values[done + i];
            hashes[i] = value.data ? hash_bytes(value.data, value.size, table->seed) : 0;
            if (prefetches) __builtin_prefetch(table->slots + (hashes[i] & table->mask));
        }
        for (int64_t i = 0; i < size; i++) {
            const byte_slice value = values[done + i];
            is_key[done + i] = value.data && slice_table_has(table, value, hashes[i]);
        }
    }
}

#endif
