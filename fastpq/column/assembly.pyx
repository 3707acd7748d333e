"""Turns the levels of nested columns into validity and offsets, a page at a time (README.md, "Nested Encoding").

The loops pass over a page's entries once for the leaf, and once for each layer above it. The levels in
fastpq.schema.shape.Layer say which entries are slots in a layer.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from fastpq.column.column_output cimport Output
from fastpq.arrays.memory cimport GrowingBuffer

from fastpq.errors import FormatError, LimitError

cdef extern from "c/assembly.h" nogil:
    int64_t count_equal(const uint8_t* levels, int64_t count, uint8_t level) noexcept
    bint contradicts(const uint8_t* definition, const uint8_t* repetition, int64_t count, uint8_t slot_repetition,
                     uint8_t element_definition, uint8_t before) noexcept
    int64_t slot_flags(const uint8_t* definition, const uint8_t* repetition, int64_t count, uint8_t slot_repetition,
                       uint8_t slot_definition, uint8_t valid_definition, uint8_t* flags) noexcept
    int64_t list_slots(const uint8_t* definition, const uint8_t* repetition, int64_t count, uint8_t slot_repetition,
                       uint8_t slot_definition, uint8_t valid_definition, uint8_t element_definition, int32_t* offsets,
                       uint8_t* flags, int64_t* elements) noexcept

cdef int64_t MAX_ELEMENTS = 0x7FFFFFFF
cdef size_t SLACK = 1 << 20         # bytes: up to this much unused memory is not worth a copy


cdef class LayerOutput:
    """Offsets and validity for one list or nullable struct, made from the levels that a leaf below it has.

    Args:
        layer: a fastpq.schema.shape.Layer.
        expected: reserve memory for this many entries. A buffer that grows leaves idle blocks behind.
    """

    def __cinit__(self, object layer, int64_t expected=0):
        self.is_list = layer.is_list
        self.slot_repetition = layer.slot_repetition
        self.slot_definition = layer.slot_definition
        self.valid_definition = layer.valid_definition
        self.element_definition = layer.element_definition
        self.starts = GrowingBuffer()
        self.flags = GrowingBuffer()
        if expected:
            self.flags.room(<size_t>expected + 1)
            if self.is_list:
                self.starts.room(<size_t>(expected + 1) * sizeof(int32_t))

    cdef int append(self, const uint8_t* definition, const uint8_t* repetition, int64_t count) except -1 nogil:
        cdef uint8_t* flags = self.flags.room(<size_t>count + 1)
        cdef int64_t slots
        if self.is_list:
            if contradicts(definition, repetition, count, self.slot_repetition, self.element_definition, self.last_definition):
                with gil:
                    raise FormatError("levels that contradict each other: an element of a list that is empty or null")
            self.last_definition = definition[count - 1]
            if self.elements > MAX_ELEMENTS - count:
                with gil:
                    raise LimitError(f"more than {MAX_ELEMENTS} elements in row groups that are read into one column")
            slots = list_slots(
                definition, repetition, count, self.slot_repetition, self.slot_definition, self.valid_definition,
                self.element_definition, <int32_t*>self.starts.room(<size_t>(count + 1) * sizeof(int32_t)), flags,
                &self.elements)
            self.starts.size += <size_t>slots * sizeof(int32_t)
        else:
            slots = slot_flags(definition, repetition, count, self.slot_repetition, self.slot_definition,
                               self.valid_definition, flags)
        self.flags.size += <size_t>slots
        self.slots += slots
        return 0

    def offsets(self):
        """Return where each slot's elements start, then the element count: int32, shape (slots + 1,)."""
        cdef int32_t* end = <int32_t*>self.starts.room(sizeof(int32_t))
        end[0] = <int32_t>self.elements
        self.starts.size += sizeof(int32_t)
        return compact_array(self.starts, np.int32)

    def validity(self):
        """Return the bitmap (None without nulls), and the null count."""
        return packed(self.flags)


cdef object compact_array(GrowingBuffer buffer, object dtype):
    """Return what a buffer holds, as an array with little unused memory."""
    array = buffer.array(dtype)
    return array.copy() if buffer.capacity > 4 * buffer.size + SLACK else array


cdef object packed(GrowingBuffer flags):
    cdef int64_t nulls = count_equal(flags.data, <int64_t>flags.size, 0)
    return (np.packbits(flags.array(), bitorder="little") if nulls else None), nulls


cdef class NestedOutput(Output):
    """The decoded values for one leaf in a nested column, and the layers above the leaf.

    Args:
        leaf: a fastpq.schema.shape.LeafShape.
        width: bytes that a value takes in memory.
        expected: reserve memory for this many entries.
    """

    def __cinit__(self, object leaf, int64_t width, int64_t expected=0):
        self.max_repetition = leaf.column.max_repetition_level
        self.max_definition = leaf.column.max_definition_level
        self.slot_definition = leaf.slot_definition
        self.values = GrowingBuffer()
        self.flags = GrowingBuffer()
        self.width = width
        self.buffers = []
        try:
            self.layers = tuple([LayerOutput(layer, expected) for layer in leaf.layers])
            self.values.room(<size_t>(expected * width))
            self.flags.room(<size_t>expected + 1)
        except MemoryError as error:
            raise LimitError(f"no memory for {expected} values") from error

    cdef int64_t append(self, const uint8_t* definition, const uint8_t* repetition, int64_t count) except -1 nogil:
        cdef uint8_t* flags
        with gil:
            for layer in self.layers:
                (<LayerOutput>layer).append(definition, repetition, count)
        flags = self.flags.room(<size_t>count + 1)
        return slot_flags(definition, repetition, count, self.max_repetition, self.slot_definition, self.max_definition, flags)

    def contents(self):
        """Return all slots' values: uint8, slots * width bytes, in an array with little unused memory."""
        return compact_array(self.values, np.uint8)

    def validity(self):
        """Return the bitmap (None without nulls), and the null count."""
        return packed(self.flags)
