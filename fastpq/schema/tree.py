"""Nodes of the schema tree: groups and columns with their maximum levels, and the line of text of each.

A node holds little beside its SchemaElement: paths are made from the tree on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpq import format as fmt
from fastpq.errors import FormatError, ParquetError, SchemaError, UnsupportedError
from fastpq.schema.logical import logical_from_thrift
from fastpq.schema.types import ColumnType, Decimal, Geography, Geometry, Integer, LogicalType, Time, Timestamp, Type, column_type

REQUIRED, OPTIONAL, REPEATED = fmt.FieldRepetitionType


class SchemaNode:
    """A node of the schema tree.

    Attributes:
        element: the node's SchemaElement.
        parent: the group around the node; None for the root.
        max_definition_level: optional and repeated nodes from the root down to this one.
        max_repetition_level: repeated nodes from the root down to this one.
        nullable: whether the node itself is OPTIONAL, without regard to the groups around the node.
        top: the node directly under the root on the path to this node; the root for the root.
    """

    __slots__ = ("_path", "element", "max_definition_level", "max_repetition_level", "nullable", "parent", "top")

    def __init__(self, element: fmt.SchemaElement, parent: GroupNode | None) -> None:
        self.element = element
        self.parent = parent
        self._path: tuple[str, ...] | None = None       # made on first use
        self.nullable = element.repetition_type == OPTIONAL
        self.top: SchemaNode = self if parent is None or parent.parent is None else parent.top
        if parent is None:
            self.max_definition_level = self.max_repetition_level = 0
        else:
            self.max_definition_level = parent.max_definition_level + (element.repetition_type != REQUIRED)
            self.max_repetition_level = parent.max_repetition_level + (element.repetition_type == REPEATED)

    @property
    def path(self) -> tuple[str, ...]:
        """Names of the nodes from below the root down to this node."""
        if self._path is None:
            names = []
            node: SchemaNode = self
            while node.parent is not None:
                names.append(node.element.name)
                node = node.parent
            self._path = tuple(reversed(names))
        return self._path

    @property
    def name(self) -> str:
        """The path, joined by dots."""
        return ".".join(self.path)

    @property
    def repetition(self) -> fmt.FieldRepetitionType:
        """REQUIRED, OPTIONAL or REPEATED; the root counts as REQUIRED."""
        return fmt.FieldRepetitionType(self.element.repetition_type or REQUIRED)

    @property
    def field_id(self) -> int | None:
        """The field id given by the writer, if any."""
        return self.element.field_id


class GroupNode(SchemaNode):
    """A group of the schema; the root is a group.

    Attributes:
        children: the nodes directly under the group, in order.
        first, last: the leaves below the group are columns ``first`` to ``last - 1``.
        kept: the shape of the whole group (fastpq.schema.shape), made on first use.
    """

    __slots__ = ("_names", "children", "first", "kept", "last")

    def __init__(self, element: fmt.SchemaElement, parent: GroupNode | None, first: int) -> None:
        super().__init__(element, parent)
        self.children: list[SchemaNode] = []
        self.first = self.last = first
        self.kept: object = None
        self._names: tuple[dict[str, SchemaNode], list[SchemaNode]] | None = None     # first child by name; all others

    def named(self, name: str) -> list[SchemaNode]:
        """The children of a name; files may repeat names."""
        if self._names is None:
            by_name: dict[str, SchemaNode] = {}
            twins = [child for child in self.children if by_name.setdefault(child.element.name, child) is not child]
            self._names = by_name, twins        # one assignment: threads reading files of one schema share the node
        by_name, twins = self._names
        first = by_name.get(name)
        return [] if first is None else [first, *(child for child in twins if child.element.name == name)]


class ColumnDescriptor(SchemaNode):
    """A leaf of the schema: a column of values.

    Attributes:
        element: the leaf's SchemaElement.
        parent: the group around the leaf.
        index: number of the column among the leaves.
        is_flat: whether the column stands directly under the root and is not repeated.
        type: physical and logical type; computed on first use. FormatError if the annotations contradict the physical type,
            UnsupportedError if the physical type or a time unit is unknown to this version of the specification.
    """

    __slots__ = ("index", "is_flat", "type")

    type: ColumnType

    def __init__(self, element: fmt.SchemaElement, parent: GroupNode, index: int) -> None:
        SchemaNode.__init__(self, element, parent)
        self.index = index
        self.is_flat = self.max_repetition_level == 0 and parent.parent is None

    if not TYPE_CHECKING:       # a plain attribute from the first use on: a read asks for the type of every column

        def __getattr__(self, name: str) -> ColumnType:
            if name != "type":
                raise AttributeError(f"a ColumnDescriptor has no attribute {name!r}")
            try:
                physical = self.physical_type       # first, to report an unknown type before its annotations
                self.type = column_type(physical, self.type_length, logical_from_thrift(self.element))
            except SchemaError as error:  # contradictions in a file are format errors
                raise FormatError(error.message, column=self.name) from error
            return self.type

    @property
    def physical_type(self) -> Type:
        """The physical type.

        Raises:
            UnsupportedError: the type is unknown to this version of the specification.
        """
        try:
            return Type(self.element.type)  # type: ignore[arg-type]  # a leaf has one
        except ValueError as error:
            raise UnsupportedError(f"physical type {self.element.type!r}", column=self.name) from error

    @property
    def type_length(self) -> int | None:
        """Bytes of a FIXED_LEN_BYTE_ARRAY value, else None."""
        return self.element.type_length if self.element.type == Type.FIXED_LEN_BYTE_ARRAY else None

    @property
    def logical_type(self) -> LogicalType | None:
        """The logical type, or None."""
        return self.type.logical

    def __repr__(self) -> str:
        return f"<ColumnDescriptor {self.index} {leaf_line(self)}>"


_PHYSICAL_NAMES = {
    Type.BOOLEAN: "boolean",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.INT96: "int96",
    Type.FLOAT: "float",
    Type.DOUBLE: "double",
    Type.BYTE_ARRAY: "binary",
    Type.FIXED_LEN_BYTE_ARRAY: "fixed_len_byte_array",
}
_GROUP_TYPES: dict[int | None, str] = {
    fmt.ConvertedType.LIST: "LIST",
    fmt.ConvertedType.MAP: "MAP",
    fmt.ConvertedType.MAP_KEY_VALUE: "MAP_KEY_VALUE",
}
_UNIT_NAMES = {"ms": "MILLIS", "us": "MICROS", "ns": "NANOS"}


def leaf_line(column: ColumnDescriptor) -> str:
    """A leaf as a line of the schema's text: repetition, physical type, name, annotation and field id."""
    element = column.element
    physical = next((name for known, name in _PHYSICAL_NAMES.items() if known == element.type), repr(element.type))
    length = f"({column.type_length})" if column.type_length is not None else ""
    try:
        annotation = _annotation(column.logical_type)
    except ParquetError as error:
        annotation = f" (not understood: {error.message})"
    return f"{column.repetition.name.lower()} {physical}{length} {element.name}{annotation}{_field_id(element)}"


