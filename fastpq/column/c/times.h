/* Range checks of times of day: integers of 4 or 8 bytes, from 0 to the ticks of a day, exclusive. */
#ifndef FASTPQ_TIMES_H
#define FASTPQ_TIMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../encodings/c/clones.h"

/* A negative number is a large one without its sign. */
FASTPQ_CLONES static int times_fit_4(const uint8_t *values, int64_t count, uint32_t ticks) {
    uint32_t outside = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t value;
        memcpy(&value, values + 4 * i, 4);
        outside |= value >= ticks;
    }
    return !outside;
}

FASTPQ_CLONES static int times_fit_8(const uint8_t *values, int64_t count, uint64_t ticks) {
    uint64_t outside = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t value;
        memcpy(&value, values + 8 * i, 8);
        outside |= value >= ticks;
    }
    return !outside;
}

static inline int times_fit(const uint8_t *values, size_t width, int64_t count, int64_t ticks) {
    return width == 4 ? times_fit_4(values, count, (uint32_t)ticks) : times_fit_8(values, count, (uint64_t)ticks);
}

#endif
