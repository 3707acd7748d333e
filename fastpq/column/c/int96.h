/* INT96 timestamps: the nanoseconds within a day, and the Julian day number. Calculations in 128 bits cannot overflow. */
#ifndef FASTPQ_INT96_H
#define FASTPQ_INT96_H

#include <stdint.h>
#include <string.h>

#define FASTPQ_JULIAN_DAY_OF_EPOCH 2440588
#define FASTPQ_NANOSECONDS 1000000000
#define FASTPQ_SECONDS_PER_DAY 86400
#define FASTPQ_DAY_NANOSECONDS 86400000000000
#define FASTPQ_NEAR_DAYS 106750 /* days around the epoch whose nanoseconds fit 64 bits, with two days to spare */
#define FASTPQ_LEAST_UNITS 1000 /* every INT96 timestamp fits milliseconds */

static inline __int128 floor_divide(__int128 a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

/* Returns whether 64 bits are enough for the calculation in every unit. */
static inline int is_near_int96(int64_t nanoseconds, uint32_t day) {
    return (uint64_t)nanoseconds < FASTPQ_DAY_NANOSECONDS &&
           day - (uint32_t)(FASTPQ_JULIAN_DAY_OF_EPOCH - FASTPQ_NEAR_DAYS) < 2 * FASTPQ_NEAR_DAYS;
}

/* Sets *ticks to the ticks since the epoch. A second has `units` ticks. Returns 0 if the ticks do not fit 64 bits. */
static inline int ticks_of_int96(int64_t nanoseconds, uint32_t day, int64_t units, int64_t *ticks) {
    if (is_near_int96(nanoseconds, day)) {
        const int64_t divisor = FASTPQ_NANOSECONDS / units;
        *ticks = ((int64_t)day - FASTPQ_JULIAN_DAY_OF_EPOCH) * (FASTPQ_SECONDS_PER_DAY * units) +
                 (divisor == 1 ? nanoseconds : nanoseconds / divisor);
        return 1;
    }
    const __int128 midnight = ((__int128)day - FASTPQ_JULIAN_DAY_OF_EPOCH) * FASTPQ_SECONDS_PER_DAY * units;
    const __int128 sum = midnight + floor_divide(nanoseconds, FASTPQ_NANOSECONDS / units);
    *ticks = (int64_t)sum;
    return sum >= INT64_MIN && sum <= INT64_MAX;
}

/* Does the reverse. Returns 0 for a day number below 0, or over 2^31 - 1, which some readers take for a negative number. */
static inline int int96_of_ticks(int64_t ticks, int64_t units, int64_t *nanoseconds, uint32_t *day) {
    const __int128 days = floor_divide(ticks, FASTPQ_SECONDS_PER_DAY * units);
    const __int128 julian = days + FASTPQ_JULIAN_DAY_OF_EPOCH;
    *nanoseconds = (int64_t)(ticks - days * FASTPQ_SECONDS_PER_DAY * units) * (FASTPQ_NANOSECONDS / units);
    *day = (uint32_t)julian;
    return julian >= 0 && julian <= INT32_MAX;
}

static inline int is_null_slot(const uint8_t *valid, int64_t i) { return valid != NULL && !(valid[i >> 3] >> (i & 7) & 1); }

/* Returns the ticks per second of the finest unit that fits all values. valid is a bitmap, or NULL without nulls. */
static inline int64_t finest_int96_units(const uint8_t *stored, const uint8_t *valid, int64_t count) {
    int64_t units = FASTPQ_NANOSECONDS, nanoseconds, ticks;
    uint32_t day;
    for (int64_t i = 0; i < count && units > FASTPQ_LEAST_UNITS; i++) {
        memcpy(&nanoseconds, stored + 12 * i, 8);
        memcpy(&day, stored + 12 * i + 8, 4);
        if (is_near_int96(nanoseconds, day) || is_null_slot(valid, i)) continue;
        while (units > FASTPQ_LEAST_UNITS && !ticks_of_int96(nanoseconds, day, units, &ticks)) units /= 1000;
    }
    return units;
}

/* Converts values to ticks since the epoch. A second has `units` ticks, and all ticks must fit 64 bits. A null becomes 0. */
static inline void timestamps_of_int96(const uint8_t *stored, const uint8_t *valid, int64_t count, int64_t units, uint8_t *out) {
    int64_t nanoseconds, ticks;
    uint32_t day;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&nanoseconds, stored + 12 * i, 8);
        memcpy(&day, stored + 12 * i + 8, 4);
        if (!is_near_int96(nanoseconds, day) && is_null_slot(valid, i)) ticks = 0;
        else ticks_of_int96(nanoseconds, day, units, &ticks);
        memcpy(out + 8 * i, &ticks, 8);
    }
}

#endif
