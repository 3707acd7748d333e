"""Checks for the Variant binary encoding, and its metadata dictionary (VariantEncoding.md).

After these checks, a value can be read without bounds checks. They cover sizes, UTF-8, types, field ids, depth, decimals with
more than 38 digits, and fields that an object has twice. The values in an array or object must fill their declared space without
a gap or overlap, as the grammar says (``fields: <value>*``). In an array they must be in order. No byte therefore belongs to two
values, and the time is proportional to the byte count.

Strict mode also checks rules that some writers break without harm. An object's fields must be sorted by name. sorted_strings may
only be set if the strings are sorted and unique. (DuckDB before 2.0 broke both rules.) A decimal must not have more digits than
its type allows. A time must be within a day.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcmp

from fastpq.encodings.comparison cimport compare_byte_strings
from fastpq.encodings.views cimport Slice

from fastpq.errors import FormatError, LimitError
from fastpq.schema.variant_kinds import MAX_DEPTH

cdef extern from "c/variant.h" nogil:
    int variant_has_digits(const uint8_t* p, int width, int digits)
    int64_t variant_signed(const uint8_t* p, int width)
    uint64_t variant_spread(uint64_t position)

cdef extern from "c/utf8.h" nogil:
    int utf8_is_valid(const uint8_t* data, size_t size)

cdef int64_t MICROSECONDS_A_DAY = 86_400_000_000

# Bytes that follow a primitive's first byte. For binary and string, only the bytes that hold the length.
cdef int[KINDS] SIZES = [0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, 4, 4, 8, 8, 8, 16]

cdef dict MESSAGES = {
    ENDS_EARLY: "the bytes end early",
    BAD_VERSION: "the version of the metadata is not 1",
    BAD_DICTIONARY: "the offsets of the metadata dictionary do not rise from 0 to its end",
    NOT_UTF8: "a text is not valid UTF-8",
    NOT_SORTED: "names are not sorted, but must be",
    BAD_KIND: "a primitive type is not in the specification",
    BAD_DECIMAL: "a decimal has more digits or a larger scale than its type allows",
    BAD_FIELD_ID: "a field id is outside the metadata dictionary",
    DUPLICATE_FIELD: "an object has a field twice",
    BAD_OFFSETS: "the values of an object or array overlap, or do not fill their space",
    TRAILING_BYTES: "there are bytes after the end of the value",
    BAD_TIME: "a time is not within a day",
    CONFLICT: "value and typed_value are both there, but only a partially shredded object may have both",
    NOT_AN_OBJECT: "there are shredded fields, but value is not an object",
    NAME_MISSING: "a shredded field has a name that is not in the metadata",
    BAD_STRUCTURE: "list offsets do not rise, or are outside their elements",
}


cdef int64_t raise_wrong(int64_t status, str subject) except -1:
    if status >= 0:
        return status
    if status == NO_ROOM:
        raise MemoryError(subject)
    if status == TOO_DEEP:
        raise LimitError(f"{subject}: nested deeper than MAX_DEPTH ({MAX_DEPTH})")
    if status == TOO_LARGE:
        raise LimitError(f"{subject}: one variant, or all together, are larger than the limit")
    raise FormatError(f"{subject}: {MESSAGES[status]}")


cdef int64_t read_names(const uint8_t* data, size_t size, bint strict, Names* names) noexcept nogil:
    cdef uint64_t room
    cdef uint32_t i, offset, end
    if size < 1:
        return ENDS_EARLY
    if data[0] & 0x0F != 1:
        return BAD_VERSION
    names.width = ((data[0] >> 6) & 3) + 1
    if size - 1 < <size_t>names.width:
        return ENDS_EARLY
    names.count = variant_load(data + 1, names.width)
    names.offsets = data + 1 + names.width
    room = size - 1 - names.width
    if (<uint64_t>names.count + 1) * names.width > room:
        return ENDS_EARLY
    room -= (<uint64_t>names.count + 1) * names.width
    names.text = names.offsets + (<size_t>names.count + 1) * names.width
    offset = variant_load(names.offsets, names.width)
    if offset != 0 or not utf8_is_valid(names.text, room):
        return BAD_DICTIONARY if offset != 0 else NOT_UTF8
    for i in range(names.count):
        end = variant_load(names.offsets + (<size_t>i + 1) * names.width, names.width)
        if end < offset or end > room:
            return BAD_DICTIONARY
        if end < room and names.text[end] & 0xC0 == 0x80:
            return NOT_UTF8                 # the string ends inside a code point
        offset = end
    if offset != room:
        return BAD_DICTIONARY
    if strict and data[0] & 0x10:
        for i in range(1, names.count):
            if compare_byte_strings(name_at(names, i - 1), name_at(names, i)) >= 0:
                return NOT_SORTED
    return 0


cdef int64_t check_whole(const Names* names, Slice value, bint strict) noexcept nogil:
    cdef int64_t size = check_value(names, value.data, value.size, 0, strict)
    return TRAILING_BYTES if 0 <= size < <int64_t>value.size else size


cdef int64_t check_value(const Names* names, const uint8_t* data, size_t size, int depth, bint strict) noexcept nogil:
    cdef Container container
    cdef int64_t whole, status
    cdef size_t length
    if size < 1:
        return ENDS_EARLY
    if data[0] & 3 == PRIMITIVE:
        return _check_primitive(data, size, strict)
    if data[0] & 3 == SHORT_STRING:
        length = data[0] >> 2
        if length > size - 1:
            return ENDS_EARLY
        return 1 + <int64_t>length if utf8_is_valid(data + 1, length) else <int64_t>NOT_UTF8
    if depth >= DEPTH_LIMIT:
        return TOO_DEEP
    whole = open_container(data, size, &container)
    if whole < 0:
        return whole
    status = _check_children(names, &container, depth, strict)
    if status >= 0 and data[0] & 3 == OBJECT:
        status = _check_fields(names, &container, strict)
    return status if status < 0 else whole


cdef int64_t _check_primitive(const uint8_t* data, size_t size, bint strict) noexcept nogil:
    cdef int kind = data[0] >> 2
    cdef size_t length
    cdef int width, digits
    cdef int64_t time
    if kind >= KINDS:
        return BAD_KIND
    if <size_t>SIZES[kind] > size - 1:
        return ENDS_EARLY
    if kind == KIND_STRING or kind == KIND_BINARY:
        length = variant_load(data + 1, 4)
        if length > size - 5:
            return ENDS_EARLY
        if kind == KIND_STRING and not utf8_is_valid(data + 5, length):
            return NOT_UTF8
        return 5 + <int64_t>length
    if KIND_DECIMAL4 <= kind <= KIND_DECIMAL16:
        width = SIZES[kind] - 1
        digits = 38 if kind == KIND_DECIMAL16 else 9 if kind == KIND_DECIMAL4 else 18
        if data[1] > 38 or ((strict or digits == 38) and not variant_has_digits(data + 2, width, digits)):
            return BAD_DECIMAL
    elif kind == KIND_TIME and strict:
        time = variant_signed(data + 1, 8)
        if not 0 <= time < MICROSECONDS_A_DAY:
            return BAD_TIME
    return 1 + SIZES[kind]


cdef int64_t open_container(const uint8_t* data, size_t size, Container* container) noexcept nogil:
    cdef int header = data[0] >> 2
    cdef bint large
    cdef size_t count_width
    cdef uint64_t room = size - 1, lists
    container.offset_width = (header & 3) + 1
    if data[0] & 3 == OBJECT:
        container.id_width = ((header >> 2) & 3) + 1
        large = (header >> 4) & 1
    else:
        container.id_width = 0
        large = (header >> 2) & 1
    count_width = 4 if large else 1
    if room < count_width:
        return ENDS_EARLY
    container.count = variant_load(data + 1, <int>count_width)
    room -= count_width
    lists = <uint64_t>container.count * (container.id_width + container.offset_width) + container.offset_width
    if lists > room:
        return ENDS_EARLY
    room -= lists
    container.ids = data + 1 + count_width
    container.offsets = container.ids + <size_t>container.count * container.id_width
    container.values = container.ids + lists
    container.size = child_at(container, container.count) - container.values
    if container.size > room:
        return ENDS_EARLY
    return (container.values - data) + <int64_t>container.size


cdef int64_t _check_children(const Names* names, const Container* container, int depth, bint strict) noexcept nogil:
    # The values fill their space without a gap or overlap if they form one chain from 0 to the end. There is such a chain exactly
    # if two sets are equal: all starts with the space's end added, and all ends with 0 added. Sums of hashes stand for the sets.
    cdef uint64_t starts = variant_spread(container.size), ends = variant_spread(0)
    cdef size_t total = 0, start
    cdef uint32_t i
    cdef int64_t size
    for i in range(container.count):
        start = child_at(container, i) - container.values
        if start >= container.size or (container.id_width == 0 and start != total):
            return BAD_OFFSETS
        size = check_value(names, container.values + start, container.size - start, depth + 1, strict)
        if size < 0:
            return size
        total += <size_t>size
        if total > container.size:          # the values overlap. Stop early, so that the time stays proportional to the size
            return BAD_OFFSETS
        starts += variant_spread(start)
        ends += variant_spread(start + <size_t>size)
    return 0 if total == container.size and starts == ends else <int64_t>BAD_OFFSETS


cdef int64_t _check_fields(const Names* names, const Container* container, bint strict) noexcept nogil:
    cdef uint32_t i, id
    cdef Slice name, last
    cdef int order
    cdef bint sorted = True
    for i in range(container.count):
        id = id_at(container, i)
        if id >= names.count:
            return BAD_FIELD_ID
        name = name_at(names, id)
        if i > 0:
            order = compare_byte_strings(last, name)
            if order == 0:
                return DUPLICATE_FIELD
            sorted = sorted and order < 0
        last = name
    if sorted:
        return 0
    return NOT_SORTED if strict else _check_distinct(names, container)


cdef int _compare_names(const void* left, const void* right) noexcept nogil:
    return compare_byte_strings((<const Slice*>left)[0], (<const Slice*>right)[0])


cdef int64_t _check_distinct(const Names* names, const Container* container) noexcept nogil:
    cdef Slice* fields = <Slice*>malloc(container.count * sizeof(Slice))
    cdef int64_t status = 0
    cdef uint32_t i
    if fields == NULL:
        return NO_ROOM
    for i in range(container.count):
        fields[i] = name_at(names, id_at(container, i))
    qsort(fields, container.count, sizeof(Slice), _compare_names)
    for i in range(1, container.count):
        if compare_byte_strings(fields[i - 1], fields[i]) == 0:
            status = DUPLICATE_FIELD
            break
    free(fields)
    return status


cdef size_t value_size(const uint8_t* data) noexcept nogil:
    cdef Container container
    cdef int basic = data[0] & 3, kind = data[0] >> 2
    if basic == SHORT_STRING:
        return 1 + <size_t>kind
    if basic != PRIMITIVE:
        return <size_t>open_container(data, <size_t>1 << 40, &container)
    if kind == KIND_STRING or kind == KIND_BINARY:
        return 5 + <size_t>variant_load(data + 1, 4)
    return 1 + <size_t>SIZES[kind]


cdef Slice text_of(const uint8_t* data) noexcept nogil:
    if data[0] & 3 == SHORT_STRING:
        return Slice(data + 1, data[0] >> 2)
    return Slice(data + 5, variant_load(data + 1, 4))


cdef class Metadata:
    """A checked metadata dictionary. Consecutive rows share it if their metadata bytes are equal."""

    cdef int64_t take(self, const uint8_t* data, size_t size, bint strict) noexcept nogil:
        self.bytes = Slice(NULL, 0)
        cdef int64_t status = read_names(data, size, strict, &self.names)
        if status >= 0:
            self.bytes = Slice(data, size)
        return status

    cdef bint is_same(self, Slice other) noexcept nogil:
        if self.bytes.data == NULL or self.bytes.size != other.size:
            return False
        return self.bytes.data == other.data or memcmp(self.bytes.data, other.data, other.size) == 0

    cdef int load(self, Slice metadata, object owner, str subject) except -1:
        """Read and check metadata, unless the previous metadata had equal bytes."""
        if self.is_same(metadata):
            return 0
        if metadata.data == NULL:
            raise FormatError(f"{subject} is null")
        self.strings = None
        raise_wrong(self.take(metadata.data, metadata.size, False), subject)
        self.owner = owner
        return 0

    cdef str name(self, uint32_t i):
        cdef Slice name
        if self.strings is None:
            self.strings = [None] * self.names.count
        text = self.strings[i]
        if text is None:
            name = name_at(&self.names, i)
            text = self.strings[i] = (<const char*>name.data)[:name.size].decode()
        return text


def check(const uint8_t[::1] metadata not None, const uint8_t[::1] value not None, bint strict=True):
    """Check one variant.

    Args:
        metadata, value: the variant's two parts.
        strict: whether to check also the rules that some writers break. They concern the field order in objects, the flag
            sorted_strings, the digits that each decimal type allows, and times within a day.

    Raises:
        FormatError: the bytes break VariantEncoding.md.
        LimitError: arrays and objects are nested deeper than MAX_DEPTH levels.
    """
    cdef Names names
    cdef uint8_t nothing = 0
    cdef const uint8_t* start = &metadata[0] if len(metadata) else &nothing
    raise_wrong(read_names(start, len(metadata), strict, &names), "the metadata")
    start = &value[0] if len(value) else &nothing
    raise_wrong(check_whole(&names, Slice(start, len(value)), strict), "the value")
