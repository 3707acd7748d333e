"""VARIANT groups of a schema: their metadata, value and typed_value nodes, found and checked.

VariantEncoding.md, "Variant in Parquet"; VariantShredding.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastpq import format as fmt
from fastpq.errors import FormatError, UnsupportedError
from fastpq.schema.elements import VARIANT_SPECIFICATION_VERSION
from fastpq.schema.tree import REPEATED, ColumnDescriptor, GroupNode, SchemaNode
from fastpq.schema.types import Type
from fastpq.schema.variant_kinds import kind_of


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """The nodes of a shredded array: a typed_value annotated LIST, its repeated group, and the pair of an element."""

    group: GroupNode
    repeated: GroupNode
    elements: PairShape


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """The nodes of a shredded object: a typed_value group, and the pair of each field by name."""

    group: GroupNode
    fields: Mapping[str, PairShape]


@dataclass(frozen=True, slots=True)
class PairShape:
    """The nodes of a group with value and typed_value; one of the two may be missing."""

    group: GroupNode
    value: ColumnDescriptor | None
    typed_value: ColumnDescriptor | ArrayShape | ObjectShape | None


@dataclass(frozen=True, slots=True)
class VariantShape:
    """The nodes of a VARIANT group.

    Attributes:
        metadata: the column of the metadata; REQUIRED by the specification, OPTIONAL with some writers.
        pair: value and typed_value.
        is_shredded: whether the group has a typed_value.
    """

    metadata: ColumnDescriptor
    pair: PairShape
    is_shredded: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_shredded", self.pair.typed_value is not None)


def is_variant(node: SchemaNode) -> bool:
    """Whether a node is annotated VARIANT."""
    logical = node.element.logicalType
    return isinstance(node, GroupNode) and logical is not None and logical.VARIANT is not None


def variant_shape(group: GroupNode) -> VariantShape:
    """The nodes of a VARIANT group, found by name in any order; fields of other names are ignored.

    Raises:
        FormatError: the group breaks the specification: no metadata, neither value nor typed_value, columns of forbidden types,
            lists of other than three levels.
        UnsupportedError: the version of the specification is not 1.
    """
    version = group.element.logicalType.VARIANT.specification_version if group.element.logicalType else None  # type: ignore[union-attr]
    if version not in (None, VARIANT_SPECIFICATION_VERSION):
        raise UnsupportedError(f"variants of version {version} of their specification", column=group.name)
    metadata = _binary(group, "metadata")
    if metadata is None:
        raise FormatError("a VARIANT group without metadata", column=group.name)
    return VariantShape(metadata, _pair(group))


def _child(group: GroupNode, name: str) -> SchemaNode | None:
    found = group.named(name)
    if len(found) > 1 or any(node.repetition == REPEATED for node in found):
        raise FormatError(f"a variant has several fields named {name}, or a repeated one", column=group.name)
    return found[0] if found else None


def _binary(group: GroupNode, name: str) -> ColumnDescriptor | None:
    node = _child(group, name)
    if node is None:
        return None
    if not isinstance(node, ColumnDescriptor) or node.physical_type != Type.BYTE_ARRAY:
        raise FormatError(f"a variant's {name} is not BYTE_ARRAY", column=node.name)
    return node


def _pair(group: GroupNode) -> PairShape:
    value, typed = _binary(group, "value"), _child(group, "typed_value")
    if value is None and typed is None:
        raise FormatError("a variant with neither value nor typed_value", column=group.name)
    if typed is None:
        return PairShape(group, value, None)
    if isinstance(typed, ColumnDescriptor):
        try:
            kind_of(typed.type)
        except FormatError as error:
            raise error.at(column=typed.name) from None
        return PairShape(group, value, typed)
    assert isinstance(typed, GroupNode)
    return PairShape(group, value, _array(typed) if _is_list(typed) else _object(typed))


def _is_list(group: GroupNode) -> bool:
    logical = group.element.logicalType
    return group.element.converted_type == fmt.ConvertedType.LIST or (logical is not None and logical.LIST is not None)


def _array(group: GroupNode) -> ArrayShape:
    repeated = group.children[0] if len(group.children) == 1 else None
    if isinstance(repeated, GroupNode) and repeated.repetition == REPEATED and len(repeated.children) == 1:
        element = repeated.children[0]
        if isinstance(element, GroupNode) and element.repetition != REPEATED:
            return ArrayShape(group, repeated, _pair(element))
    raise FormatError("a shredded array is not a list of three levels", column=group.name)


def _object(group: GroupNode) -> ObjectShape:
    fields: dict[str, PairShape] = {}
    for node in group.children:
        if not isinstance(node, GroupNode) or node.repetition == REPEATED or node.element.name in fields:
            raise FormatError("a field of a shredded object is repeated, occurs twice or is not a group", column=node.name)
        fields[node.element.name] = _pair(node)
    return ObjectShape(group, fields)
