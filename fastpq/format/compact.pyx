"""Decoder and encoder of the Thrift compact protocol for any struct declared in fastpq.format.parquet."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from operator import itemgetter

from fastpq.format.cursor cimport (
    BINARY, Cursor, DEEPEST, DOUBLE, FALSE, I16, I32, I64, I8, LIST, SET, STOP, STRUCT, TRUE, cursor_over, skip_value, take_byte,
    take_bytes, take_field, take_list, take_zigzag,
)

from fastpq.format.list_offsets cimport scan_structs
from fastpq.format.slots cimport new_filled, put, taken, untrack
from fastpq.format.varint cimport write_varint

from fastpq.errors import FormatError
from fastpq.format.slots import place_of
from fastpq.format.struct import FieldType, Union, WireKind

SPAN = -1       # in place of the id of an inner list: the list is skipped

cdef enum:                  # members of WireKind in struct.py unlike any single wire type
    KIND_BOOL = 1
    KIND_STRING = 20
    KIND_ENUM = 21

cdef enum:
    LEAST_ROOM = 512        # bytes; first memory of an encoded struct
    LONGEST_VARINT = 10     # bytes

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
    """The type of a field or list element, compiled from a FieldType for fast decoding and encoding."""

    cdef int64_t id         # of the field; 0 for a list element
    cdef str name           # of the field; empty for a list element
    cdef Py_ssize_t place   # of the field in its struct
    cdef int kind           # a WireKind
    cdef int wire           # the wire type of kind
    cdef object argument    # the class of a struct, or an enum's members by value
    cdef Slot element       # element type of a list
    cdef StructTable table        # table of a struct; made when the first value is decoded

    def __cinit__(self, str name, field_type, int64_t id=0, Py_ssize_t place=0):
        self.id = id
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
    """The fields of a struct's class, compiled for fast decoding and encoding."""

    cdef object cls
    cdef tuple places           # of all fields in memory
    cdef Py_ssize_t unknown     # place of the unknown fields
    cdef bint union
    cdef list ordered           # Slots in ascending order of field ids
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
            self.slots[id] = Slot(name, field.type, id, cls.PLACES[name])
            self.required |= <uint64_t>field.required << <int>id
        self.ordered = [slot for slot in self.slots if slot is not None]


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
    cdef EncodedBytes out = EncodedBytes()
    write_struct(out, value)
    return PyBytes_FromStringAndSize(<const char*>out.data, <Py_ssize_t>out.size)


cdef class EncodedBytes:
    """The bytes of an encoded struct, in growing memory."""

    cdef uint8_t* data
    cdef size_t size
    cdef size_t room        # bytes of memory at data

    def __dealloc__(self):
        free(self.data)

    cdef inline uint8_t* reserve(self, size_t more) except NULL:
        """The end of the bytes, with memory for more bytes behind; the caller adds the written bytes to size."""
        if more > self.room - self.size:
            self.grow(more)
        return self.data + self.size

    cdef int grow(self, size_t more) except -1:
        cdef size_t room = max(2 * self.room, self.size + more, <size_t>LEAST_ROOM)
        cdef uint8_t* data = <uint8_t*>realloc(self.data, room)
        if data == NULL:
            raise MemoryError()
        self.data, self.room = data, room
        return 0


cdef inline int write_byte(EncodedBytes out, int value) except -1:
    out.reserve(1)[0] = <uint8_t>value
    out.size += 1
    return 0


cdef inline int write_number(EncodedBytes out, uint64_t value) except -1:
    cdef uint8_t* start = out.reserve(LONGEST_VARINT)
    out.size += write_varint(start, value) - start
    return 0


cdef inline int write_zigzag(EncodedBytes out, int64_t value) except -1:
    return write_number(out, (<uint64_t>value << 1) ^ <uint64_t>(value >> 63))


cdef int write_bytes(EncodedBytes out, data) except -1:
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        memcpy(out.reserve(<size_t>view.len), view.buf, <size_t>view.len)
        out.size += <size_t>view.len
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int write_field(EncodedBytes out, int64_t id, int64_t last, int wire) except -1:
    if 0 < id - last < 16:
        return write_byte(out, <int>(id - last) << 4 | wire)
    write_byte(out, wire)
    return write_zigzag(out, id)


cdef int write_unknown(EncodedBytes out, tuple field, int64_t last) except -1:
    """Write a field that the declaration does not know, in its encoded form."""
    id, wire, data = field
    write_field(out, id, last, wire)
    return write_bytes(out, data)


cdef int write_struct(EncodedBytes out, value) except -1:
    cdef StructTable table = table_of(type(value))
    cdef tuple unknown = tuple(taken(value, table.unknown))
    cdef Py_ssize_t known = 0, passed = 0       # fields written
    cdef int64_t last = 0
    cdef Slot slot
    if unknown:
        unknown = tuple(sorted(unknown, key=itemgetter(0)))
    for slot in table.ordered:
        item = taken(value, slot.place)
        if item is None:
            if table.required >> slot.id & 1:
                raise ValueError(f"{table.cls.__name__} has no {slot.name}")
            continue
        while passed < len(unknown) and unknown[passed][0] < slot.id:
            write_unknown(out, unknown[passed], last)
            last = unknown[passed][0]
            passed += 1
        write_field(out, slot.id, last, FALSE if slot.kind == KIND_BOOL and not item else slot.wire)
        if slot.kind != KIND_BOOL:
            write_value(out, slot, item)
        last = slot.id
        known += 1
    for field in unknown[passed:]:
        write_unknown(out, field, last)
        last = field[0]
    if table.union and known + len(unknown) != 1:
        raise ValueError(f"{known + len(unknown)} members in a {table.cls.__name__}")
    return write_byte(out, STOP)


cdef int write_value(EncodedBytes out, Slot slot, value) except -1:
    cdef int overflow = 0
    cdef int64_t number
    cdef double real
    if slot.kind == KIND_BOOL:
        return write_byte(out, TRUE if value else FALSE)
    if slot.kind == STRUCT:
        return write_struct(out, value)
    if slot.kind == LIST:
        return write_list(out, slot.element, value)
    if slot.kind == KIND_STRING:
        value = (<str?>value).encode(errors="surrogateescape")
    if slot.wire == BINARY:
        write_number(out, <uint64_t>len(value))
        return write_bytes(out, value)
    if slot.kind == DOUBLE:
        real = value
        memcpy(out.reserve(sizeof(real)), &real, sizeof(real))
        out.size += sizeof(real)
        return 0
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or not -LARGEST[slot.wire] - 1 <= number <= LARGEST[slot.wire]:
        raise ValueError(f"{value} does not fit {(LARGEST[slot.wire] + 1).bit_length()} bits")
    return write_byte(out, <int>number) if slot.kind == I8 else write_zigzag(out, number)


cdef int write_list(EncodedBytes out, Slot element, values) except -1:
    cdef Py_ssize_t count = len(values)
    if count < 15:
        write_byte(out, <int>count << 4 | element.wire)
    else:
        write_byte(out, 0xF0 | element.wire)
        write_number(out, <uint64_t>count)
    for value in values:
        write_value(out, element, value)
    return 0
