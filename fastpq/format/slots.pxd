"""Slots of Python classes with ``__slots__``, written by their places in memory."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject* made) noexcept


# The slot at a place in an instance.
cdef inline PyObject** slot_at(object made, Py_ssize_t place) noexcept:
    return <PyObject**>(<char*><PyObject*>made + place)


# Puts a value into a slot.
cdef inline void put(object made, Py_ssize_t place, object value) noexcept:
    cdef PyObject** slot = slot_at(made, place)
    cdef PyObject* old = slot[0]
    Py_INCREF(value)
    slot[0] = <PyObject*>value
    Py_XDECREF(old)


# The value of a slot.
cdef inline object taken(object made, Py_ssize_t place):
    cdef PyObject* value = slot_at(made, place)[0]
    if value == NULL:
        raise AttributeError(f"a slot of {type(made).__name__} has no value")
    return <object>value


# Takes a struct or a list out of the garbage collector's work: footers are trees without cycles.
cdef inline void untrack(object made) noexcept:
    PyObject_GC_UnTrack(<PyObject*>made)


cdef object new_filled(object cls, tuple places)
