"""The Variant binary encoding in memory (VariantEncoding.md): checks of a value, and access to checked values."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from fastpq.encodings.views cimport Slice

cdef extern from "c/variant.h" nogil:
    uint32_t variant_load(const uint8_t* p, int width)

cdef enum:
    DEPTH_LIMIT = 512       # most levels of arrays and objects; bounds the recursion in C and in the caller's Python

cdef enum Basic:
    PRIMITIVE = 0
    SHORT_STRING = 1
    OBJECT = 2
    ARRAY = 3

# Type ids of primitives.
cdef enum Kind:
    KIND_NULL = 0
    KIND_TRUE = 1
    KIND_FALSE = 2
    KIND_INT8 = 3
    KIND_INT16 = 4
    KIND_INT32 = 5
    KIND_INT64 = 6
    KIND_DOUBLE = 7
    KIND_DECIMAL4 = 8
    KIND_DECIMAL8 = 9
    KIND_DECIMAL16 = 10
    KIND_DATE = 11
    KIND_TIMESTAMP = 12
    KIND_TIMESTAMP_NTZ = 13
    KIND_FLOAT = 14
    KIND_BINARY = 15
    KIND_STRING = 16
    KIND_TIME = 17
    KIND_TIMESTAMP_NANOS = 18
    KIND_TIMESTAMP_NTZ_NANOS = 19
    KIND_UUID = 20
    KINDS = 21

# Errors, as negative numbers in place of a size.
cdef enum Wrong:
    ENDS_EARLY = -1
    BAD_VERSION = -2
    BAD_DICTIONARY = -3
    NOT_UTF8 = -4
    NOT_SORTED = -5
    BAD_KIND = -6
    BAD_DECIMAL = -7
    BAD_FIELD_ID = -8
    DUPLICATE_FIELD = -9
    BAD_OFFSETS = -10
    TRAILING_BYTES = -11
    TOO_DEEP = -12
    BAD_TIME = -13
    NO_ROOM = -14               # no memory
    TOO_LARGE = -15             # more bytes than the encoding, or the caller, allows
    CONFLICT = -16              # VariantShredding.md: both value and typed_value where only one is allowed
    NOT_AN_OBJECT = -17         # a value other than an object beside shredded fields
    NAME_MISSING = -18          # a shredded field with a name missing from the metadata
    BAD_STRUCTURE = -19         # offsets of a list column descend or lie outside the elements


# A metadata dictionary. Its strings are UTF-8, in any order, with duplicates: the header's flag is not relied upon.
cdef struct Names:
    const uint8_t* offsets
    const uint8_t* text
    uint32_t count
    int width


# An object or an array.
cdef struct Container:
    uint32_t count
    int id_width                # 0 in an array
    int offset_width
    const uint8_t* ids
    const uint8_t* offsets
    const uint8_t* values
    size_t size                 # of all values together


cdef inline Slice name_at(const Names* names, uint32_t i) noexcept nogil:
    cdef uint32_t start = variant_load(names.offsets + <size_t>i * names.width, names.width)
    cdef uint32_t end = variant_load(names.offsets + (<size_t>i + 1) * names.width, names.width)
    return Slice(names.text + start, end - start)


cdef inline uint32_t id_at(const Container* container, uint32_t i) noexcept nogil:
    return variant_load(container.ids + <size_t>i * container.id_width, container.id_width)


cdef inline const uint8_t* child_at(const Container* container, uint32_t i) noexcept nogil:
    return container.values + variant_load(container.offsets + <size_t>i * container.offset_width, container.offset_width)


# Reads and checks a whole metadata value. Returns 0 or an error. strict: whether to check the flag sorted_strings, too.
cdef int64_t read_names(const uint8_t* data, size_t size, bint strict, Names* names) noexcept nogil
# Checks one value at the start of data, and all values inside. Returns the value's size or an error.
cdef int64_t check_value(const Names* names, const uint8_t* data, size_t size, int depth, bint strict) noexcept nogil
# Checks a value with all values inside; bytes after the value are an error. Returns the value's size or an error.
cdef int64_t check_whole(const Names* names, Slice value, bint strict) noexcept nogil
# Reads the header of an object or array of at most size bytes. Returns the size of the whole object or array, or an error.
cdef int64_t open_container(const uint8_t* data, size_t size, Container* container) noexcept nogil
# Size in bytes of a checked value.
cdef size_t value_size(const uint8_t* data) noexcept nogil
# Content of a checked string or binary value.
cdef Slice text_of(const uint8_t* data) noexcept nogil
# Raises the exception of an error; returns any other status.
cdef int64_t raise_wrong(int64_t status, str what) except -1


cdef class Metadata:
    cdef Names names
    cdef Slice bytes            # the encoded metadata
    cdef object owner           # owner of the bytes' memory
    cdef list strings           # names as str, each decoded on first use
    cdef int64_t take(self, const uint8_t* data, size_t size, bint strict) noexcept nogil
    cdef bint is_same(self, Slice other) noexcept nogil
    cdef int load(self, Slice metadata, object owner, str what) except -1
    cdef str name(self, uint32_t i)
