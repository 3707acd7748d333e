"""Status: the negative numbers that kernels return instead of a count if bytes are broken."""

from libc.stdint cimport int64_t

cdef extern from "c/status.h" nogil:
    cdef enum Status "fastpq_status":
        TRUNCATED "FASTPQ_TRUNCATED"
        BAD_RUN "FASTPQ_BAD_RUN"
        BAD_INDEX "FASTPQ_BAD_INDEX"
        BAD_LENGTH "FASTPQ_BAD_LENGTH"
        BAD_LEVEL "FASTPQ_BAD_LEVEL"
        BAD_UTF8 "FASTPQ_BAD_UTF8"
        OUT_OF_RANGE "FASTPQ_OUT_OF_RANGE"
        NO_MEMORY "FASTPQ_NO_MEMORY"

# Returns status if it is a count. Raises MemoryError for NO_MEMORY, and FormatError for any other negative status.
cdef int64_t raise_status(int64_t status, str what) except -1
