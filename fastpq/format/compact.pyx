"""Decoder and encoder of the Thrift compact protocol for any struct declared in fastpq.format.parquet."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import struct

from fastpq.format.cursor cimport (
    BINARY, Cursor, DEEPEST, DOUBLE, FALSE, I16, I32, I64, I8, LIST, SET, STOP, STRUCT, TRUE, cursor_over, skip_value, take_byte,
    take_bytes, take_field, take_list, take_zigzag,
)

from fastpq.format.list_offsets cimport scan_structs
from fastpq.format.slots cimport new_filled, put, untrack

from fastpq.errors import FormatError
from fastpq.format.slots import place_of
from fastpq.format.struct import FieldType, Union, WireKind

SPAN = -1       # in place of the id of an inner list: the list is skipped

cdef enum:                  # members of WireKind in struct.py unlike any single wire type
    KIND_BOOL = 1
    KIND_STRING = 20
    KIND_ENUM = 21

cdef int64_t[7] LARGEST = [0, 0, 0, 0x7F, 0x7FFF, 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF]       # by wire type


def decode(cls, const uint8_t[::1] data, Py_ssize_t offset=0):
    """Decode one struct.

    Args:
        cls: the struct's class in fastpq.format.
        data: a buffer; bytes behind the struct are not read.
        offset: first byte of the struct in data.

    Returns:
        (the struct, its size in bytes).

    Raises:
        FormatError: the data end inside the struct, are no compact protocol, or lack a required field.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    made = read_struct(&cursor, table_of(cls), 0, None, None, 0, None)
    return made, cursor.pos - cursor.start - offset


