/* INT96 timestamps: nanoseconds within a day and its Julian day number, calculated in 128 bits against overflow. */
#ifndef FASTPQ_INT96_H
#define FASTPQ_INT96_H

#include <stdint.h>

#define FASTPQ_JULIAN_DAY_OF_EPOCH 2440588
#define FASTPQ_NANOSECONDS 1000000000
#define FASTPQ_SECONDS_PER_DAY 86400

static inline __int128 floor_divide(__int128 a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

/* Ticks since the epoch, `units` a second; returns 0 if 64 bits are too few. */
static inline int ticks_of_int96(int64_t nanoseconds, uint32_t day, int64_t units, int64_t *ticks) {
    const __int128 midnight = ((__int128)day - FASTPQ_JULIAN_DAY_OF_EPOCH) * FASTPQ_SECONDS_PER_DAY * units;
    const __int128 sum = midnight + floor_divide(nanoseconds, FASTPQ_NANOSECONDS / units);
    *ticks = (int64_t)sum;
    return sum >= INT64_MIN && sum <= INT64_MAX;
}

/* The reverse; returns 0 for a day number below 0 or over 2^31 - 1, unknown to readers with signed day numbers. */
static inline int int96_of_ticks(int64_t ticks, int64_t units, int64_t *nanoseconds, uint32_t *day) {
    const __int128 days = floor_divide(ticks, FASTPQ_SECONDS_PER_DAY * units);
    const __int128 julian = days + FASTPQ_JULIAN_DAY_OF_EPOCH;
    *nanoseconds = (int64_t)(ticks - days * FASTPQ_SECONDS_PER_DAY * units) * (FASTPQ_NANOSECONDS / units);
    *day = (uint32_t)julian;
    return julian >= 0 && julian <= INT32_MAX;
}

#endif
