from libc.stdint cimport int64_t

from fastpq.format.cursor cimport Cursor


cdef class StructList:
    cdef readonly object offsets
    cdef readonly list inner

cdef StructList scan_structs(Cursor* cursor, int inner, str what)
