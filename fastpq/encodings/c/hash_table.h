/* A hash table from values to dictionary codes. It has open addressing and linear probing, and is at most half full. As long as
 * all values are integers in a small range, a direct-address table replaces the slots. */
#ifndef FASTPQ_HASH_TABLE_H
#define FASTPQ_HASH_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "direct_table.h"
#include "status.h"

enum { LOOKED_UP = 1024 /* integers that are looked up at a time, before the new ones get codes */ };

typedef struct { /* the same memory as Slice in views.pxd */
    const uint8_t *data;
    size_t size;
} byte_slice;

typedef struct {
    uint32_t code; /* FASTPQ_EMPTY in a free slot */
    uint32_t tag;  /* the upper half of the value's hash */
} hash_slot;

/* Returns memory with at least size bytes, and sets its capacity. Returns NULL if there is not enough memory. */
typedef void *(*take_memory)(size_t size, size_t *capacity);
typedef void (*give_memory)(void *memory, size_t capacity);

static inline void *take_of_heap(size_t size, size_t *capacity) {
    *capacity = size;
    return malloc(size);
}

static inline void give_to_heap(void *memory, size_t capacity) {
    (void)capacity;
    free(memory);
}

typedef struct {
    take_memory take; /* for the slots and the values */
    give_memory give;
    size_t slots_capacity, values_capacity;
    direct_table direct;
    hash_slot *slots; /* NULL before the first value, and while the direct table is in use */
    uint64_t mask;
    int64_t count;    /* distinct values */
    int64_t capacity; /* distinct values before the table grows */
    size_t width;     /* bytes of a value. 0 for slices. */
    uint64_t seed;    /* for hashes of slices, so that nobody can choose strings that collide */
    int borrows;      /* slices: whether their bytes outlive the table, which then does not copy them */
    uint8_t *values;  /* by code: values with a fixed width, or a byte_slice for each slice */
    uint8_t **chunks; /* slices: the memory for their bytes */
    int64_t chunk_count, chunk_used, chunk_size;
} hash_table;

