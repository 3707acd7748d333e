"""Converts the values of a Column to their stored form, a row range at a time."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

import numpy as np

from fastpq.arrays.memory cimport block_give, block_reuse
from fastpq.column.stored_values cimport (
    BOOLEAN, COPY, VARIABLE, VARIABLE_DECIMAL, decimals_have_integers, decimals_to_integers, decimals_to_slices,
    integers_to_decimals, to_stored,
)
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.leaf_entries cimport Levels
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.levels cimport bitmap_count, compact
from fastpq.encodings.status cimport BAD_INDEX
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SliceReader, array_start, raise_status, read_slices

from fastpq.arrays.concat import concat_validity
from fastpq.errors import SchemaError
from fastpq.arrays.flat_column import fixed_values

cdef uint32_t UNKNOWN = UINT32_MAX


@cython.no_gc          # no instance can be part of a cycle
cdef class ColumnInput:
    """Converts the values of a Column to their stored form, without nulls.

    Args:
        column: a Column. A leaf in a nested column has only its non-null values.
        layout: the column type's Layout.
        levels: the leaf's Levels, for a nested column.
        following: Columns of the same type whose rows follow those of a flat column. They may have other layouts, but no
            dictionary codes, nor may the first column then. Rows are copied only if a page has rows of several columns.

    Raises:
        SchemaError: the column's arrays do not fit its type, or each other.
    """

    def __cinit__(self, object column, object layout, Levels levels=None, object following=()):
        cdef int64_t number
        cdef bint is_copy, has_nulls
        columns = (column, *following)
        self.levels = levels
        self.conversion = layout.conversion
        self.stored_width = layout.stored_width
        self.width = layout.width
        self.units = layout.units
        self.variable = self.conversion == VARIABLE or self.conversion == VARIABLE_DECIMAL
        self.text = layout.text
        self.has_integers = decimals_have_integers(self.conversion, self.width, self.stored_width)
        # Gathered values are a copy of our own. A written page must not keep it, as it may keep the caller's memory.
        is_copy = levels is not None and not levels.is_consecutive
        has_nulls = column.null_count != 0 or any([each.null_count for each in following])
        self.dense_in_place = self.conversion == COPY and not has_nulls and not is_copy and len(columns) == 1
        self.owners = [*columns]
        self.readers = []
        self.parts = <Part*>PyMem_Malloc((<size_t>len(columns) + 1) * sizeof(Part))
        if self.parts == NULL:
            raise MemoryError
        self.part_count = len(columns)
        self.parts[0].first = 0
        for number in range(self.part_count):
            self._add_part(&self.parts[number], columns[number])
        if len(self.readers) == 1:
            self.reader = self.readers[0]
        self.rows = self.parts[self.part_count].first if levels is None else levels.rows
        if has_nulls:
            validity = column.validity
            if self.part_count > 1:
                validity = concat_validity([each.validity if each.null_count else None for each in columns], [*map(len, columns)])
                self.owners.append(validity)
            self.bits = array_start(validity)

    cdef int _add_part(self, Part* part, object column) except -1:
        """Fill a part in with a column, and begin the next part."""
        cdef SliceReader reader
        cdef int64_t rows
        values = column.values
        rows = len(values)
        part[1].first = part.first + rows
        validity = column.validity if column.null_count else None
        part.bits = NULL
        if validity is not None:
            part.bits = array_start(validity)
        if self.conversion == VARIABLE:
            reader = SliceReader(values, validity)
            part.source = &reader.source
            self.readers.append(reader)
            return 0
        if type(values) is not np.ndarray or not values.flags.c_contiguous:
            values = fixed_values(column)
        self.owners.append(values)
        part.data = array_start(values)
        if values.nbytes != rows * <int64_t>self.width:
            raise SchemaError(f"{values.dtype} values do not fit the column's type")
        return 0

    def __dealloc__(self):
        self.free()
        PyMem_Free(self.parts)

    cdef void free(self) noexcept nogil:
        scratch_free(&self.dense)
        scratch_free(&self.stored)
        scratch_free(&self.narrow)
        scratch_free(&self.slice_memory)
        scratch_free(&self.places)
        if self.levels is not None:
            self.levels.free()
        self.places_in = NULL

    def count_values(self):
        """Return how many values are not null."""
        return self.count_present(0, self.rows)

    def codes(self, DictionaryEncoder encoder not None):
        """Return for each value its code (uint32) in the encoder's dictionary, which new values are added to."""
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
        cdef size_t width = 0 if self.variable else sizeof(int64_t) if self.has_integers else self.stored_width
        cdef DictionaryEncoder dictionary = DictionaryEncoder(width)
        dictionary.stored_width = self.stored_width
        dictionary.use_memory(block_reuse, block_give)
        return dictionary

    cdef void _to_values(self, int64_t* start, int64_t* count) noexcept nogil:
        """Translate a row range into a value range, in place."""
        cdef int64_t first
        if self.levels is not None:
            first = self.levels.value_start(start[0])
            count[0] = self.levels.value_start(start[0] + count[0]) - first
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

    cdef const Part* _part_of(self, int64_t value) noexcept nogil:
        """Return the part that has the value with this number."""
        cdef int64_t low = 0, high = self.part_count - 1, middle
        while low < high:
            middle = (low + high + 1) // 2
            if self.parts[middle].first <= value:
                low = middle
            else:
                high = middle - 1
        return &self.parts[low]

    cdef const uint8_t* _compacted(self, int64_t start, int64_t count, int64_t* present) except NULL nogil:
        """Return the non-null values in some rows, in the form that the column has in memory."""
        cdef const Part* part = self._part_of(start)
        cdef const uint8_t* values = part.data + <size_t>(start - part.first) * self.width
        cdef uint8_t* out
        cdef uint8_t* end
        cdef int64_t some
        if part.bits == NULL and start + count <= part[1].first:
            present[0] = count
            return values
        out = scratch_reserve(&self.dense, <size_t>count * self.width)
        end = out
        while count > 0:
            some = min(count, part[1].first - start)
            values = part.data + <size_t>(start - part.first) * self.width
            if part.bits == NULL:
                memcpy(end, values, <size_t>some * self.width)
                end += <size_t>some * self.width
            else:
                end += self.width * <size_t>compact(part.bits, start - part.first, some, values, end, self.width)
            start += some
            count -= some
            part += 1
        present[0] = (end - out) // <int64_t>self.width
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
            self._refuse_value(start, count)
        values[0] = out
        return present

    cdef int64_t integers(self, int64_t start, int64_t count, const uint8_t** values) except -1 nogil:
        cdef int64_t present = 0
        cdef const uint8_t* decimals
        cdef uint8_t* out
        self._to_values(&start, &count)
        decimals = self._compacted(start, count, &present)
        out = scratch_reserve(&self.narrow, <size_t>present * sizeof(int64_t))
        if decimals_to_integers(decimals, self.width, present, out, self.stored_width) < 0:
            self._refuse_value(start, count)
        values[0] = out
        return present

    cdef const uint8_t* stored_integers(self, const uint8_t* integers, int64_t count) except NULL nogil:
        cdef uint8_t* out = scratch_reserve(&self.stored, <size_t>count * self.stored_width)
        integers_to_decimals(integers, count, out, self.stored_width)
        return out

    cdef int _refuse_value(self, int64_t start, int64_t count) except -1 nogil:
        with gil:
            raise SchemaError(f"a value between rows {start} and {start + count} that the column's physical type cannot hold")

    cdef int64_t slices(self, int64_t start, int64_t count, Slice** values) except -1 nogil:
        cdef int64_t present = 0, i, status, done = 0, some
        cdef const uint8_t* dense
        cdef uint8_t* out
        cdef Slice* slices
        cdef const Part* part
        self._to_values(&start, &count)
        slices = <Slice*>scratch_reserve(&self.slice_memory, <size_t>count * sizeof(Slice))
        values[0] = slices
        if self.conversion == VARIABLE_DECIMAL:
            dense = self._compacted(start, count, &present)
            out = scratch_reserve(&self.stored, <size_t>present * self.width)
            return decimals_to_slices(dense, self.width, present, out, slices)
        part = self._part_of(start)
        while done < count:
            some = min(count - done, part[1].first - start)
            status = read_slices(part.source, start - part.first, some, slices + done)
            if status < 0:
                with gil:
                    raise_status(status)
            done += some
            start += some
            part += 1
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
        cdef const uint32_t* own = <const uint32_t*>self.reader.source.codes
        cdef uint32_t* places = <uint32_t*>self.places.data
        cdef int64_t i, done = 0, added
        cdef uint32_t code
        for i in range(start, start + count):
            if self.bits != NULL and not (self.bits[i >> 3] >> (i & 7)) & 1:
                continue
            code = own[i]
            if <int64_t>code >= self.reader.source.dictionary_size:
                return BAD_INDEX
            if places[code] == UNKNOWN:
                added = dictionary.encode_slices(&self.reader.source.dictionary[code], 1, limit, &places[code])
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
    """A buffer over stored bytes in a column's memory. It keeps the column alive."""

    @staticmethod
    cdef StoredView of(ColumnInput input, const uint8_t* data, int64_t size):
        cdef StoredView view = StoredView.__new__(StoredView)
        view.input = input
        view.data = data
        view.size = size
        return view

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void*>self.data, <Py_ssize_t>self.size, 1, flags)
