"""Filters that other engines push down: as much of an expression as a read of the file can apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastpq.errors import ParquetError
from fastpq.filters.arrow_expressions import part_of_arrow
from fastpq.filters.combinations import And
from fastpq.filters.expression_tree import ColumnPath, ExpressionPart, FunctionCall
from fastpq.filters.expressions import filters_of_parts, parts_of_conjunction
from fastpq.filters.predicate import bind_filters
from fastpq.schema.parquet_schema import ParquetSchema


def pushed_filter_of(expression: Any, schema: ParquetSchema) -> tuple[Any, bool]:
    """Translate what can be translated of an expression.

    Args:
        expression: a pyarrow.compute or Polars expression, or None.
        schema: schema of the file or the dataset.

    Returns:
        A filter that keeps all rows which the expression keeps, or None for all rows. And whether it keeps no other rows. If not,
        the engine has to apply the expression to the rows.
    """
    if expression is None:
        return None, True
    try:
        parts = parts_of_conjunction(expression)
    except (ParquetError, RecursionError):
        return None, False
    return pushed_filter_of_parts(parts, schema, nan_is_unequal=type(expression).__module__.startswith("pyarrow"))


def pushed_filter_of_parts(
    parts: Sequence[ExpressionPart], schema: ParquetSchema, *, nan_is_unequal: bool
) -> tuple[Any, bool]:
    """Translate what can be translated of some parts, which an expression joins by ``and``.

    Args:
        parts: the parts.
        schema, nan_is_unequal: as for ``filters_of_parts``.

    Returns:
        As ``pushed_filter_of``.
    """
    filters = list(filters_of_parts(parts, schema, nan_is_unequal=nan_is_unequal))
    fitting = [part for part in filters if part is not None and _fits(part, schema)]
    return And(*fitting) if fitting else None, len(fitting) == len(parts)


def _fits(filters: Any, schema: ParquetSchema) -> bool:
    """Return whether filters fit the columns of a schema."""
    try:
        bind_filters(filters, schema)
    except (ParquetError, RecursionError):
        return False
    return True


def columns_of_expression(expression: Any) -> list[str] | None:
    """Return the names of the columns that a pyarrow.compute expression uses. None if it cannot be taken apart."""
    names: list[str] = []
    try:
        pending: list[ExpressionPart] = [part_of_arrow(expression, keeps_unknown=True)]
    except (ParquetError, RecursionError):
        return None
    while pending:
        part = pending.pop()
        if isinstance(part, FunctionCall):
            pending += reversed(part.args)
        elif isinstance(part, ColumnPath):
            names.append(part.names[0])
    return names
