"""Values of variable length as codes into a dictionary of their chunk."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.column.scratch cimport Scratch
from fastpq.column.value_reader cimport ValueReader
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.views cimport View


cdef class CodeReader(ValueReader):
    cdef DictionaryEncoder others       # values outside of the dictionary page; their codes follow those of the page
    cdef int64_t counted                # bytes of others that the allowance has counted
    cdef Scratch numbers                # uint32: the code of each entry of the dictionary page, in their order

    # The entries in the order of their codes, as views (16 bytes each) with buffers.
    cdef tuple entries(self)

    cdef int64_t _encode(self, const View* views, int64_t count, uint8_t* out) noexcept nogil
    cdef int _count_others(self) except -1
