/* Copies of chosen rows out of a block of decoded rows. */
#ifndef FASTPQ_CHOSEN_ROWS_H
#define FASTPQ_CHOSEN_ROWS_H

#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) int64_t copy_chosen_of_width(const int64_t *ranges, int64_t count, int64_t first,
                                                                          int64_t rows, const uint8_t *values, uint8_t *out,
                                                                          const size_t width) {
    const int64_t stop = first + rows;
    int64_t copied = 0;
    for (int64_t i = 0; i < count && ranges[2 * i] < stop; i++) {
        int64_t row = ranges[2 * i] > first ? ranges[2 * i] : first;
        const int64_t end = ranges[2 * i + 1] < stop ? ranges[2 * i + 1] : stop;
        for (; row < end; row++, copied++) memcpy(out + (size_t)copied * width, values + (size_t)(row - first) * width, width);
    }
    return copied;
}

/* Copies the values of the rows in ranges (start and stop of each, ascending) to out, without gaps, from a block of rows rows: values
 * has row number first, and those behind. Returns the number of copied values. */
static int64_t copy_chosen(const int64_t *ranges, int64_t count, int64_t first, int64_t rows, const uint8_t *values, uint8_t *out,
                           size_t width) {
    switch (width) {
        case 1: return copy_chosen_of_width(ranges, count, first, rows, values, out, 1);
        case 2: return copy_chosen_of_width(ranges, count, first, rows, values, out, 2);
        case 4: return copy_chosen_of_width(ranges, count, first, rows, values, out, 4);
        case 8: return copy_chosen_of_width(ranges, count, first, rows, values, out, 8);
        case 16: return copy_chosen_of_width(ranges, count, first, rows, values, out, 16);
        default: return copy_chosen_of_width(ranges, count, first, rows, values, out, width);
    }
}

#endif
