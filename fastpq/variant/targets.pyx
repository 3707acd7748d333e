"""Targets of shredding: growable buffers for the columns of a shredding schema, converted to a Shredded pair at the end."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

cimport numpy as cnp
from fastpq.encodings.views cimport Slice
from fastpq.variant.emit cimport Bytes, bytes_add, bytes_free
from fastpq.variant.wire cimport NO_ROOM
from fastpq.variant.shredded_tree cimport TYPED_ARRAY, TYPED_FIXED, TYPED_NONE, TYPED_OBJECT, TYPED_TEXT

import numpy as np

from fastpq.errors import SchemaError
from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.table import Column
from fastpq.schema.types import Decimal
from fastpq.schema.variant_kinds import Kind, kind_of
from fastpq.variant.shredded import BINARY, Shredded, ShreddedArray, ShreddedObject

cnp.import_array()


cdef int64_t no_typed(Target* target) noexcept nogil:
    """Add a null typed_value, also to all columns inside typed_value."""
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
    target.rows += 1
    if put_end(&target.values.ends, <int64_t>target.values.data.size) < 0 or put_flag(&target.has_value, has_value) < 0:
        return NO_ROOM
    return 0


cdef int64_t missing(Target* target) noexcept nogil:
    return NO_ROOM if no_typed(target) < 0 else end_row(target, 0)


cdef class Columns:
    """Growable buffers for all columns of a shredding schema, filled row by row."""

    def __cinit__(self, schema):
        self.blocks = []
        self.schema = schema
        self._open(&self.root, schema)

    def result(self):
        """The Shredded pair of all rows so far."""
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
            target.elements = <Target*>self._block(sizeof(Target))
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
        cdef Slice* names = <Slice*>self._block(len(schema) * sizeof(Slice))
        cdef bytes text
        cdef uint32_t j
        target.fields = <Target*>self._block(len(schema) * sizeof(Target))
        target.names = names
        target.typed = TYPED_OBJECT
        for name in sorted(schema):
            try:
                text = name.encode()
            except UnicodeEncodeError as error:
                raise SchemaError("a field's name with a surrogate, which UTF-8 does not have") from error
            self.blocks.append(text)
            j = target.field_count
            names[j] = Slice(<const uint8_t*><const char*>text, len(text))
            target.field_count += 1
            self._open(&target.fields[j], schema[name])
        return 0

    cdef void* _block(self, size_t size) except NULL:
        block = np.zeros(max(size, <size_t>1), np.uint8)
        self.blocks.append(block)
        return cnp.PyArray_DATA(block)

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
    """A copy of growing memory as a NumPy array."""
    array = np.empty(bytes_.size, np.uint8)
    if bytes_.size:
        memcpy(cnp.PyArray_DATA(array), bytes_.data, bytes_.size)
    return array.view(dtype)


cdef tuple _validity(const Bytes* flags):
    """The bitmap of flags, None without nulls; and the number of nulls."""
    present = _array(flags, np.bool_)
    nulls = len(present) - int(np.count_nonzero(present))
    return (np.packbits(present, bitorder="little") if nulls else None), nulls


cdef object _texts(type_, const Texts* texts, const Bytes* flags):
    validity, nulls = _validity(flags)
    return Column._made(type_, BinaryOffsets(_array(&texts.ends, np.int64), _array(&texts.data, np.uint8)),
                        validity=validity, null_count=nulls)


cdef object _result(const Target* target, schema):
    """The Shredded pair of a target; all columns have their last row."""
    cdef uint32_t j
    value = _texts(BINARY, &target.values, &target.has_value)
    typed = None
    if target.typed != TYPED_NONE:
        validity, nulls = _validity(&target.has_typed)
    if target.typed == TYPED_OBJECT:
        ordered = sorted(schema)
        made = {ordered[j]: _result(&target.fields[j], schema[ordered[j]]) for j in range(target.field_count)}
        typed = ShreddedObject(target.rows, {name: made[name] for name in schema}, validity)
    elif target.typed == TYPED_ARRAY:
        typed = ShreddedArray(_array(&target.ends, np.int64), _result(target.elements, schema[0]), validity)
    elif target.typed == TYPED_TEXT:
        typed = _texts(schema, &target.texts, &target.has_typed)
    elif target.typed == TYPED_FIXED:
        typed = Column._made(schema, _array(&target.data, schema.dtype), validity=validity, null_count=nulls)
    return Shredded(target.rows, value, typed)
