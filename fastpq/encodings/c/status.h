/* Status: the negative numbers returned by a kernel for broken bytes, in the place of a count. */
#ifndef FASTPQ_STATUS_H
#define FASTPQ_STATUS_H

enum fastpq_status {
    FASTPQ_TRUNCATED = -1,    /* the input ends before the values do */
    FASTPQ_BAD_RUN = -2,      /* a run or a bit width forbidden by the encoding */
    FASTPQ_BAD_INDEX = -3,    /* a dictionary index outside the dictionary */
    FASTPQ_BAD_LENGTH = -4,   /* a length beyond the end of the page */
    FASTPQ_BAD_LEVEL = -5,    /* a level above the column's maximum */
    FASTPQ_BAD_UTF8 = -6,     /* text of invalid UTF-8 */
    FASTPQ_OUT_OF_RANGE = -7, /* a value beyond the range of the output type */
    FASTPQ_NO_MEMORY = -8
};

#endif