static inline uint64_t mix64(uint64_t a, uint64_t b) {
    const __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t word_of(const uint8_t *p, size_t size) {
    uint64_t word = 0;
    memcpy(&word, p, size);
    return word;
}

static inline uint64_t hash_bytes(const uint8_t *p, size_t size, uint64_t seed) {
    const uint64_t k0 = UINT64_C(0x9E3779B97F4A7C15), k1 = UINT64_C(0xD6E8FEB86659FD93) ^ seed;
    uint64_t hash = size * k1;
    for (; size >= 16; p += 16, size -= 16) hash = mix64(word_of(p, 8) ^ k0 ^ hash, word_of(p + 8, 8) ^ k1);
    if (size >= 8) return mix64(word_of(p, 8) ^ k0 ^ hash, word_of(p + size - 8, 8) ^ k1);
    if (size >= 4) return mix64((word_of(p, 4) | word_of(p + size - 4, 4) << 32) ^ hash, k0);
    if (size == 0) return mix64(hash ^ k1, k0);
    return mix64((p[0] | (uint64_t)p[size >> 1] << 8 | (uint64_t)p[size - 1] << 16) ^ hash, k0);
}

static inline __attribute__((always_inline)) uint64_t hash_fixed(const uint8_t *p, const size_t width) {
    if (width > 8) return hash_bytes(p, width, 0);
    return mix64(word_of(p, width) ^ UINT64_C(0xD6E8FEB86659FD93), UINT64_C(0x9E3779B97F4A7C15));
}

/* Returns the free slot for a new value. */
static inline uint64_t slot_for(const hash_table *table, uint64_t hash) {
    uint64_t i = hash & table->mask;
    while (table->slots[i].code != FASTPQ_EMPTY) i = (i + 1) & table->mask;
    return i;
}

/* Gives back the memory that is needed only while values are encoded. */
static inline void table_end(hash_table *table) {
    if (table->slots) table->give(table->slots, table->slots_capacity);
    if (table->direct.codes) table->give(table->direct.codes, table->direct.capacity);
    table->slots = NULL;
    table->direct.codes = NULL;
}

/* Empties the table after a failed allocation. */
static inline int table_lost(hash_table *table) {
    table_end(table);
    table->count = 0;
    return FASTPQ_NO_MEMORY;
}

/* Makes room for least_count distinct values. If there is not enough memory, the table is empty afterwards. */
static int table_reserve(hash_table *table, int64_t least_count) {
    const size_t value_size = table->width ? table->width : sizeof(byte_slice), size = (size_t)least_count * value_size;
    size_t capacity_bytes = 0;
    if (size <= table->values_capacity) return 0;
    uint8_t *values = table->take(size, &capacity_bytes);
    if (!values) return table_lost(table);
    if (table->count) memcpy(values, table->values, (size_t)table->count * value_size);
    if (table->values) table->give(table->values, table->values_capacity);
    table->values = values;
    table->values_capacity = capacity_bytes;
    return 0;
}

/* Doubles the slots, or makes the first ones. If there is not enough memory, the table is empty afterwards. */
static int table_grow(hash_table *table) {
    uint64_t size = table->slots ? 2 * (table->mask + 1) : 1024;
    while (size / 2 <= (uint64_t)table->count) size *= 2; /* a direct table may have more values already */
    const int64_t capacity = (int64_t)(size / 2);
    table_end(table); /* free the old slots before the new ones take memory: the values alone are enough to fill them */
    if (table_reserve(table, capacity)) return FASTPQ_NO_MEMORY;
    const uint8_t *values = table->values;
    hash_slot *slots = table->take(size * sizeof(hash_slot), &table->slots_capacity);
    if (!slots) return table_lost(table);
    table->slots = slots;
    table->mask = size - 1;
    table->capacity = capacity;
    memset(slots, 0xFF, size * sizeof(hash_slot));
    for (int64_t code = 0; code < table->count; code++) {
        uint64_t hash;
        if (table->width) hash = hash_fixed(values + (size_t)code * table->width, table->width);
        else hash = hash_bytes(((byte_slice *)values)[code].data, ((byte_slice *)values)[code].size, table->seed);
        const uint64_t i = slot_for(table, hash);
        slots[i].code = (uint32_t)code;
        slots[i].tag = (uint32_t)(hash >> 32);
    }
    return 0;
}

static void table_free(hash_table *table) {
    for (int64_t i = 0; i < table->chunk_count; i++) free(table->chunks[i]);
    free(table->chunks);
    table_end(table);
    if (table->values) table->give(table->values, table->values_capacity);
}

/* Copies bytes into the table's own memory, and returns the copy. Returns NULL if there is not enough memory. */
static const uint8_t *table_keep(hash_table *table, const uint8_t *data, size_t size) {
    if (!table->chunk_count || (uint64_t)(table->chunk_size - table->chunk_used) < size) {
        const size_t chunk_size = size > 65536 ? size : 65536;
        uint8_t **chunks = realloc(table->chunks, (size_t)(table->chunk_count + 1) * sizeof(uint8_t *));
        if (!chunks) return NULL;
        table->chunks = chunks;
        if (!(chunks[table->chunk_count] = malloc(chunk_size))) return NULL;
        table->chunk_count++;
        table->chunk_used = 0;
        table->chunk_size = (int64_t)chunk_size;
    }
    uint8_t *copy = table->chunks[table->chunk_count - 1] + table->chunk_used;
    memcpy(copy, data, size);
    table->chunk_used += (int64_t)size;
    return copy;
}

/* Encodes n values with `width` bytes to codes, until the dictionary would exceed `most` values. Returns how many values it
 * encoded, or FASTPQ_NO_MEMORY. */
static inline __attribute__((always_inline)) int64_t encode_of_width(hash_table *table, const uint8_t *values, int64_t n,
                                                                     int64_t most, uint32_t *codes, const size_t width) {
    for (int64_t v = 0; v < n; v++, values += width) {
        if (v && !memcmp(values, values - width, width)) {
            codes[v] = codes[v - 1];
            continue;
        }
        const uint64_t hash = hash_fixed(values, width);
        const uint32_t tag = (uint32_t)(hash >> 32);
        uint64_t i = hash & table->mask;
        while (table->slots[i].code != FASTPQ_EMPTY &&
               (table->slots[i].tag != tag || memcmp(table->values + (size_t)table->slots[i].code * width, values, width)))
            i = (i + 1) & table->mask;
        if (table->slots[i].code == FASTPQ_EMPTY) {
            if (table->count >= most) return v;
            if (table->count == table->capacity) { /* not earlier, because a full dictionary needs no larger table */
                if (table_grow(table)) return FASTPQ_NO_MEMORY;
                i = slot_for(table, hash);
            }
            table->slots[i].code = (uint32_t)table->count;
            table->slots[i].tag = tag;
            memcpy(table->values + (size_t)table->count * width, values, width);
            codes[v] = (uint32_t)table->count++;
            continue;
        }
        codes[v] = table->slots[i].code;
    }
    return n;
}

/* Makes sure that the direct table has places for n integers and all earlier values. Returns 1 if it has them, 0 if the range is
 * too wide, or FASTPQ_NO_MEMORY. */
static int table_reach(hash_table *table, const uint8_t *values, int64_t n) {
    int64_t low = INT64_MAX, high = INT64_MIN;
    widen_range(values, n, table->width, &low, &high);
    if (direct_reaches(&table->direct, low, high)) return 1;
    widen_range(table->values, table->count, table->width, &low, &high);
    const uint64_t places = direct_places(low, high, (uint64_t)(n + table->count) * RANGE_A_VALUE);
    if (places == 0) return 0;
    table_end(table);
    uint32_t *memory = table->take(places * sizeof(uint32_t), &table->direct.capacity);
    if (!memory) return table_lost(table);
    direct_begin(&table->direct, memory, places, low, high);
    for (int64_t code = 0; code < table->count; code++)
        *direct_place(&table->direct, integer_of(table->values + (size_t)code * table->width, table->width)) = (uint32_t)code;
    return 1;
}

/* Like encode_of_width, for integers that have places in the direct table. */
static int64_t encode_direct(hash_table *table, const uint8_t *values, int64_t n, int64_t most, uint32_t *codes) {
    const size_t width = table->width;
    for (int64_t start = 0; start < n; start += LOOKED_UP) {
        const int64_t end = n - start < LOOKED_UP ? n : start + LOOKED_UP;
        if (!direct_look_up(&table->direct, values + (size_t)start * width, end - start, width, codes + start)) continue;
        for (int64_t v = start; v < end; v++) {
            uint32_t *place = direct_place(&table->direct, integer_of(values + (size_t)v * width, width));
            if (*place == FASTPQ_EMPTY) {
                if (table->count >= most) return v;
                if ((size_t)(table->count + 1) * width > table->values_capacity && table_reserve(table, 2 * table->count + 512))
                    return FASTPQ_NO_MEMORY;
                memcpy(table->values + (size_t)table->count * width, values + (size_t)v * width, width);
                *place = (uint32_t)table->count++;
            }
            codes[v] = *place;
        }
    }
    return n;
}

/* Like encode_of_width, for the table's own width. */
static int64_t table_encode_fixed(hash_table *table, const uint8_t *values, int64_t n, int64_t most, uint32_t *codes) {
    if (n <= 0) return table_reserve(table, 1) ? FASTPQ_NO_MEMORY : 0; /* an empty dictionary needs an address, too */
    if (!table->slots && (table->width == 4 || table->width == 8)) {
        const int reaches = table_reach(table, values, n);
        if (reaches < 0) return reaches;
        if (reaches) return encode_direct(table, values, n, most, codes);
    }
    if (!table->slots && table_grow(table)) return FASTPQ_NO_MEMORY;
    switch (table->width) {
        case 1: return encode_of_width(table, values, n, most, codes, 1);
        case 2: return encode_of_width(table, values, n, most, codes, 2);
        case 4: return encode_of_width(table, values, n, most, codes, 4);
        case 8: return encode_of_width(table, values, n, most, codes, 8);
        case 12: return encode_of_width(table, values, n, most, codes, 12);
        case 16: return encode_of_width(table, values, n, most, codes, 16);
        default: return encode_of_width(table, values, n, most, codes, table->width);
    }
}

/* Encodes n slices to codes, until the dictionary page would exceed `limit` bytes. *bytes is how many bytes the page has. Returns
 * how many slices it encoded, or FASTPQ_NO_MEMORY. */
static int64_t table_encode_slices(hash_table *table, const void *slices, int64_t n, int64_t limit, int64_t *bytes,
                                   uint32_t *codes) {
    const byte_slice *values = slices;
    if (!table->slots && table_grow(table)) return FASTPQ_NO_MEMORY;
    for (int64_t v = 0; v < n; v++) {
        const byte_slice value = values[v];
        const uint64_t hash = hash_bytes(value.data, value.size, table->seed);
        const uint32_t tag = (uint32_t)(hash >> 32);
        const byte_slice *entries = (const byte_slice *)table->values;
        uint64_t i = hash & table->mask;
        for (; table->slots[i].code != FASTPQ_EMPTY; i = (i + 1) & table->mask) {
            const byte_slice *candidate = entries + table->slots[i].code;
            if (table->slots[i].tag == tag && candidate->size == value.size && !memcmp(candidate->data, value.data, value.size))
                break;
        }
        if (table->slots[i].code == FASTPQ_EMPTY) {
            if (limit - *bytes < 4 || (uint64_t)(limit - *bytes - 4) < value.size) return v;
            if (table->count == table->capacity) {
                if (table_grow(table)) return FASTPQ_NO_MEMORY;
                i = slot_for(table, hash);
            }
            byte_slice *added = (byte_slice *)table->values + table->count;
            if (!(added->data = table->borrows ? value.data : table_keep(table, value.data, value.size))) return FASTPQ_NO_MEMORY;
            added->size = value.size;
            *bytes += 4 + (int64_t)value.size;
            table->slots[i].code = (uint32_t)table->count;
            table->slots[i].tag = tag;
            codes[v] = (uint32_t)table->count++;
            continue;
        }
        codes[v] = table->slots[i].code;
    }
    return n;
}

#endif
