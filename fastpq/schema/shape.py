"""Shapes: the lists, maps, structs and leaves in a schema tree, and the levels that tell nulls, values and elements apart.

A list or a map is one shape, but it takes up to three tree levels. The rules for backward compatibility in LogicalTypes.md
("Lists" and "Maps") decide which groups are values, and which groups only wrap a repeated node. A repeated field without an
annotation is a required list with required elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

from fastpq import format as fmt
from fastpq.common.stack import check_stack, too_deep
from fastpq.errors import LimitError
from fastpq.schema.nested_types import Annotation, Field, ListType, MapType, StructType
from fastpq.schema.tree import OPTIONAL, REPEATED, REQUIRED, ColumnDescriptor, GroupNode, SchemaNode
from fastpq.schema.types import ColumnType
from fastpq.schema.variant_group import check_variant, file_columns, is_file, is_variant

# Number of Python stack frames that a read needs after it has the shape: for each nesting level, and in addition for each column.
FRAMES_PER_LEVEL, MORE_FRAMES = 4, 30
MAX_LEVEL = 255     # largest definition or repetition level, because a level is held in one byte


@dataclass(frozen=True, slots=True)
class Layer:
    """A list or a nullable struct above a leaf, and the levels by which its values are found.

    A slot is the place of one list or struct, which may be null. The leaf column stores pairs of a repetition level and a
    definition level. A pair begins a slot if its repetition level is at most ``slot_repetition`` and its definition level is at
    least ``slot_definition``.

    Attributes:
        is_list: whether the layer is a list or a map. Otherwise it is a struct.
        slot_repetition: largest repetition level of a pair that begins a slot.
        slot_definition: smallest definition level of a pair that begins a slot.
        valid_definition: smallest definition level if the list or struct is not null.
        element_definition: smallest definition level if the list has at least one element. It is used for lists only.
    """

    is_list: bool
    slot_repetition: int
    slot_definition: int
    valid_definition: int
    element_definition: int


@dataclass(frozen=True, slots=True)
class LeafShape:
    """A leaf column.

    Attributes:
        name: value name. In a list or a map it is ``element``, ``key`` or ``value``.
        nullable: whether values may be null.
        column: the schema leaf.
        type: the in-memory type.
        slot_definition: smallest definition level with which the leaf has a value or a null. With a smaller level, a list above
            the leaf is null or empty.
        layers: layers above the leaf, outermost first.
    """

    name: str
    nullable: bool
    column: ColumnDescriptor
    type: ColumnType
    slot_definition: int
    layers: tuple[Layer, ...]

    @property
    def leaves(self) -> tuple[LeafShape, ...]:
        """The leaf itself."""
        return (self,)


@dataclass(frozen=True, slots=True)
class StructShape:
    """A struct.

    ``layer`` is the struct's index in its leaves' ``layers``, or None if the struct cannot be null. ``type`` is the in-memory
    type. ``leaves`` are the leaves below, in schema order.
    """

    name: str
    nullable: bool
    layer: int | None
    children: tuple[Shape, ...]
    annotation: Annotation | None = None
    type: StructType = field(init=False, repr=False, compare=False)
    leaves: tuple[LeafShape, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        type_ = StructType(tuple(map(shape_field, self.children)), self.annotation)
        object.__setattr__(self, "type", type_)
        object.__setattr__(self, "leaves", tuple(leaf for child in self.children for leaf in child.leaves))


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list or a map. ``layer`` is its index in its leaves' ``layers``. The other fields are as in StructShape."""

    name: str
    nullable: bool
    layer: int
    element: Shape
    is_map: bool = False
    type: ListType | MapType = field(init=False, repr=False, compare=False)
    leaves: tuple[LeafShape, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.is_map and isinstance(self.element, StructShape):
            key, value = map(shape_field, self.element.children)
            type_: ListType | MapType = MapType(key, value)
        else:
            type_ = ListType(shape_field(self.element))
        object.__setattr__(self, "type", type_)
        object.__setattr__(self, "leaves", self.element.leaves)


Shape = LeafShape | StructShape | ListShape


def shape_field(shape: Shape) -> Field:
    """Return a shape's name, type and nullability."""
    return Field(shape.name, shape.type, shape.nullable)


def shape_of(node: SchemaNode, leaf_numbers: Collection[int], types: Mapping[int, ColumnType] | None = None) -> Shape:
    """Return the shape of a node directly under the root.

    Args:
        node: the node.
        leaf_numbers: numbers of the leaves that the shape has. A struct has only fields with such a leaf.
        types: in-memory types that differ from the schema's types, by leaf number.

    Raises:
        LimitError: the node has more than 255 levels, or its nesting is too deep for the stack.
        FormatError: a VARIANT or FILE group breaks its specification.
        UnsupportedError: a VARIANT group has another specification version.
    """
    leaf_numbers = frozenset(leaf_numbers)      # looked up for each leaf
    is_whole = isinstance(node, GroupNode) and not types and leaf_numbers.issuperset(range(node.first, node.last))
    if not isinstance(node, GroupNode):
        return _Builder(leaf_numbers, types or {}).shape(node, _Place())
    name = node.element.name
    try:
        shape = node.cached_shape if is_whole else None
        if shape is None:
            shape = _Builder(leaf_numbers, types or {}).shape(node, _Place())
    except RecursionError:
        raise too_deep(name) from None
    if is_whole:
        node.cached_shape = shape
    check_stack(FRAMES_PER_LEVEL * _depth(node) + MORE_FRAMES, name)
    return cast(Shape, shape)


def _depth(group: GroupNode) -> int:
    """Return the number of nesting levels, from this group down. A list takes a group and a repeated group, but is one level."""
    if not group.cached_depth:
        groups, is_counted = [group], False
        while groups:
            is_counted = not is_counted or any(each.element.repetition_type != REPEATED for each in groups)
            group.cached_depth += is_counted
            groups = [child for each in groups for child in each.children if isinstance(child, GroupNode)]
    return group.cached_depth


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value is in the shape: the levels of its slots (see Layer), and the layers above it."""

    slot_repetition: int = 0
    slot_definition: int = 0
    layers: tuple[Layer, ...] = field(default=())

    def below_list(self, layer: Layer) -> _Place:
        return _Place(layer.slot_repetition + 1, layer.element_definition, (*self.layers, layer))

    def below_struct(self, layer: Layer) -> _Place:
        return _Place(self.slot_repetition, self.slot_definition, (*self.layers, layer))


@dataclass(frozen=True, slots=True)
class _Builder:
    leaf_numbers: frozenset[int]
    types: Mapping[int, ColumnType]

    def shape(self, node: SchemaNode, place: _Place, name: str | None = None) -> Shape:
        """Return a node's shape. An optional node is nullable, and a repeated node is a list."""
        if node.max_definition_level > MAX_LEVEL:
            raise LimitError(f"the column has more than {MAX_LEVEL} levels", column=node.name)
        if node.element.repetition_type == REPEATED:
            return self._repeated(node, place, name)
        return self._value(node, place, node.element.repetition_type == OPTIONAL, name)

    def _repeated(self, node: SchemaNode, place: _Place, name: str | None) -> ListShape:
        """Return the shape of a repeated node outside of LIST and MAP groups. It is a required list with required elements."""
        depth = node.max_definition_level
        layer = Layer(True, place.slot_repetition, place.slot_definition, depth - 1, depth)
        element = self._value(node, place.below_list(layer), False, "element")
        return ListShape(name or node.element.name, False, len(place.layers), element)

    def _value(self, node: SchemaNode, place: _Place, nullable: bool, name: str | None) -> Shape:
        """Return the shape of a node whose repetition the caller has handled already."""
        name = name or node.element.name
        if isinstance(node, ColumnDescriptor):
            type_ = self.types.get(node.index) or node.type
            return LeafShape(name, nullable, node, type_, place.slot_definition, place.layers)
        assert isinstance(node, GroupNode)
        repeated_node = _only_repeated_child(node)
        if repeated_node is not None and node.is_list:
            return self._list(node, repeated_node, place, nullable, name)
        if repeated_node is not None and _is_map(node, repeated_node):
            assert isinstance(repeated_node, GroupNode)
            return self._map(node, repeated_node, place, nullable, name)
        return self._struct(node, place, nullable, name)

    def _struct(self, node: GroupNode, place: _Place, nullable: bool, name: str) -> StructShape:
        number = None
        if nullable:
            number = len(place.layers)
            depth = node.max_definition_level
            place = place.below_struct(Layer(False, place.slot_repetition, place.slot_definition, depth, depth))
        children = tuple(self.shape(child, place) for child in node.children if self._has_leaf(child))
        return StructShape(name, nullable, number, children, self._annotation(node))

    def _annotation(self, node: GroupNode) -> Annotation | None:
        """Return VARIANT or FILE if a group has this annotation and the shape has all its leaves, else None for a plain struct.

        Raises:
            FormatError: the group breaks its annotation's specification.
        """
        if not all(index in self.leaf_numbers for index in range(node.first, node.last)):
            return None
        if is_variant(node):
            check_variant(node)
            return "VARIANT"
        if is_file(node):
            file_columns(node)
            return "FILE"
        return None

    def _has_leaf(self, node: SchemaNode) -> bool:
        if isinstance(node, GroupNode):
            return any(index in self.leaf_numbers for index in range(node.first, node.last))
        return isinstance(node, ColumnDescriptor) and node.index in self.leaf_numbers

    def _list(self, node: GroupNode, repeated_node: SchemaNode, place: _Place, nullable: bool, name: str) -> ListShape:
        layer = self._list_layer(node, repeated_node, place)
        inner = place.below_list(layer)
        if isinstance(repeated_node, GroupNode) and not is_element(node, repeated_node):
            element = self.shape(repeated_node.children[0], inner, "element")
        else:
            element = self._value(repeated_node, inner, False, "element")
        return ListShape(name, nullable, len(place.layers), element)

    def _map(self, node: GroupNode, repeated_node: GroupNode, place: _Place, nullable: bool, name: str) -> ListShape:
        inner = place.below_list(self._list_layer(node, repeated_node, place))
        if len(repeated_node.children) == 1:      # a map without values is a list of its keys
            return ListShape(name, nullable, len(place.layers), self.shape(repeated_node.children[0], inner, "element"))
        names = zip(repeated_node.children, ("key", "value"), strict=True)
        children = tuple(self.shape(child, inner, name) for child, name in names if self._has_leaf(child))
        is_map = len(children) == 2
        entries = StructShape("key_value" if is_map else "element", False, None, children)
        return ListShape(name, nullable, len(place.layers), entries, is_map)

    def _list_layer(self, node: GroupNode, repeated_node: SchemaNode, place: _Place) -> Layer:
        return Layer(
            True,
            place.slot_repetition,
            place.slot_definition,
            node.max_definition_level,
            repeated_node.max_definition_level,
        )


def _only_repeated_child(node: GroupNode) -> SchemaNode | None:
    child = node.children[0] if len(node.children) == 1 else None
    return child if child is not None and child.element.repetition_type == REPEATED else None


def _is_map(node: GroupNode, repeated_node: SchemaNode) -> bool:
    """Return whether a group is a map: it is annotated MAP (old writers: MAP_KEY_VALUE), and keys and values do not repeat."""
    logical = node.element.logicalType
    has_map = logical is not None and logical.MAP is not None
    has_converted = node.element.converted_type in (fmt.ConvertedType.MAP, fmt.ConvertedType.MAP_KEY_VALUE)
    if not (has_map or has_converted) or not isinstance(repeated_node, GroupNode) or not 1 <= len(repeated_node.children) <= 2:
        return False
    return all(child.element.repetition_type in (REQUIRED, OPTIONAL) for child in repeated_node.children)


def is_element(node: GroupNode, repeated_node: GroupNode) -> bool:
    """Return whether a LIST's repeated group is itself the element (rules 2 to 4 for backward compatibility)."""
    if len(repeated_node.children) != 1 or repeated_node.children[0].element.repetition_type == REPEATED:
        return True
    return repeated_node.element.name in ("array", f"{node.element.name}_tuple")
