"""Builds the schema tree from SchemaElements. A file may have a million columns, so this is compiled."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from fastpq.format.cursor cimport BINARY, Cursor, STOP, cursor_at, skip_value, take_bytes, take_field
from fastpq.format.slots cimport new_filled, put, value_at

from fastpq.errors import FormatError, LimitError, ParquetError
from fastpq.format.compact import decode
from fastpq.format.parquet import SchemaElement
from fastpq.format.slots import place_of
from fastpq.schema.tree import OPTIONAL, REPEATED, REQUIRED, ColumnDescriptor, GroupNode, SchemaNode

cdef extern from "Python.h":
    PyObject* PyType_GenericAlloc(PyTypeObject* cls, Py_ssize_t count) except NULL

MAX_SCHEMA_DEPTH = 512      # largest number of levels that nested groups may have

cdef enum:
    NAME = 4                        # field id in SchemaElement
    MOST_TEMPLATES = 1024           # elements that are kept to be copied. Field ids may make all elements different

cdef tuple PLACES = tuple(SchemaElement.PLACES.values())
cdef Py_ssize_t NAME_PLACE = SchemaElement.PLACES["name"]
cdef Py_ssize_t UNKNOWN_PLACE = place_of(SchemaElement.unknown_fields)

cdef tuple REPETITIONS = (REQUIRED, OPTIONAL, REPEATED)
cdef int REQUIRED_NUMBER = REQUIRED, OPTIONAL_NUMBER = OPTIONAL, REPEATED_NUMBER = REPEATED

cdef Py_ssize_t PATH = place_of(SchemaNode._path)
cdef Py_ssize_t ELEMENT = place_of(SchemaNode.element)
cdef Py_ssize_t PARENT = place_of(SchemaNode.parent)
cdef Py_ssize_t NULLABLE = place_of(SchemaNode.nullable)
cdef Py_ssize_t TOP = place_of(SchemaNode.top)
cdef Py_ssize_t DEFINITION = place_of(SchemaNode.max_definition_level)
cdef Py_ssize_t REPETITION = place_of(SchemaNode.max_repetition_level)
cdef Py_ssize_t INDEX = place_of(ColumnDescriptor.index)
cdef Py_ssize_t IS_FLAT = place_of(ColumnDescriptor.is_flat)
cdef Py_ssize_t TYPE = place_of(ColumnDescriptor.type)


@cython.final
cdef class Template:
    """An element that others equal in all but the name.

    Attributes:
        element: the element.
        uses: how many copies were made.
        note: the first leaf with such an element, later the type of all such leaves, or None if the type is an error.
    """

    cdef object element
    cdef int64_t uses
    cdef object note


cdef object renamed(element, name):
    copy = new_filled(SchemaElement, ())
    for place in PLACES:
        put(copy, place, value_at(element, place))
    put(copy, UNKNOWN_PLACE, value_at(element, UNKNOWN_PLACE))
    put(copy, NAME_PLACE, name)
    return copy


@cython.final
cdef class StoredElements:
    """An iterator over the consecutive serialized SchemaElements in a footer.

    The columns of a wide file differ in little but their names. An element whose other bytes have occurred before is a copy of
    the first element with these bytes, so it costs a look into a dict instead of a decoder's run.

    Copies share the objects in their fields, for example the LogicalType.

    Args:
        data: the elements' bytes.
        count: element count.

    Raises:
        FormatError: the bytes are not SchemaElements. ``next`` raises it.
    """

    cdef bytes data
    cdef int64_t offset         # where the next element begins
    cdef int64_t count          # how many elements remain
    cdef dict templates         # Template by the serialized fields without the name
    cdef Template template      # for the last element, or None

    def __init__(self, bytes data not None, int64_t count):
        self.data = data
        self.count = count
        self.templates = {}

    def __iter__(self):
        return self

    def __next__(self):
        if self.count <= 0:
            raise StopIteration
        self.count -= 1
        return self.take()

    cdef object take(self):
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(self.data) + self.offset
        cdef Cursor cursor = cursor_at(start, <size_t>(len(self.data) - self.offset))
        cdef const uint8_t* before = NULL
        cdef const uint8_t* name = NULL
        cdef int64_t id = 0, size = 0
        cdef int wire = take_field(&cursor, &id)
        cdef bytes rest
        cdef Template template
        self.template = None
        while wire != STOP:
            if id == NAME and wire == BINARY and name == NULL:
                before = cursor.pos
                name = take_bytes(&cursor, &size)
            else:
                skip_value(&cursor, wire, 0, False)
            wire = take_field(&cursor, &id)
        if cursor.failed or name == NULL:
            return self.decoded()
        rest = PyBytes_FromStringAndSize(NULL, (before - start) + (cursor.pos - name - size))
        memcpy(PyBytes_AS_STRING(rest), start, <size_t>(before - start))
        memcpy(PyBytes_AS_STRING(rest) + (before - start), name + size, <size_t>(cursor.pos - name - size))
        template = <Template>self.templates.get(rest)
        if template is None:
            element = self.decoded()
            if len(self.templates) < MOST_TEMPLATES:
                template = Template.__new__(Template)
                template.element = element
                self.templates[rest] = template
                self.template = template
            return element
        self.offset += cursor.pos - start
        self.template = template
        template.uses += 1
        return renamed(template.element, PyUnicode_DecodeUTF8(<const char*>name, size, "surrogateescape"))

    cdef object decoded(self):
        """Return the next element from the decoder, which raises the error if its bytes are broken."""
        element, length = decode(SchemaElement, self.data, self.offset)
        self.offset += length
        return element


def build_tree(elements, Py_ssize_t count):
    """Build the tree that SchemaElements describe.

    Args:
        elements: an iterator over the nodes, depth first, starting with the root.
        count: element count.

    Returns:
        (the root, a list of the leaves).

    Raises:
        FormatError: the elements do not form one tree.
        LimitError: groups are nested more than 512 levels deep.
    """
    cdef StoredElements stored = elements if isinstance(elements, StoredElements) else None
    cdef list columns = []
    cdef list outer = []            # groups around the innermost one, with the children they lack
    cdef list children
    cdef Py_ssize_t missing         # children that the innermost open group still lacks
    cdef Py_ssize_t remaining
    if not count:
        raise FormatError("the schema has no root")
    first = next(elements)
    root = parent = GroupNode(first, None, 0)
    children = parent.children
    missing = child_count(first, count - 1)
    for remaining in range(count - 2, -1, -1):
        element = next(elements)
        while missing == 0:
            parent.last = len(columns)
            if not outer:
                raise FormatError(f"the schema continues with {element.name!r} after the last child of its root")
            parent, missing = outer.pop()
            children = parent.children
        missing -= 1
        check_element(element)
        if element.type is not None:
            column = new_leaf(element, parent, len(columns), None if stored is None else stored.template)
            columns.append(column)
            children.append(column)
            continue
        group = GroupNode(element, parent, len(columns))
        children.append(group)
        outer.append((parent, missing))
        if len(outer) >= MAX_SCHEMA_DEPTH:
            raise LimitError(f"the schema is nested deeper than MAX_SCHEMA_DEPTH ({MAX_SCHEMA_DEPTH}) levels")
        parent, missing = group, child_count(element, remaining)
        children = parent.children
    while missing == 0 and outer:
        parent.last = len(columns)
        parent, missing = outer.pop()
    parent.last = len(columns)
    if missing:
        raise FormatError(f"the schema ends before the last child of {parent.element.name!r}")
    return root, columns


def build_flat_tree(list fields not None, root_element):
    """Build the tree for a new file with flat columns.

    Args:
        fields: for each column its name (str), its ColumnType, and whether nulls are allowed.
        root_element: the root's SchemaElement.

    Returns:
        (the root, a list of the leaves).
    """
    cdef list columns = [], children
    cdef dict templates = {}        # by the type's id and the nullability
    cdef Template template
    from fastpq.schema.elements import leaf_element         # only writing needs it

    root = GroupNode(root_element, None, 0)
    children = root.children
    for name, type_, nullable in fields:
        key = (id(type_), bool(nullable))
        template = <Template>templates.get(key)
        if template is None:
            template = templates[key] = Template.__new__(Template)
            element = template.element = leaf_element(name, type_, nullable)
        else:
            template.uses += 1
            element = renamed(template.element, name)
        column = new_leaf(element, root, len(columns), template)
        columns.append(column)
        children.append(column)
    root.last = len(columns)
    return root, columns


cdef object new_leaf(element, parent, Py_ssize_t index, Template template):
    """Return a ColumnDescriptor, like its constructor. ``template`` is the element's Template or None.

    The first leaf with a template's fields is kept in the template. The second leaf asks it for its type, and shares the type
    with all further ones. A leaf whose type is an error has no type, and raises the error when it is asked.
    """
    cdef int repetition = element.repetition_type
    cdef Py_ssize_t definition_level = parent.max_definition_level + (repetition != REQUIRED_NUMBER)
    cdef Py_ssize_t repetition_level = parent.max_repetition_level + (repetition == REPEATED_NUMBER)
    is_top = parent.parent is None
    leaf = <object>PyType_GenericAlloc(<PyTypeObject*>ColumnDescriptor, 0)
    Py_XDECREF(<PyObject*>leaf)         # drops the second reference, which the call returned
    put(leaf, PATH, None)
    put(leaf, ELEMENT, element)
    put(leaf, PARENT, parent)
    put(leaf, NULLABLE, repetition == OPTIONAL_NUMBER)
    put(leaf, TOP, leaf if is_top else parent.top)
    put(leaf, DEFINITION, definition_level)
    put(leaf, REPETITION, repetition_level)
    put(leaf, INDEX, index)
    put(leaf, IS_FLAT, is_top and repetition_level == 0)
    if template is None:
        return leaf
    if template.uses == 0:
        template.note = leaf
    elif template.uses == 1:
        try:
            template.note = template.note.type
        except ParquetError:
            template.note = None
    if template.uses and template.note is not None:
        put(leaf, TYPE, template.note)
    return leaf


cdef Py_ssize_t child_count(element, Py_ssize_t remaining) except -1:
    count = element.num_children or 0
    if not 0 <= count <= remaining:
        raise FormatError(f"{element.name!r} has {count} children, but only {remaining} elements remain")
    return count


cdef int check_element(element) except -1:
    if element.repetition_type is None:
        element.repetition_type = REQUIRED      # some writers omit it
    if not (<str>element.name).isascii() and any(["\ud800" <= character <= "\udfff" for character in element.name]):
        raise FormatError(f"the name {element.name!r} is not UTF-8")
    if element.repetition_type not in REPETITIONS:
        raise FormatError(f"the repetition type {element.repetition_type!r} is unknown", column=element.name)
    if element.type is not None and element.num_children:
        raise FormatError(f"a column of type {element.type!r} has {element.num_children} children", column=element.name)
    if element.type is None and element.num_children is None:
        raise FormatError("a schema element has neither a type nor children", column=element.name)
    return 0
