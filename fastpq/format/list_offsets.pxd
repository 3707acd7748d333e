from libc.stdint cimport int64_t

from fastpq.format.cursor cimport Cursor


cdef class StructList:
    cdef readonly object offsets
    cdef int64_t[::1] _inner    # offsets of the structs of all inner lists, one list behind the other
    cdef int64_t[::1] _ends     # _inner[_ends[i]:_ends[i + 1]] belongs to struct i of the list
    cdef int64_t[::1] _behind   # offset of the field behind the inner list of each struct; -1 for a struct without inner list

cdef StructList scan_structs(Cursor* cursor, int inner, str what)
