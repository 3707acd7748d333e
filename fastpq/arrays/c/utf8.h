/* Whether bytes are UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef FASTPQ_UTF8_H
#define FASTPQ_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Length of the well-formed sequence at p; 0 if ill-formed. The lead byte is not ASCII. */
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
