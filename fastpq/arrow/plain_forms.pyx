"""PlainForm: the Arrow form of a column whose values and validity bitmap are Arrow's already. A wide table has thousands of them.

Numbers, dates, times and timestamps are such columns, if nothing but their format is known of their Arrow field.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport int64_t

from fastpq.arrays.flat_column import Column
from fastpq.arrays.nodes import NULLABLE, ArrayNode, FieldNode
from fastpq.format.slots import make_instance, place_of
from fastpq.schema.types import Date, Float16, Integer, Time, Timestamp

cnp.import_array()

cdef dict FIELD_PLACES = {name: place_of(getattr(FieldNode, name)) for name in FieldNode.__match_args__}
cdef dict ARRAY_PLACES = {name: place_of(getattr(ArrayNode, name)) for name in ArrayNode.__match_args__}
cdef int FLAGS_OF_NULLABLE = NULLABLE
cdef tuple PLAIN_TYPES = (Date, Float16, Integer, Time, Timestamp)


@cython.final
cdef class PlainForm:
    """Form of a plain column.

    Attributes:
        node: the Arrow schema.
        array_node: the Arrow array.
    """

    cdef readonly object node
    cdef readonly object array_node

    def array(self):
        """Return the Arrow array, like the function in another form."""
        return self.array_node


@cython.final
cdef class PlainForms:
    """Maker of PlainForms for the columns of one table."""

    cdef dict formats           # format string, or None for a type that is not plain, by the type's id
    cdef list types             # keeps the types alive

    def __init__(self):
        self.formats = {}
        self.types = []

    def form(self, str name not None, column):
        """Return a column's PlainForm, or None if the column is not plain."""
        cdef cnp.ndarray values, validity
        cdef int64_t nulls
        if type(column) is not Column:
            return None
        array = column.values
        if type(array) is not cnp.ndarray:
            return None
        values = array
        kind = column.type
        field = column.arrow
        text = self.formats.get(id(kind), 0)
        if text == 0:
            text = self.formats[id(kind)] = plain_format(kind)
            self.types.append(kind)
        if text is None or field is not None and (field.metadata or field.dictionary is not None or field.format != text):
            return None
        if values.descr is not kind.dtype or values.ndim != 1 or not cnp.PyArray_ISCARRAY_RO(values):
            return None
        nulls = column.null_count
        bits = None
        if nulls:
            bits = column.validity
            if type(bits) is not cnp.ndarray:
                return None
            validity = bits
            if (cnp.PyArray_TYPE(validity) != cnp.NPY_UINT8 or not cnp.PyArray_ISCARRAY_RO(validity)
                    or cnp.PyArray_SIZE(validity) < (cnp.PyArray_SIZE(values) + 7) // 8):
                return None
        form = <PlainForm>PlainForm.__new__(PlainForm)
        flags = FLAGS_OF_NULLABLE if nulls or column.nullable else 0
        (<PlainForm>form).node = make_instance(FieldNode, FIELD_PLACES, (text, name, flags, None, (), None))
        (<PlainForm>form).array_node = make_instance(
            ArrayNode, ARRAY_PLACES, (cnp.PyArray_SIZE(values), nulls, (bits, values), (), None))
        return form


cdef object plain_format(kind):
    """Return the format string of a plain type, or None for another type."""
    if kind.logical is not None and not isinstance(kind.logical, PLAIN_TYPES):
        return None
    if kind.is_variable or kind.dtype.kind not in "iuf":
        return None
    return kind.arrow_format
