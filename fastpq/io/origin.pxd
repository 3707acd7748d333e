"""Origin: bytes that others may change. They are copied into the reader's memory, and are never used in place."""

from libc.stdint cimport int64_t, uint8_t


cdef class Origin:
    cdef readonly int64_t size
    # Copies bytes into out, and returns how many. They are fewer than size only at the end. behind: how many bytes are read next.
    cdef int64_t read_at(self, int64_t offset, uint8_t* out, int64_t size, int64_t behind=*) except -1 nogil


cdef struct Piece:
    int64_t position            # where the piece begins if all pieces are joined
    int64_t start               # where the piece begins in the origin
    int64_t size


cdef class StoredBytes:
    cdef readonly Origin origin
    cdef readonly int64_t size
    cdef Piece* pieces
    cdef int count
    # Copies size bytes into out, from a position in the joined pieces. Fewer bytes are an error.
    cdef int copy(self, int64_t position, uint8_t* out, int64_t size) except -1 nogil
