"""StructList: where each struct in a Thrift list begins. The structs are skipped, not decoded.

With these offsets, a footer's row groups and column chunks can be decoded on first use.
"""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from fastpq.format.cursor cimport (
    Cursor, I16, I32, I64, LIST, STOP, STRUCT, broken, skip_struct, skip_value, take_field, take_list, take_zigzag,
)

from fastpq.errors import FormatError

MISSING = -(1 << 63)        # stands for an integer field that a struct does not have

cdef int64_t NONE = MISSING


cdef class StructList:
    """Byte offsets of the structs in a list. Offsets count from the start of the bytes that were scanned.

    Each struct may have an inner list of structs. The StructList can have the offsets of these structs too. It can also have the
    values of a few integer fields, which are called noted fields.

    Attributes:
        offsets: where each struct in the list begins, int64.
    """

    def inner(self, Py_ssize_t index):
        """Return where the structs in the inner list of struct `index` begin.

        Returns:
            (int64 offsets of the inner structs, offset where the inner list ends). None if scan_structs did not look for inner
            lists, if the inner list is not the struct's first field, or if the struct has it twice.
        """
        if not self.has_inner(index):
            return None
        return np.asarray(self._inner[self._ends[index]:self._ends[index + 1]]), self._behind[index]

    def inner_count(self, Py_ssize_t index):
        """Return how many structs the inner list of struct `index` has. None where ``inner`` returns None."""
        return self._ends[index + 1] - self._ends[index] if self.has_inner(index) else None

    def inner_place(self, Py_ssize_t index, Py_ssize_t inner):
        """Return where struct `inner` in the inner list of struct `index` begins.

        None if there is no such struct, or where the method ``inner`` returns None.
        """
        cdef int64_t offset = self.place(index, inner)
        return None if offset < 0 else offset

    cdef bint has_inner(self, int64_t index) noexcept:
        return self._behind is not None and 0 <= index < self._behind.shape[0] and self._behind[index] >= 0

    cdef int64_t place(self, int64_t index, int64_t inner) noexcept:
        if not self.has_inner(index) or not 0 <= inner < self._ends[index + 1] - self._ends[index]:
            return -1
        return self._inner[self._ends[index] + inner]

    def number(self, Py_ssize_t index, int field):
        """Return the integer in one noted field of struct `index`. None if ``noted`` has MISSING for this struct."""
        cdef int place
        for place in range(self._noted.shape[0]):
            if self._fields[place] == field and 0 <= index < self._noted.shape[1] and self._noted[place, index] != NONE:
                return self._noted[place, index]
        return None

    def noted(self, int field):
        """Return the integers that one noted field has in all structs.

        Args:
            field: field id.

        Returns:
            A list with a number for each struct. MISSING for a struct without the field, and where ``inner`` returns None.

        Raises:
            ValueError: scan_structs was not asked to note the field.
        """
        cdef int place
        cdef Py_ssize_t index
        for place in range(self._noted.shape[0]):
            if self._fields[place] == field:
                return [self._noted[place, index] for index in range(self._noted.shape[1])]
        raise ValueError(f"field {field} is not noted")


cdef StructList scan_structs(Cursor* cursor, int inner, dict noted, str what):
    """Skip a list of structs, and return where each struct begins.

    Args:
        cursor: stands at the list's header.
        inner: field id of the inner list of structs, whose offsets are wanted too. Only an inner list that is the first field of
            its struct is looked into. 0 for no inner list.
        noted: at most four integer fields whose values are wanted, as a dict from field id to wire type. They are ignored if
            ``inner`` is 0.
        what: the list's name in errors.

    Raises:
        FormatError: the bytes end inside the list, or the value is not a list of structs.
    """
    cdef int place
    cdef int64_t[:, ::1] numbers
    cdef StructList structs = StructList.__new__(StructList)
    cdef int64_t count = open_list(cursor, what), i
    cdef int64_t[::1] offsets = np.empty(count, np.int64)
    structs.offsets = np.asarray(offsets)
    if inner:
        structs._ends = np.zeros(count + 1, np.int64)
        structs._inner = np.empty(count, np.int64)
        numbers = np.full((1 + len(noted), count), NONE, np.int64)
        structs._behind, structs._noted = numbers[0], numbers[1:]
        for place, (id, wire) in enumerate(noted.items()):
            structs._fields[place], structs._wires[place] = id, wire
    for i in range(count):
        offsets[i] = cursor.pos - cursor.start
        if inner:
            scan_inner(cursor, inner, what, structs, i)
        elif skip_struct(cursor, 1) < 0:
            break
    raise_failed(cursor, what)
    return structs


cdef int64_t open_list(Cursor* cursor, str what) except -1:
    """Read a Thrift list's header, and return how many structs the list has. Refuse a list of anything else."""
    cdef int wire = 0
    cdef int64_t count = take_list(cursor, &wire)
    raise_failed(cursor, what)
    if count and wire != STRUCT:
        raise FormatError(f"{what} is not a list of structs", offset=cursor.pos - cursor.start)
    return count


cdef int scan_inner(Cursor* cursor, int inner, str what, StructList structs, int64_t index) except -1:
    """Skip struct `index`, and add the offsets in its inner list, and its noted fields, to the StructList.

    Nothing is added if the inner list is not the struct's first field, or if the struct has it twice.
    """
    cdef const uint8_t* start = cursor.pos
    cdef int64_t id = 0, first = structs._ends[index], count, i, behind, number
    cdef int64_t[::1] places
    cdef int wire = take_field(cursor, &id), place
    cdef bint is_repeated = False
    structs._ends[index + 1] = first
    if cursor.failed or id != inner or wire != LIST:
        cursor.pos = start
        skip_struct(cursor, 1)
        raise_failed(cursor, what)
        return 0
    count = open_list(cursor, what)
    if count > structs._inner.shape[0] - first:
        structs._inner = np.concatenate([structs._inner[:first], np.empty(first + count, np.int64)])
    places = structs._inner[first:]
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
            is_repeated = is_repeated or id == inner
            if wire == I16 or wire == I32 or wire == I64:
                number = take_zigzag(cursor)
                for place in range(structs._noted.shape[0]):
                    if structs._fields[place] == id and structs._wires[place] == wire:
                        structs._noted[place, index] = number
            else:
                skip_value(cursor, wire, 1, False)
    raise_failed(cursor, what)
    if is_repeated:
        for place in range(structs._noted.shape[0]):
            structs._noted[place, index] = NONE
    else:
        structs._behind[index], structs._ends[index + 1] = behind, first + count
    return 0


cdef int raise_failed(Cursor* cursor, str what) except -1:
    if cursor.failed:
        raise broken(cursor, what)
    return 0
