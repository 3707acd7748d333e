"""A Column as the writer sees it: dense values in stored form, page by page."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free

import numpy as np

from fastpq.column.convert cimport COPY, BOOLEAN, VARIABLE, VARIABLE_DECIMAL, decimals_to_slices, to_stored
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.levels cimport bitmap_count, compact
from fastpq.encodings.plain cimport offsets_to_slices, views_to_slices
from fastpq.encodings.views cimport Slice, View

from fastpq.errors import SchemaError
from fastpq.table import BinaryOffsets, BinaryViews, DictionaryValues

cdef const uint8_t NOTHING = 0


cdef const uint8_t* address(object array, list owners) except NULL:
    """First byte of a contiguous array, which owners then keeps alive; never NULL."""
    cdef const uint8_t[::1] view = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    owners.append(view)
    return &view[0] if view.shape[0] else &NOTHING


cdef class ColumnInput:
    """Reads the values of a Column in the form in which pages store them.

    Args:
        column: a flat Column.
        layout: the Layout of its type.

    Raises:
        SchemaError: the column's arrays do not fit each other.
    """

    def __cinit__(self, object column, object layout):
        self.owners = [column]
        self.rows = len(column)
        self.conversion = layout.conversion
        self.stored_width = layout.stored_width
        self.width = layout.width
        self.units = layout.units
        self.variable = self.conversion == VARIABLE or self.conversion == VARIABLE_DECIMAL
        self.dense_in_place = self.conversion == COPY and column.validity is None
        if column.validity is not None:
            if len(column.validity) < (self.rows + 7) // 8:
                raise SchemaError(f"a validity bitmap of {len(column.validity)} bytes for {self.rows} rows")
            self.bits = address(column.validity, self.owners)
        values = column.values
        if isinstance(values, DictionaryValues):
            values = column.as_views().values
        if isinstance(values, BinaryViews):
            self._take_views(values)
        elif isinstance(values, BinaryOffsets):
            self.wide_offsets = values.offsets.dtype == np.int64
            self.data = address(values.offsets, self.owners)
            self.characters = address(values.data, self.owners)
        else:
            self.data = address(values, self.owners)
            if self.conversion == VARIABLE or values.nbytes != self.rows * self.width:
                raise SchemaError(f"{values.dtype} values do not fit the column's type")

    def __dealloc__(self):
        scratch_free(&self.dense)
        scratch_free(&self.stored)
        scratch_free(&self.slice_memory)
        free(self.buffers)

    def _take_views(self, values):
        self.views = True
        self.data = address(values.views, self.owners)
        self.buffers = <const uint8_t**>calloc(len(values.buffers) + 1, sizeof(uint8_t*))
        if self.buffers == NULL:
            raise MemoryError()
        for i, buffer in enumerate(values.buffers):
            self.buffers[i] = address(buffer, self.owners)

    cdef int64_t count_present(self, int64_t start, int64_t count) noexcept nogil:
        return count if self.bits == NULL else bitmap_count(self.bits, start, count)

    cdef const uint8_t* _compacted(self, int64_t start, int64_t count, int64_t* present) except NULL nogil:
        """The rows' values as the column holds them, without the nulls."""
        cdef uint8_t* out
        present[0] = count
        if self.bits == NULL:
            return self.data + <size_t>start * self.width
        out = scratch_reserve(&self.dense, <size_t>count * self.width)
        present[0] = compact(self.bits, start, count, self.data + <size_t>start * self.width, out, self.width)
        return out

    cdef int64_t fixed(self, int64_t start, int64_t count, const uint8_t** values) except -1 nogil:
        cdef int64_t present = 0
        cdef uint8_t* out
        values[0] = self._compacted(start, count, &present)
        if self.conversion == COPY or self.conversion == BOOLEAN:
            return present
        out = scratch_reserve(&self.stored, <size_t>present * self.stored_width)
        if to_stored(self.conversion, values[0], self.width, present, out, self.stored_width, self.units) < 0:
            with gil:
                raise SchemaError(f"a decimal between rows {start} and {start + count} is too large for the column's type")
        values[0] = out
        return present

    cdef int64_t slices(self, int64_t start, int64_t count, Slice** values) except -1 nogil:
        cdef int64_t present = 0
        cdef const uint8_t* dense
        cdef uint8_t* out
        values[0] = <Slice*>scratch_reserve(&self.slice_memory, <size_t>count * sizeof(Slice))
        if self.conversion == VARIABLE_DECIMAL:
            dense = self._compacted(start, count, &present)
            out = scratch_reserve(&self.stored, <size_t>present * self.width)
            return decimals_to_slices(dense, self.width, present, out, values[0])
        if self.views:
            return views_to_slices(<const View*>self.data + start, count, self.buffers, self.bits, start, values[0])
        return offsets_to_slices(self.data + start * (8 if self.wide_offsets else 4), self.wide_offsets, count,
                                 self.characters, self.bits, start, values[0])
