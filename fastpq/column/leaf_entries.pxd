"""Nested columns -> levels."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.arrays.memory cimport GrowingBuffer


cdef class Levels:
    cdef readonly int64_t entries
    cdef readonly int64_t rows
    cdef GrowingBuffer definition       # a byte for each entry
    cdef GrowingBuffer repetition
    cdef GrowingBuffer slots            # int64 for each entry: the slot in the current layer; -1 for an entry that ends above
    cdef object _entry_starts
    cdef object _value_starts
    cdef const int64_t* entry_starts    # rows + 1: index of each row's first entry
    cdef const int64_t* value_starts    # rows + 1: index of each row's first value, nulls left out
    cdef int _index(self, uint8_t max_definition) except -1
