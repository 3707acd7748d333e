"""Tree: shredded columns as C structures with pointers, so that reassembly can run without the GIL."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

cimport numpy as cnp
from fastpq.encodings.comparison cimport compare_byte_strings
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SliceReader, array_start, checked_array, raise_status
from fastpq.variant.wire cimport BAD_STRUCTURE, DEPTH_LIMIT, TOO_DEEP, raise_wrong

import numpy as np

from fastpq.errors import SchemaError
from fastpq.arrays.flat_column import fixed_values
from fastpq.schema.types import Decimal
from fastpq.schema.variant_kinds import Kind, kind_of
from fastpq.variant.shredded import ShreddedArray, ShreddedObject

cnp.import_array()


cdef int64_t find_name(const Slice* names, int64_t count, Slice name) noexcept nogil:
    cdef int64_t low = 0, high = count, middle
    cdef int order
    while low < high:
        middle = (low + high) // 2
        order = compare_byte_strings(names[middle], name)
        if order == 0:
            return middle
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return -1


cdef class NodeMemory:
    """Base class for objects that hold a tree of C structures."""

    def __cinit__(self):
        self.blocks = []

    cdef void* block(self, size_t size) except NULL:
        memory = np.zeros(max(size, <size_t>1), np.uint8)
        self.blocks.append(memory)
        return cnp.PyArray_DATA(memory)

    cdef const Slice* encoded(self, list names) except NULL:
        cdef Slice* slices = <Slice*>self.block(len(names) * sizeof(Slice))
        cdef bytes text
        for i, name in enumerate(names):
            try:
                text = name.encode()
            except UnicodeEncodeError as error:
                raise SchemaError("the name of a field has a surrogate, which UTF-8 cannot encode") from error
            self.blocks.append(text)
            slices[<Py_ssize_t>i] = Slice(<const uint8_t*><const char*>text, len(text))
        return slices


cdef class Tree(NodeMemory):
    """The C structures for one Shredded pair and for all columns inside it. The tree keeps the columns alive.

    Args:
        shredded: a Shredded.

    Raises:
        SchemaError: arrays have different lengths, or UTF-8 cannot encode a name.
        FormatError: a type is not allowed for shredding, or list offsets descend or are outside the elements.
        LimitError: the pair is nested deeper than MAX_DEPTH levels.
    """

    def __cinit__(self, shredded):
        self.owners = [shredded]
        self.names = sorted(_names_in(shredded, 0))
        self.numbers = {name: i for i, name in enumerate(self.names)}
        self.name_slices = self.encoded(self.names)
        self.name_count = len(self.names)
        self._fill(&self.root, shredded, 0)

    cdef const uint8_t* _bitmap(self, validity, int64_t rows) except? NULL:
        if validity is None:
            return NULL
        if len(checked_array(validity, np.uint8, "validity bits")) < (rows + 7) // 8:
            raise SchemaError(f"there are {len(validity)} bytes of validity bits for {rows} rows")
        return array_start(validity)

    cdef const Slice* _slices(self, column) except NULL:
        cdef SliceReader reader
        cdef Slice* slices
        reader = SliceReader(column.values, column.validity if column.null_count else None)
        slices = <Slice*>self.block(reader.count * sizeof(Slice))
        raise_status(reader.read(0, reader.count, slices))
        self.owners.append(reader)
        return slices

    cdef int _fill(self, Pair* pair, shredded, int depth) except -1:
        memset(pair, 0, sizeof(Pair))
        pair.rows = shredded.length
        pair.present = self._bitmap(shredded.validity, pair.rows)
        if shredded.value is not None:
            if not shredded.value.type.is_variable:
                raise SchemaError(f"the value of a variant must be BYTE_ARRAY, not {shredded.value.type}")
            pair.values = self._slices(shredded.value)
        typed = shredded.typed_value
        if typed is None:
            return 0
        if isinstance(typed, ShreddedObject):
            return self._fill_object(pair, typed, depth)
        if isinstance(typed, ShreddedArray):
            return self._fill_array(pair, typed, pair.rows, depth)
        return self._fill_primitive(pair, typed)

    cdef int _fill_object(self, Pair* pair, typed, int depth) except -1:
        cdef uint32_t i
        cdef uint32_t* numbers
        pair.typed = TYPED_OBJECT
        pair.typed_present = self._bitmap(typed.validity, pair.rows)
        names = sorted(typed.fields)
        pair.field_count = <uint32_t>len(names)
        pair.names = self.encoded(names)
        pair.fields = <Pair*>self.block(pair.field_count * sizeof(Pair))
        numbers = <uint32_t*>self.block(pair.field_count * sizeof(uint32_t))
        pair.name_numbers = numbers
        for i in range(pair.field_count):
            inner = typed.fields[names[i]]
            if inner.length != pair.rows:
                raise SchemaError(f"the field {names[i]!r} has {inner.length} rows, not {pair.rows}")
            numbers[i] = self.numbers[names[i]]
            self._fill(&pair.fields[i], inner, depth + 1)
        return 0

    cdef int _fill_array(self, Pair* pair, typed, int64_t rows, int depth) except -1:
        pair.typed = TYPED_ARRAY
        pair.typed_present = self._bitmap(typed.validity, rows)
        offsets = np.ascontiguousarray(typed.offsets, np.int64)
        self.owners.append(offsets)
        if offsets[0] < 0 or offsets[rows] > typed.elements.length or bool((np.diff(offsets) < 0).any()):
            raise_wrong(BAD_STRUCTURE, "a shredded array")
        pair.offsets = <const int64_t*>array_start(offsets)
        pair.elements = <Pair*>self.block(sizeof(Pair))
        return self._fill(pair.elements, typed.elements, depth + 1)

    cdef int _fill_primitive(self, Pair* pair, column) except -1:
        kind = kind_of(column.type)
        pair.kind = kind
        if isinstance(column.type.logical, Decimal):
            pair.scale = column.type.logical.scale
        pair.typed_present = self._bitmap(column.validity if column.null_count else None, pair.rows)
        if kind in (Kind.STRING, Kind.BINARY):
            pair.typed = TYPED_TEXT
            pair.texts = self._slices(column)
            return 0
        pair.typed = TYPED_FIXED
        values = fixed_values(column)
        self.owners.append(values)
        pair.data = array_start(values)
        pair.width = values.dtype.itemsize
        return 0


def _names_in(shredded, int depth):
    """Return all field names in a tree, as a set."""
    typed = shredded.typed_value
    if depth > DEPTH_LIMIT:
        raise_wrong(TOO_DEEP, "a shredded variant")
    if isinstance(typed, ShreddedArray):
        return _names_in(typed.elements, depth + 1)
    names = set()
    if isinstance(typed, ShreddedObject):
        names.update(typed.fields)
        for inner in typed.fields.values():
            names |= _names_in(inner, depth + 1)
    return names
