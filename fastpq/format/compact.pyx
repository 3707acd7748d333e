"""Decoder and encoder for the Thrift compact protocol. They work for all structs that fastpq.format.parquet declares."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from operator import itemgetter

from fastpq.format.cursor cimport (
    BINARY, Cursor, DEEPEST, DOUBLE, FALSE, I16, I32, I64, I8, LIST, SET, STOP, STRUCT, TRUE, broken, cursor_over, skip_value,
    take_byte, take_bytes, take_field, take_list, take_zigzag,
)

from fastpq.format.list_offsets cimport scan_structs
from fastpq.format.slots cimport new_filled, put, untrack, value_at
from fastpq.format.varint cimport write_varint

from fastpq.errors import FormatError
from fastpq.format.slots import place_of
from fastpq.format.struct import FieldType, Union, WireKind

SPAN = -1       # given in place of an inner list's id. It means that the list is only skipped

cdef enum:                  # WireKind members in struct.py that do not stand for one wire type
    KIND_BOOL = 1
    KIND_STRING = 20
    KIND_ENUM = 21

cdef enum:
    LEAST_ROOM = 512        # bytes in an encoded struct's first memory block
    LONGEST_VARINT = 10     # bytes

cdef int64_t[7] LARGEST = [0, 0, 0, 0x7F, 0x7FFF, 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF]       # by wire type


def decode(cls, const uint8_t[::1] data, Py_ssize_t offset=0):
    """Decode one struct.

    Args:
        cls: the struct's class in fastpq.format.
        data: a buffer. Bytes after the struct are not read.
        offset: where the struct begins in the data.

    Returns:
        (the struct, its size in bytes).

    Raises:
        FormatError: the data end inside the struct, are not valid in the compact protocol, or lack a required field.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    value = read_struct(&cursor, table_of(cls), 0, None, None, 0, None)
    return value, cursor.pos - cursor.start - offset


