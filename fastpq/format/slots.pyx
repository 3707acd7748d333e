# cython: auto_pickle=False
"""Direct access to the slots in instances whose class has ``__slots__``. The garbage collector does not track these instances.

A footer with a million chunks has millions of structs, and each collection would visit all of them.
"""

from cpython.dict cimport PyDict_Next
from cpython.long cimport PyLong_AsSsize_t
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
    """Return a slot's place in an instance, in bytes.

    Args:
        descriptor: the class attribute that has the slot's name.

    Raises:
        TypeError: the attribute is not a slot.
    """
    if type(descriptor) is not MEMBER:
        raise TypeError(f"{descriptor!r} is not a slot")
    return (<PyMemberDescrObject*><PyObject*>descriptor).d_member.offset


cdef class FilledStruct:
    """The compiled part of Struct. The constructor takes field values by name. Other fields are None.

    Raises:
        TypeError: a name is not the name of a field.
    """

    def __init__(self, **values):
        cdef dict places = type(self).PLACES
        cdef Py_ssize_t matches = 0
        cdef PyObject* value
        self.unknown_fields = ()
        for name, place in places.items():
            value = PyDict_GetItemWithError(values, name)
            matches += value != NULL
            put(self, place, None if value == NULL else <object>value)
        untrack(self)
        if matches < len(values):
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(values.keys() - places.keys()))}")

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        cdef dict places = type(self).PLACES
        for place in places.values():
            if value_at(self, place) != value_at(other, place):
                return False
        return self.unknown_fields == other.unknown_fields

    def __copy__(self):
        copied = copy_instance(self, type(self).PLACES, {})
        copied.unknown_fields = self.unknown_fields
        return copied


def untracked(target):
    """Stop the garbage collector from tracking an object, and return the object.

    Args:
        target: an object that does not refer to itself, directly or through others.
    """
    untrack(target)
    return target


def make_instance(cls, dict places not None, tuple values not None):
    """Make an instance from slot values. ``__init__`` is not called, and the garbage collector does not track the instance.

    Args:
        cls: a class with slots.
        places: the slots' places, from ``place_of``, by name.
        values: a value for each place. No value may refer to the instance.
    """
    cdef Py_ssize_t position = 0, index = 0
    cdef PyObject* name
    cdef PyObject* place
    instance = <object>PyType_GenericAlloc(<PyTypeObject*>cls, 0)
    Py_XDECREF(<PyObject*>instance)         # drops the second reference, which the call returned
    untrack(instance)
    if len(values) != len(places):
        raise TypeError(f"{len(values)} values for {len(places)} slots of {cls.__name__}")
    while PyDict_Next(places, &position, &name, &place):
        put(instance, PyLong_AsSsize_t(<object>place), values[index])
        index += 1
    return instance


def copy_instance(instance, dict places not None, dict changes not None):
    """Copy an instance, with other values in some slots. The garbage collector does not track the copy.

    Args:
        instance: an instance whose slots all have values.
        places: the places of all slots, from ``place_of``, by name.
        changes: the new values by name. No value may refer to the copy.

    Raises:
        TypeError: a name is not the name of a slot.
    """
    cdef Py_ssize_t matches = 0
    cdef PyObject* value
    cls = type(instance)
    copy = <object>PyType_GenericAlloc(<PyTypeObject*>cls, 0)
    Py_XDECREF(<PyObject*>copy)         # drops the second reference, which the call returned
    untrack(copy)
    for name, place in places.items():
        value = PyDict_GetItemWithError(changes, name)
        matches += value != NULL
        put(copy, place, value_at(instance, place) if value == NULL else <object>value)
    if matches < len(changes):
        raise TypeError(f"a {cls.__name__} has no fields {[*(changes.keys() - places.keys())]}")
    return copy


cdef object new_filled(object cls, tuple places):
    """Make an instance whose slots are all None. ``__init__`` is not called, and the garbage collector does not track it."""
    instance = <object>PyType_GenericAlloc(<PyTypeObject*>cls, 0)
    Py_XDECREF(<PyObject*>instance)         # drops the second reference, which the call returned
    for place in places:
        put(instance, place, None)
    untrack(instance)
    return instance
