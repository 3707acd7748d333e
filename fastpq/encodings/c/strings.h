/* Variable-length values: string views of PLAIN BYTE_ARRAY values, and a test for ASCII. */
#ifndef FASTPQ_STRINGS_H
#define FASTPQ_STRINGS_H

#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "status.h"

typedef struct { /* View in views.pxd: Arrow's string view */
    int32_t length;
    uint8_t inlined[12]; /* longer values: prefix[4], int32 buffer, int32 offset */
} string_view;

#define FASTPQ_INLINE_VIEW 12 /* bytes of the longest value that is inline in a view */

static inline void make_view(string_view *view, const uint8_t *value, uint32_t length, int readable16, int32_t buffer,
                             int64_t offset) {
    /* A short value is copied as two words if 16 bytes from its start on are readable. Otherwise it is copied byte by byte. */
    view->length = (int32_t)length;
    if (length <= FASTPQ_INLINE_VIEW) {
        if (readable16) {
            uint64_t low, high;
            memcpy(&low, value, 8);
            memcpy(&high, value + 8, 8);
            const uint32_t in_low = length < 8 ? length : 8, in_high = length - in_low;
            low = in_low == 8 ? low : low & ((UINT64_C(1) << 8 * in_low) - 1);
            high &= (UINT64_C(1) << 8 * in_high) - 1;
            memcpy(view->inlined, &low, 8);
            memcpy(view->inlined + 8, &high, 4);
        } else {
            memset(view->inlined, 0, FASTPQ_INLINE_VIEW);
            memcpy(view->inlined, value, length);
        }
    } else {
        const int32_t position = (int32_t)offset;
        memcpy(view->inlined, value, 4);
        memcpy(view->inlined + 4, &buffer, 4);
        memcpy(view->inlined + 8, &position, 4);
    }
}

/* Makes views of count values, each of which follows its length in four bytes. Returns how many bytes it read. Returns
 * FASTPQ_TRUNCATED if the data end inside a length, or FASTPQ_BAD_LENGTH if a length points outside the data. */
static int64_t read_views(const uint8_t *data, uint64_t size, int64_t count, void *out, int32_t buffer, int64_t base) {
    string_view *views = (string_view *)out;
    uint64_t position = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t length;
        if (size - position < 4) return FASTPQ_TRUNCATED;
        memcpy(&length, data + position, 4);
        position += 4;
        if (length > size - position || length > INT32_MAX) return FASTPQ_BAD_LENGTH;
        make_view(views + i, data + position, length, size - position >= 16, buffer, base + (int64_t)position);
        position += length;
    }
    return (int64_t)position;
}

/* Returns how many bytes the values have together that are not inline in their views. */
FASTPQ_CLONES static int64_t bytes_outside(const void *data, int64_t count) {
    const string_view *views = (const string_view *)data;
    int64_t size = 0;
    for (int64_t i = 0; i < count; i++) size += views[i].length > FASTPQ_INLINE_VIEW ? views[i].length : 0;
    return size;
}

/* Moves all values that are not inline in their views to out, without gaps, and makes the views point there. Offsets count from
 * base. The values are at out or behind it, in the same order as the views. Returns the byte behind the last moved value. */
static uint8_t *pack_outside(void *data, int64_t count, uint8_t *base, uint8_t *out) {
    string_view *views = (string_view *)data;
    for (int64_t i = 0; i < count; i++) {
        if (views[i].length <= FASTPQ_INLINE_VIEW) continue;
        int32_t position;
        memcpy(&position, views[i].inlined + 8, 4);
        memmove(out, base + position, (size_t)views[i].length);
        position = (int32_t)(out - base);
        memcpy(views[i].inlined + 8, &position, 4);
        out += views[i].length;
    }
    return out;
}

FASTPQ_CLONES static int is_ascii(const uint8_t *data, uint64_t size) {
    uint64_t i = 0;
    for (; i + 256 <= size; i += 256) {
        uint8_t high = 0;
        for (int j = 0; j < 256; j++) high |= data[i + j];
        if (high & 0x80) return 0;
    }
    uint8_t high = 0;
    for (; i < size; i++) high |= data[i];
    return !(high & 0x80);
}

#endif
