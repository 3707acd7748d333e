"""A tree of shredded columns as C structures of pointers."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.encodings.views cimport Slice

cdef enum Typed:
    TYPED_NONE
    TYPED_FIXED
    TYPED_TEXT
    TYPED_OBJECT
    TYPED_ARRAY


# The value and typed_value columns of one place in a shredding schema.
cdef struct Pair:
    int64_t rows
    const uint8_t* present          # bitmap of the pair's own group, or NULL
    const Slice* values             # data NULL where null; or NULL without the column
    int typed
    const uint8_t* typed_present    # bitmap of typed_value, or NULL
    int kind                        # TYPED_FIXED, TYPED_TEXT: type id of the primitive
    int scale                       # of decimals
    const uint8_t* data             # TYPED_FIXED: values of width bytes
    size_t width
    const Slice* texts              # TYPED_TEXT
    uint32_t field_count            # TYPED_OBJECT: fields in the order of their names
    Pair* fields
    const Slice* names
    const uint32_t* name_numbers    # of each field, its place among all distinct names of the tree
    const int64_t* offsets          # TYPED_ARRAY
    Pair* elements


# The position of name in sorted names; -1 for an unknown name.
cdef int64_t find_name(const Slice* names, int64_t count, Slice name) noexcept nogil


cdef inline bint bit(const uint8_t* bitmap, int64_t i) noexcept nogil:
    return bitmap == NULL or (bitmap[i >> 3] >> (i & 7)) & 1


cdef class Tree:
    cdef Pair root
    cdef list owners                # objects with the memory of the columns
    cdef list blocks                # memory of the tree itself
    cdef dict numbers               # distinct names -> position in names
    cdef readonly list names        # distinct field names, sorted
    cdef const Slice* name_slices   # names in UTF-8
    cdef int64_t name_count
    cdef int _fill(self, Pair* pair, object shredded, int depth) except -1
    cdef int _fill_object(self, Pair* pair, object typed, int depth) except -1
    cdef int _fill_array(self, Pair* pair, object typed, int64_t rows, int depth) except -1
    cdef int _fill_primitive(self, Pair* pair, object column) except -1
    cdef const Slice* _slices(self, object column) except NULL
    cdef const Slice* _names(self, list names) except NULL
    cdef const uint8_t* _bitmap(self, object validity, int64_t rows) except? NULL
    cdef void* _block(self, size_t size) except NULL
