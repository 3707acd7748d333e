"""Readers that decode values to dictionary codes, or to verdicts."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from fastpq.column.scratch cimport Scratch
from fastpq.column.value_reader cimport ValueReader
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.views cimport View


cdef class SubstituteReader(ValueReader):
    cdef size_t result_width            # bytes of what a value is decoded to


cdef class CodeReader(SubstituteReader):
    cdef DictionaryEncoder dictionary_of_codes      # all distinct values so far, first those in a dictionary page
    cdef int64_t counted_bytes          # bytes that the allowance has counted for this dictionary
    cdef Scratch numbers                # uint32: the code for each entry in the dictionary page

    # Returns the entries as views (16 bytes each), ordered by their codes, and the buffers that the views point into.
    cdef tuple entries(self)

    cdef int64_t _encode(self, const View* views, int64_t count, uint8_t* out) noexcept nogil
    cdef int64_t _size(self) noexcept nogil
    cdef int _count(self) except -1


cdef class VerdictReader(SubstituteReader):
    cdef object judge
    cdef Scratch verdicts               # a verdict for each entry in the dictionary page
    cdef bint in_word                   # whether the verdicts are 0 or 1, and fit into one word
    cdef uint64_t bits

    cdef int _judge_entries(self) except -1
    cdef const uint8_t[::1] _verdicts_on(self, values, int64_t count)
    cdef int _judge_page(self, uint8_t* out, int64_t count) except -1
