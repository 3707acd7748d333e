"""Where the structs of a list stand, found without decoding them: with compact.decode_partly, what makes footers lazy."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from fastpq.format.cursor cimport Cursor, LIST, STOP, STRUCT, skip_struct, skip_value, take_field, take_list

from fastpq.errors import FormatError


cdef class StructList:
    """Where the structs of a list stand.

    Attributes:
        offsets: int64, where each begins.
        inner: for each struct, where the structs of a list begin that is its first field, and where the next field begins; None
            where that list is not its first field, or not asked for.
    """


cdef StructList scan_structs(Cursor* cursor, int inner, str what):
    """Pass over a list of structs and note where they begin; of the list with the field id inner of each, too, unless it is 0.

    Raises:
        FormatError: the bytes end inside it, or it is no list of structs.
    """
    cdef StructList found = StructList.__new__(StructList)
    cdef int64_t count, i
    cdef int64_t[::1] offsets
    found.offsets = offsets = open_list(cursor, what)
    found.offsets = np.asarray(offsets)
    found.inner = []
    count = offsets.shape[0]
    for i in range(count):
        offsets[i] = cursor.pos - cursor.start
        if inner:
            found.inner.append(scan_inner(cursor, inner, what))
        elif skip_struct(cursor, 1) < 0:
            break
    raise_failed(cursor, what)
    return found


cdef object open_list(Cursor* cursor, str what):
    """Memory for the offsets of the structs of the list that begins here."""
    cdef int wire = 0
    cdef int64_t count = take_list(cursor, &wire)
    if not cursor.failed and count and wire != STRUCT:
        raise FormatError(f"{what} is no list of structs", offset=cursor.pos - cursor.start)
    return np.empty(0 if cursor.failed else count, dtype=np.int64)


cdef object scan_inner(Cursor* cursor, int inner, str what):
    """Pass over one struct; where its list inner is the first field: the offsets there, and where the next field begins."""
    cdef const uint8_t* start = cursor.pos
    cdef int64_t id = 0, i, behind
    cdef int64_t[::1] offsets
    cdef int wire = take_field(cursor, &id)
    cdef bint again = False
    if cursor.failed or id != inner or wire != LIST:
        cursor.pos = start
        skip_struct(cursor, 1)
        raise_failed(cursor, what)
        return None
    offsets = open_list(cursor, f"the list in {what}")
    with nogil:
        for i in range(offsets.shape[0]):
            offsets[i] = cursor.pos - cursor.start
            if skip_struct(cursor, 2) < 0:
                break
        behind = cursor.pos - cursor.start
        while not cursor.failed:
            wire = take_field(cursor, &id)
            if wire == STOP:
                break
            again = again or id == inner
            skip_value(cursor, wire, 1, False)
    raise_failed(cursor, what)
    return None if again else (np.asarray(offsets), behind)


cdef int raise_failed(Cursor* cursor, str what) except -1:
    if cursor.failed:
        ended = "ends early" if cursor.pos == cursor.end else "is no valid Thrift"
        raise FormatError(f"{what} {ended}", offset=cursor.pos - cursor.start)
    return 0
