"""Compares byte strings: unsigned, byte by byte. A prefix comes before longer strings."""

from libc.string cimport memcmp

from fastpq.encodings.views cimport Slice


cdef inline int compare_byte_strings(Slice left, Slice right) noexcept nogil:
    """Return -1, 0 or 1: left is less than, equal to or greater than right."""
    cdef size_t shared = min(left.size, right.size)
    cdef int order = memcmp(left.data, right.data, shared) if shared else 0
    if order == 0:
        return (left.size > right.size) - (left.size < right.size)
    return 1 if order > 0 else -1
