/* Decimals of fixed width: big-endian two's complement integers to little-endian ones. */
#ifndef FASTPQ_BIG_ENDIAN_H
#define FASTPQ_BIG_ENDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t big_endian_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return __builtin_bswap64(word);
}

/* The words that end with a value also hold bytes before the value, which the shifts replace by its sign. */
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

/* Reverses `count` values of `size` bytes, and extends their signs to `width` bytes. Returns the number of first values left to the
 * caller: those near the begin of stored, where no whole word ends, and all values of other widths. */
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

#endif
