"""Shapes: the lists, maps, structs and leaves of a schema tree, with the levels of their nulls and lengths.

A list or a map is one shape, though up to three levels of the tree. LogicalTypes.md, "Lists" and "Maps" with their
backward-compatibility rules, tells groups with values of their own from groups added around a repeated node. A repeated field
without annotation is a required list of required elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

from fastpq import format as fmt
from fastpq.errors import LimitError
from fastpq.schema.file_group import file_columns, is_file
from fastpq.schema.nested_types import Annotation, Field, ListType, MapType, StructType
from fastpq.schema.tree import OPTIONAL, REPEATED, REQUIRED, ColumnDescriptor, GroupNode, SchemaNode
from fastpq.schema.types import ColumnType
from fastpq.schema.variant_group import is_variant, variant_shape

MAX_LEVEL = 255     # greatest definition or repetition level: levels are held in bytes


@dataclass(frozen=True, slots=True)
class Layer:
    """A list or a nullable struct above a leaf, with the levels at which it has a slot, a value and an element.

    Each value of the layer, null or not, has a slot. A slot is an entry of the levels with a repetition level of at most
    ``slot_repetition`` and a definition level of at least ``slot_definition``.

    Attributes:
        is_list: whether the layer is a list (or a map); otherwise a struct.
        slot_repetition: greatest repetition level of a slot.
        slot_definition: least definition level of a slot.
        valid_definition: least definition level of a slot with a value other than null.
        element_definition: least definition level of a slot with at least one element; for lists.
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
        name: name of the value; ``element``, ``key`` or ``value`` in a list or map.
        nullable: whether values may be null.
        column: the leaf of the schema.
        type: the in-memory type.
        slot_definition: least definition level of an entry with a value or null of the leaf.
        layers: layers above the leaf, from the outermost on.
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
    """A struct; ``layer`` is the struct's place in the ``layers`` of its leaves, None for a struct without nulls.

    ``type`` is the in-memory type, and ``leaves`` are the leaves below, in the order of the schema.
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
    """A list or a map; ``layer`` is the list's place in the ``layers`` of its leaves, the rest is as in StructShape."""

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
    """Name, type and nullability of a shape."""
    return Field(shape.name, shape.type, shape.nullable)


