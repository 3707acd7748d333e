from libc.stdint cimport int64_t

from fastpq.format.cursor cimport Cursor


cdef class StructList:
    cdef readonly object offsets
    cdef int64_t[::1] _inner    # places in the inner lists of all structs
    cdef int64_t[::1] _ends     # where those of each struct end among them, behind a 0
    cdef int64_t[::1] _behind   # where the field behind the list begins; -1 where there is no such list

cdef StructList scan_structs(Cursor* cursor, int inner, str what)
