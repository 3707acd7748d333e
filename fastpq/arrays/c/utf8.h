/* A test whether bytes are valid UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef FASTPQ_UTF8_H
#define FASTPQ_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Return the length in bytes of the sequence at p, or 0 if it is not well-formed. The lead byte must not be ASCII. */
static inline size_t utf8_sequence(const uint8_t *p, size_t left) {
    const uint8_t lead = p[0];
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (lead < 0xC2 || lead > 0xF4 || left < length || p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return length;
}

/* Return a word that has a high bit of a byte set if a byte of the value is not ASCII. Loads overlap at the value's end. */
static inline uint64_t utf8_high_bits(const uint8_t *data, size_t size) {
    uint64_t word, bits = 0;
    if (size >= 8) {
        for (size_t at = 0; at + 8 < size; at += 8) {
            memcpy(&word, data + at, 8);
            bits |= word;
        }
        memcpy(&word, data + size - 8, 8);
        return (bits | word) & UINT64_C(0x8080808080808080);
    }
    if (size >= 4) {
        uint32_t first, last;
        memcpy(&first, data, 4);
        memcpy(&last, data + size - 4, 4);
        return (first | last) & UINT32_C(0x80808080);
    }
    for (size_t at = 0; at < size; at++) bits |= data[at];
    return bits & 0x80;
}

static inline int utf8_is_valid(const uint8_t *data, size_t size) {
    size_t at = 0;
    while (at < size) {
        uint64_t word;
        if (size - at >= 8 && (memcpy(&word, data + at, 8), !(word & UINT64_C(0x8080808080808080)))) {
            at += 8;
        } else if (data[at] < 0x80) {
            at++;
        } else {
            const size_t length = utf8_sequence(data + at, size - at);
            if (length == 0) return 0;
            at += length;
        }
    }
    return 1;
}

#endif
