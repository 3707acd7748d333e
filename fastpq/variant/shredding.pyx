"""Shredding: splitting the values of variants into value and typed_value columns (VariantShredding.md, "Value Shredding")."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status
from fastpq.variant.emit cimport Bytes, Field, bytes_add, bytes_put, finish_object, sort_fields
from fastpq.variant.wire cimport (
    ARRAY,
    KIND_BINARY,
    KIND_DECIMAL4,
    KIND_DECIMAL16,
    KIND_FALSE,
    KIND_INT8,
    KIND_INT64,
    KIND_STRING,
    KIND_TRUE,
    NO_ROOM,
    OBJECT,
    PRIMITIVE,
    SHORT_STRING,
    Container,
    Metadata,
    check_whole,
    child_at,
    id_at,
    name_at,
    open_container,
    raise_wrong,
    text_of,
    value_size,
)
from fastpq.variant.targets cimport Columns, Target, end_row, missing, no_typed, put_end, put_flag
from fastpq.variant.shredded_tree cimport TYPED_ARRAY, TYPED_FIXED, TYPED_OBJECT, TYPED_TEXT, find_name

from fastpq.errors import SchemaError

cdef extern from "c/variant.h" nogil:
    int64_t variant_signed(const uint8_t* p, int width)
    int variant_rescale(const uint8_t* p, int width, int from_scale, int to_scale, int precision, uint8_t* out, int out_width)

cdef int[11] NUMBER_WIDTHS = [0, 0, 0, 1, 2, 4, 8, 0, 4, 8, 16]     # bytes of integers and decimals, by kind; 0 for others


cdef int64_t _add(Target* target, Metadata names, const uint8_t* data, Bytes* stack) noexcept nogil:
    """Add a row with a checked value. Returns 0 or an error (Wrong)."""
    cdef int64_t typed = 0
    cdef int basic = data[0] & 3
    if target.typed == TYPED_OBJECT and basic == OBJECT:
        return _add_object(target, names, data, stack)
    if target.typed == TYPED_ARRAY and basic == ARRAY:
        typed = _add_array(target, names, data, stack)
    elif target.typed == TYPED_FIXED and basic == PRIMITIVE:
        typed = _add_fixed(target, data)
    elif target.typed == TYPED_TEXT:
        typed = _add_text(target, data)
    if typed < 0:
        return typed
    if typed == 1:
        return NO_ROOM if put_flag(&target.has_typed, 1) < 0 else end_row(target, 0)
    if no_typed(target) < 0 or bytes_put(&target.values.data, data, value_size(data)) < 0:
        return NO_ROOM
    return end_row(target, 1)


cdef int64_t _add_fixed(Target* target, const uint8_t* data) noexcept nogil:
    """Add a value as target's type, if exact. Returns 1, 0 for a value of another type or range, or an error (Wrong)."""
    cdef uint8_t room[16]
    cdef int kind = data[0] >> 2
    cdef int64_t number
    memset(room, 0, 16)
    if target.kind == KIND_TRUE:
        if kind != KIND_TRUE and kind != KIND_FALSE:
            return 0
        room[0] = kind == KIND_TRUE
    elif KIND_DECIMAL4 <= target.kind <= KIND_DECIMAL16:
        if not KIND_INT8 <= kind <= KIND_DECIMAL16 or NUMBER_WIDTHS[kind] == 0:
            return 0
        if not _rescaled(target, data, kind, room):
            return 0
    elif KIND_INT8 <= target.kind <= KIND_INT64:
        if not KIND_INT8 <= kind <= KIND_INT64:
            return 0
        number = variant_signed(data + 1, NUMBER_WIDTHS[kind])
        memcpy(room, &number, 8)
        if variant_signed(room, <int>target.width) != number:
            return 0
    elif kind == target.kind:
        memcpy(room, data + 1, target.width)
    else:
        return 0
    return NO_ROOM if bytes_put(&target.data, room, target.width) < 0 else 1


cdef bint _rescaled(const Target* target, const uint8_t* data, int kind, uint8_t* room) noexcept nogil:
    cdef bint whole = kind <= KIND_INT64
    return variant_rescale(
        data + 1 if whole else data + 2, NUMBER_WIDTHS[kind], 0 if whole else data[1], target.scale, target.precision, room,
        <int>target.width,
    )


cdef int64_t _add_text(Target* target, const uint8_t* data) noexcept nogil:
    cdef bint is_string = data[0] & 3 == SHORT_STRING or data[0] == KIND_STRING << 2
    cdef Slice text
    if not (is_string if target.kind == KIND_STRING else data[0] == KIND_BINARY << 2):
        return 0
    text = text_of(data)
    if bytes_put(&target.texts.data, text.data, text.size) < 0:
        return NO_ROOM
    return NO_ROOM if put_end(&target.texts.ends, <int64_t>target.texts.data.size) < 0 else 1


