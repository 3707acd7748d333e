"""FILE groups of a schema: the fields of the FILE annotation, and checks of a group against these (LogicalTypes.md, "FILE")."""

from __future__ import annotations

from collections.abc import Collection

from fastpq.errors import FormatError, SchemaError
from fastpq.schema.tree import OPTIONAL, ColumnDescriptor, GroupNode, SchemaNode
from fastpq.schema.types import ColumnType, String, Type

_TEXT = ColumnType(Type.BYTE_ARRAY, logical=String())
FIELDS: dict[str, ColumnType] = {
    "uri": _TEXT,
    "offset": ColumnType(Type.INT64),
    "size": ColumnType(Type.INT64),
    "content_type": _TEXT,
    "checksum": _TEXT,
    "inline": ColumnType(Type.BYTE_ARRAY),
}


def is_file(node: SchemaNode) -> bool:
    """Whether a node is annotated FILE."""
    logical = node.element.logicalType
    return isinstance(node, GroupNode) and logical is not None and logical.FILE is not None


def file_columns(group: GroupNode) -> dict[str, ColumnDescriptor]:
    """The columns of a FILE group by their names.

    Raises:
        FormatError: a field of the group is no field of FILE, occurs twice, has another type, or is not OPTIONAL.
    """
    columns: dict[str, ColumnDescriptor] = {}
    for node in group.children:
        name = node.element.name
        if name not in FIELDS or name in columns:
            raise FormatError(f"a FILE group with {'two fields' if name in columns else 'a field'} {name!r}", column=group.name)
        if not isinstance(node, ColumnDescriptor) or node.type != FIELDS[name] or node.repetition != OPTIONAL:
            raise FormatError(f"the field {name} of a FILE group is not an optional {FIELDS[name]}", column=group.name)
        columns[name] = node
    return columns


def check_fields(fields: Collection[str]) -> None:
    """Refuse names outside the fields of FILE.

    Raises:
        SchemaError: a name is no field of FILE, or there are no names.
    """
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown or not fields:
        raise SchemaError(f"a FILE group has some of the fields {', '.join(FIELDS)}, not {', '.join(unknown) or 'none'}")
