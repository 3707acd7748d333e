"""Nested columns -> levels (README.md, "Nested Encoding"): the entries of one leaf, made layer by layer from the root down.

Every row begins as one entry. A list replaces the entry of a slot by one entry for each element; the first of these entries keeps
the repetition level of the slot. The entry of an empty list, and of a null, ends with the definition level reached so far.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

import numpy as np

from fastpq.arrays.memory cimport GrowingBuffer

from fastpq.errors import LimitError, SchemaError

cdef fused Offset:
    int32_t
    int64_t


cdef inline bint is_valid(const uint8_t* bits, int64_t slot) noexcept nogil:
    return bits == NULL or bits[slot >> 3] >> (slot & 7) & 1


cdef class Levels:
    """Levels of the rows [start, stop); the caller enters the layers above a leaf, the outermost first.

    Arrays are not checked: columns have checked ascending offsets within the elements, and the lengths of bitmaps.
    """

    def __cinit__(self, int64_t start, int64_t stop):
        cdef int64_t i
        cdef int64_t* slots
        self.rows = self.entries = stop - start
        self.definition = GrowingBuffer()
        self.repetition = GrowingBuffer()
        self.slots = GrowingBuffer()
        memset(self.definition.room(<size_t>self.rows + 1), 0, <size_t>self.rows)
        memset(self.repetition.room(<size_t>self.rows + 1), 0, <size_t>self.rows)
        slots = <int64_t*>self.slots.room(<size_t>(self.rows + 1) * sizeof(int64_t))
        for i in range(self.rows):
            slots[i] = start + i

    def enter_value(self, const uint8_t[::1] validity, bint nullable):
        """Enter the layer of a value, a struct or a list.

        Args:
            validity: bitmap by slot; None without nulls.
            nullable: whether the schema allows nulls. A null below a null is allowed in any case.

        Raises:
            SchemaError: a null against the schema.
        """
        cdef const uint8_t* bits = &validity[0] if validity is not None and validity.shape[0] else NULL
        cdef uint8_t* definition = self.definition.data
        cdef int64_t* slots = <int64_t*>self.slots.data
        cdef int64_t i, nulls = 0
        with nogil:
            for i in range(self.entries):
                if slots[i] >= 0:
                    if is_valid(bits, slots[i]):
                        definition[i] += nullable
                    else:
                        slots[i] = -1
                        nulls += 1
        if nulls and not nullable:
            raise SchemaError(f"{nulls} nulls in a required field")

    def enter_list(self, const Offset[::1] offsets, uint8_t repetition_level):
        """Enter the elements of a list, after the nulls of the list.

        Args:
            offsets: of the slots of the list.
            repetition_level: of the elements.

        Raises:
            LimitError: 2^31 entries or more.
        """
        cdef GrowingBuffer definition = GrowingBuffer(), repetition = GrowingBuffer(), elements = GrowingBuffer()
        cdef const uint8_t* old_definition = self.definition.data
        cdef const uint8_t* old_repetition = self.repetition.data
        cdef const int64_t* slots = <const int64_t*>self.slots.data
        cdef uint8_t* new_definition
        cdef uint8_t* new_repetition
        cdef int64_t* new_slots
        cdef int64_t total = 0, done = 0, i, j, count
        with nogil:
            for i in range(self.entries):
                count = <int64_t>offsets[slots[i] + 1] - <int64_t>offsets[slots[i]] if slots[i] >= 0 else 0
                total += max(count, 1)
        if total > 0x7FFFFFFF:
            raise LimitError(f"{total} levels in one column chunk: write smaller row groups")
        new_definition = definition.room(<size_t>total + 1)
        new_repetition = repetition.room(<size_t>total + 1)
        new_slots = <int64_t*>elements.room(<size_t>(total + 1) * sizeof(int64_t))
        with nogil:
            for i in range(self.entries):
                count = <int64_t>offsets[slots[i] + 1] - <int64_t>offsets[slots[i]] if slots[i] >= 0 else 0
                new_definition[done] = old_definition[i] + (count > 0)
                new_repetition[done] = old_repetition[i]
                new_slots[done] = <int64_t>offsets[slots[i]] if count else -1
                done += 1
                for j in range(1, count):
                    new_definition[done] = old_definition[i] + 1
                    new_repetition[done] = repetition_level
                    new_slots[done] = <int64_t>offsets[slots[i]] + j
                    done += 1
        self.definition, self.repetition, self.slots, self.entries = definition, repetition, elements, total

    def finish(self, uint8_t max_definition):
        """The slots of the leaf with values, nulls left out: int64, ascending."""
        cdef const uint8_t* definition = self.definition.data
        cdef const int64_t* slots = <const int64_t*>self.slots.data
        cdef int64_t i, values = 0
        self._index(max_definition)
        present = np.empty(self.value_starts[self.rows], np.int64)
        cdef int64_t[::1] out = present
        with nogil:
            for i in range(self.entries):
                if definition[i] == max_definition:
                    out[values] = slots[i]
                    values += 1
        self.slots = None
        return present

    cdef int _index(self, uint8_t max_definition) except -1:
        """Find the first entry and the first value of each row."""
        self._entry_starts = np.empty(self.rows + 1, np.int64)
        self._value_starts = np.empty(self.rows + 1, np.int64)
        cdef int64_t[::1] entry_starts = self._entry_starts, value_starts = self._value_starts
        cdef const uint8_t* definition = self.definition.data
        cdef const uint8_t* repetition = self.repetition.data
        cdef int64_t i, row = 0, values = 0
        with nogil:
            for i in range(self.entries):
                if repetition[i] == 0:
                    entry_starts[row] = i
                    value_starts[row] = values
                    row += 1
                values += definition[i] == max_definition
            entry_starts[row] = self.entries
            value_starts[row] = values
        self.entry_starts = &entry_starts[0]
        self.value_starts = &value_starts[0]
        return 0
