"""Conversion between variants and the struct columns of files and Arrow (VariantEncoding.md, "Variant in Parquet").

The StructType of a variant column has the annotation VARIANT. Its fields are metadata, value and typed_value, in any order.
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
    """Whether a column has the logical type VARIANT."""
    return isinstance(column, StructColumn) and column.type.annotation == "VARIANT"


def shredded_of(column: StructColumn, depth: int = 0) -> Shredded:
    """The Shredded pair of the fields value and typed_value of a struct; the pair is missing in null structs.

    Raises:
        SchemaError: the struct has neither field, has one twice, or a field has a wrong type.
        LimitError: deeper than MAX_DEPTH.
    """
    if depth > MAX_DEPTH:
        raise LimitError(f"a shredded variant nested deeper than MAX_DEPTH ({MAX_DEPTH})")
    typed = _field(column, "typed_value")
    return Shredded(
        len(column), binary_field(column, "value"), None if typed is None else _typed_value(typed, depth), _validity(column)
    )


def _typed_value(column: AnyColumn, depth: int) -> TypedValue:
    match column:
        case StructColumn():
            names = [field.name for field in column.type.fields]
            if len(set(names)) < len(names):
                raise SchemaError("a shredded object with two fields of one name")
            fields = {name: _pair(child, depth) for name, child in zip(names, column.children, strict=True)}
            return ShreddedObject(len(column), fields, _validity(column))
        case ListColumn():
            return ShreddedArray(column.offsets, _pair(column.elements, depth), _validity(column))
    return column


def _pair(column: AnyColumn, depth: int) -> Shredded:
    if not isinstance(column, StructColumn):
        raise SchemaError(f"a {column.type} where a shredded variant has a struct of value and typed_value")
    return shredded_of(column, depth + 1)


def binary_field(column: StructColumn, name: str) -> Column | None:
    """The BYTE_ARRAY field with a name; None for an absent field.

    Raises:
        SchemaError: the struct has the field twice, or with another type.
    """
    found = _field(column, name)
    if found is not None and (not isinstance(found, Column) or found.type.physical != Type.BYTE_ARRAY):
        raise SchemaError(f"a variant's {name} is BYTE_ARRAY, not {found.type}")
    return found


def _field(column: StructColumn, name: str) -> AnyColumn | None:
    return column[name] if any(field.name == name for field in column.type.fields) else None


def _validity(column: StructColumn | ListColumn) -> Array | None:
    return column.validity if column.null_count else None


def variant_struct(metadata: Column, shredded: Shredded, validity: Array | None) -> StructColumn:
    """The struct column of shredded or unshredded variants, nullable.

    Args:
        metadata: metadata of the variants.
        shredded: pair of value and typed_value of the variants. Without typed_value, only null variants lack a value.
        validity: bitmap of the variants, or None where no variant is null.
    """
    parts = {"metadata": _required(metadata), **_pair_columns(shredded)}
    if shredded.typed_value is None and shredded.value is not None:
        parts["value"] = _required(shredded.value)
    return _struct(parts, len(metadata), validity, nullable=True, annotation="VARIANT")


def _pair_columns(shredded: Shredded) -> dict[str, AnyColumn]:
    parts: dict[str, AnyColumn] = {}
    if shredded.value is not None:
        parts["value"] = shredded.value._with(nullable=True)
    typed = shredded.typed_value
    if isinstance(typed, ShreddedObject):
        fields = {name: _pair_struct(inner) for name, inner in typed.fields.items()}
        parts["typed_value"] = _struct(fields, len(typed), typed.validity, nullable=True)
    elif isinstance(typed, ShreddedArray):
        element = _pair_struct(typed.elements)
        nulls = 0 if typed.validity is None else count_zeros(typed.validity, len(typed))
        parts["typed_value"] = ListColumn(
            ListType(element.as_field("element")), typed.offsets, element, typed.validity if nulls else None, nulls
        )
    elif typed is not None:
        parts["typed_value"] = typed._with(nullable=True)
    return parts


def _pair_struct(shredded: Shredded) -> StructColumn:
    # The group is required. It becomes nullable only with null groups, which some writers use where the specification has a group
    # of two nulls.
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
    """A required column; the nulls of the given one, all under null variants, become empty values."""
    return column._with(validity=None, null_count=0, nullable=False)
