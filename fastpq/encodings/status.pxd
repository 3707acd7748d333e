"""What a kernel returns when the bytes are wrong: a negative status in the place of a count."""

cdef enum Status:
    TRUNCATED = -1          # the input ends before the values do
    BAD_RUN = -2            # a run or a bit width that the encoding does not allow
    BAD_INDEX = -3          # a dictionary index outside the dictionary
    BAD_LENGTH = -4         # a length that points outside the page
    BAD_LEVEL = -5          # a level above the column's maximum
    BAD_UTF8 = -6           # text that is not UTF-8
    OUT_OF_RANGE = -7       # a value that the output type cannot hold
    NO_MEMORY = -8

from libc.stdint cimport int64_t

# Raises FormatError for a negative status; returns any other as it is.
cdef int64_t raise_status(int64_t status, str what) except -1
