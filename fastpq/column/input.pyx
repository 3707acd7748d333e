"""The values of a Column in stored form, page by page."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint8_t, uint32_t
from libc.string cimport memset

import numpy as np

from fastpq.arrays.memory cimport block_give, block_reuse
from fastpq.column.stored_values cimport BOOLEAN, COPY, VARIABLE, VARIABLE_DECIMAL, decimals_to_slices, to_stored
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.leaf_entries cimport Levels
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.levels cimport bitmap_count, compact
from fastpq.encodings.status cimport BAD_INDEX
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SliceReader, array_start, raise_status

from fastpq.errors import SchemaError
from fastpq.arrays.numpy_output import fixed_values

cdef uint32_t UNKNOWN = UINT32_MAX


cdef class ColumnInput:
    """Converts the values of a Column to stored form, without nulls.

    Args:
        column: a Column; for the leaf of a nested column, the present values alone.
        layout: the Layout of the column's type.
        levels: the Levels of a nested column's leaf.

    Raises:
        SchemaError: the column's arrays do not fit each other.
    """

    def __cinit__(self, object column, object layout, Levels levels=None):
        cdef int64_t count = len(column)
        self.rows = count if levels is None else levels.rows
        self.levels = levels
        self.conversion = layout.conversion
        self.stored_width = layout.stored_width
        self.width = layout.width
        self.units = layout.units
        self.variable = self.conversion == VARIABLE or self.conversion == VARIABLE_DECIMAL
        self.dense_in_place = self.conversion == COPY and not column.null_count
        self.owners = (column,)
        if column.null_count:
            self.bits = array_start(column.validity)
        if self.conversion == VARIABLE:
            self.reader = SliceReader(column.values, column.validity if column.null_count else None)
            return
        values = column.values
        if type(values) is not np.ndarray or not values.flags.c_contiguous:
            values = fixed_values(column)
        self.owners += (values,)
        self.data = array_start(values)
        if values.nbytes != count * <int64_t>self.width:
            raise SchemaError(f"{values.dtype} values do not fit the column's type")

    def __dealloc__(self):
        self.free()

    cdef void free(self) noexcept nogil:
        scratch_free(&self.dense)
        scratch_free(&self.stored)
        scratch_free(&self.slice_memory)
        scratch_free(&self.places)
        self.places_in = NULL

    def count_values(self):
        """The number of values, nulls left out."""
        return self.count_present(0, self.rows)

    def codes(self, DictionaryEncoder encoder not None):
        """The code of each value (uint32) in the encoder's dictionary; new values are added to the dictionary."""
        cdef int64_t present = self.count_present(0, self.rows), done
        cdef const uint8_t* values
        cdef Slice* slices
        cdef uint32_t[::1] codes = np.empty(present + 1, dtype=np.uint32)
        with nogil:
            if self.variable:
                self.slices(0, self.rows, &slices)
                done = encoder.encode_slices(slices, present, INT64_MAX, &codes[0])
            else:
                self.fixed(0, self.rows, &values)
                done = encoder.encode_fixed(values, present, INT64_MAX, &codes[0])
        if done < 0:
            raise MemoryError("the dictionary's hash table")
        return np.asarray(codes)[:present]

    cdef DictionaryEncoder new_dictionary(self):
        cdef DictionaryEncoder dictionary = DictionaryEncoder(0 if self.variable else self.stored_width)
        dictionary.use_memory(block_reuse, block_give)
        return dictionary

    cdef void _to_values(self, int64_t* start, int64_t* count) noexcept nogil:
        """Turn a range of rows into the range of the values in the rows."""
        cdef int64_t first
        if self.levels is not None:
            first = self.levels.value_starts[start[0]]
            count[0] = self.levels.value_starts[start[0] + count[0]] - first
            start[0] = first

    cdef int64_t count_present(self, int64_t start, int64_t count) noexcept nogil:
        self._to_values(&start, &count)
        return count if self.bits == NULL else bitmap_count(self.bits, start, count)

    cdef int64_t rows_of(self, int64_t start, int64_t most, int64_t values) noexcept nogil:
        cdef int64_t low = 0, high = most, middle
        while low < high:
            middle = (low + high + 1) // 2
            if self.count_present(start, middle) <= values:
                low = middle
            else:
                high = middle - 1
        return low

    cdef const uint8_t* _compacted(self, int64_t start, int64_t count, int64_t* present) except NULL nogil:
        """The values of rows in the column's own form, nulls left out."""
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
        self._to_values(&start, &count)
        values[0] = self._compacted(start, count, &present)
        if self.conversion == COPY or self.conversion == BOOLEAN:
            return present
        out = scratch_reserve(&self.stored, <size_t>present * self.stored_width)
        if to_stored(self.conversion, values[0], self.width, present, out, self.stored_width, self.units) < 0:
            with gil:
                raise SchemaError(f"a value between rows {start} and {start + count} that the column's physical type cannot hold")
        values[0] = out
        return present

    cdef int64_t slices(self, int64_t start, int64_t count, Slice** values) except -1 nogil:
        cdef int64_t present = 0, i, status
        cdef const uint8_t* dense
        cdef uint8_t* out
        cdef Slice* slices
        self._to_values(&start, &count)
        slices = <Slice*>scratch_reserve(&self.slice_memory, <size_t>count * sizeof(Slice))
        values[0] = slices
        if self.conversion == VARIABLE_DECIMAL:
            dense = self._compacted(start, count, &present)
            out = scratch_reserve(&self.stored, <size_t>present * self.width)
            return decimals_to_slices(dense, self.width, present, out, slices)
        status = self.reader.read(start, count, slices)
        if status < 0:
            with gil:
                raise_status(status)
        if self.bits == NULL:
            return count
        for i in range(count):
            slices[present] = slices[i]
            present += slices[i].data != NULL
        return present

    cdef int64_t encode(self, int64_t start, int64_t count, DictionaryEncoder dictionary, int64_t limit, uint32_t* codes,
                        int64_t* present, Slice** slices) except? -100 nogil:
        cdef int64_t done, entries = -1 if self.reader is None else self.reader.entries()
        if entries < 0 or entries > self.rows:
            present[0] = self.slices(start, count, slices)
            return dictionary.encode_slices(slices[0], present[0], limit, codes)
        if self.places_in != <void*>dictionary:
            memset(scratch_reserve(&self.places, <size_t>entries * sizeof(uint32_t)), 0xFF, <size_t>entries * sizeof(uint32_t))
            self.places_in = <void*>dictionary
        slices[0] = NULL
        present[0] = self.count_present(start, count)
        self._to_values(&start, &count)
        done = self._translate(start, count, dictionary, limit, codes)
        if done == BAD_INDEX:
            with gil:
                raise_status(done)
        return done

    cdef int64_t _translate(self, int64_t start, int64_t count, DictionaryEncoder dictionary, int64_t limit,
                            uint32_t* codes) noexcept nogil:
        cdef const uint32_t* own = <const uint32_t*>self.reader.codes
        cdef uint32_t* places = <uint32_t*>self.places.data
        cdef int64_t i, done = 0, added
        cdef uint32_t code
        for i in range(start, start + count):
            if self.bits != NULL and not (self.bits[i >> 3] >> (i & 7)) & 1:
                continue
            code = own[i]
            if <int64_t>code >= self.reader.dictionary_size:
                return BAD_INDEX
            if places[code] == UNKNOWN:
                added = dictionary.encode_slices(&self.reader.dictionary[code], 1, limit, &places[code])
                if added <= 0:
                    places[code] = UNKNOWN
                    return done if added == 0 else added
            codes[done] = places[code]
            done += 1
        return done

    cdef int64_t mapped(self, int64_t start, int64_t count, const uint32_t* mapping, uint32_t* codes) except -1 nogil:
        cdef int64_t present
        self._to_values(&start, &count)
        present = self.reader.read_codes(start, count, mapping, codes)
        if present < 0:
            with gil:
                raise_status(present)
        return present


cdef class StoredView:
    """Stored bytes in the memory of a column; the view keeps the column."""

    @staticmethod
    cdef StoredView of(ColumnInput input, const uint8_t* data, int64_t size):
        cdef StoredView view = StoredView.__new__(StoredView)
        view.input = input
        view.data = data
        view.size = size
        return view

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void*>self.data, <Py_ssize_t>self.size, 1, flags)
