"""Variable-length values between Arrow's layouts, Python objects and NumPy's StringDType."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

cimport numpy as cnp

from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.plain cimport offsets_to_slices, views_to_slices
from fastpq.encodings.views cimport Slice, View

from fastpq.errors import SchemaError

cnp.import_array()

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef extern from "numpy/arrayobject.h":
    ctypedef struct npy_string_allocator:
        pass
    ctypedef struct npy_packed_static_string:
        pass
    ctypedef struct npy_static_string:
        size_t size
        const char* buf
    ctypedef struct PyArray_StringDTypeObject:
        pass
    npy_string_allocator* NpyString_acquire_allocator(const PyArray_StringDTypeObject* descr)
    void NpyString_release_allocator(npy_string_allocator* allocator)
    int NpyString_load(npy_string_allocator* allocator, const npy_packed_static_string* packed, npy_static_string* unpacked)
    int NpyString_pack(npy_string_allocator* allocator, npy_packed_static_string* packed, const char* buf, size_t size)
    int NpyString_pack_null(npy_string_allocator* allocator, npy_packed_static_string* packed)

cdef enum:
    BUFFER_STEP = 1 << 30       # a view's offset has 31 bits: long data are seen through buffers that begin this far apart
    INLINE = 12

cdef uint8_t NOTHING = 0


cdef class Slices:
    """Values of one column as slices; what they point into stays alive as long as this does."""

    cdef Slice* values
    cdef readonly int64_t count
    cdef const uint8_t** buffers
    cdef list owners

    def __cinit__(self, int64_t count):
        self.count = count
        self.values = <Slice*>malloc(max(count, 1) * sizeof(Slice))
        self.owners = []
        if self.values == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.values)
        free(self.buffers)

    cdef const uint8_t* hold(self, array) except NULL:
        cdef const uint8_t[::1] view = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.owners.append(view)
        return &view[0] if view.shape[0] else &NOTHING


cdef Slices slices_of_views(views, buffers):
    cdef Slices slices = Slices(len(views))
    cdef const uint8_t* data = slices.hold(views)
    slices.buffers = <const uint8_t**>calloc(len(buffers) + 1, sizeof(uint8_t*))
    if slices.buffers == NULL:
        raise MemoryError()
    for i, buffer in enumerate(buffers):
        slices.buffers[i] = slices.hold(buffer)
    with nogil:
        views_to_slices(<const View*>data, slices.count, slices.buffers, NULL, 0, slices.values)
    return slices


cdef Slices slices_of_offsets(offsets, data):
    cdef Slices slices = Slices(len(offsets) - 1)
    cdef const uint8_t* starts = slices.hold(offsets)
    cdef const uint8_t* characters = slices.hold(data)
    cdef bint wide = offsets.dtype == np.int64
    with nogil:
        offsets_to_slices(starts, wide, slices.count, characters, NULL, 0, slices.values)
    return slices


cdef tuple gather(Slices slices, wide):
    """Slices as (offsets, data); wide: None for 64-bit offsets only where they are needed."""
    cdef int64_t i, total = 0
    cdef int64_t[::1] starts = np.empty(slices.count + 1, dtype=np.int64)
    cdef uint8_t[::1] data
    with nogil:
        for i in range(slices.count):
            starts[i] = total
            total += <int64_t>slices.values[i].size
        starts[slices.count] = total
    if wide is False and total > 0x7FFFFFFF:
        raise SchemaError(f"{total} bytes of strings need 64-bit offsets")
    data = np.empty(max(total, 1), dtype=np.uint8)
    with nogil:
        for i in range(slices.count):
            memcpy(&data[0] + starts[i], slices.values[i].data, slices.values[i].size)
    offsets = np.asarray(starts)
    if not wide and total <= 0x7FFFFFFF:
        offsets = offsets.astype(np.int32)
    return offsets, np.asarray(data)[:total]


def offsets_from_views(views, buffers, wide=None):
    """Views as (offsets, data): int32 offsets, or int64 ones where asked (wide=True) or needed."""
    return gather(slices_of_views(views, buffers), wide)


def views_from_offsets(offsets, data):
    """Offsets and data as (views of dtype V16, list of buffers); the buffers are the data, not copies."""
    cdef Slices slices = slices_of_offsets(offsets, data)
    cdef int64_t i, start
    cdef View* view
    cdef const uint8_t* base = slices.hold(data)
    out = np.zeros(max(slices.count, 1), dtype="V16")
    cdef uint8_t[::1] memory = out.view(np.uint8)
    with nogil:
        for i in range(slices.count):
            view = <View*>&memory[0] + i
            view.length = <int32_t>slices.values[i].size
            if slices.values[i].size <= INLINE:
                memcpy(&view.prefix[0], slices.values[i].data, slices.values[i].size)
            else:
                start = slices.values[i].data - base
                memcpy(&view.prefix[0], slices.values[i].data, 4)
                view.buffer = <int32_t>(start // BUFFER_STEP)
                view.offset = <int32_t>(start % BUFFER_STEP)
    data = np.asarray(data)
    return out[:slices.count], [data[start:] for start in range(0, max(len(data), 1), BUFFER_STEP)]


def check_offsets(offsets, Py_ssize_t size):
    """Raise SchemaError unless offsets rise from 0 or more to size at most, and no value has 2 GiB or more."""
    starts = np.asarray(offsets)
    steps = np.diff(starts)
    if len(starts) == 0 or starts[0] < 0 or starts[len(starts) - 1] > size or (len(steps) and steps.min() < 0):
        raise SchemaError("string offsets that do not rise or that point outside their data")
    if len(steps) and steps.max() > 0x7FFFFFFF:
        raise SchemaError(f"a value of {steps.max()} bytes: none can be longer than 2147483647")


def encode_views(views, buffers, validity):
    """Dictionary-encode: (codes of int32, 0 where null; views of the dictionary's values, their buffers).

    The dictionary has its values in order of first appearance.
    """
    cdef Slices slices = slices_of_views(views, buffers)
    cdef DictionaryEncoder encoder = DictionaryEncoder(0)
    cdef int64_t done, count = slices.count
    cdef uint32_t[::1] codes = np.zeros(max(count, 1), dtype=np.uint32)
    cdef Slices distinct
    present = None
    if validity is not None:
        present = np.unpackbits(validity, count=count, bitorder="little").astype(bool)
        slices = slices_of_views(views[present], buffers)
    with nogil:
        done = encoder.encode_slices(slices.values, slices.count, 0x7FFFFFFFFFFFFFFF, &codes[0])
    if done < slices.count:
        raise MemoryError("the dictionary's hash table")
    distinct = Slices(encoder.table.count)
    memcpy(distinct.values, encoder.slice_values(), <size_t>encoder.table.count * sizeof(Slice))
    dictionary, dictionary_buffers = views_from_offsets(*gather(distinct, None))
    out = np.asarray(codes)[:slices.count].view(np.int32)
    if present is not None:
        spread = np.zeros(count, dtype=np.int32)
        spread[present] = out
        out = spread
    return out, dictionary, dictionary_buffers


def objects_from_views(views, buffers, present, bint text):
    """Views as an object array of str or bytes, None where present (bool, or None for everywhere) is false."""
    cdef Slices slices = slices_of_views(views, buffers)
    cdef int64_t i
    cdef const uint8_t[::1] there = None
    cdef const char* data
    out = np.empty(slices.count, dtype=object)
    cdef object[::1] objects = out
    if present is not None:
        there = np.ascontiguousarray(present).view(np.uint8)
    for i in range(slices.count):
        if there is not None and not there[i]:
            continue
        data = <const char*>slices.values[i].data
        if text:
            objects[i] = PyUnicode_DecodeUTF8(data, <Py_ssize_t>slices.values[i].size, NULL)
        else:
            objects[i] = PyBytes_FromStringAndSize(data, <Py_ssize_t>slices.values[i].size)
    return out


def string_dtype_from_views(views, buffers, present):
    """Views as a StringDType array; where present is false, the missing value of StringDType(na_object=None)."""
    cdef Slices slices = slices_of_views(views, buffers)
    cdef const uint8_t[::1] there = None
    cdef cnp.ndarray out
    cdef npy_string_allocator* allocator
    cdef char* item
    cdef int64_t i
    cdef int status = 0
    if present is not None:
        there = np.ascontiguousarray(present).view(np.uint8)
        out = np.empty(slices.count, dtype=np.dtypes.StringDType(na_object=None))
    else:
        out = np.empty(slices.count, dtype=np.dtypes.StringDType())
    allocator = NpyString_acquire_allocator(<PyArray_StringDTypeObject*><PyObject*>out.dtype)
    try:
        for i in range(slices.count):
            item = <char*>cnp.PyArray_DATA(out) + i * cnp.PyArray_ITEMSIZE(out)
            if there is not None and not there[i]:
                status = NpyString_pack_null(allocator, <npy_packed_static_string*>item)
            else:
                status = NpyString_pack(allocator, <npy_packed_static_string*>item, <const char*>slices.values[i].data,
                                        slices.values[i].size)
            if status < 0:
                raise MemoryError("a string")
    finally:
        NpyString_release_allocator(allocator)
    return out


def offsets_from_string_dtype(cnp.ndarray array):
    """A contiguous StringDType array as (offsets, data, bool array of what is present, or None)."""
    cdef int64_t count = array.shape[0], i, missing = 0
    cdef Slices slices = Slices(count)
    cdef uint8_t[::1] present = np.ones(max(count, 1), dtype=np.uint8)
    cdef npy_static_string loaded
    cdef npy_string_allocator* allocator
    cdef char* item
    cdef int status
    allocator = NpyString_acquire_allocator(<PyArray_StringDTypeObject*><PyObject*>array.dtype)
    try:
        for i in range(count):
            item = <char*>cnp.PyArray_DATA(array) + i * cnp.PyArray_ITEMSIZE(array)
            status = NpyString_load(allocator, <npy_packed_static_string*>item, &loaded)
            if status < 0:
                raise MemoryError("a string")
            slices.values[i].data = <const uint8_t*>loaded.buf if status == 0 else &NOTHING
            slices.values[i].size = loaded.size if status == 0 else 0
            if status == 1:
                present[i] = 0
                missing += 1
        offsets, data = gather(slices, None)
    finally:
        NpyString_release_allocator(allocator)
    return offsets, data, np.asarray(present)[:count].view(bool) if missing else None


def offsets_from_objects(cnp.ndarray array, bint text):
    """An object array of str (text) or bytes with None as (offsets, data, bool array of what is present, or None).

    Raises:
        SchemaError: an element is something else; the message has its index and type.
    """
    cdef int64_t count = array.shape[0], i, missing = 0
    cdef Slices slices = Slices(count)
    cdef uint8_t[::1] present = np.ones(max(count, 1), dtype=np.uint8)
    cdef object[::1] objects = np.ascontiguousarray(array)
    cdef Py_ssize_t size = 0
    for i in range(count):
        value = objects[i]
        if value is None:
            present[i] = 0
            missing += 1
            slices.values[i].data = &NOTHING
            slices.values[i].size = 0
        elif text and isinstance(value, str):
            try:
                slices.values[i].data = <const uint8_t*>PyUnicode_AsUTF8AndSize(value, &size)
            except UnicodeEncodeError as error:
                raise SchemaError(f"value {i} cannot be written as UTF-8: {error.reason}") from None
            slices.values[i].size = <size_t>size
        elif not text and isinstance(value, bytes):
            slices.values[i].data = <const uint8_t*>PyBytes_AS_STRING(value)
            slices.values[i].size = <size_t>PyBytes_GET_SIZE(value)
        else:
            raise SchemaError(f"value {i} is {type(value).__name__}, not {'str' if text else 'bytes'}")
    offsets, data = gather(slices, None)
    return offsets, data, np.asarray(present)[:count].view(bool) if missing else None
