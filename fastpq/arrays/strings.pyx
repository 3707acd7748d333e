"""Conversion between NumPy's string and bytes arrays (StringDType, objects, fixed width) and slices or offsets.

StringDType is read and written through NumPy's C API, so that no value needs a Python str. StringDType's allocator is also a
lock. It is acquired, used and released without the GIL, so that no thread waits for either lock while it holds the other.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, Py_TYPE
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

cimport numpy as cnp
from fastpq.encodings.plain cimport utf8_is_valid
from fastpq.encodings.status cimport Status
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status

import numpy as np

from fastpq.errors import FormatError, SchemaError

cnp.import_array()

cdef extern from "numpy/arrayobject.h" nogil:
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
    int NpyString_load(npy_string_allocator* allocator, const npy_packed_static_string* packed, npy_static_string* out)
    int NpyString_pack(npy_string_allocator* allocator, npy_packed_static_string* packed, const char* buf, size_t size)
    int NpyString_pack_null(npy_string_allocator* allocator, npy_packed_static_string* packed)

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    object PyUnicode_DecodeUTF8(const char* data, Py_ssize_t size, const char* errors)
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 largest)
    void* PyUnicode_1BYTE_DATA(object text)
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef extern from "c/text.h" nogil:
    int text_is_ascii(const uint8_t* data, size_t size)
    int64_t ucs4_utf8_size(const uint32_t* text, size_t size)
    size_t ucs4_to_utf8(const uint32_t* text, size_t size, uint8_t* out)

cdef int64_t MAX_INT32 = 0x7FFFFFFF
cdef int64_t CHANGED = -100      # not a Status: another thread wrote to the input in the meantime


cdef object _offsets_for(int64_t count, int64_t size):
    return np.zeros(count + 1, np.int64 if size > MAX_INT32 else np.int32)


cdef inline void _put_offset(uint8_t* offsets, bint wide, int64_t i, int64_t value) noexcept nogil:
    if wide:
        (<int64_t*> offsets)[i] = value
    else:
        (<int32_t*> offsets)[i] = <int32_t> value


def to_string_dtype(SliceReader reader not None, cnp.ndarray array not None, bint missing, str name=""):
    """Write values into a new StringDType array.

    Args:
        reader: UTF-8 values.
        array: shape (n,).
        missing: whether nulls become the dtype's missing value (its na_object). Otherwise they become empty strings.
        name: column name, for errors.

    Raises:
        FormatError: a value is not UTF-8.
    """
    if cnp.PyArray_NDIM(array) != 1 or array.shape[0] != reader.count or not array.flags.c_contiguous:
        raise SchemaError(f"the array is not a contiguous array of {reader.count} values")
    cdef const PyArray_StringDTypeObject* descr = <const PyArray_StringDTypeObject*> cnp.PyArray_DESCR(array)
    cdef char* out = <char*> cnp.PyArray_DATA(array)
    cdef Py_ssize_t width = array.itemsize
    cdef int64_t row = 0, status
    with nogil:
        status = _pack(reader, descr, out, width, missing, &row)
    if status == Status.BAD_UTF8:
        raise FormatError(f"value {row} is not UTF-8", column=name or None)
    raise_status(status)


cdef int64_t _pack(
    SliceReader reader, const PyArray_StringDTypeObject* descr, char* out, Py_ssize_t width, bint missing, int64_t* row
) noexcept nogil:
    cdef Slice block[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status = 0
    cdef npy_packed_static_string* packed
    cdef npy_string_allocator* allocator = NpyString_acquire_allocator(descr)
    while status >= 0 and start < reader.count:
        n = min(<int64_t> SLICE_BLOCK, reader.count - start)
        status = reader.read(start, n, block)
        if status < 0:
            break
        for i in range(n):
            packed = <npy_packed_static_string*> (out + (start + i) * width)
            if block[i].data == NULL:
                # The array is new and all zero, which NumPy reads as empty strings.
                status = NpyString_pack_null(allocator, packed) if missing else 0
            elif not utf8_is_valid(block[i].data, block[i].size):
                status = Status.BAD_UTF8
            else:
                status = NpyString_pack(allocator, packed, <const char*> block[i].data, block[i].size)
                status = Status.NO_MEMORY if status < 0 else status
            if status < 0:
                row[0] = start + i
                break
        start += n
    NpyString_release_allocator(allocator)
    return status


def to_objects(SliceReader reader not None, bint text, str name=""):
    """Return values as an object array of str or bytes, None where null.

    Rows with the same dictionary entry share one object if there are at least as many rows as entries. For few rows with a large
    dictionary, an array with an object for each entry would cost too much.

    Args:
        reader: the values.
        text: whether to decode the values as UTF-8.
        name: column name, for errors.

    Raises:
        FormatError: a value is not UTF-8.
    """
    cdef Slice block[SLICE_BLOCK]
    cdef int64_t start = 0, n, i
    cdef object value
    if 0 <= reader.entries() <= reader.count:
        return _shared_objects(reader, text, name)
    array = np.empty(reader.count, dtype=object)
    cdef PyObject** out = <PyObject**> cnp.PyArray_DATA(array)
    while start < reader.count:
        n = min(<int64_t> SLICE_BLOCK, reader.count - start)
        raise_status(reader.read(start, n, block))
        for i in range(n):
            if block[i].data == NULL:
                continue                        # numpy.empty has filled the array with None
            value = _object_of(&block[i], text, name, start + i)
            Py_INCREF(value)
            Py_XDECREF(out[start + i])
            out[start + i] = <PyObject*> value
        start += n
    return array


cdef object _shared_objects(SliceReader reader, bint text, str name):
    """Return the values that codes stand for as an object array, with one object for each used entry."""
    cdef int64_t i, code
    cdef PyObject* value
    cdef uint32_t each
    entries = np.empty(reader.entries(), dtype=object)
    numbers = np.arange(reader.entries(), dtype=np.uint32)
    cdef const uint32_t* mapping = <const uint32_t*> cnp.PyArray_DATA(numbers)
    cdef PyObject** objects = <PyObject**> cnp.PyArray_DATA(entries)
    array = np.empty(reader.count, dtype=object)
    cdef PyObject** out = <PyObject**> cnp.PyArray_DATA(array)
    for i in range(reader.count):
        code = reader.read_codes(i, 1, mapping, &each)
        if code <= 0:
            raise_status(code)
            continue                            # null: numpy.empty has filled the array with None
        value = objects[each]
        if value == <PyObject*> None:
            entry = _object_of(&reader.source.dictionary[each], text, name, i)
            value = <PyObject*> entry
            Py_INCREF(entry)
            Py_XDECREF(objects[each])
            objects[each] = value
        Py_INCREF(<object> value)
        Py_XDECREF(out[i])
        out[i] = value
    return array


cdef inline object _object_of(const Slice* value, bint text, str name, int64_t row):
    if not text:
        return PyBytes_FromStringAndSize(<const char*> value.data, <Py_ssize_t> value.size)
    if value.size > 1 and text_is_ascii(value.data, value.size):        # Python shares objects for shorter texts
        ascii_text = PyUnicode_New(<Py_ssize_t> value.size, 127)
        memcpy(PyUnicode_1BYTE_DATA(ascii_text), value.data, value.size)
        return ascii_text
    try:
        return PyUnicode_DecodeUTF8(<const char*> value.data, <Py_ssize_t> value.size, NULL)
    except UnicodeDecodeError as error:
        raise FormatError(f"value {row} is not UTF-8", column=name or None) from error


def from_string_dtype(cnp.ndarray array not None):
    """Copy a StringDType array to offsets and data.

    Args:
        array: one-dimensional, with any stride.

    Returns:
        The offsets, the data, and a boolean array that is True where null. The latter is None if no value is null.

    Raises:
        SchemaError: another thread wrote to the array in the meantime.
    """
    cdef int64_t count = array.shape[0], size
    cdef const PyArray_StringDTypeObject* descr = <const PyArray_StringDTypeObject*> cnp.PyArray_DESCR(array)
    cdef const char* packed = <const char*> cnp.PyArray_DATA(array)
    cdef Py_ssize_t stride = array.strides[0] if count else 0
    nulls = np.zeros(count, np.bool_)
    cdef uint8_t* null = <uint8_t*> cnp.PyArray_DATA(nulls)
    with nogil:
        size = _load(descr, packed, stride, count, null, NULL, False, NULL, 0)
    if size < 0:
        raise MemoryError
    offsets = _offsets_for(count, size)
    data = np.empty(size, np.uint8)
    cdef uint8_t* ends = <uint8_t*> cnp.PyArray_DATA(offsets)
    cdef uint8_t* out = <uint8_t*> cnp.PyArray_DATA(data)
    cdef bint wide = size > MAX_INT32
    cdef int64_t copied
    with nogil:
        copied = _load(descr, packed, stride, count, null, ends, wide, out, size)
    if copied != size:
        raise SchemaError("the array changed while it was read")
    return offsets, data, nulls if nulls.any() else None


cdef int64_t _load(
    const PyArray_StringDTypeObject* descr, const char* packed, Py_ssize_t stride, int64_t count,
    uint8_t* null, uint8_t* offsets, bint wide, uint8_t* out, int64_t size,
) noexcept nogil:
    """Return the total size of all values in bytes. If offsets is not NULL, also copy the values into out (size bytes)."""
    cdef npy_static_string value
    cdef int64_t i, at = 0
    cdef int state
    cdef npy_string_allocator* allocator = NpyString_acquire_allocator(descr)
    for i in range(count):
        value.size = 0
        value.buf = NULL
        state = NpyString_load(allocator, <const npy_packed_static_string*> (packed + i * stride), &value)
        if state < 0:
            at = CHANGED
            break
        null[i] = state == 1
        if state == 0 and value.size:
            if offsets != NULL:
                if <int64_t> value.size > size - at:
                    at = CHANGED
                    break
                memcpy(out + at, value.buf, value.size)
            at += <int64_t> value.size
        if offsets != NULL:
            _put_offset(offsets, wide, i + 1, at)
    NpyString_release_allocator(allocator)
    return at


def scan_objects(cnp.ndarray array not None):
    """Find the nulls and the types in an object array.

    Args:
        array: one-dimensional and contiguous.

    Returns:
        A boolean array that is True where a value is None or numpy.ma.masked, and a dict. For each other type, in the order in
        which they appear, the dict has the index of its first value.
    """
    cdef int64_t count = array.shape[0], i
    cdef PyObject** values = <PyObject**> cnp.PyArray_DATA(array)
    cdef PyObject* masked = <PyObject*> np.ma.masked
    cdef PyObject* last = NULL              # the previous value's type, which the next value usually has too
    cdef PyObject* each
    cdef dict firsts = {}
    nulls = np.zeros(count, np.bool_)
    cdef uint8_t* null = <uint8_t*> cnp.PyArray_DATA(nulls)
    for i in range(count):
        if values[i] == NULL or values[i] == <PyObject*> None or values[i] == masked:
            null[i] = 1
            continue
        each = <PyObject*> Py_TYPE(<object> values[i])
        if each != last:
            last = each
            firsts.setdefault(<object> each, i)
    return nulls, firsts


def from_objects(cnp.ndarray array not None, bint text, str name):
    """Copy an object array of str or bytes to offsets and data.

    Args:
        array: one-dimensional and contiguous. None and numpy.ma.masked are null.
        text: whether the values are str. Otherwise they are bytes.
        name: column name, for errors.

    Returns:
        The offsets, the data, and a boolean array that is True where null. The latter is None if no value is null.

    Raises:
        SchemaError: a value has another type, or UTF-8 cannot encode a text.
    """
    cdef int64_t count = array.shape[0], i, size = 0
    cdef Py_ssize_t length = 0
    cdef PyObject** values = <PyObject**> cnp.PyArray_DATA(array)
    cdef const char* buffer
    masked = np.ma.masked
    nulls = np.zeros(count, np.bool_)
    cdef uint8_t* null = <uint8_t*> cnp.PyArray_DATA(nulls)
    # From here on this thread holds the GIL, and no Python code runs. Both passes therefore see the same values.
    for i in range(count):
        if values[i] == NULL or values[i] == <PyObject*> None or values[i] == <PyObject*> masked:
            null[i] = 1
        else:
            _bytes_of(<object> values[i], text, &length, name, i)
            size += length
    offsets = _offsets_for(count, size)
    data = np.empty(size, np.uint8)
    cdef uint8_t* ends = <uint8_t*> cnp.PyArray_DATA(offsets)
    cdef uint8_t* out = <uint8_t*> cnp.PyArray_DATA(data)
    cdef bint wide = size > MAX_INT32
    cdef int64_t at = 0
    for i in range(count):
        if not null[i]:
            buffer = _bytes_of(<object> values[i], text, &length, name, i)
            if length > size - at:
                raise SchemaError("the array changed while it was read", column=name or None)
            memcpy(out + at, buffer, length)
            at += length
        _put_offset(ends, wide, i + 1, at)
    return offsets, data, nulls if nulls.any() else None


cdef const char* _bytes_of(object value, bint text, Py_ssize_t* length, str name, int64_t row) except NULL:
    """Return a bytes object's bytes, or a str's UTF-8 bytes. A str that is not ASCII caches its UTF-8."""
    if text and type(value) is str and PyUnicode_IS_COMPACT_ASCII(value):
        length[0] = PyUnicode_GET_LENGTH(value)
        return <const char*> PyUnicode_1BYTE_DATA(value)
    if text and isinstance(value, str):
        try:
            return PyUnicode_AsUTF8AndSize(value, length)
        except UnicodeEncodeError as error:
            raise SchemaError(f"value {row} has a surrogate, which UTF-8 cannot encode", column=name or None) from error
    if not text and isinstance(value, bytes):
        length[0] = PyBytes_GET_SIZE(value)
        return PyBytes_AS_STRING(value)
    expected = "str" if text else "bytes"
    raise SchemaError(f"value {row} is a {type(value).__name__}, not {expected}", column=name or None)


def from_fixed(cnp.ndarray array not None, str name):
    """Copy an array of fixed-width strings (U) or bytes (S) to offsets and data, without the NULs at each value's end.

    Args:
        array: one-dimensional, contiguous, in native byte order.
        name: column name, for errors.

    Returns:
        The offsets and the data. Strings are UTF-8.

    Raises:
        SchemaError: UTF-8 cannot encode a code point.
    """
    cdef int64_t count = array.shape[0], size = 0, row = 0
    cdef Py_ssize_t width = array.itemsize
    cdef bint text = array.dtype.kind == "U"
    cdef const uint8_t* values = <const uint8_t*> cnp.PyArray_DATA(array)
    with nogil:
        size = _fixed(values, width, count, text, NULL, False, NULL, 0, &row)
    if size < 0:
        raise SchemaError(f"value {row} has a surrogate, which UTF-8 cannot encode", column=name or None)
    offsets = _offsets_for(count, size)
    data = np.empty(size, np.uint8)
    cdef uint8_t* ends = <uint8_t*> cnp.PyArray_DATA(offsets)
    cdef uint8_t* out = <uint8_t*> cnp.PyArray_DATA(data)
    cdef bint wide = size > MAX_INT32
    cdef int64_t copied
    with nogil:
        copied = _fixed(values, width, count, text, ends, wide, out, size, &row)
    if copied != size:
        raise SchemaError("the array changed while it was read", column=name or None)
    return offsets, data


cdef inline Py_ssize_t _trimmed(const uint8_t* value, Py_ssize_t width, bint text) noexcept nogil:
    """Return a value's length without the NULs at its end, in units. A text unit has four bytes, other units have one byte."""
    cdef Py_ssize_t length = width // 4 if text else width
    if text:
        while length and (<const uint32_t*> value)[length - 1] == 0:
            length -= 1
    else:
        while length and value[length - 1] == 0:
            length -= 1
    return length


cdef int64_t _fixed(
    const uint8_t* values, Py_ssize_t width, int64_t count, bint text,
    uint8_t* offsets, bint wide, uint8_t* out, int64_t size, int64_t* row,
) noexcept nogil:
    """Return the total size of all values in bytes. If offsets is not NULL, also copy the values into out (size bytes).

    A negative result means that UTF-8 cannot encode the value in a row, which is set, or that the values changed.
    """
    cdef int64_t i, at = 0, length, units
    for i in range(count):
        units = _trimmed(values + i * width, width, text)
        length = ucs4_utf8_size(<const uint32_t*> (values + i * width), <size_t> units) if text else units
        if length < 0:
            row[0] = i
            return Status.BAD_UTF8
        if offsets != NULL:
            if length > size - at:
                return CHANGED
            if text:
                ucs4_to_utf8(<const uint32_t*> (values + i * width), <size_t> units, out + at)
            elif length:
                memcpy(out + at, values + i * width, length)
            _put_offset(offsets, wide, i + 1, at + length)
        at += length
    return at
