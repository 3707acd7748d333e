"""Filters on the files of a dataset: partition values and missing columns decide conditions before a file is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastpq.arrays.table import Table
from fastpq.errors import SchemaError
from fastpq.filters.expressions import filter_of, is_expression
from fastpq.filters.filtering import mask_of
from fastpq.filters.literals import domain_of
from fastpq.filters.predicate import And, Bounds, Condition, Or, Outcome, UnitOf, bind_filters, is_condition, junction
from fastpq.read.int96 import leaves_by_place, units_in
from fastpq.schema.parquet_schema import ParquetSchema, int96_types
from fastpq.schema.types import ColumnType


@dataclass(frozen=True, slots=True)
class RowFilters:
    """Filters of a read that follows: they leave out files, and the read leaves out rows."""

    filters: Any


def may_match(filters: Any, schema: ParquetSchema, values: Mapping[str, Any]) -> bool:
    """Whether rows of a file match, by its partition values.

    Args:
        filters: as for ``ParquetFile.read``, on partition columns, checked before; or RowFilters, on any columns.
        schema: schema of the partition columns alone.
        values: the file's value of each partition column.
    """
    given = filters.filters if isinstance(filters, RowFilters) else filters
    return _rest(given, schema, values, None) is not False


def check_choice_of_files(filters: Any, schema: ParquetSchema) -> None:
    """Refuse filters, other than RowFilters, of another shape or on other columns than those of partitions.

    Args:
        filters: as for ``may_match``.
        schema: schema of the partition columns alone.

    Raises:
        SchemaError: such filters.
    """
    if isinstance(filters, RowFilters):
        return
    given: list[Any] = filtered_columns(_translated(filters, schema))       # numbers, too
    names = dict.fromkeys(name for name in given if isinstance(name, str) and name not in schema.names)
    if names:
        raise SchemaError(
            f"filters of a dataset choose its files, by partition columns, and {', '.join(map(repr, names))} is none: "
            "give filters on other columns to read, count and the others, or all to read_table"
        )
    bind_filters(filters, schema)


def rest_for(
    filters: Any, schema: ParquetSchema, values: Mapping[str, Any], columns: Collection[str], unit_of: UnitOf | None = None
) -> Any:
    """The filters left for one file: True or False if its partition values and missing columns decide the result.

    Args:
        filters: as for ``ParquetFile.read``.
        schema: schema of the dataset.
        values: the file's value of each partition column.
        columns: columns read from the file.
        unit_of: units of durations, as for ``bind_filters``.

    Raises:
        SchemaError: invalid filters.
    """
    return _rest(filters, schema, values, columns, unit_of)


def filtered_columns(rest: Any) -> list[str]:
    """Names of the columns in filters without expressions of other libraries."""
    if (found := junction(rest)) is not None:
        return [name for part in found[1] for name in filtered_columns(part)]
    return [_top(rest[0])] if is_condition(rest) else []


def matching(table: Table, filters: Any, schema: ParquetSchema, unit_of: UnitOf | None = None) -> Table:
    """The rows of a table for which filters hold.

    Args:
        table: rows with all columns of the filters.
        filters: as for ``ParquetFile.read``.
        schema: schema of the dataset, with the types of the table but for the units of INT96 timestamps.
        unit_of: units of durations, as for ``bind_filters``.
    """
    types: Mapping[int, ColumnType] | None = None
    if schema.has_int96:
        units = dict(place for name, column in table.items() for place in units_in(column.type, (name,)))
        by_number = {leaf.index: units[place] for place, leaf in leaves_by_place(schema) if place in units}
        types = int96_types(schema.columns, "ns", by_number)
    predicate = bind_filters(filters, schema, types, unit_of)
    mask = mask_of(predicate, lambda leaf: table[leaf.column.path[0]].leaf(leaf.column.path[1:]))
    rows = np.flatnonzero(mask)
    return table._of((column.take(rows) for column in table.columns), len(rows))


def _rest(
    filters: Any, schema: ParquetSchema, values: Mapping[str, Any], columns: Collection[str] | None, unit_of: UnitOf | None = None
) -> Any:
    if (found := junction(filters)) is not None:
        kind, parts = found
        return _simplified(kind, [_rest(part, schema, values, columns, unit_of) for part in parts])
    if is_expression(filters):
        return _rest(filter_of(filters, schema), schema, values, columns, unit_of)
    if columns is None and not (is_condition(filters) and _top(filters[0]) in values):
        return filters
    leaf = bind_filters(filters, schema, unit_of=unit_of)
    assert isinstance(leaf, Condition)
    name = leaf.column.path[0]
    if name not in values and columns is not None and name in columns:
        return (leaf.column.path, *filters[1:])
    value = values.get(name)
    if value is None:
        return leaf.outcome(Bounds(null_count=1, num_values=1)) is Outcome.ALL
    key = domain_of(leaf.column.type).equal(value)
    return leaf.outcome(Bounds(key, key, null_count=0, num_values=1)) is Outcome.ALL


def _translated(filters: Any, schema: ParquetSchema) -> Any:
    """Filters with those of fastpq in the place of expressions of other libraries."""
    if (found := junction(filters)) is not None:
        kind, parts = found
        return kind(*(_translated(part, schema) for part in parts))
    return _translated(filter_of(filters, schema), schema) if is_expression(filters) else filters


def _top(key: Any) -> Any:
    """The name of the column of a condition."""
    return key[0] if isinstance(key, tuple) and key else key


def _simplified(kind: type[And | Or], children: list[Any]) -> Any:
    """Conditions joined by And or Or, simplified by conditions known to be true or false."""
    decisive = kind is Or
    if any(child is decisive for child in children):
        return decisive
    rest = [child for child in children if not isinstance(child, bool)]
    return kind(*rest) if rest else not decisive
