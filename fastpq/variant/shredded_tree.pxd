"""Tree: shredded columns as C structures with pointers."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.encodings.views cimport Slice

cdef enum Typed:
    TYPED_NONE
    TYPED_FIXED
    TYPED_TEXT
    TYPED_OBJECT
    TYPED_ARRAY


# The value and typed_value columns for one place in a shredding schema.
cdef struct Pair:
    int64_t rows
    const uint8_t* present          # bitmap for the group that has both columns, or NULL
    const Slice* values             # a null value has the data NULL. NULL if there is no value column
    int typed                       # Typed
    const uint8_t* typed_present    # typed_value's bitmap, or NULL
    int kind                        # TYPED_FIXED, TYPED_TEXT: the primitive's type id
    int scale                       # for decimals
    const uint8_t* data             # TYPED_FIXED: values with width bytes each
    size_t width
    const Slice* texts              # TYPED_TEXT
    uint32_t field_count            # TYPED_OBJECT: the fields are sorted by name
    Pair* fields
    const Slice* names
    const uint32_t* name_numbers    # for each field, the position of its name in the tree's names
    const int64_t* offsets          # TYPED_ARRAY
    Pair* elements


# Return a name's position in sorted names. -1 if it is not there.
cdef int64_t find_name(const Slice* names, int64_t count, Slice name) noexcept nogil


cdef inline bint bit(const uint8_t* bitmap, int64_t i) noexcept nogil:
    return bitmap == NULL or (bitmap[i >> 3] >> (i & 7)) & 1


# Memory for a tree's C structures. It lives as long as the object.
cdef class NodeMemory:
    cdef list blocks
    # Return zeroed memory with size bytes.
    cdef void* block(self, size_t size) except NULL
    # Return names in UTF-8.
    cdef const Slice* encoded(self, list names) except NULL


cdef class Tree(NodeMemory):
    cdef Pair root
    cdef list owners                # objects that own the memory of the columns
    cdef dict numbers               # each name's position in names
    cdef readonly list names        # distinct field names, sorted
    cdef const Slice* name_slices   # names in UTF-8
    cdef int64_t name_count
    cdef int _fill(self, Pair* pair, object shredded, int depth) except -1
    cdef int _fill_object(self, Pair* pair, object typed, int depth) except -1
    cdef int _fill_array(self, Pair* pair, object typed, int64_t rows, int depth) except -1
    cdef int _fill_primitive(self, Pair* pair, object column) except -1
    cdef const Slice* _slices(self, object column) except NULL
    cdef const uint8_t* _bitmap(self, object validity, int64_t rows) except? NULL
