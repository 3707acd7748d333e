"""FlatBuffers reader for the parts that Arrow's schemas use."""

from libc.stdint cimport int64_t, uint8_t


cdef class _Buffer:
    cdef bytes data
    cdef const uint8_t* start
    cdef int64_t size
    cdef int64_t budget         # bytes that may still be read from strings and vectors

    cdef const uint8_t* at(self, int64_t place, int64_t width) except NULL
    cdef int64_t unsigned32(self, int64_t place) except -1
    cdef int64_t unsigned16(self, int64_t place) except -1
    cdef int spend(self, int64_t size) except -1


cdef class TableReader:
    cdef _Buffer _buffer
    cdef int64_t _position, _vtable, _vtable_size

    cpdef int64_t count(self, int slot) except -1
    cpdef TableReader item(self, int slot, int64_t index)
    # Returns the buffer offset where a slot's value is, or -1 if the slot is empty.
    cdef int64_t _place(self, int slot) except -2
    # Returns the buffer offset that a slot's reference points to, or -1 if the slot is empty.
    cdef int64_t _target(self, int slot) except -2
