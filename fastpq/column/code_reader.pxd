"""Indices of dictionary pages as codes, or as verdicts."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from fastpq.column.scratch cimport Scratch
from fastpq.column.value_reader cimport ValueReader
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.views cimport View


cdef class CodeReader(ValueReader):
    cdef DictionaryEncoder known        # all distinct values so far, those of dictionary pages first
    cdef int64_t counted                # bytes of them that the allowance has counted
    cdef Scratch numbers                # uint32: the code of each entry of the chunk's dictionary page

    # The entries in the order of their codes, as views (16 bytes each) with buffers.
    cdef tuple entries(self)

    cdef int64_t _encode(self, const View* views, int64_t count, uint8_t* out) noexcept nogil
    cdef int64_t _size(self) noexcept nogil
    cdef int _count(self) except -1


cdef class VerdictReader(ValueReader):
    cdef object judge
    cdef Scratch verdicts               # on the entries of the dictionary page
    cdef bint in_word                   # whether the verdicts are 0 or 1, and the bits of one word
    cdef uint64_t bits

    cdef int _judge_entries(self) except -1
    cdef const uint8_t[::1] _judged(self, values, int64_t count)
    cdef int _judge_page(self, uint8_t* out, int64_t count) except -1
