"""Cursor: a position in bytes that use the Thrift compact protocol. A read beyond the end sets `failed` and returns zero."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


# Wire types in the compact protocol.
cdef enum Wire:
    STOP = 0
    TRUE = 1
    FALSE = 2
    I8 = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13

cdef enum:
    DEEPEST = 64        # deepest nesting level for structs and containers, which limits the recursion on hostile bytes


cdef struct Cursor:
    const uint8_t* start
    const uint8_t* pos
    const uint8_t* end
    bint failed         # the bytes end early or are not valid. pos is where reading failed


cdef inline Cursor cursor_at(const uint8_t* data, size_t size) noexcept nogil:
    return Cursor(data, data, data + size, False)


# Returns a cursor at an offset in a buffer. Raises ValueError if the offset is outside the buffer.
cdef Cursor cursor_over(const uint8_t[::1] data, int64_t offset) except *
# Returns the FormatError for a cursor that has failed. `what` is the beginning of its message.
cdef object broken(Cursor* cursor, str what)


cdef inline uint8_t take_byte(Cursor* cursor) noexcept nogil:
    cdef uint8_t byte
    if cursor.pos == cursor.end:
        cursor.failed = True
        return 0
    byte = cursor.pos[0]
    cursor.pos += 1
    return byte


cdef inline uint64_t take_varint(Cursor* cursor) noexcept nogil:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift < 70:
        byte = take_byte(cursor)
        if shift == 63 and byte > 1:
            break
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    cursor.failed = True
    return 0


cdef inline int64_t take_zigzag(Cursor* cursor) noexcept nogil:
    cdef uint64_t value = take_varint(cursor)
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)


# Reads a field header, and returns the wire type, or STOP at the struct's end. *id must be the previous field's id. It becomes
# this field's id.
cdef inline int take_field(Cursor* cursor, int64_t* id) noexcept nogil:
    cdef uint8_t header = take_byte(cursor)
    cdef int wire = header & 15
    if cursor.failed or wire == STOP:
        return STOP
    id[0] = id[0] + (header >> 4) if header >> 4 else take_zigzag(cursor)
    if wire > UUID or not -32768 <= id[0] <= 32767:
        cursor.failed = True
    return STOP if cursor.failed else wire


# Reads a length and that many bytes, and returns where the bytes begin. Sets failed and returns NULL if there are fewer bytes.
cdef inline const uint8_t* take_bytes(Cursor* cursor, int64_t* size) noexcept nogil:
    cdef uint64_t length = take_varint(cursor)
    if cursor.failed or length > <uint64_t>(cursor.end - cursor.pos):
        cursor.failed = True
        return NULL
    size[0] = <int64_t>length
    cursor.pos += length
    return cursor.pos - length


# Reads a list header, and returns the element count. *wire becomes the elements' wire type. Each element takes at least one byte,
# even a bool or an empty struct. A count that is larger than the number of bytes left is therefore an error.
cdef inline int64_t take_list(Cursor* cursor, int* wire) noexcept nogil:
    cdef uint8_t header = take_byte(cursor)
    cdef uint64_t count = header >> 4 if header >> 4 < 15 else take_varint(cursor)
    wire[0] = header & 15
    if cursor.failed or count > <uint64_t>(cursor.end - cursor.pos):
        cursor.failed = True
        return 0
    return <int64_t>count


cdef int skip_value(Cursor* cursor, int wire, int depth, bint in_list) noexcept nogil
cdef int skip_struct(Cursor* cursor, int depth) noexcept nogil
