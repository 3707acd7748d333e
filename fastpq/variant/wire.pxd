"""The Variant binary encoding in memory (VariantEncoding.md): checks, and access to checked values."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from fastpq.encodings.views cimport Slice

cdef extern from "c/variant.h" nogil:
    uint32_t variant_load(const uint8_t* p, int width)

cdef enum:
    DEPTH_LIMIT = 512       # deepest nesting level for arrays and objects. It bounds the recursion in C and in Python

cdef enum Basic:
    PRIMITIVE = 0
    SHORT_STRING = 1
    OBJECT = 2
    ARRAY = 3

# Type ids for primitives.
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

# Errors. They are negative numbers, which functions return instead of a size.
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
    NO_ROOM = -14               # there is no memory
    TOO_LARGE = -15             # more bytes than the encoding or the caller allows
    CONFLICT = -16              # both value and typed_value are present, but only one is allowed (VariantShredding.md)
    NOT_AN_OBJECT = -17         # there are shredded fields, but value is not an object
    NAME_MISSING = -18          # the metadata does not have a shredded field's name
    BAD_STRUCTURE = -19         # a list column's offsets descend or are outside the elements


# A metadata dictionary. Its strings are UTF-8. They may have any order and may repeat, because nothing relies on the flag
# sorted_strings in the header.
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
    size_t size                 # size of all values together, in bytes


cdef inline Slice name_at(const Names* names, uint32_t i) noexcept nogil:
    cdef uint32_t start = variant_load(names.offsets + <size_t>i * names.width, names.width)
    cdef uint32_t end = variant_load(names.offsets + (<size_t>i + 1) * names.width, names.width)
    return Slice(names.text + start, end - start)


cdef inline uint32_t id_at(const Container* container, uint32_t i) noexcept nogil:
    return variant_load(container.ids + <size_t>i * container.id_width, container.id_width)


cdef inline const uint8_t* child_at(const Container* container, uint32_t i) noexcept nogil:
    return container.values + variant_load(container.offsets + <size_t>i * container.offset_width, container.offset_width)


# Read and check whole metadata. Return 0 or an error. strict also checks the flag sorted_strings.
cdef int64_t read_names(const uint8_t* data, size_t size, bint strict, Names* names) noexcept nogil
# Check the value at the start of data, and all values inside it. Return its size or an error.
cdef int64_t check_value(const Names* names, const uint8_t* data, size_t size, int depth, bint strict) noexcept nogil
# Check a value and all values inside it. Bytes after the value are an error. Return its size or an error.
cdef int64_t check_whole(const Names* names, Slice value, bint strict) noexcept nogil
# Read the header of an object or array that has at most size bytes. Return the size with all values, or an error.
cdef int64_t open_container(const uint8_t* data, size_t size, Container* container) noexcept nogil
# Return a checked value's size in bytes.
cdef size_t value_size(const uint8_t* data) noexcept nogil
# Return the bytes in a checked string or binary value.
cdef Slice text_of(const uint8_t* data) noexcept nogil
# Raise an exception if status is an error, else return status. The message begins with subject.
cdef int64_t raise_wrong(int64_t status, str subject) except -1


cdef class Metadata:
    cdef Names names
    cdef Slice bytes            # the encoded metadata
    cdef object owner           # keeps the memory behind bytes alive
    cdef list strings           # the names as str. Each is decoded when it is first used
    cdef int64_t take(self, const uint8_t* data, size_t size, bint strict) noexcept nogil
    cdef bint is_same(self, Slice other) noexcept nogil
    cdef int load(self, Slice metadata, object owner, str subject) except -1
    cdef str name(self, uint32_t i)
