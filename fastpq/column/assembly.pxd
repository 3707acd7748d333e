"""Turns the levels of nested columns into validity and offsets."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.column.column_output cimport Output
from fastpq.arrays.memory cimport GrowingBuffer


cdef class LayerOutput:
    cdef readonly bint is_list
    cdef uint8_t slot_repetition
    cdef uint8_t slot_definition
    cdef uint8_t valid_definition
    cdef uint8_t element_definition
    cdef uint8_t last_definition        # the definition level that the last appended entry has
    cdef readonly int64_t slots
    cdef readonly int64_t elements
    cdef GrowingBuffer starts           # for a list, an int32 a slot: the index of the slot's first element
    cdef GrowingBuffer flags            # a byte for each slot: 1 where valid
    cdef int append(self, const uint8_t* definition, const uint8_t* repetition, int64_t count) except -1 nogil


cdef class NestedOutput(Output):
    cdef readonly tuple layers
    cdef uint8_t max_repetition
    cdef uint8_t max_definition
    cdef uint8_t slot_definition
    cdef readonly int64_t slots         # values and nulls
    cdef GrowingBuffer values           # width bytes for each slot, zero where null
    cdef GrowingBuffer flags            # a byte for each slot: 1 where valid
    # Finds the slots among count entries, and writes their flags behind the earlier flags. Returns how many slots it found.
    # The caller then writes the values, and increases `slots` and the sizes of both buffers.
    cdef int64_t append(self, const uint8_t* definition, const uint8_t* repetition, int64_t count) except -1 nogil
