"""Schema tree nodes: groups and columns with their maximum levels, and each node's line in the schema text.

A node holds little more than its SchemaElement. Its path is computed from the tree when it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastpq import format as fmt
from fastpq.errors import FormatError, ParquetError, SchemaError, UnsupportedError
from fastpq.schema.logical import TIME_UNITS, logical_from_thrift
from fastpq.schema.types import ColumnType, Decimal, Geography, Geometry, Integer, LogicalType, Time, Timestamp, Type, column_type

REQUIRED, OPTIONAL, REPEATED = fmt.FieldRepetitionType


class SchemaNode:
    """A schema tree node.

    Attributes:
        element: the node's SchemaElement.
        parent: the group around the node, or None for the root.
        max_definition_level: number of optional and repeated nodes from the root to this one.
        max_repetition_level: number of repeated nodes from the root to this one.
        nullable: whether the node itself is OPTIONAL, whatever the groups around it are.
        top: the node directly under the root that this node belongs to. The root is its own top.
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

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            if hasattr(type(self), name):       # older pickles have other names for what is made on first use
                setattr(self, name, value)

    @property
    def path(self) -> tuple[str, ...]:
        """Names of the nodes from the root to this node, without the root."""
        if self._path is None:
            if self.top is self and self.parent is not None:        # below the root
                self._path = (self.element.name,)
                return self._path
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
        """REQUIRED, OPTIONAL or REPEATED. The root is REQUIRED."""
        return fmt.FieldRepetitionType(self.element.repetition_type or REQUIRED)

    @property
    def field_id(self) -> int | None:
        """The field id that the writer gave the node, or None."""
        return self.element.field_id

    @property
    def has_field_ids(self) -> bool:
        """Whether the node, or a node below it, has a field id."""
        return self.element.field_id is not None


class GroupNode(SchemaNode):
    """A schema group. The root is a group too.

    Attributes:
        children: the nodes directly under the group, in order.
        first, last: the group's leaves are columns ``first`` to ``last - 1``.
        cached_shape: the whole group's shape (fastpq.schema.shape), made on first use.
        cached_depth: number of group levels from this group down, or 0 before the first use.
    """

    __slots__ = ("_names", "cached_depth", "cached_shape", "children", "first", "last")

    def __init__(self, element: fmt.SchemaElement, parent: GroupNode | None, first: int) -> None:
        super().__init__(element, parent)
        self.children: list[SchemaNode] = []
        self.first = self.last = first
        self.cached_shape: object = None
        self.cached_depth = 0
        # The first child with each name, and all other children.
        self._names: tuple[dict[str, SchemaNode], list[SchemaNode]] | None = None

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        self.cached_shape, self.cached_depth, self._names = None, 0, None
        super().__setstate__(state)

    @property
    def is_list(self) -> bool:
        """Whether the group is annotated LIST."""
        logical = self.element.logicalType
        return self.element.converted_type == fmt.ConvertedType.LIST or (logical is not None and logical.LIST is not None)

    @property
    def has_field_ids(self) -> bool:
        """Whether the group, or a node below it, has a field id."""
        return self.element.field_id is not None or any(child.has_field_ids for child in self.children)

    def named(self, name: str) -> list[SchemaNode]:
        """Return the children with a name. Files may repeat names."""
        if self._names is None:
            by_name: dict[str, SchemaNode] = {}
            twins = [child for child in self.children if by_name.setdefault(child.element.name, child) is not child]
            self._names = by_name, twins        # one assignment, because several threads may share the node
        by_name, twins = self._names
        first = by_name.get(name)
        return [] if first is None else [first, *(child for child in twins if child.element.name == name)]


class ColumnDescriptor(SchemaNode):
    """A schema leaf, which is a column.

    Attributes:
        element: the leaf's SchemaElement.
        parent: the group around the leaf.
        index: the column's index among the leaves.
        is_flat: whether the column stands directly under the root and is not repeated.
        type: physical and logical type, computed on first use. It raises FormatError if the annotations contradict the physical
            type, and UnsupportedError if the specification does not know the physical type or a time unit.
    """

    __slots__ = ("index", "is_flat", "type")

    type: ColumnType

    def __init__(self, element: fmt.SchemaElement, parent: GroupNode, index: int) -> None:
        SchemaNode.__init__(self, element, parent)
        self.index = index
        self.is_flat = self.max_repetition_level == 0 and parent.parent is None

    if not TYPE_CHECKING:       # after the first use it is a plain attribute, because reads need the type of every column

        def __getattr__(self, name: str) -> ColumnType:
            if name != "type":
                raise AttributeError(f"a ColumnDescriptor has no attribute {name!r}")
            try:
                physical = self.physical_type       # comes first, so that an unknown type is reported before its annotations
                self.type = column_type(physical, self.type_length, logical_from_thrift(self.element))
            except SchemaError as error:  # the file contradicts itself
                raise FormatError(error.message, column=self.name) from error
            return self.type

    @property
    def physical_type(self) -> Type:
        """The physical type.

        Raises:
            UnsupportedError: the specification does not know the type.
        """
        try:
            return Type(self.element.type)  # type: ignore[arg-type]  # a leaf has one
        except ValueError as error:
            raise UnsupportedError(f"the physical type {self.element.type!r} is not supported", column=self.name) from error

    @property
    def type_length(self) -> int | None:
        """Length of FIXED_LEN_BYTE_ARRAY values in bytes. None for other types."""
        return self.element.type_length if self.element.type == Type.FIXED_LEN_BYTE_ARRAY else None

    @property
    def logical_type(self) -> LogicalType | None:
        """The logical type, or None."""
        return self.type.logical

    def __repr__(self) -> str:
        return f"<ColumnDescriptor {self.index} {leaf_line(self)}>"


_PHYSICAL_NAMES = {type_: type_.name.lower() for type_ in Type} | {Type.BYTE_ARRAY: "binary"}
_GROUP_TYPES = (fmt.ConvertedType.LIST, fmt.ConvertedType.MAP, fmt.ConvertedType.MAP_KEY_VALUE)


def leaf_line(column: ColumnDescriptor) -> str:
    """Return a leaf's line in the schema text: repetition, physical type, name, annotation and field id."""
    element = column.element
    physical = next((name for type_, name in _PHYSICAL_NAMES.items() if type_ == element.type), repr(element.type))
    length = f"({column.type_length})" if column.type_length is not None else ""
    try:
        annotation = _annotation(column.logical_type)
    except ParquetError as error:
        annotation = f" (not understood: {error.message})"
    return f"{column.repetition.name.lower()} {physical}{length} {element.name}{annotation}{_field_id(element)}"


def group_line(group: GroupNode) -> str:
    """Return the line that begins a group in the schema text. The root is a message."""
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
    return next((f" ({type_.name})" for type_ in _GROUP_TYPES if type_ == element.converted_type), "")


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
            return f" ({type(logical).__name__.upper()}({TIME_UNITS[unit][0]},{str(utc).lower()}))"
        case Geometry(crs):
            return f" (GEOMETRY({crs or ''}))"
        case Geography(crs, algorithm):
            return f" (GEOGRAPHY({crs or ''},{algorithm or ''}))"
    return f" ({type(logical).__name__.upper()})"
