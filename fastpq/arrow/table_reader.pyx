"""FlatBuffers reader for the parts that Arrow's schemas use: scalars, strings, tables and table vectors.

Layout (https://flatbuffers.dev/internals): a table begins with the distance back to its vtable. For each slot, the vtable has
the slot's offset in the table, or 0. A reference is the distance forward to its target. The reader checks every offset before
it uses it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from fastpq.errors import FormatError

# Limit on the bytes in strings and vectors that are read from a buffer, as a multiple of its size. Strings and vectors may
# overlap or be shared, so that without a limit a small buffer could become very large.
cdef int64_t MOST_SHARING = 8


cdef class _Buffer:
    def __cinit__(self, bytes data not None):
        self.data = data
        self.start = <const uint8_t*> PyBytes_AS_STRING(data)
        self.size = PyBytes_GET_SIZE(data)
        self.budget = MOST_SHARING * self.size

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
        self.budget -= size
        if self.budget < 0:
            raise FormatError(f"a flatbuffer has strings and vectors of more than {MOST_SHARING} times its size")
        return 0


cdef class TableReader:
    """A table in a FlatBuffer.

    Raises:
        FormatError: the table or a value is outside the buffer, or too many bytes were read. All methods may raise it.
    """

    @staticmethod
    def root(bytes data not None):
        """Return a buffer's root table."""
        cdef _Buffer buffer = _Buffer(data)
        return _table(buffer, buffer.unsigned32(0))

    def anew(self):
        """Return the same table with a new byte budget, for another caller."""
        return _table(_Buffer(self._buffer.data), self._position)

    def scalar(self, int slot, str code, int64_t default=0):
        """Return the number in a slot. ``code`` is the letter that the module struct gives its type: B, h, i or q."""
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
        raise ValueError(f"{code!r} is not a type of scalars")

    def text(self, int slot):
        """Return the string in a slot as bytes, or None if the slot is empty."""
        cdef int64_t place = self._target(slot), size
        if place < 0:
            return None
        size = self._buffer.unsigned32(place)
        if size > self._buffer.size - place - 4:
            raise FormatError(f"a string of {size} bytes ends outside its flatbuffer")
        self._buffer.spend(size)
        return PyBytes_FromStringAndSize(<const char*> self._buffer.start + place + 4, size)

    def table(self, int slot):
        """Return the table in a slot, or None if the slot is empty."""
        cdef int64_t place = self._target(slot)
        return None if place < 0 else _table(self._buffer, place)

    cpdef int64_t count(self, int slot) except -1:
        """Return the table count of a slot's vector, or 0 if the slot is empty."""
        cdef int64_t place = self._target(slot), count
        if place < 0:
            return 0
        count = self._buffer.unsigned32(place)
        if count > (self._buffer.size - place - 4) // 4:
            raise FormatError(f"a flatbuffer vector of {count} tables ends outside of the buffer")
        return count

    cpdef TableReader item(self, int slot, int64_t index):
        """Return a table from a slot's vector. ``index`` must be less than its table count."""
        if not 0 <= index < self.count(slot):
            raise IndexError(f"table {index} of a vector of {self.count(slot)} tables")
        cdef int64_t at = self._target(slot) + 4 + 4 * index
        self._buffer.spend(4)
        return _table(self._buffer, at + self._buffer.unsigned32(at))

    def items(self, int slot):
        """Yield the tables in a slot's vector."""
        cdef int64_t index
        for index in range(self.count(slot)):
            yield self.item(slot, index)

    cdef int64_t _place(self, int slot) except -2:
        """Return the buffer offset where a slot's value is, or -1 if the slot is empty."""
        cdef int64_t entry = 4 + 2 * slot, offset
        if slot < 0 or entry + 2 > self._vtable_size:
            return -1
        offset = self._buffer.unsigned16(self._vtable + entry)
        return self._position + offset if offset else -1

    cdef int64_t _target(self, int slot) except -2:
        """Return the buffer offset that a slot's reference points to, or -1 if the slot is empty."""
        cdef int64_t place = self._place(slot)
        return place if place < 0 else place + self._buffer.unsigned32(place)


cdef TableReader _table(_Buffer buffer, int64_t position):
    cdef TableReader table = TableReader.__new__(TableReader)
    cdef int32_t back
    memcpy(&back, buffer.at(position, 4), 4)
    table._buffer = buffer
    table._position = position
    table._vtable = position - back
    table._vtable_size = buffer.unsigned16(table._vtable)
    return table
