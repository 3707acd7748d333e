"""The Thrift compact protocol, both ways, walking the tables of fastpq.format.parquet."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import struct

from fastpq.format.cursor cimport (
    BINARY, Cursor, DEEPEST, DOUBLE, FALSE, I16, I32, I64, I8, LIST, SET, STOP, STRUCT, TRUE, skip_value, take_byte,
    take_bytes, take_field, take_list, take_zigzag,
)

from fastpq.errors import FormatError
from fastpq.format.struct import Union

cdef enum:                  # Kind in struct.py, where it differs from the wire types
    KIND_BOOL = 1
    KIND_STRING = 20
    KIND_ENUM = 21

cdef int64_t[7] LARGEST = [0, 0, 0, 0x7F, 0x7FFF, 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF]       # by wire type


cdef Cursor cursor_over(const uint8_t[::1] data, int64_t offset) except *:
    cdef Cursor cursor
    if not 0 <= offset <= data.shape[0]:
        raise ValueError(f"offset {offset} in {data.shape[0]} bytes")
    cursor.start = &data[0] if data.shape[0] else NULL
    cursor.pos = cursor.start + offset
    cursor.end = cursor.start + data.shape[0]
    cursor.failed = False
    return cursor


def decode(cls, const uint8_t[::1] data, Py_ssize_t offset=0):
    """Read one struct.

    Args:
        cls: its class in fastpq.format.
        data: a buffer; what follows the struct is not looked at.
        offset: where the struct begins.

    Returns:
        The struct and the number of bytes that it takes.

    Raises:
        FormatError: the bytes end inside it, are no compact protocol, or lack a required field.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    made = read_struct(&cursor, cls, 0, None)
    return made, cursor.pos - cursor.start - offset


def decode_partly(cls, const uint8_t[::1] data, Py_ssize_t offset, lazy):
    """``decode``, but for the fields with the ids in lazy, which are passed over and stay None.

    Returns:
        The struct, a dict of field id -> offset of the value for those of lazy that are there, and the number of bytes.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    cdef dict passed = dict.fromkeys(lazy)
    made = read_struct(&cursor, cls, 0, passed)
    return made, {id: where for id, where in passed.items() if where is not None}, cursor.pos - cursor.start - offset


cdef inline int wire_of(int kind) noexcept:
    """The wire type of a kind; that of true for booleans."""
    return I32 if kind == KIND_ENUM else BINARY if kind == KIND_STRING else kind


cdef inline bint matches(int wire, int kind) noexcept:
    return (wire == wire_of(kind) or kind == KIND_BOOL and wire == FALSE or kind == LIST and wire == SET)


cdef object broken(Cursor* cursor, str what):
    ended = "ends early" if cursor.pos == cursor.end else "is no valid Thrift"
    return FormatError(f"{what} {ended}", offset=cursor.pos - cursor.start)


cdef object read_struct(Cursor* cursor, cls, int depth, dict passed):
    """passed: ids of fields to pass over, whose offsets it gets; or None."""
    cdef int64_t id = 0
    cdef int wire
    cdef dict fields = cls.FIELDS
    cdef dict values = {}
    cdef list unknown = []
    cdef const uint8_t* start
    if depth > DEEPEST:
        raise FormatError(f"{cls.__name__} is nested more than {DEEPEST} deep", offset=cursor.pos - cursor.start)
    while True:
        wire = take_field(cursor, &id)
        if cursor.failed:
            raise broken(cursor, cls.__name__)
        if wire == STOP:
            break
        entry = fields.get(id)
        if entry is not None and not matches(wire, entry[1].type.kind):
            entry = None            # as Thrift has it: a field of another type is a field of another version
        if entry is None or passed is not None and id in passed:
            start = cursor.pos
            with nogil:
                skip_value(cursor, wire, depth, False)
            if cursor.failed:
                raise broken(cursor, f"field {id} of {cls.__name__}")
            if entry is not None:
                passed[id] = start - cursor.start
                continue
            unknown.append((id, wire, PyBytes_FromStringAndSize(<const char*>start, cursor.pos - start)))
            continue
        name, field = entry
        values[name] = read_value(cursor, wire, field.type, depth, False)
        if cursor.failed:
            raise broken(cursor, f"{cls.__name__}.{name}")
    if unknown:
        values["unknown"] = tuple(unknown)
    for name, field in cls.ORDERED:
        if field.required and name not in values and (passed is None or passed.get(field.id) is None):
            raise FormatError(f"{cls.__name__} has no {name}", offset=cursor.pos - cursor.start)
    if len(values) != 1 and issubclass(cls, Union):
        raise FormatError(f"{len(values)} members in a {cls.__name__}", offset=cursor.pos - cursor.start)
    return cls.from_fields(values)


cdef object read_value(Cursor* cursor, int wire, field_type, int depth, bint in_list):
    """One value, whose wire type is the table's. The caller looks at cursor.failed."""
    cdef int kind = field_type.kind
    cdef int64_t size = 0, value
    cdef const uint8_t* start
    cdef double real
    if kind == KIND_BOOL:
        return take_byte(cursor) == TRUE if in_list else wire == TRUE
    if kind == I8:
        value = take_byte(cursor)
        return value - 256 if value > 127 else value
    if kind == I16 or kind == I32 or kind == I64 or kind == KIND_ENUM:
        value = take_zigzag(cursor)
        if value > LARGEST[wire] or value < -LARGEST[wire] - 1:
            cursor.failed = True
        return enum_of(field_type.argument, value) if kind == KIND_ENUM else value
    if kind == DOUBLE:
        if cursor.end - cursor.pos < 8:
            cursor.failed = True
            return 0.0
        memcpy(&real, cursor.pos, 8)
        cursor.pos += 8
        return real
    if kind == BINARY or kind == KIND_STRING:
        start = take_bytes(cursor, &size)
        if cursor.failed:
            return None
        if kind == BINARY:
            return PyBytes_FromStringAndSize(<const char*>start, size)
        return PyUnicode_DecodeUTF8(<const char*>start, size, "surrogateescape")    # bytes that are no UTF-8 survive
    if kind == STRUCT:
        return read_struct(cursor, field_type.argument, depth + 1, None)
    return read_list(cursor, field_type.argument, depth + 1)


