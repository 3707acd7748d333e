# cython: auto_pickle=False
"""Slots of Python classes with ``__slots__``, written by their places in memory: no dict, no work for the garbage collector.

A footer of a million chunks has millions of structs. Each collection visits all tracked objects.
"""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from "structmember.h":
    ctypedef struct PyMemberDef:
        Py_ssize_t offset

cdef extern from "Python.h":
    ctypedef struct PyMemberDescrObject:
        PyMemberDef* d_member
    PyObject* PyDict_GetItemWithError(dict values, object name)
    PyObject* PyType_GenericAlloc(PyTypeObject* cls, Py_ssize_t count) except NULL

MEMBER = type(type("_", (), {"__slots__": ("slot",)}).slot)


def place_of(descriptor):
    """The place of a slot in an instance, in bytes.

    Args:
        descriptor: the class's attribute of the slot's name.

    Raises:
        TypeError: the attribute is no slot.
    """
    if type(descriptor) is not MEMBER:
        raise TypeError(f"{descriptor!r} is no slot")
    return (<PyMemberDescrObject*><PyObject*>descriptor).d_member.offset


cdef class FilledStruct:
    """Compiled part of Struct: the constructor takes values by the names of fields; other fields are None.

    Raises:
        TypeError: a name of a value is no field's.
    """

    def __init__(self, **values):
        cdef dict places = type(self).PLACES
        cdef Py_ssize_t found = 0
        cdef PyObject* value
        self.unknown = ()
        for name, place in places.items():
            value = PyDict_GetItemWithError(values, name)
            found += value != NULL
            put(self, place, None if value == NULL else <object>value)
        untrack(self)
        if found < len(values):
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(values.keys() - places.keys()))}")


def untracked(made):
    """An object out of the garbage collector's work.

    Args:
        made: an object without a way back to itself by its references.
    """
    untrack(made)
    return made


def made_of(cls, tuple places not None, tuple values not None):
    """An instance of a class with slots, without a call of ``__init__``, and out of the garbage collector's work.

    Args:
        cls: the class.
        places: places of its slots, as ``place_of``.
        values: a value for each place, without a way back to the instance.
    """
    cdef Py_ssize_t i
    made = <object>PyType_GenericAlloc(<PyTypeObject*>cls, 0)
    Py_XDECREF(<PyObject*>made)         # the reference that the call gave
    untrack(made)
    if len(values) != len(places):
        raise TypeError(f"{len(values)} values for {len(places)} slots of {cls.__name__}")
    for i in range(len(places)):
        put(made, places[i], values[i])
    return made


cdef object new_filled(object cls, tuple places):
    """An instance of a class with slots, without a call of ``__init__``; every slot is None."""
    made = <object>PyType_GenericAlloc(<PyTypeObject*>cls, 0)
    Py_XDECREF(<PyObject*>made)         # the reference that the call gave
    for place in places:
        put(made, place, None)
    untrack(made)
    return made
