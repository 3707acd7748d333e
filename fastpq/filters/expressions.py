"""Translates pyarrow.compute and Polars expressions into filters, where this is exact.

A row is kept where the expression is true. A comparison with null is null, ``and`` and ``or`` follow Kleene's logic, and negating
null gives null. So each part has two filters: one for the rows where the part is true, and one for the rows where it is false.
``not`` exchanges the two. In pyarrow NaN equals nothing and has no order. In Polars NaN equals NaN and is the largest number, as
in fastpq's filters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from fastpq.errors import ParquetError, UnsupportedError
from fastpq.filters.combinations import And, Or
from fastpq.filters.expression_tree import FLIPPED, ColumnPath, ExpressionPart, FunctionCall, LiteralValue, untranslatable
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import Date, Float16, Timestamp, Type

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_UNITS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT = 1 << 53        # each smaller integer is exact as a float, and no other integer is rounded to it


def is_expression(filters: Any) -> bool:
    """Return whether filters are a pyarrow.compute or Polars expression."""
    module, name = type(filters).__module__.partition(".")[0], type(filters).__name__
    return (module, name) in (("pyarrow", "Expression"), ("polars", "Expr"))


def filter_of(expression: Any, schema: ParquetSchema) -> Any:
    """Translate an expression into a filter: conditions, And and Or.

    Args:
        expression: a pyarrow.compute or Polars expression.
        schema: schema of the file or the dataset. NaN is treated specially only in columns whose type is a float.

    Raises:
        UnsupportedError: a part has no exact translation.
    """
    of_arrow = type(expression).__module__.partition(".")[0] == "pyarrow"
    if of_arrow:
        from fastpq.filters.arrow_expressions import part_of_arrow
    else:
        from fastpq.filters.polars_expressions import part_of_polars
    try:
        part = part_of_arrow(expression) if of_arrow else part_of_polars(expression)
        return _Translation(schema, of_arrow).of(part, True)
    except RecursionError:
        reason = "nested too deeply; give isin() or is_in() all values at once, or fastpq.Or or fastpq.And all conditions"
        raise UnsupportedError(f"a filter {reason}") from None


def parts_of_conjunction(expression: Any) -> list[ExpressionPart]:
    """Return the parts that an expression joins by ``&``. Parts with unknown functions are kept, and have no translation.

    Args:
        expression: a pyarrow.compute or Polars expression.

    Raises:
        UnsupportedError: the expression cannot be taken apart.
    """
    if type(expression).__module__.partition(".")[0] == "pyarrow":
        from fastpq.filters.arrow_expressions import part_of_arrow

        whole = part_of_arrow(expression, keeps_unknown=True)
        return _chain(whole) if isinstance(whole, FunctionCall) and whole.name == "and" else [whole]
    from fastpq.filters.polars_expressions import parts_of_polars_conjunction

    return list(parts_of_polars_conjunction(expression))


def filters_of_parts(parts: Iterable[ExpressionPart], schema: ParquetSchema, *, nan_is_unequal: bool) -> Iterator[Any]:
    """Translate parts of an expression into filters. A part without an exact translation is None.

    Args:
        parts: the parts.
        schema: as for ``filter_of``.
        nan_is_unequal: whether NaN equals nothing and has no order, as in pyarrow. If not, it is the largest number.
    """
    translation = _Translation(schema, nan_is_unequal)
    for part in parts:
        try:
            yield translation.of(part, True)
        except (ParquetError, RecursionError):
            yield None


class _Translation:
    def __init__(self, schema: ParquetSchema, nan_is_unequal: bool) -> None:
        self._schema = schema
        self._nan_is_unequal = nan_is_unequal
        self._types: dict[tuple[str, ...], Any] = {}

    def of(self, part: ExpressionPart, truth: bool) -> Any:
        """Return the filter for the rows where a part is true (``truth`` is true), or where it is false."""
        if isinstance(part, ColumnPath):
            return (part.names, "==", truth)       # a boolean column
        if not isinstance(part, FunctionCall):
            raise untranslatable(part, "a condition names a column")
        match part.name, part.args:
            case "not", (inner,):
                return self.of(inner, not truth)
            case "and" | "or", _:
                join = And if (part.name == "and") is truth else Or
                return join(*(self.of(inner, truth) for inner in _chain(part)))
            case _, (ColumnPath(), ColumnPath()) if part.name in FLIPPED:
                raise untranslatable(part, "two columns are compared, and a condition compares a column with a value")
            case _, (ColumnPath() as column, *rest):
                return self._condition(part, column, rest, truth)
            case _, (LiteralValue() as value, ColumnPath() as column) if part.name in FLIPPED:
                return self.of(FunctionCall(FLIPPED[part.name], (column, value)), truth)
        raise untranslatable(part)

    def _condition(self, part: FunctionCall, column: ColumnPath, rest: list[ExpressionPart], truth: bool) -> Any:
        path = column.names
        self._refuse_group(part, path)
        match part.name, rest:
            case "is null" | "is valid", []:
                return (path, "is null" if (part.name == "is null") is truth else "is not null")
            case "is nan" | "is not nan", [] if self._is_float(path) or self._type(path) is None:
                return (path, "==" if (part.name == "is nan") is truth else "!=", math.nan)
            case "is null or nan", []:
                return self._is_null_or_nan(path, truth)
            case "in", [LiteralValue(list(values), aware)]:
                self._check_zone(part, path, aware)
                return self._in(part, path, values, truth)
            case "starts with", [LiteralValue(str() | bytes() as prefix)] if truth:
                return (path, "starts with", prefix)
            case name, [LiteralValue(value, aware)] if name in FLIPPED and not isinstance(value, list):
                self._check_zone(part, path, aware)
                return self._comparison(part, path, name, value, truth)
        raise untranslatable(part)

    def _comparison(self, part: FunctionCall, path: tuple[str, ...], name: str, value: Any, truth: bool) -> Any:
        self._check(part, path, value)
        if name.endswith("null"):
            truth = truth is (name == "== or both null")
            if value is None:
                return (path, "is null" if truth else "is not null")
            condition = self._ordered(path, "==" if truth else "!=", value)
            return condition if truth else Or(condition, (path, "is null"))
        if value is None:
            return (path, "in", [])     # null for every row
        op = name if truth else _OPPOSITE[name]
        if not (self._nan_is_unequal and self._is_float(path)):
            return self._ordered(path, op, value)
        # For NaN, != is true, and every other comparison is false.
        condition = (path, op, value)
        is_true_for_nan = (name == "!=") is truth
        if _is_nan(value):
            return (path, "is not null") if is_true_for_nan else (path, "in", [])
        return Or(condition, (path, "==", math.nan)) if is_true_for_nan else And(condition, (path, "!=", math.nan))

    def _ordered(self, path: tuple[str, ...], op: str, value: Any) -> Any:
        """Return a comparison. Polars rounds two moments down to the coarser of their units. pyarrow compares them exactly."""
        type_ = self._type(path)
        if self._nan_is_unequal or type_ is None or not isinstance(value, np.datetime64):
            return (path, op, value)
        unit, own = np.datetime_data(value.dtype)[0], _unit(type_)
        if unit == "D" or own is None:
            return (path, op, value)
        if _UNITS[own] <= _UNITS[unit]:
            return (path, op, value.astype(f"datetime64[{own}]"))       # rounded down
        # One unit of the value holds several moments of the column: those from the value on, and below the next value.
        below, from_value = (path, "<", value), (path, ">=", value)
        within, above = (path, "<", value + 1), (path, ">=", value + 1)
        equal, unequal = And(from_value, within), Or(below, above)
        return {"<": below, ">=": from_value, "<=": within, ">": above, "==": equal, "!=": unequal}[op]

    def _in(self, part: FunctionCall, path: tuple[str, ...], values: list[Any], truth: bool) -> Any:
        present_values = [value for value in values if value is not None]
        for value in present_values:
            self._check(part, path, value)
            if self._cuts(path, value):
                raise untranslatable(part, "a date is compared with moments; give dates")
            if self._nan_is_unequal and self._is_float(path) and (_is_nan(value) or value == 0):
                raise untranslatable(part, "pyarrow compares NaN and zeros of either sign by their bits")
        condition = (path, "in" if truth else "not in", present_values)
        if part.option == "propagate":
            return condition
        null_is_in = part.option == "match" and len(present_values) < len(values)
        return Or(condition, (path, "is null")) if null_is_in is truth else condition

    def _is_null_or_nan(self, path: tuple[str, ...], truth: bool) -> Any:
        null = (path, "is null" if truth else "is not null")
        if not self._is_float(path):
            return null
        return (Or if truth else And)(null, (path, "==" if truth else "!=", math.nan))

    def _check(self, part: FunctionCall, path: tuple[str, ...], value: Any) -> None:
        """Refuse a number that pyarrow or Polars compares with this column in another way than fastpq.

        These are decimals with a float column, and values that the column's type rounds.
        """
        type_ = self._type(path)
        if isinstance(value, Decimal) and self._is_float(path):
            raise untranslatable(part, f"the column's floats are compared with the decimal {value}; give a float")
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
            return
        size: Any = abs(value)
        if self._is_float(path) and type_.dtype is not None:
            exact = not (isinstance(value, int) and size > _EXACT)
            with np.errstate(over="ignore"):
                exact = exact and (_is_nan(value) or float(type_.dtype.type(value)) == value)
            if not exact:
                raise untranslatable(part, f"the column rounds {value!r}; give a value of its precision")
        elif isinstance(value, float | np.floating) and type_ is not None and not size < _EXACT:
            raise untranslatable(part, f"{value!r} is a float, but the column does not have floats")

    def _check_zone(self, part: FunctionCall, path: tuple[str, ...], aware: bool | None) -> None:
        """Refuse moments with a time zone if the column has no time zone, and moments without a time zone if it has one."""
        type_ = self._type(path)
        if aware is None or type_ is None:
            return
        has_zone = isinstance(type_.logical, Timestamp) and type_.logical.utc
        if aware is not has_zone:
            own, others = ("a", "none") if has_zone else ("no", "one")
            raise untranslatable(part, f"the column has {own} time zone, and the moments have {others}")

    def _cuts(self, path: tuple[str, ...], value: Any) -> bool:
        """Return whether pyarrow would cut a moment to its date, for ``in`` on a date column."""
        type_ = self._type(path)
        if not (self._nan_is_unequal and isinstance(value, np.datetime64)):
            return False
        return type_ is not None and isinstance(type_.logical, Date) and bool(value != value.astype("datetime64[D]"))

    def _refuse_group(self, part: FunctionCall, path: tuple[str, ...]) -> None:
        try:
            column = self._schema.column(path)
        except ParquetError:
            return
        if column.path != path and column.max_repetition_level == 0:
            raise untranslatable(part, f"{'.'.join(path)} is a struct; name one of its fields")

    def _type(self, path: tuple[str, ...]) -> Any:
        """Return a column's type, or None if there is no such column. The caller decides whether that is an error."""
        if path not in self._types:         # asked for each value of a list
            try:
                self._types[path] = self._schema.column(path).type
            except ParquetError:
                self._types[path] = None
        return self._types[path]

    def _is_float(self, path: tuple[str, ...]) -> bool:
        type_ = self._type(path)
        return type_ is not None and (type_.physical in (Type.FLOAT, Type.DOUBLE) or isinstance(type_.logical, Float16))


def _chain(part: FunctionCall) -> list[ExpressionPart]:
    """Return the arguments of nested calls that have the same name, from left to right."""
    arguments: list[ExpressionPart] = []
    pending: list[ExpressionPart] = [part]
    while pending:
        inner = pending.pop()
        if isinstance(inner, FunctionCall) and inner.name == part.name:
            pending.extend(reversed(inner.args))
        else:
            arguments.append(inner)
    return arguments


def _unit(type_: Any) -> str | None:
    """Return the unit of a timestamp column in Polars, which reads INT96 as nanoseconds."""
    if isinstance(type_.logical, Timestamp):
        return str(type_.logical.unit)
    return "ns" if type_.physical is Type.INT96 else None


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)
