"""Bytes that others may change: read into memory of the reader, never used in place."""

from libc.stdint cimport int64_t, uint8_t


cdef class Origin:
    cdef readonly int64_t size
    # Copies bytes into out; returns their number, less than size only at the end. behind: bytes that are copied next.
    cdef int64_t read_at(self, int64_t offset, uint8_t* out, int64_t size, int64_t behind=*) except -1 nogil


cdef struct Piece:
    int64_t position            # of its first byte among the bytes of all pieces
    int64_t start               # in the origin
    int64_t size


cdef class StoredBytes:
    cdef readonly Origin origin
    cdef readonly int64_t size
    cdef Piece* pieces
    cdef int count
    # Copies bytes into out; fewer bytes than asked for are an error.
    cdef int copy(self, int64_t position, uint8_t* out, int64_t size) except -1 nogil
