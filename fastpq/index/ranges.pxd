from libc.stdint cimport int64_t


cdef class RowRanges:
    cdef readonly object bounds
    cdef readonly int64_t num_rows
    cdef const int64_t[:, ::1] view
    cdef int64_t counted        # rows; -1 until asked for

    cdef int64_t _count(self) noexcept


cdef class Growing:
    cdef object bounds
    cdef int64_t[:, ::1] view
    cdef int64_t size
    cdef int64_t gap

    cdef int add(self, int64_t start, int64_t stop) except -1
    cdef RowRanges ranges(self, int64_t num_rows)
