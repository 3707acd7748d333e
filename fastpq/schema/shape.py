"""The schema tree as values see it: what is a list, a map, a struct; and the levels that tell its nulls and lengths.

LogicalTypes.md, "Lists" and "Maps" with their backward-compatibility rules, decides which groups are values of their own and
which only stand around the repeated one. A repeated field without annotation is a required list of required elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fastpq import format as fmt
from fastpq.errors import LimitError
from fastpq.schema.file_group import file_columns, is_file
from fastpq.schema.nested_types import Annotation, Field, ListType, MapType, StructType
from fastpq.schema.tree import OPTIONAL, REPEATED, REQUIRED, ColumnDescriptor, GroupNode, SchemaNode
from fastpq.schema.types import ColumnType
from fastpq.schema.variant_group import is_variant, variant_shape

# Levels are held in bytes.
MAX_LEVEL = 255


@dataclass(frozen=True, slots=True)
class Layer:
    """A list, or a struct that may be null, on the way from the root to a leaf.

    Its slots are the level entries of a repetition level of at most ``slot_repetition`` and a definition level of at least
    ``slot_definition``.

    Attributes:
        is_list: whether it is a list (or a map); otherwise a struct.
        slot_repetition, slot_definition: which entries are slots of it.
        valid_definition: from this definition level on a slot is not null.
        element_definition: from this definition level on a slot of a list has an element.
    """

    is_list: bool
    slot_repetition: int
    slot_definition: int
    valid_definition: int
    element_definition: int


@dataclass(frozen=True, slots=True)
class LeafShape:
    """A leaf, with the layers above it from the outermost on."""

    name: str
    nullable: bool
    column: ColumnDescriptor
    type: ColumnType
    slot_definition: int
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class StructShape:
    """A struct; ``layer`` is the number of its layer among those of its leaves, None where it cannot be null."""

    name: str
    nullable: bool
    layer: int | None
    children: tuple[Shape, ...]
    annotation: Annotation | None = None

    @property
    def type(self) -> StructType:
        return StructType(tuple(shape_field(child) for child in self.children), self.annotation)


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list or a map; ``layer`` is the number of its layer among those of its leaves."""

    name: str
    nullable: bool
    layer: int
    element: Shape
    is_map: bool = False

    @property
    def type(self) -> ListType | MapType:
        if self.is_map and isinstance(self.element, StructShape):
            key, value = self.element.children
            return MapType(shape_field(key), shape_field(value))
        return ListType(shape_field(self.element))


Shape = LeafShape | StructShape | ListShape


def shape_field(shape: Shape) -> Field:
    """Name, type and nullability of a shape."""
    return Field(shape.name, shape.type, shape.nullable)


def leaves_of(shape: Shape) -> list[LeafShape]:
    """The leaves of a shape, in the order of the schema."""
    if isinstance(shape, LeafShape):
        return [shape]
    children = (shape.element,) if isinstance(shape, ListShape) else shape.children
    return [leaf for child in children for leaf in leaves_of(child)]


def shape_of(node: SchemaNode, wanted: Collection[int], types: Mapping[int, ColumnType] | None = None) -> Shape:
    """The shape of a node directly under the root.

    Args:
        node: the node.
        wanted: numbers of the leaves to keep; structs keep only the fields that lead to one of them.
        types: the in-memory types of leaves where they differ from the schema's, by number.

    Raises:
        LimitError: it is nested deeper than 255 levels.
        FormatError: a VARIANT or a FILE that breaks its specification.
        UnsupportedError: a VARIANT of another version of it.
    """
    return _Builder(frozenset(wanted), types or {}).shape(node, _Place())


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands: the slots that there are for it, and the layers above it."""

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
        """The shape of a node with its own repetition."""
        if node.max_definition_level > MAX_LEVEL:
            raise LimitError(f"more than {MAX_LEVEL} levels", column=node.name)
        if node.element.repetition_type == REPEATED:
            return self._repeated(node, place, name)
        return self._value(node, place, node.element.repetition_type == OPTIONAL, name)

    def _repeated(self, node: SchemaNode, place: _Place, name: str | None) -> ListShape:
        """A repeated node that no annotation explains: a required list of required elements."""
        depth = node.max_definition_level
        layer = Layer(True, place.slot_repetition, place.slot_definition, depth - 1, depth)
        element = self._value(node, place.below_list(layer), False, "element")
        return ListShape(name or node.element.name, False, len(place.layers), element)

    def _value(self, node: SchemaNode, place: _Place, nullable: bool, name: str | None) -> Shape:
        """The shape of a node, its own repetition aside."""
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
        """What a group is as a whole, once it is known to be that; some leaves of it alone are a mere struct."""
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
        if len(repeated.children) == 1:      # a map without values is the set of its keys
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
    """Whether a group is a map: annotated (also as MAP_KEY_VALUE, which old writers put outside), with keys that are not
    themselves repeated."""
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
