"""Levels of nested columns -> validity and offsets."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.column.column_output cimport Output
from fastpq.arrays.memory cimport GrowingBuffer


cdef class LayerOutput:
    cdef readonly bint is_list
    cdef uint8_t slot_repetition
    cdef uint8_t slot_definition
    cdef uint8_t valid_definition
    cdef uint8_t element_definition
    cdef uint8_t before                 # definition level of the entry appended last
    cdef readonly int64_t slots
    cdef readonly int64_t elements
    cdef GrowingBuffer starts           # int32 for each slot of a list: index of the first element
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
    # Writes the flags of the slots among count entries behind the flags of earlier slots; returns the number of new slots. The
    # caller writes the values, then advances slots and the sizes of both buffers.
    cdef int64_t append(self, const uint8_t* definition, const uint8_t* repetition, int64_t count) except -1 nogil
