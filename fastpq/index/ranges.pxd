from libc.stdint cimport int64_t


cdef class RowRanges:
    cdef readonly object bits   # a bitmap, or None if known has the ranges
    cdef readonly int64_t num_rows
    cdef object known
    cdef int64_t counted        # number of rows in the set, or -1 until it is asked for

    @staticmethod
    cdef RowRanges of_bits(object bits, int64_t num_rows)
    cdef RowRanges cut_out(self, RowRanges covered)
    cdef int64_t count_rows(self) except -1


cdef class Growing:
    cdef object bounds
    cdef int64_t[:, ::1] view
    cdef int64_t size
    cdef int64_t gap

    cdef int add(self, int64_t start, int64_t stop) except -1
    cdef RowRanges ranges(self, int64_t num_rows)
