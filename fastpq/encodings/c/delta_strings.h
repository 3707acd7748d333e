/* Makes views and values from lengths, prefixes and suffixes (Encodings.md, "Delta-length byte array" and "Delta Strings"). */
#ifndef FASTPQ_DELTA_STRINGS_H
#define FASTPQ_DELTA_STRINGS_H

#include <stdint.h>
#include <string.h>

#include "strings.h"

/* Makes views of count values, which follow each other from data + *position on, and moves *position behind them. data[0] has the
 * offset `base` in the views' buffer. Returns count, or FASTPQ_BAD_LENGTH if a length points outside the data. */
static int64_t views_of_lengths(const int32_t *lengths, int64_t count, const uint8_t *data, uint64_t size, uint64_t *position,
                                void *out, int32_t buffer, int64_t base) {
    string_view *views = (string_view *)out;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t at = *position, remaining = size - at;
        if (lengths[i] < 0 || (uint64_t)lengths[i] > remaining) return FASTPQ_BAD_LENGTH;
        make_view(views + i, data + at, (uint32_t)lengths[i], remaining >= 16, buffer, base + (int64_t)at);
        *position = at + (uint64_t)lengths[i];
    }
    return count;
}

/* Returns whether value i is a long prefix of value i - 1, so that both views can share the same bytes. */
static inline int is_shared(int64_t i, int32_t prefix, int32_t suffix) {
    return i > 0 && suffix == 0 && prefix > FASTPQ_INLINE_VIEW;
}

/* Checks that no prefix is longer than the value before it, and that the suffixes have at most `rest` bytes together. The value
 * before the first has `previous` bytes. Returns how many bytes of memory views_of_prefixes needs, or FASTPQ_BAD_LENGTH. */
static int64_t measure_prefixes(const int32_t *prefixes, const int32_t *suffixes, int64_t count, int64_t previous, int64_t rest) {
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        if (prefixes[i] < 0 || prefixes[i] > previous || suffixes[i] < 0 || suffixes[i] > rest) return FASTPQ_BAD_LENGTH;
        rest -= suffixes[i];
        previous = (int64_t)prefixes[i] + suffixes[i];
        if (previous > INT32_MAX) return FASTPQ_BAD_LENGTH;
        if (previous > FASTPQ_INLINE_VIEW && !is_shared(i, prefixes[i], suffixes[i])) total += previous;
    }
    return total;
}

/* Makes views of count values from measured prefixes and suffixes. Long values are written to `bytes`, which is the memory of
 * buffer number `buffer`. */
static void views_of_prefixes(const int32_t *prefixes, const int32_t *suffixes, int64_t count, const uint8_t *previous,
                              const uint8_t *suffix, void *out, uint8_t *bytes, int32_t buffer) {
    string_view *views = (string_view *)out;
    uint8_t *next = bytes;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t length = (uint32_t)(prefixes[i] + suffixes[i]);
        string_view *view = views + i;
        uint8_t value[16] = {0}, *target = value;
        if (is_shared(i, prefixes[i], suffixes[i])) {
            *view = view[-1];
            view->length = (int32_t)length;
            continue;
        }
        if (length > FASTPQ_INLINE_VIEW) {
            target = next;
            next += length;
        }
        memcpy(target, previous, (size_t)prefixes[i]);
        memcpy(target + prefixes[i], suffix, (size_t)suffixes[i]);
        make_view(view, target, length, length <= FASTPQ_INLINE_VIEW, buffer, target - bytes);
        previous = length > FASTPQ_INLINE_VIEW ? target : view->inlined;
        suffix += suffixes[i];
    }
}

/* Makes count values with equal widths from measured prefixes and suffixes. Writes them to out, without gaps. */
static void values_of_prefixes(const int32_t *prefixes, const int32_t *suffixes, int64_t count, const uint8_t *previous,
                               const uint8_t *suffix, uint8_t *out) {
    for (int64_t i = 0; i < count; i++) {
        memcpy(out, previous, (size_t)prefixes[i]);
        memcpy(out + prefixes[i], suffix, (size_t)suffixes[i]);
        previous = out;
        suffix += suffixes[i];
        out += prefixes[i] + suffixes[i];
    }
}

/* Returns how many first bytes are equal in a and b, at most `most`. */
static inline uint64_t common_prefix(const uint8_t *a, const uint8_t *b, uint64_t most) {
    uint64_t i = 0;
    for (; i + 8 <= most; i += 8) {
        uint64_t left, right;
        memcpy(&left, a + i, 8);
        memcpy(&right, b + i, 8);
        if (left != right) return i + (uint64_t)__builtin_ctzll(left ^ right) / 8;
    }
    while (i < most && a[i] == b[i]) i++;
    return i;
}

#endif