cdef int64_t _add_array(Target* target, Metadata names, const uint8_t* data, Bytes* stack) noexcept nogil:
    cdef Container container
    cdef uint32_t i
    cdef int64_t status
    open_container(data, <size_t>1 << 40, &container)
    for i in range(container.count):
        status = _add(target.elements, names, child_at(&container, i), stack)
        if status < 0:
            return status
    return NO_ROOM if put_end(&target.ends, target.elements.rows) < 0 else 1


cdef int64_t _add_object(Target* target, Metadata names, const uint8_t* data, Bytes* stack) noexcept nogil:
    """Add an object: shredded fields to their columns, other fields as an object in value."""
    cdef Container container
    cdef size_t bottom = stack.size, start = target.values.data.size
    cdef uint32_t j
    cdef int64_t status
    cdef const uint8_t* child
    cdef uint8_t* room
    open_container(data, <size_t>1 << 40, &container)
    room = bytes_add(stack, target.field_count * sizeof(void*))
    if room == NULL:
        return NO_ROOM
    memset(room, 0, target.field_count * sizeof(void*))
    status = _split(target, names, &container, stack, bottom)
    if status < 0:
        return status
    for j in range(target.field_count):
        child = (<const uint8_t**>(stack.data + bottom))[j]
        status = missing(&target.fields[j]) if child == NULL else _add(&target.fields[j], names, child, stack)
        if status < 0:
            return status
    stack.size = bottom
    if put_flag(&target.has_typed, 1) < 0:
        return NO_ROOM
    return end_row(target, target.values.data.size > start)


cdef int64_t _split(Target* target, Metadata names, const Container* container, Bytes* stack, size_t found) noexcept nogil:
    """Find the fields of an object with shredded columns, and write the other fields, if any, as an object in value.

    Pointers to the found fields go to the stack, from offset found on; the pointers of missing fields stay NULL.
    """
    cdef size_t start = target.values.data.size, bottom = stack.size
    cdef uint32_t i, count
    cdef int64_t place, status = 0
    cdef Field field
    cdef const uint8_t* child
    for i in range(container.count):
        field.id = id_at(container, i)
        field.name = name_at(&names.names, field.id)
        field.start = <uint32_t>(target.values.data.size - start)
        child = child_at(container, i)
        place = find_name(target.names, target.field_count, field.name)
        if place >= 0:
            (<const uint8_t**>(stack.data + found))[place] = child
        elif bytes_put(&target.values.data, child, value_size(child)) < 0 or bytes_put(stack, &field, sizeof(Field)) < 0:
            return NO_ROOM
    count = <uint32_t>((stack.size - bottom) // sizeof(Field))
    if count:
        sort_fields(<Field*>(stack.data + bottom), count)
        status = finish_object(&target.values.data, start, count, <Field*>(stack.data + bottom))
    stack.size = bottom
    return status


cdef int64_t _add_rows(Columns columns, Metadata names, SliceReader metadata, SliceReader value, int64_t* failed) noexcept nogil:
    cdef Slice dictionaries[SLICE_BLOCK]
    cdef Slice values[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status
    while start < value.count:
        n = min(<int64_t>SLICE_BLOCK, value.count - start)
        status = metadata.read(start, n, dictionaries)
        if status >= 0:
            status = value.read(start, n, values)
        if status < 0:
            failed[0] = -1
            return status
        for i in range(n):
            failed[0] = start + i
            status = 0
            if values[i].data == NULL:
                status = missing(&columns.root)
            else:
                if not names.is_same(dictionaries[i]):
                    status = names.take(dictionaries[i].data, dictionaries[i].size, False)
                if status >= 0:
                    status = check_whole(&names.names, values[i], False)
                if status >= 0:
                    status = _add(&columns.root, names, values[i].data, &columns.stack)
            if status < 0:
                return status
        start += n
    return 0


def shred(SliceReader metadata not None, SliceReader value not None, schema):
    """Split the values of unshredded variants into columns; the metadata column stays the same.

    Args:
        metadata, value: readers of metadata and values, of equal length. A null value is missing in every column.
        schema: a shredding schema, checked by normalized.

    Returns:
        The Shredded pair.

    Raises:
        FormatError: a row breaks VariantEncoding.md; the error names the row.
        LimitError: deeper than MAX_DEPTH.
        SchemaError: a name not encodable in UTF-8, or columns of different lengths.
    """
    cdef Columns columns
    cdef Metadata names = Metadata()
    cdef int64_t status, failed = 0
    if metadata.count != value.count:
        raise SchemaError(f"{metadata.count} metadata for {value.count} values")
    columns = Columns(schema)
    with nogil:
        status = _add_rows(columns, names, metadata, value, &failed)
    if failed < 0:
        raise_status(status)
    if status < 0:
        raise_wrong(status, f"the variant of row {failed}")
    return columns.result()
