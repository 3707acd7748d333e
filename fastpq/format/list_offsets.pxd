from libc.stdint cimport int64_t

from fastpq.format.cursor cimport Cursor


cdef class StructList:
    cdef readonly object offsets
    cdef int64_t[::1] _inner    # offsets of the structs of all inner lists, one list behind the other
    cdef int64_t[::1] _ends     # _inner[_ends[i]:_ends[i + 1]] belongs to struct i of the list
    cdef int64_t[::1] _behind   # offset of the field behind the inner list of each struct; negative for a struct without one
    cdef int64_t[:, ::1] _noted     # numbers in the fields _fields of each struct with an inner list; MISSING for none
    cdef int[4] _fields             # field ids
    cdef int[4] _wires              # wire types of the fields
    # Offset of one struct in the inner list of a struct; -1 as inner_place gives None.
    cdef int64_t place(self, int64_t index, int64_t place) noexcept

cdef StructList scan_structs(Cursor* cursor, int inner, dict noted, str what)
