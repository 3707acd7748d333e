"""Parts of a column, flat or nested, joined into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fastpq.arrays.concat import concat_offsets, concat_validity, concat_values
from fastpq.arrays.layouts import DictionaryValues
from fastpq.arrays.nested_columns import ListColumn, NestedColumn, StructColumn
from fastpq.arrays.numpy_output import fixed_values
from fastpq.errors import SchemaError

if TYPE_CHECKING:
    from fastpq.arrays.nodes import FieldNode
    from fastpq.arrays.table import AnyColumn, Column


def concat_columns(parts: Sequence[AnyColumn], name: str) -> AnyColumn:
    """The values of columns of one type, one after another.

    Args:
        parts: at least one.
        name: of the column, for errors.

    Raises:
        SchemaError: the types differ, or durations have different units, or are none in some of the parts.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts:
        if part.type != first.type:
            raise SchemaError(f"{part.type} after {first.type}", column=name)
    validity = concat_validity([part.validity if part.null_count else None for part in parts], [*map(len, parts)])
    null_count = sum(part.null_count for part in parts)
    nullable = any(part.nullable for part in parts)
    if isinstance(first, StructColumn):
        fields = zip(*[part.children for part in parts if isinstance(part, StructColumn)], strict=True)
        children = tuple(concat_columns(columns, name) for columns in fields)
        return StructColumn(first.type, children, sum(map(len, parts)), validity, null_count, nullable, first.arrow)
    if isinstance(first, ListColumn):
        lists = [part for part in parts if isinstance(part, ListColumn)]
        elements = concat_columns([part.used_elements() for part in lists], name)
        offsets = concat_offsets([part.offsets for part in lists])
        return ListColumn(first.type, offsets, elements, validity, null_count, nullable, first.arrow)
    flat = [part for part in parts if not isinstance(part, NestedColumn)]
    leaves = _of_one_layout(flat)
    values = concat_values([part.values for part in leaves])
    arrow = _arrow_of([part for part in flat if part.null_count < len(part)], name) or first.arrow
    assert not isinstance(first, NestedColumn)
    return replace(first, values=values, validity=validity, null_count=null_count, nullable=nullable, arrow=arrow)


def _arrow_of(parts: list[Column], name: str) -> FieldNode | None:
    """What a column is in Arrow: what the first part with values is; but numbers may be durations by that alone."""
    durations = {part.arrow.format if part.arrow is not None and part.arrow.is_duration else None for part in parts}
    if len(durations) > 1:
        raise SchemaError(f"numbers that are durations of different units: {sorted(map(str, durations))}", column=name)
    return parts[0].arrow if parts else None


def _of_one_layout(parts: list[Column]) -> list[Column]:
    """Views take any other layout in; dictionaries of fixed-width values are gathered."""
    if len({_layout(part) for part in parts}) == 1:
        return parts
    if parts[0].type.is_variable:
        return [part.as_views() for part in parts]
    return [replace(part, values=fixed_values(part)) for part in parts]


def _layout(column: Column) -> tuple[type, int]:
    """What must agree for values to be joined as they are."""
    values = column.values
    return type(values), id(values.dictionary) if isinstance(values, DictionaryValues) else 0
