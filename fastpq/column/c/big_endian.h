/* Converts fixed-width decimals: big-endian two's complement integers to little-endian ones, and back. */
#ifndef FASTPQ_BIG_ENDIAN_H
#define FASTPQ_BIG_ENDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../encodings/c/clones.h"

static inline uint64_t big_endian_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return __builtin_bswap64(word);
}

/* Each value is loaded as words that end with it. If it is shorter, shifts replace the words' first bytes by its sign. */
static inline __attribute__((always_inline)) void reverse_values(const uint8_t *stored, size_t size, int64_t first, int64_t count,
                                                                 uint8_t *out, const size_t width, const int words) {
    const int shift = 64 - 8 * (int)(size - 8 * (size_t)(words - 1));
    const uint8_t *end = stored + ((size_t)first + 1) * size;
    for (int64_t i = first; i < count; i++, end += size) {
        const int64_t top = (int64_t)(big_endian_word(end - 8 * words) << shift) >> shift;
        const int64_t low = words == 2 ? (int64_t)big_endian_word(end - 8) : top, high = words == 2 ? top : top >> 63;
        memcpy(out + (size_t)i * width, &low, width < 8 ? width : 8);
        if (width == 16) memcpy(out + (size_t)i * width + 8, &high, 8);
    }
}

/* Reverses `count` values with `size` bytes, and extends their signs to `width` bytes. Returns how many first values the caller
 * still has to convert: those near the start of stored, where a whole word would begin too early, and all with other widths. */
static int64_t reverse_decimals(const uint8_t *stored, size_t size, int64_t count, uint8_t *out, size_t width) {
    const int words = size > 8 ? 2 : 1;
    int64_t first;
    if (size == 0 || size > width || width > 16) return count;
    first = (int64_t)((8 * (size_t)words + size - 1) / size) - 1;
    if (first >= count) return count;
    switch (width) {
        case 4: reverse_values(stored, size, first, count, out, 4, 1); return first;
        case 8: reverse_values(stored, size, first, count, out, 8, 1); return first;
        case 16:
            if (words == 1) reverse_values(stored, size, first, count, out, 16, 1);
            else reverse_values(stored, size, first, count, out, 16, 2);
            return first;
    }
    return count;
}

/* Stores values. Each one is shifted to the top of its words, so that its `size` bytes come first. The other bytes are written
 * too, and the next value replaces them. Returns 0 if a value needs more bytes. */
static inline __attribute__((always_inline)) int store_values(const uint8_t *values, const size_t width, int64_t count,
                                                              uint8_t *out, const size_t size, const int words) {
    const int shift = 8 * (8 * words - (int)size);
    uint64_t lost = 0; /* not 0 if the stored bytes of a value lose some of its bits */
    for (int64_t i = 0; i < count; i++, values += width, out += size) {
        int64_t low = 0, high;
        memcpy(&low, values, width < 8 ? width : 8);
        if (width == 4) low = (int32_t)low;
        high = low >> 63;
        if (width == 16) memcpy(&high, values + 8, 8);
        if (words == 1) {
            const uint64_t top = (uint64_t)low << shift, stored = __builtin_bswap64(top);
            lost |= (uint64_t)(((int64_t)top >> shift) ^ low) | (uint64_t)((low >> 63) ^ high);
            memcpy(out, &stored, 8);
        } else {
            const unsigned __int128 value = (unsigned __int128)(uint64_t)high << 64 | (uint64_t)low, top = value << shift;
            const uint64_t stored[2] = {__builtin_bswap64((uint64_t)(top >> 64)), __builtin_bswap64((uint64_t)top)};
            lost |= (uint64_t)(((int64_t)(top >> 64) >> shift) ^ high);
            memcpy(out, stored, 16);
        }
    }
    return lost == 0;
}

static inline __attribute__((always_inline)) int store_values_of_width(const uint8_t *values, const size_t width, int64_t count,
                                                                       uint8_t *out, size_t size) {
    switch (size) {
        case 4: return store_values(values, width, count, out, 4, 1);
        case 8: return store_values(values, width, count, out, 8, 1);
        case 16: return store_values(values, width, count, out, 16, 2);
        default: return store_values(values, width, count, out, size, size > 8 ? 2 : 1);
    }
}

/* Stores `count` values with `width` bytes as big-endian integers with `size` bytes. Returns how many values it stored, or -1 if
 * a value needs more bytes. The caller has to store the others: those near the end of out, where no whole word fits, and all
 * values with other widths. */
static int64_t store_decimals(const uint8_t *values, size_t width, int64_t count, uint8_t *out, size_t size) {
    int64_t some;
    if (size == 0 || size > 16) return 0;
    some = count - (int64_t)((size > 8 ? 16 : 8) - 1) / (int64_t)size;
    if (some <= 0) return 0;
    switch (width) {
        case 4: return store_values_of_width(values, 4, some, out, size) ? some : -1;
        case 8: return store_values_of_width(values, 8, some, out, size) ? some : -1;
        case 16: return store_values_of_width(values, 16, some, out, size) ? some : -1;
    }
    return 0;
}

/* Copies values to int64. Returns 0 if a value needs more than `size` bytes (at most 8). The values' other bytes are only combined,
 * and are looked at once, at the end. */
#define FASTPQ_NARROW_DECIMALS(NAME, WIDTH)                                                          \
    FASTPQ_CLONES static int NAME(const uint8_t *values, int64_t count, uint8_t *out, size_t size) { \
        const int shift = 64 - 8 * (int)size;                                                        \
        uint64_t lost = 0;                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                        \
            int64_t words[2] = {0, 0};                                                               \
            memcpy(words, values + (size_t)i * WIDTH, WIDTH);                                        \
            if (WIDTH == 4) words[0] = (int32_t)words[0];                                            \
            const int64_t stored = (int64_t)((uint64_t)words[0] << shift) >> shift;                  \
            lost |= (uint64_t)(stored ^ words[0]);                                                   \
            if (WIDTH == 16) lost |= (uint64_t)((words[0] >> 63) ^ words[1]);                        \
            memcpy(out + 8 * (size_t)i, words, 8);                                                   \
        }                                                                                            \
        return lost == 0;                                                                            \
    }

FASTPQ_NARROW_DECIMALS(narrow_decimals_4, 4)
FASTPQ_NARROW_DECIMALS(narrow_decimals_8, 8)
FASTPQ_NARROW_DECIMALS(narrow_decimals_16, 16)
#undef FASTPQ_NARROW_DECIMALS

static int narrow_decimals(const uint8_t *values, size_t width, int64_t count, uint8_t *out, size_t size) {
    switch (width) {
        case 4: return narrow_decimals_4(values, count, out, size);
        case 8: return narrow_decimals_8(values, count, out, size);
        default: return narrow_decimals_16(values, count, out, size);
    }
}

#endif
