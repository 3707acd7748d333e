"""Reassembly: joining shredded columns to unshredded values (VariantShredding.md, "Reconstructing a Shredded Variant").

The specification leaves some cases to the reader. This module handles them as follows:

- Both value and typed_value are present, and typed_value is not an object ("engines should fail"): FormatError.
- typed_value is an object, and value is present but not an object: FormatError.
- value has a field that also has a shredded column: the shredded column is used, even if the field is missing there. A reader
  that reads only the shredded columns gets the same result.
- value is an object or array, although typed_value has columns for objects or arrays: value is used.
- Both value and typed_value are missing: an object does not have the field. An array element or a whole variant is a variant
  null ("If a Variant is missing in a context where a value is required, readers must return a Variant null").
- The metadata does not have a field's name ("must be present"): FormatError.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport numpy as cnp
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status
from fastpq.variant.emit cimport (
    Bytes, Field, bytes_free, bytes_put, finish_array, finish_object, put_decimal, put_primitive, put_text, sort_fields,
)
from fastpq.variant.wire cimport (
    BAD_DECIMAL, CONFLICT, DEPTH_LIMIT, ENDS_EARLY, KIND_DECIMAL4, KIND_DECIMAL16, KIND_FALSE, KIND_NULL, KIND_STRING, KIND_TRUE,
    NAME_MISSING, NO_ROOM, NOT_AN_OBJECT, NOT_UTF8, OBJECT, TOO_DEEP, TOO_LARGE, TRAILING_BYTES, Container, Metadata, check_value,
    child_at, id_at, name_at, open_container, raise_wrong, value_size,
)
from fastpq.variant.shredded_tree cimport TYPED_ARRAY, TYPED_NONE, TYPED_OBJECT, TYPED_TEXT, Pair, Tree, bit, find_name

import numpy as np

from fastpq.errors import SchemaError

cnp.import_array()

cdef extern from "c/utf8.h" nogil:
    int utf8_is_valid(const uint8_t* data, size_t size)

cdef extern from "c/variant.h" nogil:
    int variant_has_digits(const uint8_t* p, int width, int digits)

cdef uint32_t NO_ID = 0xFFFFFFFF        # stands for an id if a row's metadata does not have the name
cdef int64_t NOT_A_ROW = -1             # stands for a row number if reading the metadata column failed


# The state while one row is reassembled, and all rows' values so far.
cdef struct Row:
    Bytes out                   # all rows' values so far
    uint32_t* ids               # for each distinct name in the tree, its id in this row's metadata, or NO_ID
    Bytes fields                # a stack: the Fields that unfinished objects have so far
    Bytes starts                # a stack: where the elements of unfinished arrays start


cdef int64_t _pair(Row* row, Metadata names, const Pair* pair, int64_t i, int depth) noexcept nogil:
    """Write a pair's row i. Return 1, or 0 if the value is missing, or an error (Wrong)."""
    cdef Slice value = Slice(NULL, 0)
    cdef bint typed
    cdef int64_t status
    if depth > DEPTH_LIMIT:
        return TOO_DEEP
    if not bit(pair.present, i):
        return 0
    if pair.values != NULL and pair.values[i].data != NULL:
        value = pair.values[i]
        status = check_value(&names.names, value.data, value.size, depth, False)
        if status < 0:
            return status
        if status < <int64_t>value.size:
            return TRAILING_BYTES
    typed = pair.typed != TYPED_NONE and bit(pair.typed_present, i)
    if typed and depth >= DEPTH_LIMIT and (pair.typed == TYPED_OBJECT or pair.typed == TYPED_ARRAY):
        return TOO_DEEP
    if typed and pair.typed == TYPED_OBJECT:
        return _object(row, names, pair, i, value, depth)
    if typed:
        if value.data != NULL:
            return CONFLICT
        return _array(row, names, pair, i, depth) if pair.typed == TYPED_ARRAY else _primitive(&row.out, pair, i)
    if value.data == NULL:
        return 0
    return 1 if bytes_put(&row.out, value.data, value.size) == 0 else <int64_t>NO_ROOM


