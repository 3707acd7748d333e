"""The schema elements of VARIANT groups, as a footer has them."""

from __future__ import annotations

from fastpq import format as fmt
from fastpq.schema.elements import annotation_to_thrift, leaf_element
from fastpq.schema.tree import OPTIONAL, REPEATED, REQUIRED
from fastpq.schema.types import ColumnType
from fastpq.variant.shredded import BINARY
from fastpq.variant.shredding_schema import ShreddingSchema, normalized


def variant_elements(name: str, schema: ShreddingSchema = None, *, nullable: bool = True) -> list[fmt.SchemaElement]:
    """The schema elements of a VARIANT group to write, depth first.

    Args:
        name: of the group.
        schema: a shredding schema, or None for unshredded variants.
        nullable: whether the group is OPTIONAL.

    Raises:
        SchemaError: the schema is none.
    """
    group = _group_element(name, OPTIONAL if nullable else REQUIRED, 2 + (schema is not None))
    group.logicalType = annotation_to_thrift("VARIANT")
    value = leaf_element("value", BINARY, nullable=schema is not None)
    return [group, leaf_element("metadata", BINARY, nullable=False), value, *_typed_elements(normalized(schema))]


def _group_element(name: str, repetition: int, children: int) -> fmt.SchemaElement:
    return fmt.SchemaElement(name=name, repetition_type=repetition, num_children=children)


def _pair_elements(name: str, schema: ShreddingSchema) -> list[fmt.SchemaElement]:
    group = _group_element(name, REQUIRED, 1 + (schema is not None))
    return [group, leaf_element("value", BINARY, nullable=True), *_typed_elements(schema)]


def _typed_elements(schema: ShreddingSchema) -> list[fmt.SchemaElement]:
    match schema:
        case None:
            return []
        case ColumnType():
            return [leaf_element("typed_value", schema, nullable=True)]
        case dict():
            fields = [_pair_elements(name, inner) for name, inner in schema.items()]
            return [_group_element("typed_value", OPTIONAL, len(fields)), *(node for field in fields for node in field)]
    group = _group_element("typed_value", OPTIONAL, 1)
    group.converted_type, group.logicalType = fmt.ConvertedType.LIST, fmt.LogicalType(LIST=fmt.ListType())
    return [group, _group_element("list", REPEATED, 1), *_pair_elements("element", schema[0])]
