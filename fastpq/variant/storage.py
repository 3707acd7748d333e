"""Conversion between variants and the struct columns that files and Arrow use (VariantEncoding.md, "Variant in Parquet").

A variant column's StructType is annotated VARIANT. Its fields are, in any order, metadata, value, and typed_value. Only shredded
variants have typed_value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from fastpq.arrays.bitmap import count_zeros
from fastpq.arrays.layouts import Array
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.table import AnyColumn, Column
from fastpq.errors import LimitError, SchemaError
from fastpq.schema.nested_types import Annotation, ListType, StructType
from fastpq.schema.types import Type
from fastpq.schema.variant_kinds import MAX_DEPTH
from fastpq.variant.shredded import Shredded, ShreddedArray, ShreddedObject, TypedValue


def holds_variants(column: AnyColumn) -> TypeGuard[StructColumn]:
    """Return whether a column has the logical type VARIANT."""
    return isinstance(column, StructColumn) and column.type.annotation == "VARIANT"


def shredded_of(column: StructColumn, depth: int = 0) -> Shredded:
    """Return a struct's fields value and typed_value as a Shredded pair. Where the struct is null, the pair is missing.

    Raises:
        SchemaError: the struct has neither field, has one twice, or a field has a wrong type.
        LimitError: the struct is nested deeper than MAX_DEPTH levels.
    """
    if depth > MAX_DEPTH:
        raise LimitError(f"a shredded variant is nested deeper than MAX_DEPTH ({MAX_DEPTH})")
    typed_part = _field(column, "typed_value")
    typed_value = None if typed_part is None else _typed_value(typed_part, depth)
    return Shredded(len(column), binary_field(column, "value"), typed_value, _validity(column))


def _typed_value(column: AnyColumn, depth: int) -> TypedValue:
    match column:
        case StructColumn():
            names = [field.name for field in column.type.fields]
            if len(set(names)) < len(names):
                raise SchemaError("a shredded object has two fields with the same name")
            fields = {name: _pair(child, depth) for name, child in zip(names, column.children, strict=True)}
            return ShreddedObject(len(column), fields, _validity(column))
        case ListColumn():
            return ShreddedArray(column.offsets, _pair(column.elements, depth), _validity(column))
    return column


def _pair(column: AnyColumn, depth: int) -> Shredded:
    if not isinstance(column, StructColumn):
        raise SchemaError(f"a shredded variant needs a struct of value and typed_value, not {column.type}")
    return shredded_of(column, depth + 1)


def binary_field(column: StructColumn, name: str) -> Column | None:
    """Return the BYTE_ARRAY field that has a name. None if there is no such field.

    Raises:
        SchemaError: the struct has the field twice, or with another type.
    """
    child = _field(column, name)
    if child is not None and (not isinstance(child, Column) or child.type.physical != Type.BYTE_ARRAY):
        raise SchemaError(f"the {name} of a variant must be BYTE_ARRAY, not {child.type}")
    return child


def _field(column: StructColumn, name: str) -> AnyColumn | None:
    return column[name] if any(field.name == name for field in column.type.fields) else None


def _validity(column: StructColumn | ListColumn) -> Array | None:
    return column.validity if column.null_count else None


def variant_struct(metadata: Column, shredded: Shredded, validity: Array | None) -> StructColumn:
    """Return a nullable struct column that holds shredded or unshredded variants.

    Args:
        metadata: the variants' metadata.
        shredded: the value and typed_value columns. If there is no typed_value, only null variants may lack a value.
        validity: variant bitmap, or None if no variant is null.
    """
    parts = {"metadata": _required(metadata), **_pair_columns(shredded)}
    if shredded.typed_value is None and shredded.value is not None:
        parts["value"] = _required(shredded.value)
    return _struct(parts, len(metadata), validity, nullable=True, annotation="VARIANT")


def _pair_columns(shredded: Shredded) -> dict[str, AnyColumn]:
    parts: dict[str, AnyColumn] = {}
    if shredded.value is not None:
        parts["value"] = shredded.value._with(nullable=True)
    typed_part = shredded.typed_value
    if isinstance(typed_part, ShreddedObject):
        fields = {name: _pair_struct(inner) for name, inner in typed_part.fields.items()}
        parts["typed_value"] = _struct(fields, len(typed_part), typed_part.validity, nullable=True)
    elif isinstance(typed_part, ShreddedArray):
        element = _pair_struct(typed_part.elements)
        nulls = 0 if typed_part.validity is None else count_zeros(typed_part.validity, len(typed_part))
        parts["typed_value"] = ListColumn(
            ListType(element.as_field("element")), typed_part.offsets, element, typed_part.validity if nulls else None, nulls
        )
    elif typed_part is not None:
        parts["typed_value"] = typed_part._with(nullable=True)
    return parts


def _pair_struct(shredded: Shredded) -> StructColumn:
    # The specification requires the group: a missing pair is a group whose two fields are null. Some writers use null groups
    # instead. The struct is therefore nullable only if there are null groups.
    return _struct(_pair_columns(shredded), shredded.length, shredded.validity, nullable=False)


def _struct(
    parts: Mapping[str, AnyColumn],
    length: int,
    validity: Array | None,
    *,
    nullable: bool,
    annotation: Annotation | None = None,
) -> StructColumn:
    nulls = 0 if validity is None else count_zeros(validity, length)
    type_ = StructType(tuple(part.as_field(name) for name, part in parts.items()), annotation)
    return StructColumn(type_, tuple(parts.values()), length, validity if nulls else None, nulls, nullable or nulls > 0)


def _required(column: Column) -> Column:
    """Return a required column. Nulls become empty values, because they are all under null variants."""
    return column._with(validity=None, null_count=0, nullable=False)