cdef int64_t _primitive(Bytes* out, const Pair* pair, int64_t i) noexcept nogil:
    cdef const uint8_t* data
    cdef int64_t status
    if pair.typed == TYPED_TEXT:
        if pair.kind == KIND_STRING and not utf8_is_valid(pair.texts[i].data, pair.texts[i].size):
            return NOT_UTF8
        status = put_text(out, pair.kind, pair.texts[i])
        return status if status < 0 else 1
    data = pair.data + <size_t>i * pair.width
    if pair.kind == KIND_TRUE:
        status = put_primitive(out, KIND_TRUE if data[0] else KIND_FALSE, NULL, 0)
    elif pair.kind == KIND_DECIMAL16 and not variant_has_digits(data, 16, 38):
        return BAD_DECIMAL
    elif KIND_DECIMAL4 <= pair.kind <= KIND_DECIMAL16:
        status = put_decimal(out, pair.kind, pair.scale, data, pair.width)
    else:
        status = put_primitive(out, pair.kind, data, pair.width)
    return status if status < 0 else 1


cdef int64_t _array(Row* row, Metadata names, const Pair* pair, int64_t i, int depth) noexcept nogil:
    cdef size_t start = row.out.size, bottom = row.starts.size
    cdef int64_t j, first = pair.offsets[i], end = pair.offsets[i + 1], status = 0
    cdef uint32_t at
    if end - first >= NO_ID:
        return TOO_LARGE
    for j in range(first, end):
        at = <uint32_t>(row.out.size - start)
        if bytes_put(&row.starts, &at, sizeof(uint32_t)) < 0:
            return NO_ROOM
        status = _pair(row, names, pair.elements, j, depth + 1)
        if status == 0:
            status = put_primitive(&row.out, KIND_NULL, NULL, 0)
        if status < 0:
            return status
    status = finish_array(&row.out, start, <uint32_t>(end - first), <const uint32_t*>(row.starts.data + bottom))
    row.starts.size = bottom
    return status if status < 0 else 1


