"""Filters that Daft pushes down, as parts that fastpq translates. Daft applies them again, so they may keep too many rows.

In Daft NaN equals NaN and is the largest number, as in fastpq's filters. But -0.0 is smaller than 0.0 there, and equal here: a
comparison with zero is translated into one that keeps both.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from fastpq.common.lazy import package
from fastpq.filters.expression_tree import UNTRANSLATABLE, ColumnPath, ExpressionPart, FunctionCall, LiteralValue
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import Date

daft_visitor: Any = package("daft.expressions.visitor", "read_daft", "daft")

_UNKNOWN = FunctionCall(UNTRANSLATABLE, ())
_WITH_EQUAL = {"<": "<=", ">": ">=", "<=": "<=", ">=": ">=", "==": "=="}


def parts_of_daft(expression: Any, schema: ParquetSchema) -> list[ExpressionPart]:
    """Return the parts that a Daft expression joins by ``and``. Some have no translation.

    Args:
        expression: the expression.
        schema: columns of the dataset.
    """
    whole = _Parts(schema).part_of(expression)
    parts: list[ExpressionPart] = []
    pending: list[ExpressionPart] = [whole]
    while pending:
        part = pending.pop()
        if isinstance(part, FunctionCall) and part.name == "and":
            pending += reversed(part.args)
        else:
            parts.append(part)
    return parts


class _Parts(daft_visitor.PredicateVisitor):    # type: ignore[misc]
    """Visits a Daft expression, and returns each part of it."""

    def __init__(self, schema: ParquetSchema) -> None:
        self._schema = schema
        self._has_zero = False

    def part_of(self, expression: Any) -> ExpressionPart:
        """Return an expression as a part, or a part without a translation."""
        try:
            part: ExpressionPart = self.visit(expression)
        except (ValueError, TypeError):     # Daft has no form in Python for some functions
            return _UNKNOWN
        return part

    def visit_col(self, name: str) -> ExpressionPart:
        return ColumnPath((name,))

    def visit_lit(self, value: Any) -> ExpressionPart:
        self._has_zero |= isinstance(value, int | float) and value == 0
        if isinstance(value, datetime):
            return _UNKNOWN     # Daft rounds moments to the unit of the other side
        if isinstance(value, date):
            return LiteralValue(np.datetime64(value, "D"))
        return LiteralValue(value) if isinstance(value, bool | int | float | str | bytes) else _UNKNOWN

    def visit_alias(self, expr: Any, alias: str) -> ExpressionPart:
        return self.part_of(expr)

    def visit_cast(self, expr: Any, dtype: Any) -> ExpressionPart:
        return _UNKNOWN

    def visit_function(self, name: str, args: list[Any]) -> ExpressionPart:
        if name == "starts_with":
            return FunctionCall("starts with", (self.part_of(args[0]), self.part_of(args[1])))
        return _UNKNOWN

    def visit_coalesce(self, args: list[Any]) -> ExpressionPart:
        return _UNKNOWN

    def visit_and(self, one: Any, other: Any) -> ExpressionPart:
        return FunctionCall("and", (self.part_of(one), self.part_of(other)))

    def visit_or(self, one: Any, other: Any) -> ExpressionPart:
        return FunctionCall("or", (self.part_of(one), self.part_of(other)))

    def visit_not(self, expr: Any) -> ExpressionPart:
        inner = _Parts(self._schema)
        part = inner.part_of(expr)
        # if a part keeps more rows than Daft, its opposite keeps fewer, and would lose some
        return _UNKNOWN if inner._has_zero else FunctionCall("not", (part,))

    def visit_equal(self, one: Any, other: Any) -> ExpressionPart:
        return self._comparison("==", one, other)

    def visit_not_equal(self, one: Any, other: Any) -> ExpressionPart:
        return self._comparison("!=", one, other)

    def visit_less_than(self, one: Any, other: Any) -> ExpressionPart:
        return self._comparison("<", one, other)

    def visit_less_than_or_equal(self, one: Any, other: Any) -> ExpressionPart:
        return self._comparison("<=", one, other)

    def visit_greater_than(self, one: Any, other: Any) -> ExpressionPart:
        return self._comparison(">", one, other)

    def visit_greater_than_or_equal(self, one: Any, other: Any) -> ExpressionPart:
        return self._comparison(">=", one, other)

    def visit_between(self, expr: Any, lower: Any, upper: Any) -> ExpressionPart:
        return FunctionCall("and", (self._comparison(">=", expr, lower), self._comparison("<=", expr, upper)))

    def visit_is_in(self, expr: Any, items: list[Any]) -> ExpressionPart:
        values = [self.part_of(item) for item in items]
        literals = [value for value in values if isinstance(value, LiteralValue)]
        if len(literals) < len(values) or self._rounds_to_dates([self.part_of(expr), *values]):
            return _UNKNOWN
        return FunctionCall("in", (self.part_of(expr), LiteralValue([value.value for value in literals])), "propagate")

    def visit_is_null(self, expr: Any) -> ExpressionPart:
        return FunctionCall("is null", (self.part_of(expr),))

    def visit_not_null(self, expr: Any) -> ExpressionPart:
        return FunctionCall("is valid", (self.part_of(expr),))

    def _comparison(self, op: str, one: Any, other: Any) -> ExpressionPart:
        earlier, self._has_zero = self._has_zero, False
        parts = self.part_of(one), self.part_of(other)
        if self._rounds_to_dates(parts):
            return _UNKNOWN
        if self._has_zero:
            return FunctionCall(_WITH_EQUAL[op], parts) if op in _WITH_EQUAL else _UNKNOWN
        self._has_zero = earlier
        return FunctionCall(op, parts)

    def _rounds_to_dates(self, parts: Sequence[ExpressionPart]) -> bool:
        """Return whether Daft would cut moments to their dates, because they are compared with a date."""
        if not any(isinstance(part, LiteralValue) and isinstance(part.value, np.datetime64) for part in parts):
            return False
        columns = [part.names for part in parts if isinstance(part, ColumnPath)]
        return any(not isinstance(self._schema.column(names).type.logical, Date) for names in columns)
