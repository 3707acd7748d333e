/* Status: the negative numbers that a kernel returns instead of a count if bytes are broken. */
#ifndef FASTPQ_STATUS_H
#define FASTPQ_STATUS_H

enum fastpq_status {
    FASTPQ_TRUNCATED = -1,    /* the input ends before the last value */
    FASTPQ_BAD_RUN = -2,      /* a run or a bit width that the encoding does not allow */
    FASTPQ_BAD_INDEX = -3,    /* a dictionary index outside the dictionary */
    FASTPQ_BAD_LENGTH = -4,   /* a length beyond the end of the page */
    FASTPQ_BAD_LEVEL = -5,    /* a level above the column's maximum */
    FASTPQ_BAD_UTF8 = -6,     /* text that is not UTF-8 */
    FASTPQ_OUT_OF_RANGE = -7, /* a value that the type in memory cannot hold */
    FASTPQ_NO_MEMORY = -8
};

#endif