def decode_list(cls, const uint8_t[::1] data, Py_ssize_t offset):
    """Decode a list of structs.

    Args:
        cls: the class of the structs in fastpq.format.
        data: a buffer.
        offset: first byte of the list in data.

    Raises:
        FormatError: as decode.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    found = read_list(&cursor, Slot("", FieldType(WireKind.STRUCT, cls)), 0)
    if cursor.failed:
        raise broken(&cursor, f"a list of {cls.__name__}")
    return found


def decode_partly(cls, const uint8_t[::1] data, Py_ssize_t offset, lazy):
    """Decode one struct, but skip the fields with the ids in lazy; skipped fields are None in the struct.

    Args, raises: as decode.

    Returns:
        (the struct, a dict from the id of each skipped field to the offset of its value, the struct's size in bytes).
    """
    cdef Cursor cursor = cursor_over(data, offset)
    cdef dict passed = dict.fromkeys(lazy)
    made = read_struct(&cursor, table_of(cls), 0, passed, None, 0, None)
    return made, {id: where for id, where in passed.items() if where is not None}, cursor.pos - cursor.start - offset


def decode_listed(cls, const uint8_t[::1] data, Py_ssize_t offset, dict listed not None, int64_t behind=0, dict noted=None):
    """Decode one struct, but index some of its lists of structs instead of decoding the lists.

    Args:
        cls, data, offset: as for decode.
        listed: a dict of the lists to index, by field id. The value is the field id of an inner list: where each struct of the
            list begins with this inner list of structs, the inner list is indexed as well. 0 for no inner list, SPAN to skip the
            list.
        behind: 0, or the id of the field before offset, to decode only the fields behind this field.
        noted: for lists with an inner list, at most four fields of whole numbers whose values the StructList has; wire types by
            field id.

    Returns:
        (the struct, a dict from the field id of each indexed list to its StructList, and of each skipped list to its first byte
        and the byte behind).

    Raises:
        FormatError: as decode.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    cdef dict passed = dict.fromkeys(listed)
    made = read_struct(&cursor, table_of(cls), 0, passed, listed, behind, noted)
    return made, {id: where for id, where in passed.items() if where is not None}


cdef inline int wire_of(int kind) noexcept:
    """The wire type of a WireKind; TRUE for booleans."""
    return I32 if kind == KIND_ENUM else BINARY if kind == KIND_STRING else kind


cdef class Slot:
    """The type of a field or list element, compiled from a FieldType for fast decoding."""

    cdef str name           # of the field; empty for a list element
    cdef Py_ssize_t place   # of the field in its struct
    cdef int kind           # a WireKind
    cdef int wire           # the wire type of kind
    cdef object argument    # the class of a struct, or an enum's members by value
    cdef Slot element       # element type of a list
    cdef StructTable table        # table of a struct; made when the first value is decoded

    def __cinit__(self, str name, field_type, Py_ssize_t place=0):
        self.name = name
        self.place = place
        self.kind = field_type.kind
        self.wire = wire_of(self.kind)
        self.argument = field_type.argument
        if self.kind == LIST:
            self.element = Slot("", field_type.argument)
        elif self.kind == KIND_ENUM:
            self.argument = field_type.argument._value2member_map_

    cdef inline bint matches(self, int wire) noexcept:
        return wire == self.wire or self.kind == KIND_BOOL and wire == FALSE or self.kind == LIST and wire == SET


cdef class StructTable:
    """The fields of a struct's class, compiled for fast decoding."""

    cdef object cls
    cdef tuple places           # of all fields in memory
    cdef Py_ssize_t unknown     # place of the unknown fields
    cdef bint union
    cdef list slots             # a Slot or None for each field id
    cdef uint64_t required      # bit i is set where the field of id i is required

    def __cinit__(self, cls):
        self.cls = cls
        self.places = tuple(cls.PLACES.values())
        self.unknown = place_of(cls.unknown)
        self.union = issubclass(cls, Union)
        self.slots = [None] * (max(cls.FIELDS, default=0) + 1)
        for id, (name, field) in cls.FIELDS.items():
            if not 0 < id < 64:
                raise ValueError(f"field id {id} of {cls.__name__}")
            self.slots[id] = Slot(name, field.type, cls.PLACES[name])
            self.required |= <uint64_t>field.required << <int>id


cdef dict TABLES = {}


cdef StructTable table_of(cls):
    found = TABLES.get(cls)
    if found is None:
        found = TABLES.setdefault(cls, StructTable(cls))    # one table a class: a Slot of another thread may have it
    return found


cdef object broken(Cursor* cursor, str what):
    ended = "ends early" if cursor.pos == cursor.end else "is no valid Thrift"
    return FormatError(f"{what} {ended}", offset=cursor.pos - cursor.start)


cdef object read_struct(Cursor* cursor, StructTable table, int depth, dict passed, dict listed, int64_t behind, dict noted):
    """Decode the fields of a struct behind the field id `behind`, up to its stop byte.

    Fields with an id in passed are skipped; passed[id] becomes the offset of the value or, with listed, the StructList.
    """
    cdef int64_t id = behind
    cdef int wire
    cdef uint64_t seen = <uint64_t>(behind > 0) << behind
    cdef uint64_t given = 0         # fields with a value
    cdef object made = new_filled(table.cls, table.places)
    cdef list unknown = None
    cdef const uint8_t* start
    cdef Slot slot
    put(made, table.unknown, ())
    if depth > DEEPEST:
        raise FormatError(f"{table.cls.__name__} is nested more than {DEEPEST} deep", offset=cursor.pos - cursor.start)
    while True:
        wire = take_field(cursor, &id)
        if cursor.failed:
            raise broken(cursor, table.cls.__name__)
        if wire == STOP:
            break
        slot = <Slot>table.slots[id] if 0 < id < len(table.slots) else None
        if slot is not None and not slot.matches(wire):
            slot = None             # Thrift's rule: a field of another wire type is an unknown field, of another version
        if slot is None or passed is not None and id in passed:
            start = cursor.pos
            if slot is not None and listed is not None and listed[id] != SPAN:
                passed[id] = scan_structs(cursor, listed[id], noted or {}, f"{table.cls.__name__}.{slot.name}")
                seen |= <uint64_t>1 << id
                continue
            with nogil:
                skip_value(cursor, wire, depth, False)
            if cursor.failed:
                raise broken(cursor, f"field {id} of {table.cls.__name__}")
            if slot is not None:
                passed[id] = start - cursor.start
                if listed is not None:
                    passed[id] = (start - cursor.start, cursor.pos - cursor.start)
                seen |= <uint64_t>1 << id
                continue
            if unknown is None:
                unknown = []
            unknown.append((id, wire, PyBytes_FromStringAndSize(<const char*>start, cursor.pos - start)))
            continue
        put(made, slot.place, read_value(cursor, wire, slot, depth, False))
        seen |= <uint64_t>1 << id
        given |= <uint64_t>1 << id
        if cursor.failed:
            raise broken(cursor, f"{table.cls.__name__}.{slot.name}")
    if unknown is not None:
        put(made, table.unknown, tuple(unknown))
    if table.required & ~seen:
        for name, field in table.cls.ORDERED:
            if field.required and not seen >> <int>field.id & 1:
                raise FormatError(f"{table.cls.__name__} has no {name}", offset=cursor.pos - cursor.start)
    if table.union:
        members = given.bit_count() + (unknown is not None)
        if members != 1:
            raise FormatError(f"{members} members in a {table.cls.__name__}", offset=cursor.pos - cursor.start)
    return made


cdef object read_value(Cursor* cursor, int wire, Slot slot, int depth, bint in_list):
    """Decode one value of the wire type of its slot. Sets cursor.failed for broken bytes; the caller raises the error."""
    cdef int kind = slot.kind
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
        return (<dict>slot.argument).get(value, value) if kind == KIND_ENUM else value
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
        return PyUnicode_DecodeUTF8(<const char*>start, size, "surrogateescape")    # keeps bytes of invalid UTF-8
    if kind == STRUCT:
        if slot.table is None:
            slot.table = table_of(slot.argument)
        return read_struct(cursor, slot.table, depth + 1, None, None, 0, None)
    return read_list(cursor, slot.element, depth + 1)


cdef list read_list(Cursor* cursor, Slot element, int depth):
    cdef int wire = 0
    cdef int64_t count = take_list(cursor, &wire), _i
    cdef list values = []
    untrack(values)
    if count and not element.matches(wire):
        raise FormatError(f"a list of wire type {wire}", offset=cursor.pos - cursor.start)
    for _i in range(count):
        values.append(read_value(cursor, wire, element, depth, True))
        if cursor.failed:
            break
    return values


def encode(value):
    """Encode a struct as bytes of the compact protocol: fields in ascending order of ids, shortest headers and varints.

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
