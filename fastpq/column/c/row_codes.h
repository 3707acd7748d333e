/* Sorts rows by codes. A code is an unsigned number with 8 bytes, and codes have the same order as the values. */
#ifndef FASTPQ_ROW_CODES_H
#define FASTPQ_ROW_CODES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FASTPQ_DIGIT_BITS 8
#define FASTPQ_DIGITS (1 << FASTPQ_DIGIT_BITS)

/* A row, and the code for its value. */
typedef struct {
    uint64_t code;
    int64_t row;
} CodedRow;

/* Codes for numbers. NaNs have the largest code. -0.0 and +0.0 have the same code. */
static inline uint64_t code_of_int32(const uint8_t *value) {
    uint32_t bits;
    memcpy(&bits, value, sizeof(bits));
    return bits ^ UINT32_C(0x80000000);
}

static inline uint64_t code_of_uint32(const uint8_t *value) {
    uint32_t bits;
    memcpy(&bits, value, sizeof(bits));
    return bits;
}

static inline uint64_t code_of_int64(const uint8_t *value) {
    uint64_t bits;
    memcpy(&bits, value, sizeof(bits));
    return bits ^ UINT64_C(0x8000000000000000);
}

static inline uint64_t code_of_uint64(const uint8_t *value) {
    uint64_t bits;
    memcpy(&bits, value, sizeof(bits));
    return bits;
}

#define FASTPQ_CODE_OF_FLOAT(NAME, BITS, SIGN, INFINITE)                    \
    static inline uint64_t NAME(const uint8_t *value) {                     \
        BITS bits;                                                          \
        memcpy(&bits, value, sizeof(bits));                                 \
        if ((bits & (BITS) ~(SIGN)) > (INFINITE)) {                         \
            return (BITS) - 1;                                              \
        }                                                                   \
        if (bits == (SIGN)) {                                               \
            bits = 0;                                                       \
        }                                                                   \
        return (BITS)(bits & (SIGN) ? (BITS)~bits : (BITS)(bits | (SIGN))); \
    }
FASTPQ_CODE_OF_FLOAT(code_of_float16, uint16_t, UINT16_C(0x8000), UINT16_C(0x7C00))
FASTPQ_CODE_OF_FLOAT(code_of_float, uint32_t, UINT32_C(0x80000000), UINT32_C(0x7F800000))
FASTPQ_CODE_OF_FLOAT(code_of_double, uint64_t, UINT64_C(0x8000000000000000), UINT64_C(0x7FF0000000000000))
#undef FASTPQ_CODE_OF_FLOAT

/* Sort `count` rows in place by their codes. Rows with equal codes keep their order. `room` is scratch memory for as many. */
static void sort_coded_rows(CodedRow *rows, CodedRow *room, int64_t count) {
    uint64_t differences = 0;
    int is_sorted = 1;
    for (int64_t i = 1; i < count; i++) {
        differences |= rows[i].code ^ rows[0].code;
        is_sorted &= rows[i - 1].code <= rows[i].code;
    }
    if (is_sorted) return;
    CodedRow *source = rows, *target = room;
    int shift = 0;
    while (differences != 0) {
        /* Bits that are equal in all codes are skipped. */
        int64_t ends[FASTPQ_DIGITS] = {0}, end = 0;
        while ((differences & 1) == 0) {
            differences >>= 1;
            shift++;
        }
        for (int64_t i = 0; i < count; i++) ends[(source[i].code >> shift) & (FASTPQ_DIGITS - 1)]++;
        for (int digit = 0; digit < FASTPQ_DIGITS; digit++) {
            const int64_t digit_count = ends[digit];
            ends[digit] = end;
            end += digit_count;
        }
        for (int64_t i = 0; i < count; i++) target[ends[(source[i].code >> shift) & (FASTPQ_DIGITS - 1)]++] = source[i];
        CodedRow *const sorted = target;
        target = source;
        source = sorted;
        differences >>= FASTPQ_DIGIT_BITS;
        shift += FASTPQ_DIGIT_BITS;
    }
    if (source != rows) memcpy(rows, source, (size_t)count * sizeof(CodedRow));
}

#endif
