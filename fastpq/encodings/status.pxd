"""Status: the negative numbers returned by a kernel for broken bytes, in the place of a count."""

cdef enum Status:
    TRUNCATED = -1          # the input ends before the values do
    BAD_RUN = -2            # a run or a bit width forbidden by the encoding
    BAD_INDEX = -3          # a dictionary index outside the dictionary
    BAD_LENGTH = -4         # a length beyond the end of the page
    BAD_LEVEL = -5          # a level above the column's maximum
    BAD_UTF8 = -6           # text of invalid UTF-8
    OUT_OF_RANGE = -7       # a value beyond the range of the output type
    NO_MEMORY = -8

from libc.stdint cimport int64_t

# Returns status, or raises FormatError for a negative status (MemoryError for NO_MEMORY).
cdef int64_t raise_status(int64_t status, str what) except -1
