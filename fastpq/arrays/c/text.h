/* Code points to UTF-8, and short texts of ASCII. */
#ifndef FASTPQ_TEXT_H
#define FASTPQ_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whether all bytes are below 0x80. */
static inline int text_is_ascii(const uint8_t *data, size_t size) {
    uint64_t seen = 0, word;
    if (size < 8) {
        for (size_t i = 0; i < size; i++) seen |= data[i];
        return (seen & 0x80) == 0;
    }
    for (size_t i = 0; i + 8 < size; i += 8) {
        memcpy(&word, data + i, 8);
        seen |= word;
    }
    memcpy(&word, data + size - 8, 8);
    return ((seen | word) & UINT64_C(0x8080808080808080)) == 0;
}

/* Bytes of code points in UTF-8; -1 where one is a surrogate or no code point. */
static inline int64_t ucs4_utf8_size(const uint32_t *text, size_t size) {
    int64_t total = 0;
    for (size_t i = 0; i < size; i++) {
        const uint32_t c = text[i];
        if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return -1;
        total += 1 + (c > 0x7F) + (c > 0x7FF) + (c > 0xFFFF);
    }
    return total;
}

/* Writes as many bytes as ucs4_utf8_size() says and returns their number. */
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
