"""Byte offsets of the structs in a Thrift list, found without decoding the structs.

Footers are decoded lazily with these offsets: a row group or column chunk is decoded on first use.
"""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from fastpq.format.cursor cimport (
    Cursor, I16, I32, I64, LIST, STOP, STRUCT, skip_struct, skip_value, take_field, take_list, take_zigzag,
)

from fastpq.errors import FormatError

MISSING = -(1 << 63)        # the number noted of a struct without the field

cdef int64_t NONE = MISSING


cdef class StructList:
    """Byte offsets of the structs in a list, and of the structs in an inner list of each struct.

    Attributes:
        offsets: int64, first byte of each struct of the list.
    """

    def inner(self, Py_ssize_t index):
        """Offsets of the inner list of struct `index`.

        Returns:
            (int64 offsets of the inner list's structs, offset of the field behind the inner list). None where inner lists were
            not indexed, or the struct does not begin with its inner list.
        """
        if self._behind is None or not 0 <= index < self._behind.shape[0] or self._behind[index] < 0:
            return None
        return np.asarray(self._inner[self._ends[index]:self._ends[index + 1]]), self._behind[index]

    def inner_count(self, Py_ssize_t index):
        """Number of structs in the inner list of struct `index`; None where ``inner`` gives None."""
        if self._behind is None or not 0 <= index < self._behind.shape[0] or self._behind[index] < 0:
            return None
        return self._ends[index + 1] - self._ends[index]

    def inner_place(self, Py_ssize_t index, Py_ssize_t place):
        """Offset of one struct in the inner list of struct `index`; None where ``inner`` gives None, or has no such struct."""
        cdef int64_t found = self.place(index, place)
        return None if found < 0 else found

    cdef int64_t place(self, int64_t index, int64_t place) noexcept:
        if self._behind is None or not 0 <= index < self._behind.shape[0] or self._behind[index] < 0:
            return -1
        if not 0 <= place < self._ends[index + 1] - self._ends[index]:
            return -1
        return self._inner[self._ends[index] + place]

    def number(self, Py_ssize_t index, int field):
        """The integer in a noted field of struct `index`; None where ``noted`` has MISSING. scan_structs notes the fields."""
        cdef int place
        for place in range(self._noted.shape[0]):
            if self._fields[place] == field and 0 <= index < self._noted.shape[1] and self._noted[place, index] != NONE:
                return self._noted[place, index]
        return None

    def noted(self, int field):
        """Integers in one field of all structs, noted by scan_structs while the list was skipped.

        Args:
            field: id of the field.

        Returns:
            Shape (structs,), int64. MISSING for a struct without the field, and for a struct that does not begin with its inner
            list.
        """
        cdef int place
        for place in range(self._noted.shape[0]):
            if self._fields[place] == field:
                return np.asarray(self._noted[place])
        raise ValueError(f"field {field} is not noted")


cdef StructList scan_structs(Cursor* cursor, int inner, dict noted, str what):
    """Skip a list of structs; returns the offsets of its structs.

    Args:
        cursor: at the list's header.
        inner: field id of an inner list of structs, indexed as well where it is a struct's first field; 0 for none.
        noted: with an inner list, wire types of at most four fields of whole numbers to note, by field id.
        what: name of the list in errors.

    Raises:
        FormatError: the bytes end inside the list, or the value is no list of structs.
    """
    cdef int place
    cdef int64_t[:, ::1] numbers
    cdef StructList found = StructList.__new__(StructList)
    cdef int64_t count = open_list(cursor, what), i
    cdef int64_t[::1] offsets = np.empty(count, np.int64)
    found.offsets = np.asarray(offsets)
    if inner:
        found._ends = np.zeros(count + 1, np.int64)
        found._inner = np.empty(count, np.int64)
        numbers = np.full((1 + len(noted), count), NONE, np.int64)
        found._behind, found._noted = numbers[0], numbers[1:]
        for place, (id, wire) in enumerate(noted.items()):
            found._fields[place], found._wires[place] = id, wire
    for i in range(count):
        offsets[i] = cursor.pos - cursor.start
        if inner:
            scan_inner(cursor, inner, what, found, i)
        elif skip_struct(cursor, 1) < 0:
            break
    raise_failed(cursor, what)
    return found


cdef int64_t open_list(Cursor* cursor, str what) except -1:
    """Read the header of a list of structs; returns the number of structs."""
    cdef int wire = 0
    cdef int64_t count = take_list(cursor, &wire)
    raise_failed(cursor, what)
    if count and wire != STRUCT:
        raise FormatError(f"{what} is no list of structs", offset=cursor.pos - cursor.start)
    return count


cdef int scan_inner(Cursor* cursor, int inner, str what, StructList found, int64_t index) except -1:
    """Skip struct number index of the list; add the offsets of its inner list to found.

    No offsets are added where the inner list is not the struct's first field, or occurs twice.
    """
    cdef const uint8_t* start = cursor.pos
    cdef int64_t id = 0, first = found._ends[index], count, i, behind, number
    cdef int64_t[::1] places
    cdef int wire = take_field(cursor, &id), place
    cdef bint again = False
    found._ends[index + 1] = first
    if cursor.failed or id != inner or wire != LIST:
        cursor.pos = start
        skip_struct(cursor, 1)
        raise_failed(cursor, what)
        return 0
    count = open_list(cursor, what)
    if count > found._inner.shape[0] - first:
        found._inner = np.concatenate([found._inner[:first], np.empty(first + count, np.int64)])
    places = found._inner[first:]
    with nogil:
        for i in range(count):
            places[i] = cursor.pos - cursor.start
            if skip_struct(cursor, 2) < 0:
                break
        behind = cursor.pos - cursor.start
        while not cursor.failed:
            wire = take_field(cursor, &id)
            if wire == STOP:
                break
            again = again or id == inner
            if wire == I16 or wire == I32 or wire == I64:
                number = take_zigzag(cursor)
                for place in range(found._noted.shape[0]):
                    if found._fields[place] == id and found._wires[place] == wire:
                        found._noted[place, index] = number
            else:
                skip_value(cursor, wire, 1, False)
    raise_failed(cursor, what)
    if again:
        for place in range(found._noted.shape[0]):
            found._noted[place, index] = NONE
    else:
        found._behind[index], found._ends[index + 1] = behind, first + count
    return 0


cdef int raise_failed(Cursor* cursor, str what) except -1:
    if cursor.failed:
        ended = "ends early" if cursor.pos == cursor.end else "is no valid Thrift"
        raise FormatError(f"{what} {ended}", offset=cursor.pos - cursor.start)
    return 0