cdef object enum_of(cls, int64_t value):
    known = cls._value2member_map_.get(value)
    return value if known is None else known


cdef list read_list(Cursor* cursor, element, int depth):
    cdef int wire = 0
    cdef int64_t count = take_list(cursor, &wire), _i
    cdef list values = []
    if count and not matches(wire, element.kind):
        raise FormatError(f"a list of wire type {wire}", offset=cursor.pos - cursor.start)
    for _i in range(count):
        values.append(read_value(cursor, wire, element, depth, True))
        if cursor.failed:
            break
    return values


def encode(value):
    """The struct as compact-protocol bytes: fields in ascending order of their ids, shortest headers and varints.

    Raises:
        ValueError: a required field is missing, a number does not fit its field, or a union has not exactly one member.
    """
    out = bytearray()
    write_struct(out, value)
    return bytes(out)


cdef int write_varint(bytearray out, uint64_t value) except -1:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return 0


cdef int write_zigzag(bytearray out, int64_t value) except -1:
    return write_varint(out, (<uint64_t>value << 1) ^ <uint64_t>(value >> 63))


cdef int write_field(bytearray out, int id, int last, int wire) except -1:
    if 0 < id - last < 16:
        out.append((id - last) << 4 | wire)
    else:
        out.append(wire)
        write_zigzag(out, id)
    return 0


cdef int write_struct(bytearray out, value) except -1:
    cdef int last = 0, kind, wire
    cls = type(value)
    fields = [(field.id, name, field, None) for name, field in cls.ORDERED]
    if value.unknown:
        fields = sorted(fields + [(id, "", None, (wire, data)) for id, wire, data in value.unknown], key=lambda entry: entry[0])
    written = 0
    for id, name, field, raw in fields:
        if raw is not None:
            write_field(out, id, last, raw[0])
            out += raw[1]
            last = id
            written += 1
            continue
        item = getattr(value, name)
        if item is None:
            if field.required:
                raise ValueError(f"{cls.__name__} has no {name}")
            continue
        kind = field.type.kind
        wire = wire_of(kind) if kind != KIND_BOOL or item else FALSE
        write_field(out, id, last, wire)
        if kind != KIND_BOOL:
            write_value(out, field.type, item)
        last = id
        written += 1
    if written != 1 and isinstance(value, Union):
        raise ValueError(f"{written} members in a {cls.__name__}")
    out.append(STOP)
    return 0


cdef int write_value(bytearray out, field_type, value) except -1:
    cdef int kind = field_type.kind
    if kind == KIND_BOOL:
        out.append(TRUE if value else FALSE)
    elif kind == I8:
        out += struct.pack("b", value)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    elif kind == BINARY or kind == KIND_STRING:
        data = value.encode(errors="surrogateescape") if kind == KIND_STRING else value
        write_varint(out, len(data))
        out += data
    elif kind == STRUCT:
        write_struct(out, value)
    elif kind == LIST:
        write_list(out, field_type.argument, value)
    else:
        kind = wire_of(kind)
        if not -LARGEST[kind] - 1 <= value <= LARGEST[kind]:
            raise ValueError(f"{value} does not fit {(LARGEST[kind] + 1).bit_length()} bits")
        write_zigzag(out, value)
    return 0


cdef int write_list(bytearray out, element, values) except -1:
    cdef int kind = element.kind
    cdef int wire = wire_of(kind)
    if len(values) < 15:
        out.append(len(values) << 4 | wire)
    else:
        out.append(0xF0 | wire)
        write_varint(out, len(values))
    for value in values:
        write_value(out, element, value)
    return 0
