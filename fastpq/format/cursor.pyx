"""Functions that make a Cursor over a buffer, and that skip encoded values without decoding them."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastpq.errors import FormatError


cdef Cursor cursor_over(const uint8_t[::1] data, int64_t offset) except *:
    cdef Cursor cursor = cursor_at(&data[0] if data.shape[0] else NULL, <size_t>data.shape[0])
    if not 0 <= offset <= data.shape[0]:
        raise ValueError(f"offset {offset} in {data.shape[0]} bytes")
    cursor.pos += offset
    return cursor


cdef object broken(Cursor* cursor, str what):
    ended = "ends early" if cursor.pos == cursor.end else "is not valid Thrift"
    return FormatError(f"{what} {ended}", offset=cursor.pos - cursor.start)


cdef int skip_value(Cursor* cursor, int wire, int depth, bint in_list) noexcept nogil:
    """Skip one value. Return 0, or -1 with cursor.failed set."""
    cdef int64_t size = 0, _i, count
    cdef uint64_t entries
    cdef int element = 0, key
    cdef uint8_t kinds
    if depth > DEEPEST:
        cursor.failed = True
    elif wire == TRUE or wire == FALSE:
        if in_list:
            take_byte(cursor)
    elif wire == I8:
        take_byte(cursor)
    elif wire == I16 or wire == I32 or wire == I64:
        take_varint(cursor)
    elif wire == DOUBLE or wire == UUID:
        size = 8 if wire == DOUBLE else 16
        if cursor.end - cursor.pos < size:
            cursor.failed = True
        else:
            cursor.pos += size
    elif wire == BINARY:
        take_bytes(cursor, &size)
    elif wire == LIST or wire == SET:
        count = take_list(cursor, &element)
        for _i in range(count):
            if skip_value(cursor, element, depth + 1, True) < 0:
                break
    elif wire == MAP:
        entries = take_varint(cursor)
        kinds = take_byte(cursor) if entries else 0
        if entries > <uint64_t>(cursor.end - cursor.pos):
            cursor.failed = True
        else:
            key = kinds >> 4
            element = kinds & 15
            for _i in range(<int64_t>entries):
                if skip_value(cursor, key, depth + 1, True) < 0 or skip_value(cursor, element, depth + 1, True) < 0:
                    break
    elif wire == STRUCT:
        skip_struct(cursor, depth + 1)
    else:
        cursor.failed = True
    return -1 if cursor.failed else 0


cdef int skip_struct(Cursor* cursor, int depth) noexcept nogil:
    """Skip a struct's fields and its stop byte. Return 0, or -1 with cursor.failed set."""
    cdef int64_t id = 0
    cdef int wire
    if depth > DEEPEST:
        cursor.failed = True
    while not cursor.failed:
        wire = take_field(cursor, &id)
        if wire == STOP:
            break
        skip_value(cursor, wire, depth, False)
    return -1 if cursor.failed else 0
