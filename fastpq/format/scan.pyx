"""Where the structs of a list stand, found without decoding them: with compact.decode_partly, what makes footers lazy."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from fastpq.format.cursor cimport Cursor, STRUCT, skip_struct, take_list

from fastpq.errors import FormatError


def scan_list(const uint8_t[::1] data, int64_t offset, str name):
    """Where the structs of the list at offset begin, as an int64 array.

    Raises:
        FormatError: the bytes end inside it, or it is no list of structs.
    """
    cdef Cursor cursor
    cdef int wire = 0
    cdef int64_t count, i
    cdef int64_t[::1] offsets
    if not 0 <= offset <= data.shape[0]:
        raise ValueError(f"offset {offset} in {data.shape[0]} bytes")
    cursor.start = &data[0] if data.shape[0] else NULL
    cursor.pos = cursor.start + offset
    cursor.end = cursor.start + data.shape[0]
    cursor.failed = False
    count = take_list(&cursor, &wire)
    if not cursor.failed and count and wire != STRUCT:
        raise FormatError(f"{name} is no list of structs", offset=offset)
    offsets = np.empty(count + 1, dtype=np.int64)
    with nogil:
        for i in range(count):
            offsets[i] = cursor.pos - cursor.start
            if skip_struct(&cursor, 1) < 0:
                break
    if cursor.failed:
        ended = "ends early" if cursor.pos == cursor.end else "is no valid Thrift"
        raise FormatError(f"{name} {ended}", offset=cursor.pos - cursor.start)
    return np.asarray(offsets)[:count]
