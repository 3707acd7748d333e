"""A limit on the memory that a read's results take."""

from libc.stdint cimport int64_t, uint8_t
cimport numpy as cnp


cdef class Allowance:
    cdef int64_t _limit
    cdef bint _is_preliminary       # a larger limit is asked for when the first one is reached
    cdef int64_t _used_bytes
    # Count bytes. Raise AllocationError, and count nothing, if they exceed the limit.
    cdef int take(self, int64_t size) except -1
    # Like take, but return -1, or the bytes in use if size more bytes exceed the limit.
    cdef int64_t try_take(self, int64_t size) noexcept nogil
    cdef void give(self, int64_t size) noexcept nogil
    # Return a new array with size bytes, and write its address to data. The bytes count from before the allocation until the
    # last view is gone. The memory has room bytes in all, which extend can use.
    cdef object empty(self, int64_t size, uint8_t** data, int64_t room=*)
    # Lengthen an array from empty by size bytes, count them, and return their address. Nobody may have a view of the array yet.
    # Return NULL if the memory is too short, or if the bytes exceed the limit.
    cdef uint8_t* extend(self, Counted owner, int64_t size) noexcept nogil
    # Shorten such an array by its last size bytes, so that extend can use their memory again. These bytes count as long as the
    # array lives, unless they are many: then they go back to the operating system.
    cdef void shorten(self, Counted owner, int64_t size) noexcept nogil


# The owner of counted bytes, which are either its own block or another array's bytes. When the last array that views them is
# gone, it frees the block, and the bytes no longer count.
cdef class Counted:
    cdef Allowance allowance
    cdef int64_t size
    cdef int64_t counted_size       # the largest size so far, which is what counts
    cdef void* block
    cdef size_t capacity
    cdef cnp.npy_intp* shape        # the first array's shape, valid while that array lives
    cdef const uint8_t[::1] room
