"""Reading FlatBuffers, as far as Arrow's schemas use these: scalars, strings, tables and vectors of tables.

Layout (https://flatbuffers.dev/internals): a table begins with the distance back to its vtable. The vtable holds, for each slot,
the slot's offset in the table, or 0. A reference is the distance forward to its target. The reader checks every offset before
use.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from fastpq.errors import FormatError

# Most bytes of strings and vectors read from a buffer, as a multiple of the buffer's bytes. Strings and vectors may be shared
# and overlap, so that a small buffer could otherwise expand without bound.
cdef int64_t MOST_SHARING = 8


cdef class _Buffer:
    cdef bytes data
    cdef const uint8_t* start
    cdef int64_t size
    cdef int64_t left           # bytes of strings and vectors still to be read at most

    def __cinit__(self, bytes data not None):
        self.data = data
        self.start = <const uint8_t*> PyBytes_AS_STRING(data)
        self.size = PyBytes_GET_SIZE(data)
        self.left = MOST_SHARING * self.size

    cdef const uint8_t* at(self, int64_t place, int64_t width) except NULL:
        if place < 0 or place > self.size - width:
            raise FormatError(f"offset {place} is outside a flatbuffer of {self.size} bytes")
        return self.start + place

    cdef int64_t unsigned32(self, int64_t place) except -1:
        cdef uint32_t value
        memcpy(&value, self.at(place, 4), 4)
        return value

    cdef int64_t unsigned16(self, int64_t place) except -1:
        cdef uint16_t value
        memcpy(&value, self.at(place, 2), 2)
        return value

    cdef int spend(self, int64_t size) except -1:
        self.left -= size
        if self.left < 0:
            raise FormatError(f"strings and vectors of more than {MOST_SHARING} times the bytes of their flatbuffer")
        return 0


cdef class TableReader:
    """A table in a buffer.

    Raises:
        FormatError: the table or a value lies outside the buffer, or too many bytes were read; raised by all methods.
    """

    cdef _Buffer _buffer
    cdef int64_t _position, _vtable, _vtable_size

    @staticmethod
    def root(bytes data not None):
        """The root table of a buffer."""
        cdef _Buffer buffer = _Buffer(data)
        return _table(buffer, buffer.unsigned32(0))

    def anew(self):
        """The same table for another caller, with all bytes of strings and vectors still to be read."""
        return _table(_Buffer(self._buffer.data), self._position)

    def scalar(self, int slot, str code, int64_t default=0):
        """The number in a slot; ``code`` is struct's letter for its type: B, h, i or q."""
        cdef int64_t place = self._place(slot), wide
        cdef int16_t small
        cdef int32_t middle
        if place < 0:
            return default
        if code == "B":
            return self._buffer.at(place, 1)[0]
        if code == "h":
            memcpy(&small, self._buffer.at(place, 2), 2)
            return small
        if code == "i":
            memcpy(&middle, self._buffer.at(place, 4), 4)
            return middle
        if code == "q":
            memcpy(&wide, self._buffer.at(place, 8), 8)
            return wide
        raise ValueError(f"no scalar of type {code!r}")

    def text(self, int slot):
        """The bytes of the string in a slot; None for an empty slot."""
        cdef int64_t place = self._target(slot), size
        if place < 0:
            return None
        size = self._buffer.unsigned32(place)
        if size > self._buffer.size - place - 4:
            raise FormatError(f"a string of {size} bytes ends outside its flatbuffer")
        self._buffer.spend(size)
        return PyBytes_FromStringAndSize(<const char*> self._buffer.start + place + 4, size)

    def table(self, int slot):
        """The table in a slot; None for an empty slot."""
        cdef int64_t place = self._target(slot)
        return None if place < 0 else _table(self._buffer, place)

    cpdef int64_t count(self, int slot) except -1:
        """Number of tables in the vector in a slot; 0 for an empty slot."""
        cdef int64_t place = self._target(slot), count
        if place < 0:
            return 0
        count = self._buffer.unsigned32(place)
        if count > (self._buffer.size - place - 4) // 4:
            raise FormatError(f"a vector of {count} tables ends outside its flatbuffer")
        return count

    cpdef TableReader item(self, int slot, int64_t index):
        """A table of the vector in a slot; ``index`` is below its count."""
        if not 0 <= index < self.count(slot):
            raise IndexError(f"table {index} of a vector of {self.count(slot)}")
        cdef int64_t at = self._target(slot) + 4 + 4 * index
        self._buffer.spend(4)
        return _table(self._buffer, at + self._buffer.unsigned32(at))

    def items(self, int slot):
        """The tables of the vector in a slot, one after the other."""
        cdef int64_t index
        for index in range(self.count(slot)):
            yield self.item(slot, index)

    cdef int64_t _place(self, int slot) except -2:
        """Place of a slot's value; -1 for an empty slot."""
        cdef int64_t entry = 4 + 2 * slot, offset
        if slot < 0 or entry + 2 > self._vtable_size:
            return -1
        offset = self._buffer.unsigned16(self._vtable + entry)
        return self._position + offset if offset else -1

    cdef int64_t _target(self, int slot) except -2:
        """Place of the target of the reference in a slot; -1 for an empty slot."""
        cdef int64_t place = self._place(slot)
        return place if place < 0 else place + self._buffer.unsigned32(place)


cdef TableReader _table(_Buffer buffer, int64_t position):
    cdef TableReader found = TableReader.__new__(TableReader)
    cdef int32_t back
    memcpy(&back, buffer.at(position, 4), 4)
    found._buffer = buffer
    found._position = position
    found._vtable = position - back
    found._vtable_size = buffer.unsigned16(found._vtable)
    return found
