"""Inference of shredding schemas from sampled variants. VariantShredding.md leaves the choice to the writer.

A place in the values is the root, an object field, or an array's elements. A place gets a typed_value column if enough values at
this place agree on a type. Their share must be at least ``min_agreement``, and nulls do not count. Values with another type stay
in the value column.

- All integers agree. The widest integer type that occurs is chosen.
- Decimals agree with decimals and integers. The chosen type has enough digits for all of them.
- Any other type agrees only with itself.

An object field gets columns if at least the share ``min_share`` of the objects have the field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

from fastpq.schema.types import ColumnType, Date, Decimal, Integer, String, Time, Timestamp, Type, Uuid
from fastpq.schema.variant_kinds import MAX_DIGITS, Kind, Primitive
from fastpq.variant.shredding_schema import ShreddingSchema
from fastpq.variant.variant_column import VariantColumn

DEFAULT_SAMPLE = 4096           # row count
DEFAULT_MIN_SHARE = 0.1         # share of the objects at a place
DEFAULT_MIN_AGREEMENT = 0.9     # share of the values at a place
DEFAULT_MAX_FIELDS = 300        # field count, all objects together
DEFAULT_MAX_DEPTH = 16          # nesting levels (objects and arrays)

_INTEGERS = {
    Kind.INT8: ColumnType(Type.INT32, logical=Integer(8, signed=True)),
    Kind.INT16: ColumnType(Type.INT32, logical=Integer(16, signed=True)),
    Kind.INT32: ColumnType(Type.INT32),
    Kind.INT64: ColumnType(Type.INT64),
}
_DECIMALS = (Kind.DECIMAL4, Kind.DECIMAL8, Kind.DECIMAL16)
_OTHERS = {
    Kind.TRUE: ColumnType(Type.BOOLEAN),
    Kind.FLOAT: ColumnType(Type.FLOAT),
    Kind.DOUBLE: ColumnType(Type.DOUBLE),
    Kind.DATE: ColumnType(Type.INT32, logical=Date()),
    Kind.TIME: ColumnType(Type.INT64, logical=Time("us")),
    Kind.TIMESTAMP: ColumnType(Type.INT64, logical=Timestamp("us", utc=True)),
    Kind.TIMESTAMP_NTZ: ColumnType(Type.INT64, logical=Timestamp("us")),
    Kind.TIMESTAMP_NANOS: ColumnType(Type.INT64, logical=Timestamp("ns", utc=True)),
    Kind.TIMESTAMP_NTZ_NANOS: ColumnType(Type.INT64, logical=Timestamp("ns")),
    Kind.BINARY: ColumnType(Type.BYTE_ARRAY),
    Kind.STRING: ColumnType(Type.BYTE_ARRAY, logical=String()),
    Kind.UUID: ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid()),
}


def infer_schema(
    column: VariantColumn,
    *,
    sample: int = DEFAULT_SAMPLE,
    min_share: float = DEFAULT_MIN_SHARE,
    min_agreement: float = DEFAULT_MIN_AGREEMENT,
    max_fields: int = DEFAULT_MAX_FIELDS,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> ShreddingSchema:
    """Infer a shredding schema from a column's variants.

    Args:
        column: variants.
        sample: how many rows to decode. They are spread evenly over the column.
        min_share: a field gets columns if at least this share of the objects at its place have it.
        min_agreement: a place gets a typed_value column if at least this share of its values agree on one type.
        max_fields: how many fields may get columns, in all objects together. Fields near the root come first, and then fields
            that many objects have.
        max_depth: how many levels of objects and arrays may get columns.

    Returns:
        The schema, or None if no place gets columns.

    Raises:
        FormatError: a sampled row breaks VariantEncoding.md.
    """
    rows = range(0, len(column), max(1, -(-len(column) // sample)))
    values = [variant.to_python(typed=True) for variant in (column[row] for row in rows) if variant is not None]
    return _Inference(min_share, min_agreement, max_fields).at(values, max_depth)


class _Inference:
    def __init__(self, min_share: float, min_agreement: float, max_fields: int) -> None:
        self._min_share = min_share
        self._min_agreement = min_agreement
        self._fields_left = max_fields

    def at(self, values: list[Any], depth: int) -> ShreddingSchema:
        """Return the schema for the values at one place."""
        values = [value for value in values if not (isinstance(value, Primitive) and value.kind == Kind.NULL)]
        if not values:
            return None
        least = self._min_agreement * len(values)
        objects = [value for value in values if isinstance(value, dict)]
        if len(objects) >= least:
            return self._object(objects, depth - 1) if depth > 0 else None
        arrays = [value for value in values if isinstance(value, list)]
        if len(arrays) >= least:
            elements = [element for array in arrays for element in array]
            return [self.at(elements, depth - 1)] if depth > 0 and elements else None
        return _primitive([value for value in values if isinstance(value, Primitive)], least)

    def _object(self, objects: list[dict[str, Any]], depth: int) -> ShreddingSchema:
        counts = Counter(name for value in objects for name in value)
        frequent = [name for name, count in counts.most_common(self._fields_left) if count >= self._min_share * len(objects)]
        self._fields_left -= len(frequent)
        return {
            name: self.at([value[name] for value in objects if name in value], depth) for name in sorted(frequent)
        } or None


def _primitive(values: list[Primitive], least: float) -> ShreddingSchema:
    kinds: Counter[Kind] = Counter(Kind.TRUE if value.kind == Kind.FALSE else value.kind for value in values)
    integers = sum(kinds[kind] for kind in _INTEGERS)
    if integers and integers >= least:
        return _INTEGERS[max(kind for kind in _INTEGERS if kinds[kind])]
    if any(kinds[kind] for kind in _DECIMALS) and integers + sum(kinds[kind] for kind in _DECIMALS) >= least:
        return _decimal(value.value for value in values if value.kind in _INTEGERS or value.kind in _DECIMALS)
    kind, count = kinds.most_common(1)[0] if kinds else (Kind.NULL, 0)
    return _OTHERS.get(kind) if count >= least else None


def _decimal(values: Iterable[Any]) -> ShreddingSchema:
    """Return the narrowest decimal type that can hold all numbers. None if they need more than 38 digits."""
    scale = whole = 0
    for value in values:
        digits = len(str(abs(value)).lstrip("0")) if isinstance(value, int) else 0
        if not isinstance(value, int):
            _, figures, exponent = value.as_tuple()
            scale = max(scale, -cast(int, exponent))
            digits = len(figures) + exponent
        whole = max(whole, digits)
    precision = max(whole + scale, 1)
    if precision > MAX_DIGITS:
        return None
    logical = Decimal(precision, scale)
    if precision <= 18:
        return ColumnType(Type.INT32 if precision <= 9 else Type.INT64, logical=logical)
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, logical)
