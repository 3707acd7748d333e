"""NumPy's ways to hold strings and bytes, StringDType, objects and fixed width, to and from slices and offsets.

StringDType goes through NumPy's C API, without a Python str a value. The allocator of StringDType is a lock. The lock is
taken, used and released without the GIL: no thread waits for one of the two while holding the other.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, Py_TYPE
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

cimport numpy as cnp
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

cdef extern from "c/utf8.h" nogil:
    int utf8_is_valid(const uint8_t* data, size_t size)

cdef extern from "c/text.h" nogil:
    int text_is_ascii(const uint8_t* data, size_t size)
    int64_t ucs4_utf8_size(const uint32_t* text, size_t size)
    size_t ucs4_to_utf8(const uint32_t* text, size_t size, uint8_t* out)

cdef int64_t MAX_INT32 = 0x7FFFFFFF
cdef int64_t CHANGED = -100      # beside Status: another thread wrote to the input meanwhile


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
        missing: nulls become the missing value of the dtype, its na_object; else empty strings.
        name: of the column, for errors.

    Raises:
        FormatError: a value is not UTF-8.
    """
    if cnp.PyArray_NDIM(array) != 1 or array.shape[0] != reader.count or not array.flags.c_contiguous:
        raise SchemaError(f"the array is not a contiguous one of {reader.count} values")
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
                # The array is new and so all zero: empty strings of NumPy.
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
    """Values as an object array of str or bytes, and None where null.

    Rows of one dictionary entry share one object, if there are at least as many rows as entries: few rows of a large dictionary
    need no place for each entry.

    Args:
        reader: the values.
        text: decode as UTF-8.
        name: of the column, for errors.

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
                continue                        # numpy.empty filled the array with None
            value = _object_of(&block[i], text, name, start + i)
            Py_INCREF(value)
            Py_XDECREF(out[start + i])
            out[start + i] = <PyObject*> value
        start += n
    return array


cdef object _shared_objects(SliceReader reader, bint text, str name):
    """Values of codes as an object array: one object for each entry in use."""
    cdef int64_t i, code
    cdef PyObject* value
    cdef uint32_t each
    entries = np.empty(reader.entries(), dtype=object)
    numbers = np.arange(reader.entries(), dtype=np.uint32)
    cdef const uint32_t* mapping = <const uint32_t*> cnp.PyArray_DATA(numbers)
    cdef PyObject** made = <PyObject**> cnp.PyArray_DATA(entries)
    array = np.empty(reader.count, dtype=object)
    cdef PyObject** out = <PyObject**> cnp.PyArray_DATA(array)
    for i in range(reader.count):
        code = reader.read_codes(i, 1, mapping, &each)
        if code <= 0:
            raise_status(code)
            continue                            # null: numpy.empty filled the array with None
        value = made[each]
        if value == <PyObject*> None:
            entry = _object_of(&reader.dictionary[each], text, name, i)
            value = <PyObject*> entry
            Py_INCREF(entry)
            Py_XDECREF(made[each])
            made[each] = value
        Py_INCREF(<object> value)
        Py_XDECREF(out[i])
        out[i] = value
    return array


cdef inline object _object_of(const Slice* value, bint text, str name, int64_t row):
    if not text:
        return PyBytes_FromStringAndSize(<const char*> value.data, <Py_ssize_t> value.size)
    if value.size > 1 and text_is_ascii(value.data, value.size):        # of shorter texts Python has one object each
        made = PyUnicode_New(<Py_ssize_t> value.size, 127)
        memcpy(PyUnicode_1BYTE_DATA(made), value.data, value.size)
        return made
    try:
        return PyUnicode_DecodeUTF8(<const char*> value.data, <Py_ssize_t> value.size, NULL)
    except UnicodeDecodeError as error:
        raise FormatError(f"value {row} is not UTF-8", column=name or None) from error


def from_string_dtype(cnp.ndarray array not None):
    """Copy a StringDType array out.

    Args:
        array: one-dimensional, of any stride.

    Returns:
        offsets, data, and a boolean array, True where null, or None without nulls.

    Raises:
        SchemaError: another thread wrote to the array meanwhile.
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
    """Bytes of all values, measured (offsets NULL) or copied into the size bytes of out."""
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
    """Nulls and types of the values of an object array.

    Args:
        array: one-dimensional and contiguous.

    Returns:
        a boolean array, True where the value is None or numpy.ma.masked; and for every type among the other
        values the index of its first value, in order of appearance.
    """
    cdef int64_t count = array.shape[0], i
    cdef PyObject** values = <PyObject**> cnp.PyArray_DATA(array)
    cdef PyObject* masked = <PyObject*> np.ma.masked
    cdef PyObject* last = NULL              # type of the value before, and mostly of the next value too
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
    """Copy an object array of str or bytes out.

    Args:
        array: one-dimensional and contiguous; None and numpy.ma.masked are null.
        text: the values are str, else bytes.
        name: of the column, for errors.

    Returns:
        offsets, data, and a boolean array, True where null, or None without nulls.

    Raises:
        SchemaError: a value of another type, or text beyond UTF-8.
    """
    cdef int64_t count = array.shape[0], i, size = 0
    cdef Py_ssize_t length = 0
    cdef PyObject** values = <PyObject**> cnp.PyArray_DATA(array)
    cdef const char* buffer
    masked = np.ma.masked
    nulls = np.zeros(count, np.bool_)
    cdef uint8_t* null = <uint8_t*> cnp.PyArray_DATA(nulls)
    # The GIL is held from here to the end and no Python code runs: both passes see the same values.
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
    """The bytes of a bytes object, or of a str as UTF-8; a str beyond ASCII keeps its UTF-8."""
    if text and type(value) is str and PyUnicode_IS_COMPACT_ASCII(value):
        length[0] = PyUnicode_GET_LENGTH(value)
        return <const char*> PyUnicode_1BYTE_DATA(value)
    if text and isinstance(value, str):
        try:
            return PyUnicode_AsUTF8AndSize(value, length)
        except UnicodeEncodeError as error:
            raise SchemaError(f"value {row} has a surrogate, which UTF-8 cannot hold", column=name or None) from error
    if not text and isinstance(value, bytes):
        length[0] = PyBytes_GET_SIZE(value)
        return PyBytes_AS_STRING(value)
    expected = "str" if text else "bytes"
    raise SchemaError(f"value {row} is a {type(value).__name__} among {expected}", column=name or None)