def group_line(group: GroupNode) -> str:
    """The line that opens a group, or for the root a message, in the schema's text."""
    element = group.element
    if group.parent is None:
        return f"message {element.name} {{"
    return f"{group.repetition.name.lower()} group {element.name}{_group_annotation(element)}{_field_id(element)} {{"


def _group_annotation(element: fmt.SchemaElement) -> str:
    logical = element.logicalType
    if logical is not None and logical.VARIANT is not None:
        return f" (VARIANT({logical.VARIANT.specification_version or 1}))"
    if logical is not None and logical.FILE is not None:
        return " (FILE)"
    return f" ({_GROUP_TYPES[element.converted_type]})" if element.converted_type in _GROUP_TYPES else ""


def _field_id(element: fmt.SchemaElement) -> str:
    return "" if element.field_id is None else f" = {element.field_id}"


def _annotation(logical: LogicalType | None) -> str:
    match logical:
        case None:
            return ""
        case Decimal(precision, scale):
            return f" (DECIMAL({precision},{scale}))"
        case Integer(width, signed):
            return f" (INTEGER({width},{str(signed).lower()}))"
        case Time(unit, utc) | Timestamp(unit, utc):
            return f" ({type(logical).__name__.upper()}({_UNIT_NAMES[unit]},{str(utc).lower()}))"
        case Geometry(crs):
            return f" (GEOMETRY({crs or ''}))"
        case Geography(crs, algorithm):
            return f" (GEOGRAPHY({crs or ''},{algorithm or ''}))"
    return f" ({type(logical).__name__.upper()})"
