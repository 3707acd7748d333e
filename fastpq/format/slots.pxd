"""Direct access to the slots in instances whose class has ``__slots__``."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject* instance) noexcept


# Returns the slot at a place in an instance. The place is in bytes.
cdef inline PyObject** slot_at(object instance, Py_ssize_t place) noexcept:
    return <PyObject**>(<char*><PyObject*>instance + place)


# Puts a value into a slot.
cdef inline void put(object instance, Py_ssize_t place, object value) noexcept:
    cdef PyObject** slot = slot_at(instance, place)
    cdef PyObject* old = slot[0]
    Py_INCREF(value)
    slot[0] = <PyObject*>value
    Py_XDECREF(old)


# Returns a slot's value.
cdef inline object value_at(object instance, Py_ssize_t place):
    cdef PyObject* value = slot_at(instance, place)[0]
    if value == NULL:
        raise AttributeError(f"a slot of {type(instance).__name__} has no value")
    return <object>value


# Stops the garbage collector from tracking a struct or a list. Footers are trees, so they have no cycles to collect.
cdef inline void untrack(object instance) noexcept:
    PyObject_GC_UnTrack(<PyObject*>instance)


cdef object new_filled(object cls, tuple places)