def decode_list(cls, const uint8_t[::1] data, Py_ssize_t offset):
    """Decode a list of structs.

    Args:
        cls: the structs' class in fastpq.format.
        data: a buffer.
        offset: where the list begins in the data.

    Raises:
        FormatError: as in decode.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    values = read_list(&cursor, Slot("", FieldType(WireKind.STRUCT, cls)), 0)
    if cursor.failed:
        raise broken(&cursor, f"a list of {cls.__name__}")
    return values


def decode_partly(cls, const uint8_t[::1] data, Py_ssize_t offset, lazy):
    """Decode one struct, but skip the fields whose ids are in `lazy`. They are None in the struct.

    The other arguments and the errors are the same as in decode.

    Returns:
        (the struct, a dict, the struct's size in bytes). The dict maps each skipped field's id to its value's offset.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    cdef dict skipped_fields = dict.fromkeys(lazy)
    value = read_struct(&cursor, table_of(cls), 0, skipped_fields, None, 0, None)
    return value, {id: where for id, where in skipped_fields.items() if where is not None}, cursor.pos - cursor.start - offset


def decode_listed(cls, const uint8_t[::1] data, Py_ssize_t offset, dict listed not None, int64_t behind=0, dict noted=None):
    """Decode one struct, but index some lists in it instead of decoding them. The lists' elements are structs.

    Args:
        cls, data, offset: as in decode.
        listed: the lists to index. A dict from a list's field id to the field id of its inner list. The inner list is a list in
            each of the list's structs. It is indexed too if a struct begins with it. 0 means that there is no inner list. SPAN
            means that the list is only skipped.
        behind: 0, or the id of the field that ends at the offset. Then only the fields after it are decoded.
        noted: at most four integer fields whose values the StructList keeps, if there is an inner list. A dict from field id to
            wire type.

    Returns:
        (the struct, a dict by field id). The dict has a StructList for each indexed list. For each skipped list it has two
        offsets: where the list begins, and where it ends.

    Raises:
        FormatError: as in decode.
    """
    cdef Cursor cursor = cursor_over(data, offset)
    cdef dict skipped_fields = dict.fromkeys(listed)
    value = read_struct(&cursor, table_of(cls), 0, skipped_fields, listed, behind, noted)
    return value, {id: where for id, where in skipped_fields.items() if where is not None}


cdef inline int wire_of(int kind) noexcept:
    """Return a WireKind's wire type. TRUE for booleans."""
    return I32 if kind == KIND_ENUM else BINARY if kind == KIND_STRING else kind


cdef class Slot:
    """A field or list element, prepared from its FieldType for fast decoding and encoding."""

    cdef int64_t id         # field id. 0 for a list element
    cdef str name           # field name. Empty for a list element
    cdef Py_ssize_t place   # the field's place in its struct
    cdef int kind           # a WireKind
    cdef int wire           # the kind's wire type
    cdef object argument    # the class for a struct, the members by value for an enum
    cdef Slot element       # a list's element type
    cdef StructTable table        # a struct's table, made when the first value is decoded

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
    """A struct class's fields, prepared for fast decoding and encoding."""

    cdef object cls
    cdef tuple places           # all fields' places in memory
    cdef Py_ssize_t unknown_fields     # the place of `unknown_fields`
    cdef bint union
    cdef list ordered           # Slots by ascending field id
    cdef list slots             # a Slot or None for each field id
    cdef uint64_t required      # bit i is set if the field with id i is required

    def __cinit__(self, cls):
        self.cls = cls
        self.places = tuple(cls.PLACES.values())
        self.unknown_fields = place_of(cls.unknown_fields)
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
    table = TABLES.get(cls)
    if table is None:
        table = TABLES.setdefault(cls, StructTable(cls))    # keeps one table per class: a Slot in another thread may hold it
    return table


cdef object read_struct(Cursor* cursor, StructTable table, int depth, dict skipped_fields, dict listed, int64_t behind,
                        dict noted):
    """Decode a struct's fields up to its stop byte. If `behind` is not 0, the cursor is at the end of the field with this id.

    Fields whose ids are in `skipped_fields` are skipped. Without `listed`, skipped_fields[id] becomes the value's offset. With
    `listed`, it becomes a StructList, or for SPAN the offsets where the value begins and ends.
    """
    cdef int64_t id = behind
    cdef int wire
    cdef uint64_t seen_ids = <uint64_t>(behind > 0) << behind
    cdef uint64_t decoded_ids = 0       # fields with a value
    cdef object value = new_filled(table.cls, table.places)
    cdef list unknown_fields = None
    cdef const uint8_t* start
    cdef Slot slot
    put(value, table.unknown_fields, ())
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
            slot = None             # Thrift's rule: a field with another wire type is from another version and counts as unknown
        if slot is None or skipped_fields is not None and id in skipped_fields:
            start = cursor.pos
            if slot is not None and listed is not None and listed[id] != SPAN:
                skipped_fields[id] = scan_structs(cursor, listed[id], noted or {}, f"{table.cls.__name__}.{slot.name}")
                seen_ids |= <uint64_t>1 << id
                continue
            with nogil:
                skip_value(cursor, wire, depth, False)
            if cursor.failed:
                raise broken(cursor, f"field {id} of {table.cls.__name__}")
            if slot is not None:
                skipped_fields[id] = start - cursor.start
                if listed is not None:
                    skipped_fields[id] = (start - cursor.start, cursor.pos - cursor.start)
                seen_ids |= <uint64_t>1 << id
                continue
            if unknown_fields is None:
                unknown_fields = []
            unknown_fields.append((id, wire, PyBytes_FromStringAndSize(<const char*>start, cursor.pos - start)))
            continue
        put(value, slot.place, read_value(cursor, wire, slot, depth, False))
        seen_ids |= <uint64_t>1 << id
        decoded_ids |= <uint64_t>1 << id
        if cursor.failed:
            raise broken(cursor, f"{table.cls.__name__}.{slot.name}")
    if unknown_fields is not None:
        put(value, table.unknown_fields, tuple(unknown_fields))
    if table.required & ~seen_ids:
        for name, field in table.cls.ORDERED:
            if field.required and not seen_ids >> <int>field.id & 1:
                raise FormatError(f"{table.cls.__name__} has no {name}", offset=cursor.pos - cursor.start)
    if table.union:
        members = decoded_ids.bit_count() + (unknown_fields is not None)
        if members != 1:
            raise FormatError(f"{members} members in a {table.cls.__name__}", offset=cursor.pos - cursor.start)
    return value


cdef object read_value(Cursor* cursor, int wire, Slot slot, int depth, bint in_list):
    """Decode one value whose wire type matches its slot. Broken bytes set cursor.failed, and the caller raises the error."""
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
        return PyUnicode_DecodeUTF8(<const char*>start, size, "surrogateescape")    # keeps bytes that are not valid UTF-8
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
        raise FormatError(f"a list has wire type {wire}", offset=cursor.pos - cursor.start)
    for _i in range(count):
        values.append(read_value(cursor, wire, element, depth, True))
        if cursor.failed:
            break
    return values


def encode(value):
    """Encode a struct in the compact protocol. Fields are written by ascending id, with the shortest headers and varints.

    Raises:
        ValueError: a required field is missing, a number does not fit its field, or a union does not have exactly one member.
    """
    cdef EncodedBytes out = EncodedBytes()
    write_struct(out, value)
    return PyBytes_FromStringAndSize(<const char*>out.data, <Py_ssize_t>out.size)


cdef class EncodedStruct:
    """A struct that encodes itself. It may stand in a list of structs. This base class is a struct without fields."""

    cdef bytes encoded(self):
        return b"\0"


cdef class EncodedBytes:
    """An encoded struct in memory that grows."""

    cdef uint8_t* data
    cdef size_t size
    cdef size_t room        # bytes of memory at data

    def __dealloc__(self):
        free(self.data)

    cdef inline uint8_t* reserve(self, size_t more) except NULL:
        """Return where the bytes end, with memory for `more` bytes after them. The caller adds what it writes to `size`."""
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
    """Write a field that is not declared, in its encoded form."""
    id, wire, data = field
    write_field(out, id, last, wire)
    return write_bytes(out, data)


cdef int write_struct(EncodedBytes out, value) except -1:
    if isinstance(value, EncodedStruct):
        return write_bytes(out, (<EncodedStruct>value).encoded())
    return write_fields(out, value)


cdef int write_fields(EncodedBytes out, value) except -1:
    cdef StructTable table = table_of(type(value))
    cdef tuple unknown_fields = tuple(value_at(value, table.unknown_fields))
    cdef Py_ssize_t declared_count = 0, unknown_count = 0       # written fields
    cdef int64_t last = 0
    cdef Slot slot
    if unknown_fields:
        unknown_fields = tuple(sorted(unknown_fields, key=itemgetter(0)))
    for slot in table.ordered:
        item = value_at(value, slot.place)
        if item is None:
            if table.required >> slot.id & 1:
                raise ValueError(f"{table.cls.__name__} has no {slot.name}")
            continue
        while unknown_count < len(unknown_fields) and unknown_fields[unknown_count][0] < slot.id:
            write_unknown(out, unknown_fields[unknown_count], last)
            last = unknown_fields[unknown_count][0]
            unknown_count += 1
        write_field(out, slot.id, last, FALSE if slot.kind == KIND_BOOL and not item else slot.wire)
        if slot.kind != KIND_BOOL:
            write_value(out, slot, item)
        last = slot.id
        declared_count += 1
    for field in unknown_fields[unknown_count:]:
        write_unknown(out, field, last)
        last = field[0]
    if table.union and declared_count + len(unknown_fields) != 1:
        raise ValueError(f"{declared_count + len(unknown_fields)} members in a {table.cls.__name__}")
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