def shape_of(node: SchemaNode, wanted: Collection[int], types: Mapping[int, ColumnType] | None = None) -> Shape:
    """The shape of a node directly under the root.

    Args:
        node: the node.
        wanted: numbers of the leaves to keep; structs keep only fields with a wanted leaf.
        types: in-memory types of leaves by number, where different from the schema's.

    Raises:
        LimitError: the node is nested deeper than 255 levels.
        FormatError: a VARIANT or FILE group breaks its specification.
        UnsupportedError: a VARIANT group has another version of the specification.
    """
    is_whole = isinstance(node, GroupNode) and not types and all(index in wanted for index in range(node.first, node.last))
    if not isinstance(node, GroupNode) or not is_whole:
        return _Builder(frozenset(wanted), types or {}).shape(node, _Place())
    if node.kept is None:
        node.kept = _Builder(frozenset(wanted), {}).shape(node, _Place())
    return cast(Shape, node.kept)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a value in the levels: its slots (as in Layer), and the layers above the value."""

    slot_repetition: int = 0
    slot_definition: int = 0
    layers: tuple[Layer, ...] = field(default=())

    def below_list(self, layer: Layer) -> _Place:
        return _Place(layer.slot_repetition + 1, layer.element_definition, (*self.layers, layer))

    def below_struct(self, layer: Layer) -> _Place:
        return _Place(self.slot_repetition, self.slot_definition, (*self.layers, layer))


@dataclass(frozen=True, slots=True)
class _Builder:
    wanted: frozenset[int]
    types: Mapping[int, ColumnType]

    def shape(self, node: SchemaNode, place: _Place, name: str | None = None) -> Shape:
        """The shape of a node, nullable or a list according to its repetition."""
        if node.max_definition_level > MAX_LEVEL:
            raise LimitError(f"more than {MAX_LEVEL} levels", column=node.name)
        if node.element.repetition_type == REPEATED:
            return self._repeated(node, place, name)
        return self._value(node, place, node.element.repetition_type == OPTIONAL, name)

    def _repeated(self, node: SchemaNode, place: _Place, name: str | None) -> ListShape:
        """The shape of a repeated node outside LIST and MAP groups: a required list of required elements."""
        depth = node.max_definition_level
        layer = Layer(True, place.slot_repetition, place.slot_definition, depth - 1, depth)
        element = self._value(node, place.below_list(layer), False, "element")
        return ListShape(name or node.element.name, False, len(place.layers), element)

    def _value(self, node: SchemaNode, place: _Place, nullable: bool, name: str | None) -> Shape:
        """The shape of a node without regard to its repetition; the caller has dealt with the repetition."""
        name = name or node.element.name
        if isinstance(node, ColumnDescriptor):
            type_ = self.types.get(node.index) or node.type
            return LeafShape(name, nullable, node, type_, place.slot_definition, place.layers)
        assert isinstance(node, GroupNode)
        repeated = _only_repeated_child(node)
        if repeated is not None and _is_list(node):
            return self._list(node, repeated, place, nullable, name)
        if repeated is not None and _is_map(node, repeated):
            assert isinstance(repeated, GroupNode)
            return self._map(node, repeated, place, nullable, name)
        return self._struct(node, place, nullable, name)

    def _struct(self, node: GroupNode, place: _Place, nullable: bool, name: str) -> StructShape:
        number = None
        if nullable:
            number = len(place.layers)
            depth = node.max_definition_level
            place = place.below_struct(Layer(False, place.slot_repetition, place.slot_definition, depth, depth))
        return StructShape(name, nullable, number, self._children(node, place), self._annotation(node))

    def _annotation(self, node: GroupNode) -> Annotation | None:
        """VARIANT or FILE for a sound group with this annotation and all leaves wanted; else None, a plain struct."""
        if not all(index in self.wanted for index in range(node.first, node.last)):
            return None
        if is_variant(node):
            variant_shape(node)
            return "VARIANT"
        if is_file(node):
            file_columns(node)
            return "FILE"
        return None

    def _children(self, node: GroupNode, place: _Place) -> tuple[Shape, ...]:
        return tuple(self.shape(child, place) for child in node.children if self._is_wanted(child))

    def _is_wanted(self, node: SchemaNode) -> bool:
        if isinstance(node, GroupNode):
            return any(index in self.wanted for index in range(node.first, node.last))
        return isinstance(node, ColumnDescriptor) and node.index in self.wanted

    def _list(self, node: GroupNode, repeated: SchemaNode, place: _Place, nullable: bool, name: str) -> ListShape:
        layer = self._list_layer(node, repeated, place)
        inner = place.below_list(layer)
        if isinstance(repeated, GroupNode) and not _is_element(node, repeated):
            element = self.shape(repeated.children[0], inner, "element")
        else:
            element = self._value(repeated, inner, False, "element")
        return ListShape(name, nullable, len(place.layers), element)

    def _map(self, node: GroupNode, repeated: GroupNode, place: _Place, nullable: bool, name: str) -> ListShape:
        inner = place.below_list(self._list_layer(node, repeated, place))
        if len(repeated.children) == 1:      # a map without values is the list of its keys
            return ListShape(name, nullable, len(place.layers), self.shape(repeated.children[0], inner, "element"))
        names = zip(repeated.children, ("key", "value"), strict=True)
        children = tuple(self.shape(child, inner, called) for child, called in names if self._is_wanted(child))
        is_map = len(children) == 2
        entries = StructShape("key_value" if is_map else "element", False, None, children)
        return ListShape(name, nullable, len(place.layers), entries, is_map)

    def _list_layer(self, node: GroupNode, repeated: SchemaNode, place: _Place) -> Layer:
        return Layer(
            True,
            place.slot_repetition,
            place.slot_definition,
            node.max_definition_level,
            repeated.max_definition_level,
        )


def _only_repeated_child(node: GroupNode) -> SchemaNode | None:
    child = node.children[0] if len(node.children) == 1 else None
    return child if child is not None and child.element.repetition_type == REPEATED else None


def _is_list(node: GroupNode) -> bool:
    logical = node.element.logicalType
    if logical is not None and logical.LIST is not None:
        return True
    return node.element.converted_type == fmt.ConvertedType.LIST


def _is_map(node: GroupNode, repeated: SchemaNode) -> bool:
    """Whether a group is a map: annotated as MAP, or as MAP_KEY_VALUE by old writers, with keys and values not repeated."""
    logical = node.element.logicalType
    annotated = logical is not None and logical.MAP is not None
    converted = node.element.converted_type in (fmt.ConvertedType.MAP, fmt.ConvertedType.MAP_KEY_VALUE)
    if not (annotated or converted) or not isinstance(repeated, GroupNode) or not 1 <= len(repeated.children) <= 2:
        return False
    return all(child.element.repetition_type in (REQUIRED, OPTIONAL) for child in repeated.children)


def _is_element(node: GroupNode, repeated: GroupNode) -> bool:
    """Whether the repeated group of a LIST is the element itself (rules 2 to 4 of the backward-compatibility rules)."""
    if len(repeated.children) != 1 or repeated.children[0].element.repetition_type == REPEATED:
        return True
    return repeated.element.name in ("array", f"{node.element.name}_tuple")