cdef int64_t _object(Row* row, Metadata names, const Pair* pair, int64_t i, Slice value, int depth) noexcept nogil:
    cdef size_t start = row.out.size, bottom = row.fields.size
    cdef int64_t status = 0
    cdef uint32_t j, count
    cdef Field field
    if value.data != NULL and value.data[0] & 3 != OBJECT:
        return NOT_AN_OBJECT
    for j in range(pair.field_count):
        field = Field(pair.names[j], row.ids[pair.name_numbers[j]], <uint32_t>(row.out.size - start))
        status = _pair(row, names, &pair.fields[j], i, depth + 1)
        if status == 1 and field.id == NO_ID:
            return NAME_MISSING
        if status == 1 and bytes_put(&row.fields, &field, sizeof(Field)) < 0:
            return NO_ROOM
        if status < 0:
            return status
    if value.data != NULL:
        status = _rest(row, names, pair, value, start)
        if status < 0:
            return status
    count = <uint32_t>((row.fields.size - bottom) // sizeof(Field))
    sort_fields(<Field*>(row.fields.data + bottom), count)
    status = finish_object(&row.out, start, count, <Field*>(row.fields.data + bottom))
    row.fields.size = bottom
    return status if status < 0 else 1


cdef int64_t _rest(Row* row, Metadata names, const Pair* pair, Slice value, size_t start) noexcept nogil:
    """Write the fields that a partially shredded object has in value. Skip those that have shredded columns."""
    cdef Container container
    cdef uint32_t i
    cdef Field field
    cdef const uint8_t* data
    open_container(value.data, value.size, &container)
    for i in range(container.count):
        field.id = id_at(&container, i)
        field.name = name_at(&names.names, field.id)
        field.start = <uint32_t>(row.out.size - start)
        if find_name(pair.names, pair.field_count, field.name) >= 0:
            continue
        data = child_at(&container, i)
        if bytes_put(&row.out, data, value_size(data)) < 0 or bytes_put(&row.fields, &field, sizeof(Field)) < 0:
            return NO_ROOM
    return 0


cdef void _find_ids(uint32_t* ids, Tree tree, Metadata names) noexcept nogil:
    """Find each tree name's id in a metadata dictionary. If a name has several ids, use the first."""
    cdef int64_t place, i, count = tree.name_count
    cdef uint32_t id
    for i in range(count):
        ids[i] = NO_ID
    for id in range(names.names.count):
        place = find_name(tree.name_slices, count, name_at(&names.names, id))
        if place >= 0 and ids[place] == NO_ID:
            ids[place] = id


cdef int64_t _rows(Row* row, Metadata names, Tree tree, SliceReader metadata, const uint8_t* present, int64_t* ends,
                   int64_t limit, int64_t* failed_row) noexcept nogil:
    cdef Slice block[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status
    cdef int64_t rows = tree.root.rows
    while start < rows:
        n = min(<int64_t>SLICE_BLOCK, rows - start)
        status = metadata.read(start, n, block)
        if status < 0:
            failed_row[0] = NOT_A_ROW
            return status
        for i in range(n):
            failed_row[0] = start + i
            if bit(present, start + i):
                if block[i].data == NULL:
                    return ENDS_EARLY
                if not names.is_same(block[i]):
                    status = names.take(block[i].data, block[i].size, False)
                    if status < 0:
                        return status
                    _find_ids(row.ids, tree, names)
                status = _pair(row, names, &tree.root, start + i, 0)
                if status == 0:
                    status = put_primitive(&row.out, KIND_NULL, NULL, 0)
                if status < 0:
                    return status
                if <int64_t>row.out.size > limit:
                    return TOO_LARGE
            ends[start + i] = <int64_t>row.out.size
        start += n
    return 0


def reassemble(SliceReader metadata not None, shredded, validity, int64_t limit):
    """Join shredded columns to the value column that unshredded variants have. The metadata column does not change.

    Args:
        metadata: reader for the metadata.
        shredded: the Shredded pair that holds whole variants.
        validity: variant bitmap, uint8, or None. A null variant has no bytes.
        limit: size limit for all values together, in bytes.

    Returns:
        (offsets, data): the values' offsets, shape (n + 1,), int64, and their bytes, uint8.

    Raises:
        FormatError: a row breaks VariantEncoding.md or VariantShredding.md. The error names the row.
        LimitError: the values exceed the limit, or are nested deeper than MAX_DEPTH levels.
        SchemaError: arrays have different lengths.
    """
    cdef Tree tree = Tree(shredded)
    cdef Metadata names = Metadata()
    cdef Row row
    cdef int64_t status, failed_row = 0, bound = limit
    cdef int64_t* ends
    cdef const uint8_t* present = tree._bitmap(validity, tree.root.rows)
    if metadata.count != tree.root.rows:
        raise SchemaError(f"there are {metadata.count} metadata for {tree.root.rows} values")
    offsets = np.zeros(metadata.count + 1, np.int64)
    ends = <int64_t*>cnp.PyArray_DATA(offsets) + 1
    row.out = row.fields = row.starts = Bytes(NULL, 0, 0)
    row.ids = <uint32_t*>malloc((tree.name_count + 1) * sizeof(uint32_t))
    if row.ids == NULL:
        raise MemoryError("reassembling variants")
    try:
        with nogil:
            status = _rows(&row, names, tree, metadata, present, ends, bound, &failed_row)
        if failed_row == NOT_A_ROW:
            raise_status(status)
        if status < 0:
            raise_wrong(status, f"the shredded variant of row {failed_row}")
        data = np.empty(row.out.size, np.uint8)
        if row.out.size:
            memcpy(cnp.PyArray_DATA(data), row.out.data, row.out.size)
    finally:
        free(row.ids)
        bytes_free(&row.out)
        bytes_free(&row.fields)
        bytes_free(&row.starts)
    return offsets, data
