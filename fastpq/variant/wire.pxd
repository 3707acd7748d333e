"""The Variant binary encoding as it lies in memory (VariantEncoding.md): checked once, then walked without checks."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from fastpq.encodings.views cimport Slice

cdef extern from "c/variant.h" nogil:
    uint32_t variant_load(const uint8_t* p, int width)

cdef enum:
    DEPTH_LIMIT = 512       # arrays and objects inside each other; recursion in C and in the caller's Python

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

# What is wrong with the bytes; negative, in the place of a size.
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
    TOO_LARGE = -15             # beyond what the encoding, or the caller's bound, allows
    CONFLICT = -16              # VariantShredding.md: value and typed_value where one alone may be
    NOT_AN_OBJECT = -17         # a value that is no object beside shredded fields
    NAME_MISSING = -18          # a shredded field whose name is not in the metadata
    BAD_STRUCTURE = -19         # offsets of a list column that do not rise or leave their elements


# A metadata dictionary. Its strings are UTF-8, neither sorted nor distinct: the header's flag is not relied upon.
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


# Reads and checks a metadata value, all of it. Returns 0 or what is wrong. strict: the sorted flag must tell the truth.
cdef int64_t read_names(const uint8_t* data, size_t size, bint strict, Names* names) noexcept nogil
# Checks one value at the start of data, and everything in it. Returns its size or what is wrong.
cdef int64_t check_value(const Names* names, const uint8_t* data, size_t size, int depth, bint strict) noexcept nogil
# The same for a value that must take up all of the bytes.
cdef int64_t check_whole(const Names* names, Slice value, bint strict) noexcept nogil
# Header of an object or array whose bytes reach as far as size. Returns the size of the whole or what is wrong.
cdef int64_t open_container(const uint8_t* data, size_t size, Container* container) noexcept nogil
# Of a checked value.
cdef size_t value_size(const uint8_t* data) noexcept nogil
# Of a checked string or binary value.
cdef Slice text_of(const uint8_t* data) noexcept nogil
# As memcmp, where a prefix comes first.
cdef int compare_text(Slice left, Slice right) noexcept nogil
# Raises for what is wrong; returns anything else.
cdef int64_t raise_wrong(int64_t status, str what) except -1


cdef class Metadata:
    cdef Names names
    cdef Slice bytes            # what was read
    cdef object owner           # keeps them alive
    cdef list strings           # names as str, made when they are asked for
    cdef int64_t take(self, const uint8_t* data, size_t size, bint strict) noexcept nogil
    cdef bint is_same(self, Slice other) noexcept nogil
    cdef int load(self, Slice metadata, object owner, str what) except -1
    cdef str name(self, uint32_t i)
