/* Hashing and transcoding of short byte strings. */
#ifndef FASTPQ_TEXT_H
#define FASTPQ_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t load_u64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* One to seven bytes as a number. */
static inline uint64_t load_tail(const uint8_t *p, size_t size) {
    uint64_t v = 0;
    memcpy(&v, p, size);
    return v;
}

static inline uint64_t mix(uint64_t a, uint64_t b) {
    /* Multiplication folds all bits of both factors into the middle of the product: xor of its halves. */
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t slice_hash(const uint8_t *data, size_t size, uint64_t seed) {
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t h = seed ^ (uint64_t)size * odd;
    while (size >= 8) {
        h = mix(h ^ load_u64(data), odd);
        data += 8;
        size -= 8;
    }
    if (size) h = mix(h ^ load_tail(data, size), odd);
    return mix(h ^ seed, odd);
}

/* Bytes that code points take in UTF-8; -1 where one is a surrogate or no code point. */
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
