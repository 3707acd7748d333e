/* Finds bounds of fixed-width integers in plain loops, which the compiler vectorises. */
#ifndef FASTPQ_INTEGER_RANGE_H
#define FASTPQ_INTEGER_RANGE_H

#include <stdint.h>
#include <string.h>

#include "clones.h"

/* Sets minimum and maximum to the bounds of count integers. There is at least one. memcpy loads each value, because pages are not
 * aligned. */
#define FASTPQ_MIN_MAX_INTEGERS(NAME, TYPE)                                                                    \
    FASTPQ_CLONES static void NAME(const uint8_t *values, int64_t count, uint8_t *minimum, uint8_t *maximum) { \
        TYPE low, high, value;                                                                                 \
        memcpy(&low, values, sizeof low);                                                                      \
        high = low;                                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                                  \
            memcpy(&value, values + (size_t)i * sizeof value, sizeof value);                                   \
            low = value < low ? value : low;                                                                   \
            high = value > high ? value : high;                                                                \
        }                                                                                                      \
        memcpy(minimum, &low, sizeof low);                                                                     \
        memcpy(maximum, &high, sizeof high);                                                                   \
    }

FASTPQ_MIN_MAX_INTEGERS(min_max_int32, int32_t)
FASTPQ_MIN_MAX_INTEGERS(min_max_int64, int64_t)
FASTPQ_MIN_MAX_INTEGERS(min_max_uint32, uint32_t)
FASTPQ_MIN_MAX_INTEGERS(min_max_uint64, uint64_t)
FASTPQ_MIN_MAX_INTEGERS(min_max_bytes, uint8_t)
#undef FASTPQ_MIN_MAX_INTEGERS

#endif
