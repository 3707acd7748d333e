"""Schema groups that are annotated VARIANT or FILE: checks against the specification.

See VariantEncoding.md ("Variant in Parquet"), VariantShredding.md, and LogicalTypes.md ("FILE").
"""

from __future__ import annotations

from collections.abc import Collection

from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.schema.elements import VARIANT_SPECIFICATION_VERSION
from fastpq.schema.tree import OPTIONAL, REPEATED, ColumnDescriptor, GroupNode, SchemaNode
from fastpq.schema.types import ColumnType, String, Type
from fastpq.schema.variant_kinds import kind_of

_TEXT = ColumnType(Type.BYTE_ARRAY, logical=String())
# The fields that a FILE group may have, with their types.
FILE_FIELDS: dict[str, ColumnType] = {
    "uri": _TEXT,
    "offset": ColumnType(Type.INT64),
    "size": ColumnType(Type.INT64),
    "content_type": _TEXT,
    "checksum": _TEXT,
    "inline": ColumnType(Type.BYTE_ARRAY),
}


# ---- VARIANT


def is_variant(node: SchemaNode) -> bool:
    """Return whether a node is annotated VARIANT."""
    logical = node.element.logicalType
    return isinstance(node, GroupNode) and logical is not None and logical.VARIANT is not None


def check_variant(group: GroupNode) -> None:
    """Check a VARIANT group. Its nodes may stand in any order. Fields with other names are ignored.

    The specification says that the metadata are REQUIRED, but some writers make them OPTIONAL.

    Raises:
        FormatError: the group breaks the specification. It has no metadata, it has no value and no typed_value, a column has a
            forbidden type, or a list does not have three levels.
        UnsupportedError: the specification version is not 1.
    """
    version = group.element.logicalType.VARIANT.specification_version if group.element.logicalType else None  # type: ignore[union-attr]
    if version not in (None, VARIANT_SPECIFICATION_VERSION):
        raise UnsupportedError(f"version {version} of the VARIANT specification is not supported", column=group.name)
    if _binary(group, "metadata") is None:
        raise FormatError("a VARIANT group has no metadata", column=group.name)
    _check_pair(group)


def _child(group: GroupNode, name: str) -> SchemaNode | None:
    nodes = group.named(name)
    if len(nodes) > 1 or any(node.repetition == REPEATED for node in nodes):
        raise FormatError(f"a VARIANT group has several fields {name}, or a repeated one", column=group.name)
    return nodes[0] if nodes else None


def _binary(group: GroupNode, name: str) -> ColumnDescriptor | None:
    node = _child(group, name)
    if node is None:
        return None
    if not isinstance(node, ColumnDescriptor) or node.physical_type != Type.BYTE_ARRAY:
        raise FormatError(f"the {name} of a VARIANT group is not BYTE_ARRAY", column=node.name)
    return node


def _check_pair(group: GroupNode) -> None:
    """Check the nodes value and typed_value in a group. One of them may be missing."""
    value, typed_value = _binary(group, "value"), _child(group, "typed_value")
    if value is None and typed_value is None:
        raise FormatError("a VARIANT group has neither value nor typed_value", column=group.name)
    if isinstance(typed_value, ColumnDescriptor):
        try:
            kind_of(typed_value.type)
        except FormatError as error:
            raise error.at(column=typed_value.name) from None
    elif isinstance(typed_value, GroupNode):
        check = _check_array if typed_value.is_list else _check_object
        check(typed_value)


def _check_array(group: GroupNode) -> None:
    entries = group.children[0] if len(group.children) == 1 else None
    if isinstance(entries, GroupNode) and entries.repetition == REPEATED and len(entries.children) == 1:
        element = entries.children[0]
        if isinstance(element, GroupNode) and element.repetition != REPEATED:
            _check_pair(element)
            return
    raise FormatError("a shredded array is not a list of three levels", column=group.name)


def _check_object(group: GroupNode) -> None:
    names: set[str] = set()
    for node in group.children:
        if not isinstance(node, GroupNode) or node.repetition == REPEATED or node.element.name in names:
            raise FormatError("a field of a shredded object is repeated, occurs twice or is not a group", column=node.name)
        names.add(node.element.name)
        _check_pair(node)


# ---- FILE


def is_file(node: SchemaNode) -> bool:
    """Return whether a node is annotated FILE."""
    logical = node.element.logicalType
    return isinstance(node, GroupNode) and logical is not None and logical.FILE is not None


def file_columns(group: GroupNode) -> dict[str, ColumnDescriptor]:
    """Return a FILE group's columns by name.

    Raises:
        FormatError: the group has a field that FILE does not have, or a field occurs twice, has another type, or is not OPTIONAL.
    """
    columns: dict[str, ColumnDescriptor] = {}
    for node in group.children:
        name = node.element.name
        if name in columns:
            raise FormatError(f"a FILE group has two fields {name!r}", column=group.name)
        if name not in FILE_FIELDS:
            raise FormatError(f"a FILE group cannot have a field {name!r}", column=group.name)
        if not isinstance(node, ColumnDescriptor) or node.type != FILE_FIELDS[name] or node.repetition != OPTIONAL:
            raise FormatError(f"the field {name} of a FILE group is not an optional {FILE_FIELDS[name]}", column=group.name)
        columns[name] = node
    return columns


def check_file_fields(names: Collection[str]) -> None:
    """Raise SchemaError if there are no names, or if FILE does not have a field with one of the names."""
    other_names = sorted(set(names) - set(FILE_FIELDS))
    if other_names or not names:
        raise SchemaError(f"a FILE group has some of the fields {', '.join(FILE_FIELDS)}, not {', '.join(other_names) or 'none'}")
