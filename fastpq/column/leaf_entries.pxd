"""Turns nested columns into levels."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastpq.arrays.memory cimport GrowingBuffer
from fastpq.column.scratch cimport Scratch


# One step on the way from a row down to the leaf: either a value that may be null, or a list's elements.
cdef struct Layer:
    const uint8_t* validity         # value: bitmap by slot. NULL without nulls.
    bint nullable                   # value: whether the schema allows nulls
    int64_t nulls                   # value: how many nulls were counted so far. A null below another null does not count.
    const int32_t* offsets          # list: offsets by slot, if they have four bytes. Otherwise NULL.
    const int64_t* large_offsets    # list: offsets by slot, if they have eight bytes
    uint8_t repetition_level        # list: the elements' repetition level. 0 for a value.


# The levels for some rows: a definition level and a repetition level for each entry.
cdef struct Entries:
    int64_t count
    int64_t rows
    int64_t present                 # entries with a value
    int64_t length                  # entries in every row, if all rows are lists with the same length. Otherwise 0.
    const uint8_t* definition       # NULL if every entry has a value
    const uint8_t* repetition       # NULL without lists, or if has_list_levels(length)


# Some rows' entries below some layers. Arrays have an item for each entry.
cdef struct Front:
    int64_t count
    int64_t first_slot              # without slots: the first entry's slot in the layer below. The next entry has the next slot.
    uint8_t level                   # the definition level of entries that have not ended
    uint8_t* definition             # NULL if not made, or if no entry ended. An entry that has not ended has the highest level.
    uint8_t* repetition             # NULL if not made, or if all are 0
    int64_t* slots                  # each entry's slot in the layer below; -1 if the entry ended. NULL if consecutive or not made


# Where the entries and values of rows start, while they are counted.
cdef struct RowStarts:
    int32_t* entry_starts
    int32_t* value_starts
    int64_t row                     # rows that were begun
    int64_t entries                 # entries so far
    int64_t values                  # values so far
    int64_t first_slot              # the first value's slot
    int64_t next_slot               # the slot behind the last value, or -1
    int64_t gaps                    # values whose slot does not follow the slot of the value before. The first value is one.


cdef class Levels:
    cdef readonly int64_t rows
    cdef readonly bint is_consecutive   # whether the slots with values are consecutive. Else the values have to be gathered.
    cdef int64_t first_slot
    cdef GrowingBuffer layers           # Layer, the outermost first
    cdef list owners                    # arrays that the layers point into
    cdef int64_t last_list              # index of the innermost list's layer, or -1
    cdef int64_t last_nulls             # index of the innermost layer with nulls, or -1
    cdef uint8_t max_definition
    cdef int64_t length                 # entries in every row, if all rows have one list and the same number. Otherwise 0.
    cdef Scratch entry_starts           # int32, rows + 1: each row's first entry, as an index
    cdef Scratch value_starts           # int32, rows + 1: each row's first value, as an index. Empty if equal to entry_starts.
    cdef Scratch definition             # arrays of the Front that was made last
    cdef Scratch repetition
    cdef Scratch slots
    cdef Scratch outer_definition       # the same for the layer above, while a list is entered
    cdef Scratch outer_repetition
    cdef Scratch outer_slots

    cdef Layer* layer(self, int64_t index) noexcept nogil
    cdef int64_t layer_count(self) noexcept nogil
    # Return the index that a row's first entry has, or its first value. The row behind the last one is allowed.
    cdef int64_t entry_start(self, int64_t row) noexcept nogil
    cdef int64_t value_start(self, int64_t row) noexcept nogil
    # Makes the levels for the rows [row, row + rows). They are valid until the next call.
    cdef int make(self, int64_t row, int64_t rows, Entries* entries) except -1 nogil
    # Frees the levels that were made last.
    cdef void free(self) noexcept nogil

    cdef int _add_layer(self, const Layer* layer) except -1
    cdef int _count(self, RowStarts* starts) except -1 nogil
    cdef int64_t _length(self) noexcept nogil
    cdef int _list_slots(self, int64_t* slots) except -1 nogil
    cdef int _enter_layers(self, int64_t row, int64_t rows, int64_t layers, int parts, Front* front) except -1 nogil
    cdef int _enter_nulls(self, Layer* layer, int parts, Front* front) except -1 nogil
    cdef int _enter_list(self, Layer* layer, int64_t index, int parts, Front* front) except -1 nogil
