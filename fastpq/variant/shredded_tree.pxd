"""A tree of shredded columns as the compiled code walks it."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.encodings.views cimport Slice

cdef enum Typed:
    TYPED_NONE
    TYPED_FIXED
    TYPED_TEXT
    TYPED_OBJECT
    TYPED_ARRAY


# A value and a typed_value, of rows rows.
cdef struct Pair:
    int64_t rows
    const uint8_t* present          # bitmap of the pair's own group, or NULL
    const Slice* values             # data NULL where null; or NULL without the column
    int typed
    const uint8_t* typed_present    # bitmap of typed_value, or NULL
    int kind                        # of a primitive
    int scale
    const uint8_t* data             # TYPED_FIXED: values of width bytes
    size_t width
    const Slice* texts              # TYPED_TEXT
    uint32_t field_count            # TYPED_OBJECT: fields in the order of their names
    Pair* fields
    const Slice* names
    const uint32_t* name_numbers    # of each field, its place among all distinct names of the tree
    const int64_t* offsets          # TYPED_ARRAY
    Pair* elements


# Where name is among sorted names; -1 if it is not.
cdef int64_t find_name(const Slice* names, int64_t count, Slice name) noexcept nogil


cdef inline bint bit(const uint8_t* bitmap, int64_t i) noexcept nogil:
    return bitmap == NULL or (bitmap[i >> 3] >> (i & 7)) & 1


cdef class Tree:
    cdef Pair root
    cdef list owners                # what keeps the memory alive
    cdef list blocks                # memory of the tree itself
    cdef dict numbers               # distinct names -> their number, in the order of the names
    cdef readonly list names
    cdef const Slice* name_slices   # the same
    cdef int64_t name_count
    cdef int _fill(self, Pair* pair, object shredded, int depth) except -1
    cdef int _fill_object(self, Pair* pair, object typed, int depth) except -1
    cdef int _fill_array(self, Pair* pair, object typed, int64_t rows, int depth) except -1
    cdef int _fill_primitive(self, Pair* pair, object column) except -1
    cdef const Slice* _slices(self, object column) except NULL
    cdef const Slice* _names(self, list names) except NULL
    cdef const uint8_t* _bitmap(self, object validity, int64_t rows) except? NULL
    cdef void* _block(self, size_t size) except NULL
