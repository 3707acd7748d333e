"""Shredding: splitting variant values into value and typed_value columns (VariantShredding.md, "Value Shredding")."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

cimport numpy as cnp
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status
from fastpq.variant.emit cimport Bytes, Field, bytes_add, bytes_free, bytes_put, finish_object, sort_fields
from fastpq.variant.wire cimport (
    ARRAY, KIND_BINARY, KIND_DECIMAL4, KIND_DECIMAL16, KIND_FALSE, KIND_INT8, KIND_INT64, KIND_STRING, KIND_TRUE, NO_ROOM, OBJECT,
    PRIMITIVE, SHORT_STRING, Container, Metadata, check_whole, child_at, id_at, name_at, open_container, raise_wrong, text_of,
    value_size,
)
from fastpq.variant.shredded_tree cimport (
    TYPED_ARRAY, TYPED_FIXED, TYPED_NONE, TYPED_OBJECT, TYPED_TEXT, NodeMemory, find_name,
)

import numpy as np

from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.table import Column
from fastpq.errors import SchemaError
from fastpq.schema.types import Decimal
from fastpq.schema.variant_kinds import Kind, kind_of
from fastpq.variant.shredded import BINARY, Shredded, ShreddedArray, ShreddedObject

cnp.import_array()

cdef extern from "c/variant.h" nogil:
    int64_t variant_signed(const uint8_t* p, int width)
    int variant_rescale(const uint8_t* p, int width, int from_scale, int to_scale, int precision, uint8_t* out, int out_width)

cdef int[11] NUMBER_WIDTHS = [0, 0, 0, 1, 2, 4, 8, 0, 4, 8, 16]     # bytes of integers and decimals, by kind, 0 for others


# A growing column that holds strings or binary values.
cdef struct Texts:
    Bytes data
    Bytes ends                      # offsets, int64


# The growing value and typed_value columns for one place in the schema.
cdef struct Target:
    int64_t rows
    Texts values
    Bytes has_value                 # one byte for each row
    int typed                       # Typed
    Bytes has_typed                 # one byte for each row
    int kind                        # TYPED_FIXED, TYPED_TEXT: the primitive's type id
    int scale                       # for decimals
    int precision                   # for decimals
    size_t width                    # TYPED_FIXED: value size in bytes
    Bytes data                      # TYPED_FIXED
    Texts texts                     # TYPED_TEXT
    uint32_t field_count            # TYPED_OBJECT: the fields are sorted by name
    Target* fields
    const Slice* names
    Bytes ends                      # TYPED_ARRAY: offsets, int64
    Target* elements


cdef inline int put_end(Bytes* ends, int64_t end) noexcept nogil:
    return bytes_put(ends, &end, sizeof(int64_t))


cdef inline int put_flag(Bytes* flags, uint8_t flag) noexcept nogil:
    return bytes_put(flags, &flag, 1)


# The three functions return 0 or NO_ROOM.
cdef int64_t no_typed(Target* target) noexcept nogil:
    """Add a null typed_value to the current row, and nulls to all columns inside typed_value."""
    cdef uint32_t j
    cdef uint8_t* room
    if target.typed == TYPED_NONE:
        return 0
    if put_flag(&target.has_typed, 0) < 0:
        return NO_ROOM
    if target.typed == TYPED_FIXED:
        room = bytes_add(&target.data, target.width)
        if room == NULL:
            return NO_ROOM
        memset(room, 0, target.width)
    elif target.typed == TYPED_TEXT:
        return NO_ROOM if put_end(&target.texts.ends, <int64_t>target.texts.data.size) < 0 else 0
    elif target.typed == TYPED_ARRAY:
        return NO_ROOM if put_end(&target.ends, target.elements.rows) < 0 else 0
    else:
        for j in range(target.field_count):
            if missing(&target.fields[j]) < 0:
                return NO_ROOM
    return 0


cdef int64_t end_row(Target* target, uint8_t has_value) noexcept nogil:
    """Complete the current row, which has its typed_value already.

    Its value is null, or the bytes that were appended to values since the last row.
    """
    target.rows += 1
    if put_end(&target.values.ends, <int64_t>target.values.data.size) < 0 or put_flag(&target.has_value, has_value) < 0:
        return NO_ROOM
    return 0


cdef int64_t missing(Target* target) noexcept nogil:
    """Add a row that has neither value nor typed_value."""
    return NO_ROOM if no_typed(target) < 0 else end_row(target, 0)


cdef class Columns(NodeMemory):
    """Growing buffers for all columns in a shredding schema. Shredding fills them row by row."""

    cdef Target root
    cdef Bytes stack                # working memory for shredding
    cdef object schema

    def __cinit__(self, schema):
        self.schema = schema
        self._open(&self.root, schema)

    def result(self):
        """Return all rows so far as a Shredded pair."""
        return _result(&self.root, self.schema)

    def __dealloc__(self):
        _free(&self.root)
        bytes_free(&self.stack)

    cdef int _open(self, Target* target, schema) except -1:
        memset(target, 0, sizeof(Target))
        if put_end(&target.values.ends, 0) < 0 or put_end(&target.texts.ends, 0) < 0 or put_end(&target.ends, 0) < 0:
            raise MemoryError("shredding variants")
        if isinstance(schema, dict):
            return self._open_object(target, schema)
        if isinstance(schema, list):
            target.elements = <Target*>self.block(sizeof(Target))
            target.typed = TYPED_ARRAY
            return self._open(target.elements, schema[0])
        if schema is not None:
            kind = kind_of(schema)
            target.kind = kind
            target.typed = TYPED_TEXT if kind in (Kind.STRING, Kind.BINARY) else TYPED_FIXED
            target.width = 0 if schema.dtype is None else schema.dtype.itemsize
            if isinstance(schema.logical, Decimal):
                target.scale, target.precision = schema.logical.scale, schema.logical.precision
        return 0

    cdef int _open_object(self, Target* target, schema) except -1:
        cdef list names = sorted(schema)
        cdef uint32_t j
        target.names = self.encoded(names)
        target.fields = <Target*>self.block(len(names) * sizeof(Target))
        target.field_count = <uint32_t>len(names)
        target.typed = TYPED_OBJECT
        for j in range(target.field_count):
            self._open(&target.fields[j], schema[names[j]])
        return 0


cdef void _free(Target* target) noexcept nogil:
    cdef uint32_t j
    bytes_free(&target.values.data)
    bytes_free(&target.values.ends)
    bytes_free(&target.has_value)
    bytes_free(&target.has_typed)
    bytes_free(&target.data)
    bytes_free(&target.texts.data)
    bytes_free(&target.texts.ends)
    bytes_free(&target.ends)
    for j in range(target.field_count):
        _free(&target.fields[j])
    if target.elements != NULL:
        _free(target.elements)


cdef object _array(const Bytes* bytes_, dtype):
    """Copy growing memory to a NumPy array."""
    array = np.empty(bytes_.size, np.uint8)
    if bytes_.size:
        memcpy(cnp.PyArray_DATA(array), bytes_.data, bytes_.size)
    return array.view(dtype)


cdef tuple _validity(const Bytes* flags):
    """Return flags as a bitmap, and the null count. The bitmap is None if no value is null."""
    present = _array(flags, np.bool_)
    nulls = len(present) - int(np.count_nonzero(present))
    return (np.packbits(present, bitorder="little") if nulls else None), nulls


cdef object _texts(type_, const Texts* texts, const Bytes* flags):
    validity, nulls = _validity(flags)
    return Column._made(type_, BinaryOffsets(_array(&texts.ends, np.int64), _array(&texts.data, np.uint8)),
                        validity=validity, null_count=nulls)


cdef object _result(const Target* target, schema):
    """Return a complete target as a Shredded pair."""
    cdef uint32_t j
    value = _texts(BINARY, &target.values, &target.has_value)
    typed = None
    if target.typed != TYPED_NONE:
        validity, nulls = _validity(&target.has_typed)
    if target.typed == TYPED_OBJECT:
        names = sorted(schema)
        pairs = {names[j]: _result(&target.fields[j], schema[names[j]]) for j in range(target.field_count)}
        typed = ShreddedObject(target.rows, {name: pairs[name] for name in schema}, validity)
    elif target.typed == TYPED_ARRAY:
        typed = ShreddedArray(_array(&target.ends, np.int64), _result(target.elements, schema[0]), validity)
    elif target.typed == TYPED_TEXT:
        typed = _texts(schema, &target.texts, &target.has_typed)
    elif target.typed == TYPED_FIXED:
        typed = Column._made(schema, _array(&target.data, schema.dtype), validity=validity, null_count=nulls)
    return Shredded(target.rows, value, typed)


cdef int64_t _add(Target* target, Metadata names, const uint8_t* data, Bytes* stack) noexcept nogil:
    """Add a row that has a checked value. Return 0 or an error (Wrong)."""
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
    """Add a value to typed_value if the target's type can hold it exactly. Return 1 if so, else 0, or an error (Wrong)."""
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
    cdef bint is_int = kind <= KIND_INT64
    return variant_rescale(
        data + 1 if is_int else data + 2, NUMBER_WIDTHS[kind], 0 if is_int else data[1], target.scale, target.precision, room,
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
    """Add an object. Shredded fields go to their columns. Other fields go to value, as an object."""
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


cdef int64_t _split(Target* target, Metadata names, const Container* container, Bytes* stack, size_t first) noexcept nogil:
    """Find an object's fields that have shredded columns, and write the other fields to value, as an object.

    Pointers to the shredded fields go to the stack, from the offset ``first`` on. If a field is missing, its pointer stays NULL.
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
            (<const uint8_t**>(stack.data + first))[place] = child
        elif bytes_put(&target.values.data, child, value_size(child)) < 0 or bytes_put(stack, &field, sizeof(Field)) < 0:
            return NO_ROOM
    count = <uint32_t>((stack.size - bottom) // sizeof(Field))
    if count:
        sort_fields(<Field*>(stack.data + bottom), count)
        status = finish_object(&target.values.data, start, count, <Field*>(stack.data + bottom))
    stack.size = bottom
    return status


cdef int64_t _add_rows(Columns columns, Metadata names, SliceReader metadata, SliceReader value, int64_t* row) noexcept nogil:
    cdef Slice dictionaries[SLICE_BLOCK]
    cdef Slice values[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status
    while start < value.count:
        n = min(<int64_t>SLICE_BLOCK, value.count - start)
        status = metadata.read(start, n, dictionaries)
        if status >= 0:
            status = value.read(start, n, values)
        if status < 0:
            row[0] = -1
            return status
        for i in range(n):
            row[0] = start + i
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
    """Split unshredded variants into columns. The metadata column does not change.

    Args:
        metadata, value: readers for the metadata and the values, which have equal length. A null value is missing in each column.
        schema: a shredding schema that ``normalized`` has checked.

    Returns:
        The value and typed_value columns, a Shredded.

    Raises:
        FormatError: a row breaks VariantEncoding.md. The error names the row.
        LimitError: a value is nested deeper than MAX_DEPTH levels.
        SchemaError: UTF-8 cannot encode a name, or the columns have different lengths.
    """
    cdef Columns columns
    cdef Metadata names = Metadata()
    cdef int64_t status, failed_row = 0
    if metadata.count != value.count:
        raise SchemaError(f"there are {metadata.count} metadata for {value.count} values")
    columns = Columns(schema)
    with nogil:
        status = _add_rows(columns, names, metadata, value, &failed_row)
    if failed_row < 0:
        raise_status(status)
    if status < 0:
        raise_wrong(status, f"the variant of row {failed_row}")
    return columns.result()
