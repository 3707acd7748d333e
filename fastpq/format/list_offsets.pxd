from libc.stdint cimport int64_t

from fastpq.format.cursor cimport Cursor


cdef class StructList:
    cdef readonly object offsets
    cdef int64_t[::1] _inner    # offsets of the structs in all inner lists, list after list
    cdef int64_t[::1] _ends     # _inner[_ends[i]:_ends[i + 1]] belongs to struct i of the list
    cdef int64_t[::1] _behind   # for each struct, the offset behind its inner list. Negative for a list that is not indexed
    cdef int64_t[:, ::1] _noted     # shape (noted fields, structs). MISSING where a number is unknown
    cdef int[4] _fields             # field ids of the noted fields
    cdef int[4] _wires              # wire types of the noted fields
    # Returns whether struct `index` begins with an inner list that is indexed.
    cdef bint has_inner(self, int64_t index) noexcept
    # Returns where struct `inner` in the inner list of struct `index` begins, or -1 where inner_place returns None.
    cdef int64_t place(self, int64_t index, int64_t inner) noexcept

cdef StructList scan_structs(Cursor* cursor, int inner, dict noted, str what)
