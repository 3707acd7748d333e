"""Decodes the plain fields in an ARROW:schema entry, and gives them to columns. A wide file has thousands of them.

A plain field has no children, no metadata and no dictionary. Other fields are decoded by ``fastpq.arrow.ipc_schema``.
"""

from libc.stdint cimport int64_t

from fastpq.arrow.table_reader cimport TableReader
from fastpq.format.slots cimport new_filled, put, value_at

from fastpq.arrays.flat_column import Column
from fastpq.arrays.nodes import NULLABLE, FieldNode
from fastpq.errors import FormatError
from fastpq.format.slots import make_instance, place_of

cdef enum:
    NAME = 0            # slots in Schema.fbs, table Field
    NULLABLE_SLOT = 1
    TYPE_TYPE = 2
    TYPE = 3
    DICTIONARY = 4
    CHILDREN = 5
    METADATA = 6
    INT = 2             # a member of the union Type

cdef dict FIELD_PLACES = {name: place_of(getattr(FieldNode, name)) for name in FieldNode.__match_args__}
cdef dict COLUMN_PLACES = {name: place_of(getattr(Column, name)) for name in Column.__match_args__}
cdef tuple COLUMN_SLOTS = tuple(COLUMN_PLACES.values())
cdef Py_ssize_t ARROW = COLUMN_PLACES["arrow"]
cdef dict INTS = {(8, 1): "c", (16, 1): "s", (32, 1): "i", (64, 1): "l", (8, 0): "C", (16, 0): "S", (32, 0): "I", (64, 0): "L"}
cdef int FLAGS_OF_NULLABLE = NULLABLE


def plain_field(TableReader schema not None, int fields, int64_t index, format_of not None):
    """Return a plain field as a FieldNode, or None for any other field.

    Args:
        schema: the table that has the fields.
        fields: the slot of the fields in this table.
        index: field index, less than the number of fields.
        format_of: returns the format string for a member of the union Type and the table that describes it.

    Raises:
        FormatError: the field breaks the format.
        UnsupportedError: the type is unknown.
    """
    cdef TableReader field = schema.item(fields, index), type_
    cdef int64_t place, member = 0
    cdef int flags = 0
    cdef bytes name
    if field.count(CHILDREN) or field.count(METADATA) or field._target(DICTIONARY) >= 0:
        return None
    type_ = field.table(TYPE)
    if type_ is None:
        return None
    place = field._place(TYPE_TYPE)
    if place >= 0:
        member = field._buffer.at(place, 1)[0]
    place = field._place(NULLABLE_SLOT)
    if place >= 0 and field._buffer.at(place, 1)[0]:
        flags = FLAGS_OF_NULLABLE
    text = INTS.get((type_.scalar(0, "i"), type_.scalar(1, "B"))) if member == INT else None
    if text is None:
        text = format_of(member, type_)
    name = field.text(NAME) or b""
    if b"\0" in name:
        return None
    try:
        name_text = name.decode()
    except UnicodeDecodeError:
        return None
    return make_instance(FieldNode, FIELD_PLACES, (text, name_text, flags, None, (), None))


def dictionary_numbers(TableReader schema not None, int fields):
    """Return the indexes of the fields that may be dictionaries, as a set. A broken field is not one."""
    cdef int64_t index
    cdef set numbers = set()
    for index in range(schema.count(fields)):
        try:
            if schema.item(fields, index)._target(DICTIONARY) >= 0:
                numbers.add(index)
        except FormatError:
            pass
    return numbers


def with_plain_field(column, field):
    """Return a flat column with its Arrow field. The arguments and the result are a Column and a plain FieldNode."""
    if type(column) is not Column:
        raise TypeError(f"{type(column).__name__} is not a Column")
    copy = new_filled(Column, ())
    for place in COLUMN_SLOTS:
        put(copy, place, value_at(column, place))
    put(copy, ARROW, field)
    return copy
