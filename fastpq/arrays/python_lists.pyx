"""Conversion between an object array of lists and one element array with each list's bounds."""

from cpython.list cimport PyList_Check, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cimport numpy as cnp

import numpy as np

from fastpq.errors import FormatError, SchemaError

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        type subtype, cnp.dtype descr, int nd, cnp.npy_intp* dims, cnp.npy_intp* strides, void* data, int flags, PyObject* like)
    int PyArray_SetBaseObject(cnp.ndarray array, object base) except -1


cdef PyObject** _objects_of(cnp.ndarray array) except NULL:
    if array.ndim != 1 or array.dtype != object or not array.flags.c_contiguous:
        raise SchemaError("the objects are not a contiguous, one-dimensional array")
    return <PyObject**> cnp.PyArray_DATA(array)


def lengths_of(cnp.ndarray array not None):
    """Return each value's length in an object array that holds lists, tuples or arrays.

    Args:
        array: one-dimensional and contiguous.

    Returns:
        The lengths, int64, -1 for None, and the row of the first value that has no length. This row is -1 if there is no such
        value.
    """
    cdef PyObject** values = _objects_of(array)
    cdef int64_t count = array.shape[0], i
    cdef object value
    lengths = np.empty(count, np.int64)
    cdef int64_t* out = <int64_t*> cnp.PyArray_DATA(lengths)
    for i in range(count):
        if values[i] == NULL or values[i] == <PyObject*> None:
            out[i] = -1
            continue
        value = <object> values[i]
        if PyList_Check(value):             # not len(), because a subclass may define it
            out[i] = PyList_GET_SIZE(value)
        elif PyTuple_Check(value):
            out[i] = PyTuple_GET_SIZE(value)
        elif cnp.PyArray_Check(value) and cnp.PyArray_NDIM(value) > 0:
            out[i] = cnp.PyArray_DIM(value, 0)
        else:
            return lengths, i
    return lengths, -1


def joined(cnp.ndarray array not None, cnp.ndarray lengths not None):
    """Return the elements of one-dimensional arrays that have the same dtype, one array after another.

    Args:
        array: arrays and None. It is one-dimensional and contiguous.
        lengths: what ``lengths_of`` returned.

    Returns:
        None if a value is not such an array.
    """
    cdef PyObject** values = _objects_of(array)
    cdef int64_t count = array.shape[0], i, at = 0, size
    cdef cnp.ndarray each, first = None
    cdef const int64_t* length = <const int64_t*> cnp.PyArray_DATA(lengths)
    cdef object value
    if lengths.shape[0] != count or lengths.dtype != np.int64 or not lengths.flags.c_contiguous:
        raise SchemaError(f"the lengths are not a contiguous array of {count} int64 values")
    for i in range(count):
        if length[i] < 0:
            continue
        value = <object> values[i]
        if type(value) is not cnp.ndarray:
            return None
        each = value
        if first is None:
            first = each
            if first.dtype.hasobject or first.dtype.kind in "TV" or not first.dtype.isnative:
                return None
        if cnp.PyArray_NDIM(each) != 1 or not cnp.PyArray_IS_C_CONTIGUOUS(each):
            return None
        if cnp.PyArray_DESCR(each) is not cnp.PyArray_DESCR(first) and each.dtype != first.dtype:
            return None
    if first is None:
        return None
    cdef int64_t width = first.dtype.itemsize
    elements = np.empty(int(lengths[lengths > 0].sum()), first.dtype)
    cdef int64_t room = elements.nbytes
    cdef uint8_t* out = <uint8_t*> cnp.PyArray_DATA(elements)
    for i in range(count):
        if length[i] <= 0:
            continue
        size = length[i] * width
        if values[i] == NULL or type(<object> values[i]) is not cnp.ndarray:
            raise SchemaError("an array changed while it was read")
        each = <object> values[i]
        if cnp.PyArray_NBYTES(each) != size or not cnp.PyArray_IS_C_CONTIGUOUS(each) or size > room - at:
            raise SchemaError("an array changed while it was read")
        memcpy(out + at, cnp.PyArray_DATA(each), size)
        at += size
    return elements


def cut(cnp.ndarray elements not None, cnp.ndarray offsets not None, present):
    """Return an object array with one array for each list, None where a list is not present. The arrays are views of elements.

    Args:
        elements: all lists' values, one-dimensional.
        offsets: the lists' bounds, shape (n + 1,), int64, contiguous.
        present: shape (n,), bool, contiguous, or None if all lists are present.

    Raises:
        FormatError: a list is outside the elements.
    """
    if elements.ndim != 1 or offsets.ndim != 1 or offsets.dtype != np.int64 or not offsets.flags.c_contiguous:
        raise SchemaError("the elements or their bounds are not a one-dimensional array")
    cdef int64_t count = offsets.shape[0] - 1, size = elements.shape[0], i
    cdef const int64_t* bounds = <const int64_t*> cnp.PyArray_DATA(offsets)
    cdef const uint8_t* there = NULL
    if present is not None:
        if present.shape != (count,) or present.dtype != np.bool_ or not present.flags.c_contiguous:
            raise SchemaError(f"present is not a contiguous array of {count} booleans")
        there = <const uint8_t*> cnp.PyArray_DATA(present)
    array = np.empty(max(count, 0), object)
    cdef PyObject** out = <PyObject**> cnp.PyArray_DATA(array)
    cdef char* start = <char*> cnp.PyArray_DATA(elements)
    cdef cnp.npy_intp stride = cnp.PyArray_STRIDE(elements, 0), length
    cdef int flags = cnp.PyArray_FLAGS(elements) & cnp.NPY_ARRAY_WRITEABLE
    cdef cnp.dtype descr = elements.dtype
    cdef object each
    for i in range(count):
        if bounds[i] < 0 or bounds[i + 1] < bounds[i] or bounds[i + 1] > size:
            raise FormatError(f"list {i} is outside the elements")
        if there != NULL and not there[i]:
            continue                        # numpy.empty has filled the array with None
        length = bounds[i + 1] - bounds[i]
        Py_INCREF(descr)                    # the new array owns a reference
        each = PyArray_NewFromDescr(cnp.ndarray, descr, 1, &length, &stride, start + bounds[i] * stride, flags, NULL)
        Py_INCREF(elements)
        PyArray_SetBaseObject(each, elements)
        Py_INCREF(each)
        Py_XDECREF(out[i])
        out[i] = <PyObject*> each
    return array
