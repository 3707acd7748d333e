"""Filters on a dataset's files. Partition values and missing columns decide conditions before a file is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastpq.arrays.table import Table
from fastpq.errors import SchemaError
from fastpq.filters.combinations import And, Or, is_condition, junction
from fastpq.filters.expressions import filter_of, is_expression
from fastpq.filters.filtering import mask_of
from fastpq.filters.literals import domain_of
from fastpq.filters.predicate import Bounds, Condition, Outcome, UnitOf, bind_filters
from fastpq.schema.parquet_schema import ParquetSchema, int96_types
from fastpq.schema.types import ColumnType


@dataclass(frozen=True, slots=True)
class RowFilters:
    """Row filters. They are used twice: the dataset leaves out files by them, then the read of each file leaves out rows.

    They may be on any columns. Filters that are not in a RowFilters only choose files, and must be on partition columns.
    """

    filters: Any


def may_match(filters: Any, schema: ParquetSchema, values: Mapping[str, Any]) -> bool:
    """Return whether rows in a file may match filters, according to the file's partition values.

    Args:
        filters: checked filters as for ``ParquetFile.read``, on partition columns, or RowFilters, on any columns.
        schema: schema that has only the partition columns.
        values: the file's partition values, by column name.
    """
    conditions = filters.filters if isinstance(filters, RowFilters) else filters
    return rest_for(conditions, schema, values, None) is not False


def files_that_may_match(filters: Any, schema: ParquetSchema, values: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Return whether rows in each file may match filters. Files that share one mapping of values are looked at once.

    Args:
        filters, schema: as for ``may_match``.
        values: each file's partition values, by column name.
    """
    answers = {id(each): may_match(filters, schema, each) for each in {id(each): each for each in values}.values()}
    return [answers[id(each)] for each in values]


def check_choice_of_files(filters: Any, schema: ParquetSchema) -> None:
    """Refuse filters that cannot choose files: invalid ones, and filters on columns that are not partition columns.

    RowFilters are not checked here.

    Args:
        filters: as for ``may_match``.
        schema: schema that has only the partition columns.

    Raises:
        SchemaError: the filters are invalid, or on other columns.
    """
    if isinstance(filters, RowFilters):
        return
    names_or_numbers: list[Any] = filtered_columns(_translated(filters, schema))
    names = dict.fromkeys(name for name in names_or_numbers if isinstance(name, str) and name not in schema.names)
    if names:
        raise SchemaError(
            f"filters of a dataset choose its files by partition columns, and {', '.join(map(repr, names))} is not one: "
            "give filters on other columns to read, count and the others, or all to read_table"
        )
    bind_filters(filters, schema)


def rest_for(
    filters: Any,
    schema: ParquetSchema,
    values: Mapping[str, Any],
    columns: Collection[str] | None,
    unit_of: UnitOf | None = None,
) -> Any:
    """Return the part of the filters that must be evaluated on the rows of one file.

    Partition values decide the other conditions, because all rows of the file have them. So do columns that the file does not
    have, whose values are null. Return True if these conditions decide that every row matches, False if no row matches.

    Args:
        filters: as for ``ParquetFile.read``.
        schema: the dataset's schema.
        values: the file's partition values, by column name.
        columns: names of the columns that the file has. None if they are not known yet.
        unit_of: returns a column's duration unit, as for ``bind_filters``.

    Raises:
        SchemaError: invalid filters.
    """
    if (combination := junction(filters)) is not None:
        kind, parts = combination
        return _simplified(kind, [rest_for(part, schema, values, columns, unit_of) for part in parts])
    if is_expression(filters):
        return rest_for(filter_of(filters, schema), schema, values, columns, unit_of)
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


def filtered_columns(rest: Any) -> list[str]:
    """Return the names of the columns that filters are on.

    Args:
        rest: filters without expressions of other libraries, for example a result of ``rest_for``.
    """
    if (combination := junction(rest)) is not None:
        return [name for part in combination[1] for name in filtered_columns(part)]
    return [_top(rest[0])] if is_condition(rest) else []


def filtered_paths(rest: Any) -> list[tuple[str, ...]]:
    """Return the paths to the leaves that filters need.

    Args:
        rest: what ``rest_for`` returned for a file whose columns are known.
    """
    if (combination := junction(rest)) is not None:
        return [path for part in combination[1] for path in filtered_paths(part)]
    return [rest[0]] if is_condition(rest) else []


def matching(table: Table, filters: Any, schema: ParquetSchema, unit_of: UnitOf | None = None) -> Table:
    """Return the rows of a table that match filters.

    Args:
        table: rows with all columns that the filters need.
        filters: as for ``ParquetFile.read``.
        schema: the dataset's schema. Its types are those of the table, except for INT96 units.
        unit_of: returns a column's duration unit, as for ``bind_filters``.
    """
    types: Mapping[int, ColumnType] | None = None
    if schema.has_int96:
        leaves = [leaf for leaf in schema.columns if leaf.path[0] in table and not leaf.max_repetition_level]
        read_types = {leaf.index: table[leaf.path[0]].leaf(leaf.path[1:]).type for leaf in leaves}
        types = {index: read_types.get(index, type_) for index, type_ in int96_types(schema.columns, "ns").items()}
    predicate = bind_filters(filters, schema, types, unit_of)
    mask = mask_of(predicate, lambda leaf: table[leaf.column.path[0]].leaf(leaf.column.path[1:]))
    rows = np.flatnonzero(mask)
    return table._of((column.take(rows) for column in table.columns), len(rows))


def _translated(filters: Any, schema: ParquetSchema) -> Any:
    """Return filters with the expressions of other libraries translated to fastpq filters."""
    if (combination := junction(filters)) is not None:
        kind, parts = combination
        return kind(*(_translated(part, schema) for part in parts))
    return _translated(filter_of(filters, schema), schema) if is_expression(filters) else filters


def _top(key: Any) -> Any:
    """Return the name of the top-level column that a condition is on.

    Args:
        key: the condition's first item: a name, or a path.
    """
    return key[0] if isinstance(key, tuple) and key else key


def _simplified(kind: type[And | Or], children: list[Any]) -> Any:
    """Join filters by And or Or.

    Filters that are already decided (True or False) are dropped. If they decide the result, return True or False instead.
    """
    decisive = kind is Or
    if any(child is decisive for child in children):
        return decisive
    rest = [child for child in children if not isinstance(child, bool)]
    return kind(*rest) if rest else not decisive
