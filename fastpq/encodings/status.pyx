"""The error for a negative Status, which a kernel returns for broken bytes."""

from libc.stdint cimport int64_t

from fastpq.errors import FormatError

cdef dict MESSAGES = {
    TRUNCATED: "the values end early",
    BAD_RUN: "a run or bit width that the encoding does not allow",
    BAD_INDEX: "an index outside the dictionary",
    BAD_LENGTH: "a length that points outside the page",
    BAD_LEVEL: "a level above the column's maximum",
    BAD_UTF8: "text that is not UTF-8",
    OUT_OF_RANGE: "a value that the type in memory cannot hold",
}


cdef int64_t raise_status(int64_t status, str what) except -1:
    if status == NO_MEMORY:
        raise MemoryError(what)
    if status < 0:
        raise FormatError(f"{what}: {MESSAGES[status]}")
    return status
