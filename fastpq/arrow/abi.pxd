"""Structures that the Arrow C data interface and the Arrow C stream interface define."""

from libc.stdint cimport int64_t


cdef enum:
    ARROW_FLAG_NULLABLE = 2


cdef struct ArrowSchema:
    const char* format
    const char* name
    const char* metadata
    int64_t flags
    int64_t n_children
    ArrowSchema** children
    ArrowSchema* dictionary
    void (*release)(ArrowSchema*) noexcept nogil
    void* private_data


cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void** buffers
    ArrowArray** children
    ArrowArray* dictionary
    void (*release)(ArrowArray*) noexcept nogil
    void* private_data


cdef struct ArrowArrayStream:
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept nogil
    int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept nogil
    const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
    void (*release)(ArrowArrayStream*) noexcept nogil
    void* private_data