def from_fixed(cnp.ndarray array not None, str name):
    """Copy an array of fixed-width strings (U) or bytes (S) out; NULs at the end of a value are left out.

    Args:
        array: one-dimensional, contiguous, native byte order.
        name: of the column, for errors.

    Returns:
        offsets and data, with U as UTF-8.

    Raises:
        SchemaError: a code point beyond UTF-8.
    """
    cdef int64_t count = array.shape[0], size = 0, row = 0
    cdef Py_ssize_t width = array.itemsize
    cdef bint text = array.dtype.kind == "U"
    cdef const uint8_t* values = <const uint8_t*> cnp.PyArray_DATA(array)
    with nogil:
        size = _measure_fixed(values, width, count, text, &row)
    if size < 0:
        raise SchemaError(f"value {row} has a surrogate, which UTF-8 cannot hold", column=name or None)
    offsets = _offsets_for(count, size)
    data = np.empty(size, np.uint8)
    cdef uint8_t* ends = <uint8_t*> cnp.PyArray_DATA(offsets)
    cdef uint8_t* out = <uint8_t*> cnp.PyArray_DATA(data)
    cdef bint wide = size > MAX_INT32
    cdef int64_t copied
    with nogil:
        copied = _copy_fixed(values, width, count, text, ends, wide, out, size)
    if copied != size:
        raise SchemaError("the array changed while it was read", column=name or None)
    return offsets, data


cdef inline Py_ssize_t _trimmed(const uint8_t* value, Py_ssize_t width, bint text) noexcept nogil:
    """Units of a value without the NULs at its end; a unit is four bytes of text or one byte."""
    cdef Py_ssize_t length = width // 4 if text else width
    if text:
        while length and (<const uint32_t*> value)[length - 1] == 0:
            length -= 1
    else:
        while length and value[length - 1] == 0:
            length -= 1
    return length


cdef int64_t _measure_fixed(
    const uint8_t* values, Py_ssize_t width, int64_t count, bint text, int64_t* row
) noexcept nogil:
    cdef int64_t i, size = 0, length
    for i in range(count):
        length = _trimmed(values + i * width, width, text)
        if text:
            length = ucs4_utf8_size(<const uint32_t*> (values + i * width), <size_t> length)
            if length < 0:
                row[0] = i
                return Status.BAD_UTF8
        size += length
    return size


cdef int64_t _copy_fixed(
    const uint8_t* values, Py_ssize_t width, int64_t count, bint text,
    uint8_t* offsets, bint wide, uint8_t* out, int64_t size,
) noexcept nogil:
    cdef int64_t i, at = 0, length, units
    for i in range(count):
        units = _trimmed(values + i * width, width, text)
        length = ucs4_utf8_size(<const uint32_t*> (values + i * width), <size_t> units) if text else units
        if length < 0 or length > size - at:
            return CHANGED
        if text:
            ucs4_to_utf8(<const uint32_t*> (values + i * width), <size_t> units, out + at)
        elif length:
            memcpy(out + at, values + i * width, length)
        at += length
        _put_offset(offsets, wide, i + 1, at)
    return at
