/* Conversion from code points to UTF-8, and a test for ASCII. */
#ifndef FASTPQ_TEXT_H
#define FASTPQ_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Return whether all bytes are below 0x80. */
static inline int text_is_ascii(const uint8_t *data, size_t size) {
    uint64_t bits = 0, word;
    if (size < 8) {
        for (size_t i = 0; i < size; i++) bits |= data[i];
        return (bits & 0x80) == 0;
    }
    for (size_t i = 0; i + 8 < size; i += 8) {
        memcpy(&word, data + i, 8);
        bits |= word;
    }
    memcpy(&word, data + size - 8, 8);
    return ((bits | word) & UINT64_C(0x8080808080808080)) == 0;
}

/* Return how many bytes code points take as UTF-8, or -1 if one is a surrogate or too large. */
static inline int64_t ucs4_utf8_size(const uint32_t *text, size_t size) {
    int64_t total = 0;
    for (size_t i = 0; i < size; i++) {
        const uint32_t c = text[i];
        if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return -1;
        total += 1 + (c > 0x7F) + (c > 0x7FF) + (c > 0xFFFF);
    }
    return total;
}

/* Write code points as UTF-8, and return how many bytes were written. ucs4_utf8_size() tells this number in advance. */
static inline size_t ucs4_to_utf8(const uint32_t *text, size_t size, uint8_t *out) {
    uint8_t *at = out;
    for (size_t i = 0; i < size; i++) {
        const uint32_t c = text[i];
        if (c <= 0x7F) {
            *at++ = (uint8_t)c;
        } else if (c <= 0x7FF) {
            *at++ = (uint8_t)(0xC0 | (c >> 6));
            *at++ = (uint8_t)(0x80 | (c & 0x3F));
        } else if (c <= 0xFFFF) {
            *at++ = (uint8_t)(0xE0 | (c >> 12));
            *at++ = (uint8_t)(0x80 | ((c >> 6) & 0x3F));
            *at++ = (uint8_t)(0x80 | (c & 0x3F));
        } else {
            *at++ = (uint8_t)(0xF0 | (c >> 18));
            *at++ = (uint8_t)(0x80 | ((c >> 12) & 0x3F));
            *at++ = (uint8_t)(0x80 | ((c >> 6) & 0x3F));
            *at++ = (uint8_t)(0x80 | (c & 0x3F));
        }
    }
    return (size_t)(at - out);
}

#endif
