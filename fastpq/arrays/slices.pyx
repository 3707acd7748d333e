"""Variable-length values as slices: the one reader of every layout."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport numpy as cnp
from fastpq.encodings.status cimport Status
from fastpq.encodings.views cimport Slice, View

import numpy as np

from fastpq.errors import FormatError, SchemaError
from fastpq.arrays.layouts import BinaryOffsets, BinaryViews, CodedViews, DictionaryValues

cnp.import_array()

cdef enum Layout:
    VIEWS
    OFFSETS32
    OFFSETS64
    CODES

cdef const uint8_t NOTHING = 0           # start of empty values where there is no data


cdef int raise_status(int64_t status) except -1:
    """Raise the error of a negative Status for a column in memory."""
    if status >= 0:
        return 0
    if status == Status.BAD_INDEX:
        raise FormatError("a dictionary code outside the dictionary")
    if status == Status.NO_MEMORY:
        raise MemoryError
    raise FormatError("a value that points outside its data")


cdef const uint8_t* array_start(object array) except NULL:
    """First byte of a contiguous array; never NULL."""
    if cnp.PyArray_SIZE(array) == 0:
        return &NOTHING
    return <const uint8_t*> cnp.PyArray_DATA(array)


cdef object held(object array, object dtype, str what):
    """The array itself if one-dimensional, contiguous and of the dtype."""
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
        raise SchemaError(f"{what} are not a one-dimensional array of {np.dtype(dtype)}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise SchemaError(f"{what} are not a contiguous, aligned array")
    return array


cdef class SliceReader:
    """Slices of a layout.

    Args:
        values: BinaryViews, CodedViews, BinaryOffsets, or DictionaryValues of a variable-length dictionary.
        validity: bitmap (uint8, LSB first), or None without nulls.

    Raises:
        SchemaError: arrays of the wrong dtype, shape or size.
    """

    def __cinit__(self, values, validity=None):
        if isinstance(values, CodedViews):
            self._take_codes(values.codes, values.entries)
        elif isinstance(values, BinaryViews):
            self._take_views(values)
        elif isinstance(values, BinaryOffsets):
            self._take_offsets(values)
        elif isinstance(values, DictionaryValues):
            self._take_codes(values.codes, values.dictionary.values)
        else:
            raise SchemaError(f"{type(values).__name__} is not a layout of variable-length values")
        if validity is not None:
            held(validity, np.uint8, "validity bits")
            if len(validity) < (self.count + 7) // 8:
                raise SchemaError(f"{len(validity)} bytes of validity bits for {self.count} values")
            self.validity = array_start(validity)
            self.owners = (self.owners, validity)

    def __dealloc__(self):
        free(self.buffers)
        free(self.buffer_sizes)
        free(self.dictionary)

    cdef int _take_views(self, values) except -1:
        cdef Py_ssize_t i
        views = held(values.views, np.dtype("V16"), "views")
        buffers = tuple(held(buffer, np.uint8, "buffers of views") for buffer in values.buffers)
        self.layout = Layout.VIEWS
        self.count = len(views)
        self.views = <const View*> array_start(views)
        self.owners = (views, buffers)
        self.buffer_count = len(buffers)
        self.buffers = <const uint8_t**> malloc((self.buffer_count + 1) * sizeof(uint8_t*))
        self.buffer_sizes = <int64_t*> malloc((self.buffer_count + 1) * sizeof(int64_t))
        if self.buffers == NULL or self.buffer_sizes == NULL:
            raise MemoryError
        for i in range(self.buffer_count):
            self.buffers[i] = array_start(buffers[i])
            self.buffer_sizes[i] = len(buffers[i])
        return 0

    cdef int _take_offsets(self, values) except -1:
        offsets = values.offsets
        wide = isinstance(offsets, np.ndarray) and offsets.dtype == np.int64
        held(offsets, np.int64 if wide else np.int32, "offsets")
        if len(offsets) == 0:
            raise SchemaError("offsets are one more than the values, not none")
        self.layout = Layout.OFFSETS64 if wide else Layout.OFFSETS32
        self.count = len(offsets) - 1
        self.offsets = array_start(offsets)
        self.data = array_start(held(values.data, np.uint8, "bytes of values"))
        self.data_size = len(values.data)
        self.owners = (offsets, values.data)
        return 0

    cdef int _take_codes(self, codes, entries) except -1:
        cdef SliceReader inner
        held(codes, np.int32, "dictionary codes")
        inner = SliceReader(entries)
        self.layout = Layout.CODES
        self.count = len(codes)
        self.codes = array_start(codes)
        self.owners = (codes, inner)
        self.dictionary_size = inner.count
        self.dictionary = <Slice*> malloc((inner.count + 1) * sizeof(Slice))
        if self.dictionary == NULL:
            raise MemoryError
        raise_status(inner.read(0, inner.count, self.dictionary))
        return 0

    cdef int64_t read(self, int64_t start, int64_t count, Slice* out) noexcept nogil:
        cdef int64_t i, status
        if start < 0 or count < 0 or count > self.count - start:
            return Status.BAD_LENGTH
        for i in range(count):
            if self.validity != NULL and not (self.validity[(start + i) >> 3] >> ((start + i) & 7)) & 1:
                out[i].data = NULL
                out[i].size = 0
                continue
            if self.layout == Layout.VIEWS:
                status = _read_view(self, &self.views[start + i], &out[i])
            elif self.layout == Layout.CODES:
                status = _read_code(self, start + i, &out[i])
            else:
                status = _read_range(self, start + i, &out[i])
            if status < 0:
                return status
        return count

    cdef int64_t entries(self) noexcept nogil:
        return self.dictionary_size if self.layout == Layout.CODES else -1

    cdef int64_t read_codes(self, int64_t start, int64_t count, const uint32_t* mapping, uint32_t* out) noexcept nogil:
        cdef int64_t i, present = 0
        cdef int32_t code
        if self.layout != Layout.CODES or start < 0 or count < 0 or count > self.count - start:
            return Status.BAD_LENGTH
        for i in range(start, start + count):
            if self.validity != NULL and not (self.validity[i >> 3] >> (i & 7)) & 1:
                continue
            memcpy(&code, self.codes + 4 * i, 4)
            if code < 0 or code >= self.dictionary_size:
                return Status.BAD_INDEX
            out[present] = mapping[code]
            present += 1
        return present


cdef inline int64_t _read_view(SliceReader self, const View* at, Slice* out) noexcept nogil:
    cdef View view
    memcpy(&view, at, sizeof(View))
    if view.length < 0:
        return Status.BAD_LENGTH
    out.size = <size_t> view.length
    if view.length <= 12:
        out.data = (<const uint8_t*> at) + 4
        return 0
    if view.buffer < 0 or view.buffer >= self.buffer_count or view.offset < 0:
        return Status.BAD_LENGTH
    if <int64_t> view.length > self.buffer_sizes[view.buffer] - view.offset:
        return Status.BAD_LENGTH
    out.data = self.buffers[view.buffer] + view.offset
    return 0


cdef inline int64_t _read_range(SliceReader self, int64_t i, Slice* out) noexcept nogil:
    cdef int64_t wide[2]
    cdef int32_t narrow[2]
    if self.layout == Layout.OFFSETS64:
        memcpy(wide, self.offsets + 8 * i, 16)
    else:
        memcpy(narrow, self.offsets + 4 * i, 8)
        wide[0] = narrow[0]
        wide[1] = narrow[1]
    if wide[0] < 0 or wide[1] < wide[0] or wide[1] > self.data_size:
        return Status.BAD_LENGTH
    out.data = self.data + wide[0]
    out.size = <size_t> (wide[1] - wide[0])
    return 0


cdef inline int64_t _read_code(SliceReader self, int64_t i, Slice* out) noexcept nogil:
    cdef int32_t code
    memcpy(&code, self.codes + 4 * i, 4)
    if code < 0 or code >= self.dictionary_size:
        return Status.BAD_INDEX
    out[0] = self.dictionary[code]
    return 0
