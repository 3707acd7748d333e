"""Conversion from column types to a new footer's SchemaElements (LogicalTypes.md, "Nested Types")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fastpq import format as fmt
from fastpq.common.stack import too_deep
from fastpq.errors import SchemaError
from fastpq.schema.logical import logical_to_thrift
from fastpq.schema.nested_types import Annotation, DataType, Field, ListType, MapType, StructType
from fastpq.schema.types import ColumnType, Timestamp, Type

REQUIRED, OPTIONAL, REPEATED = fmt.FieldRepetitionType
VARIANT_SPECIFICATION_VERSION = 1


def elements_of(fields: Sequence[Field], name: str) -> list[fmt.SchemaElement]:
    """Return the SchemaElements for a schema with these fields, depth first, starting with the root.

    Args:
        fields: names, types and nullability for the root's children.
        name: root name.

    Raises:
        SchemaError: a name is not a str, or a struct has no fields.
        LimitError: a type is nested too deep for the stack.
    """
    _check_names(fields)
    try:
        children = [element for field in fields for element in _elements(field)]
    except RecursionError:
        raise too_deep() from None
    return [fmt.SchemaElement(name=name, num_children=len(fields)), *children]


def _elements(field: Field) -> list[fmt.SchemaElement]:
    repetition = OPTIONAL if field.nullable else REQUIRED
    type_ = field.type
    if isinstance(type_, ListType):
        element = Field("element", type_.element.type, type_.element.nullable)
        group = _group(field.name, repetition, 1, fmt.LogicalType(LIST=fmt.ListType()), fmt.ConvertedType.LIST)
        return [group, _group("list", REPEATED, 1), *_elements(element)]
    if isinstance(type_, MapType):
        key = Field("key", type_.key.type, nullable=False)
        value = Field("value", type_.value.type, type_.value.nullable)
        group = _group(field.name, repetition, 1, fmt.LogicalType(MAP=fmt.MapType()), fmt.ConvertedType.MAP)
        return [group, _group("key_value", REPEATED, 2), *_elements(key), *_elements(value)]
    if isinstance(type_, StructType):
        if not type_.fields:
            raise SchemaError(f"the struct {field.name!r} has no fields, and Parquet has no such type")
        _check_names(type_.fields)
        children = [element for child in type_.fields for element in _elements(child)]
        return [_group(field.name, repetition, len(type_.fields), annotation_to_thrift(type_.annotation)), *children]
    return [leaf_element(field.name, type_, field.nullable)]


def leaf_types(types: Iterable[DataType]) -> Iterator[ColumnType]:
    """Yield the types that the leaves of columns with these types have, in schema order."""
    for type_ in types:
        if isinstance(type_, ColumnType):
            yield type_
        elif isinstance(type_, ListType):
            yield from leaf_types([type_.element.type])
        elif isinstance(type_, MapType):
            yield from leaf_types([type_.key.type, type_.value.type])
        else:
            yield from leaf_types(field.type for field in type_.fields)


def annotation_to_thrift(annotation: Annotation | None) -> fmt.LogicalType | None:
    """Return the ``logicalType`` for a VARIANT or FILE group's SchemaElement, or None for a plain struct."""
    if annotation == "VARIANT":
        return fmt.LogicalType(VARIANT=fmt.VariantType(specification_version=VARIANT_SPECIFICATION_VERSION))
    return fmt.LogicalType(FILE=fmt.FileType()) if annotation == "FILE" else None


def _group(
    name: str,
    repetition: fmt.FieldRepetitionType,
    num_children: int,
    logical: fmt.LogicalType | None = None,
    converted_type: fmt.ConvertedType | None = None,
) -> fmt.SchemaElement:
    return fmt.SchemaElement(
        repetition_type=repetition, name=name, num_children=num_children, converted_type=converted_type, logicalType=logical
    )


def leaf_element(name: str, type_: ColumnType, nullable: bool) -> fmt.SchemaElement:
    """Return a leaf column's SchemaElement for writing.

    INT96 is written without its in-memory unit, because TIMESTAMP may only annotate INT64 (LogicalTypes.md, "TIMESTAMP").
    """
    is_int96 = type_.physical is Type.INT96 and isinstance(type_.logical, Timestamp)
    logical, converted_type, scale, precision = logical_to_thrift(None if is_int96 else type_.logical)
    return fmt.SchemaElement(
        type=type_.physical,
        type_length=None if type_.physical is Type.INT96 else type_.length,
        repetition_type=OPTIONAL if nullable else REQUIRED,
        name=name,
        converted_type=converted_type,
        scale=scale,
        precision=precision,
        logicalType=logical,
    )


def _check_names(fields: Sequence[Field]) -> None:
    for field in fields:
        if not isinstance(field.name, str):
            raise SchemaError(f"a column name must be a str, not {field.name!r}")
