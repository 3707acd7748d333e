/* Range checks for times of day. They are integers with 4 or 8 bytes, at least 0 and less than the ticks in a day. */
#ifndef FASTPQ_TIMES_H
#define FASTPQ_TIMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../encodings/c/clones.h"

/* Values are read as unsigned integers here, so that a negative number is a large one. */
#define FASTPQ_TIMES_FIT(NAME, TICKS)                                                  \
    FASTPQ_CLONES static int NAME(const uint8_t *values, int64_t count, TICKS ticks) { \
        TICKS outside = 0;                                                             \
        for (int64_t i = 0; i < count; i++) {                                          \
            TICKS value;                                                               \
            memcpy(&value, values + (int64_t)sizeof(value) * i, sizeof(value));        \
            outside |= value >= ticks;                                                 \
        }                                                                              \
        return !outside;                                                               \
    }
FASTPQ_TIMES_FIT(times_fit_4, uint32_t)
FASTPQ_TIMES_FIT(times_fit_8, uint64_t)
#undef FASTPQ_TIMES_FIT

static inline int times_fit(const uint8_t *values, size_t width, int64_t count, int64_t ticks) {
    return width == 4 ? times_fit_4(values, count, (uint32_t)ticks) : times_fit_8(values, count, (uint64_t)ticks);
}

#endif
