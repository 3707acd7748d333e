"""The reader that returns variable-length values as slices, whatever their layout is."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport numpy as cnp
from fastpq.encodings.status cimport Status
from fastpq.encodings.views cimport Slice, View

cdef extern from "c/views.h" nogil:
    bint slices_of_views(const View* views, int64_t count, const uint8_t** buffers, const int64_t* sizes, int64_t buffer_count,
                         Slice* out) noexcept

import numpy as np

from fastpq.errors import FormatError, SchemaError

cnp.import_array()

cdef enum Layout:
    VIEWS
    OFFSETS32
    OFFSETS64
    CODES

cdef const uint8_t NOTHING = 0           # the data pointer of empty values points here if there is no data


cdef int raise_status(int64_t status) except -1:
    if status >= 0:
        return 0
    if status == Status.BAD_INDEX:
        raise FormatError("a dictionary code is outside the dictionary")
    if status == Status.NO_MEMORY:
        raise MemoryError
    raise FormatError("a value points outside its data")


cdef const uint8_t* array_start(object array) except NULL:
    if cnp.PyArray_SIZE(array) == 0:
        return &NOTHING
    return <const uint8_t*> cnp.PyArray_DATA(array)


cdef object checked_array(object array, object dtype, str array_name):
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
        raise SchemaError(f"{array_name} are not a one-dimensional array of {np.dtype(dtype)}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise SchemaError(f"{array_name} are not a contiguous, aligned array")
    return array


cdef class SliceReader:
    """A reader for one column's slices.

    Args:
        values: an object with a layout's attributes: ``codes`` and ``entries``, ``views`` and ``buffers``, or ``offsets`` and
            ``data`` (``fastpq.arrays.layouts``, ``DictionaryValues``).
        validity: bitmap (uint8, LSB first), or None if no value is null.

    Raises:
        SchemaError: ``values`` has another layout, or an array has a wrong dtype, shape or size.
    """

    def __cinit__(self, values, validity=None):
        if hasattr(values, "codes"):
            self._take_codes(values.codes, values.entries)
        elif hasattr(values, "views"):
            self._take_views(values)
        elif hasattr(values, "offsets"):
            self._take_offsets(values.offsets, values.data)
        else:
            raise SchemaError(f"{type(values).__name__} is not a layout of variable-length values: no codes, views or offsets")
        if validity is not None:
            checked_array(validity, np.uint8, "validity bits")
            if len(validity) < (self.count + 7) // 8:
                raise SchemaError(f"{len(validity)} bytes of validity bits for {self.count} values")
            self.source.validity = array_start(validity)
            self.owners = (self.owners, validity)
        self.source.count = self.count

    def __dealloc__(self):
        free(self.source.buffers)
        free(self.source.buffer_sizes)
        free(self.source.dictionary)

    cdef int _take_views(self, values) except -1:
        cdef Py_ssize_t i
        views = checked_array(values.views, np.dtype("V16"), "views")
        buffers = tuple(checked_array(buffer, np.uint8, "buffers of views") for buffer in values.buffers)
        self.source.layout = Layout.VIEWS
        self.count = len(views)
        self.source.views = <const View*> array_start(views)
        self.owners = (views, buffers)
        self.source.buffer_count = len(buffers)
        self.source.buffers = <const uint8_t**> malloc((self.source.buffer_count + 1) * sizeof(uint8_t*))
        self.source.buffer_sizes = <int64_t*> malloc((self.source.buffer_count + 1) * sizeof(int64_t))
        if self.source.buffers == NULL or self.source.buffer_sizes == NULL:
            raise MemoryError
        for i in range(self.source.buffer_count):
            self.source.buffers[i] = array_start(buffers[i])
            self.source.buffer_sizes[i] = len(buffers[i])
        self.source.buffers[self.source.buffer_count] = &NOTHING
        self.source.buffer_sizes[self.source.buffer_count] = -1
        return 0

    cdef int _take_offsets(self, offsets, data) except -1:
        wide = isinstance(offsets, np.ndarray) and offsets.dtype == np.int64
        checked_array(offsets, np.int64 if wide else np.int32, "offsets")
        if len(offsets) == 0:
            raise SchemaError("offsets are empty: they must be one more than the values")
        self.source.layout = Layout.OFFSETS64 if wide else Layout.OFFSETS32
        self.count = len(offsets) - 1
        self.source.offsets = array_start(offsets)
        self.source.data = array_start(checked_array(data, np.uint8, "bytes of values"))
        self.source.data_size = len(data)
        self.owners = (offsets, data)
        return 0

    cdef int _take_codes(self, codes, entries) except -1:
        cdef SliceReader inner
        checked_array(codes, np.int32, "dictionary codes")
        inner = SliceReader(entries)
        self.source.layout = Layout.CODES
        self.count = len(codes)
        self.source.codes = array_start(codes)
        self.owners = (codes, inner)
        self.source.dictionary_size = inner.count
        self.source.dictionary = <Slice*> malloc((inner.count + 1) * sizeof(Slice))
        if self.source.dictionary == NULL:
            raise MemoryError
        raise_status(inner.read(0, inner.count, self.source.dictionary))
        return 0

    cdef int64_t read(self, int64_t start, int64_t count, Slice* out) noexcept nogil:
        return read_slices(&self.source, start, count, out)

    cdef int64_t entries(self) noexcept nogil:
        return self.source.dictionary_size if self.source.layout == Layout.CODES else -1

    cdef int64_t read_codes(self, int64_t start, int64_t count, const uint32_t* mapping, uint32_t* out) noexcept nogil:
        cdef int64_t i, present = 0
        cdef int32_t code
        if self.source.layout != Layout.CODES or start < 0 or count < 0 or count > self.count - start:
            return Status.BAD_LENGTH
        for i in range(start, start + count):
            if self.source.validity != NULL and not (self.source.validity[i >> 3] >> (i & 7)) & 1:
                continue
            memcpy(&code, self.source.codes + 4 * i, 4)
            if code < 0 or code >= self.source.dictionary_size:
                return Status.BAD_INDEX
            out[present] = mapping[code]
            present += 1
        return present


cdef int64_t read_slices(const SliceSource* source, int64_t start, int64_t count, Slice* out) noexcept nogil:
    cdef int64_t i, status
    cdef int32_t code
    if start < 0 or count < 0 or count > source.count - start:
        return Status.BAD_LENGTH
    if source.layout == Layout.VIEWS and source.validity == NULL:
        if not slices_of_views(&source.views[start], count, source.buffers, source.buffer_sizes, source.buffer_count, out):
            return Status.BAD_LENGTH
        return count
    for i in range(start, start + count):
        if source.validity != NULL and not (source.validity[i >> 3] >> (i & 7)) & 1:
            out.data = NULL
            out.size = 0
        elif source.layout == Layout.VIEWS:
            if not slices_of_views(&source.views[i], 1, source.buffers, source.buffer_sizes, source.buffer_count, out):
                return Status.BAD_LENGTH
        elif source.layout == Layout.CODES:
            memcpy(&code, source.codes + 4 * i, 4)
            if code < 0 or code >= source.dictionary_size:
                return Status.BAD_INDEX
            out[0] = source.dictionary[code]
        else:
            status = _read_range(source, i, out)
            if status < 0:
                return status
        out += 1
    return count


cdef inline int64_t _read_range(const SliceSource* source, int64_t i, Slice* out) noexcept nogil:
    cdef int64_t wide[2]
    cdef int32_t narrow[2]
    if source.layout == Layout.OFFSETS64:
        memcpy(wide, source.offsets + 8 * i, 16)
    else:
        memcpy(narrow, source.offsets + 4 * i, 8)
        wide[0] = narrow[0]
        wide[1] = narrow[1]
    if wide[0] < 0 or wide[1] < wide[0] or wide[1] > source.data_size:
        return Status.BAD_LENGTH
    out.data = source.data + wide[0]
    out.size = <size_t> (wide[1] - wide[0])
    return 0
