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


def fill(made, dict places not None, dict values not None):
    """Set every slot of an instance: None for a slot without a value.

    Args:
        made: an instance of a class with slots.
        places: the place of each slot by name, as ``place_of`` gives them for the class.
        values: values by the names of slots.

    Raises:
        TypeError: a name of a value is no slot's; the other slots are set.
    """
    cdef object value
    cdef Py_ssize_t found = 0
    for name, place in places.items():
        value = values.get(name)
        found += name in values
        put(made, place, value)
    untrack(made)
    if found < len(values):
        raise TypeError(f"{type(made).__name__} has no field {', '.join(sorted(values.keys() - places.keys()))}")


def untracked(made):
    """An object out of the garbage collector's work.

    Args:
        made: an object without a way back to itself by its references.
    """
    untrack(made)
    return made


cdef object new_filled(object cls, tuple places):
    """An instance of a class with slots, without a call of ``__init__``; every slot is None."""
    made = <object>PyType_GenericAlloc(<PyTypeObject*>cls, 0)
    Py_XDECREF(<PyObject*>made)         # the reference that the call gave
    for place in places:
        put(made, place, None)
    untrack(made)
    return made
