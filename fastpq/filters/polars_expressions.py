"""Takes Polars expressions apart, by their JSON form."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fastpq.errors import UnsupportedError
from fastpq.filters.expression_tree import UNTRANSLATABLE, ColumnPath, ExpressionPart, FunctionCall, LiteralValue, untranslatable

_OPERATORS = {
    "And": "and", "Or": "or", "LogicalAnd": "and", "LogicalOr": "or", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=",
    "Gt": ">", "GtEq": ">=", "EqValidity": "== or both null", "NotEqValidity": "!= or one null",
}
_TESTS = {"Not": "not", "IsNull": "is null", "IsNotNull": "is valid", "IsNan": "is nan", "IsNotNan": "is not nan"}
_TYPED = re.compile(r"\bdyn (int|float|str): ")       # a literal's type, as Polars shows it before the value
_OF_PYTHON = "AnonymousFunction"
_OTHERWISE = "a condition compares a column, as it is, with a value; filter other conditions after the read"
_OTHER_ROWS = "its value depends on other rows; filter after the read"
_REASONS = {
    "Agg": _OTHER_ROWS, "Explode": _OTHER_ROWS, "Filter": _OTHER_ROWS, "Gather": _OTHER_ROWS, "Len": _OTHER_ROWS,
    "Over": _OTHER_ROWS, "Rolling": _OTHER_ROWS, "Slice": _OTHER_ROWS, "Sort": _OTHER_ROWS, "SortBy": _OTHER_ROWS,
    "Alias": "a condition needs no new name; leave alias() out",
    "Cast": "give the value in the type of the column",
    "Selector": "name one column by pl.col(name)",
    "Ternary": "write the cases with & and |",
    _OF_PYTHON: "a function of Python is called; filter after the read",
}
_CLOSED = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}


def part_of_polars(expression: Any) -> ExpressionPart:
    """Return an expression as a tree of parts.

    Raises:
        UnsupportedError: a part has no translation.
    """
    return _part(json.loads(expression.meta.serialize(format="json")))


def parts_of_polars_conjunction(expression: Any) -> Iterator[ExpressionPart]:
    """Yield the parts that an expression joins by ``&``. A part without a translation is a call of UNTRANSLATABLE."""
    nodes = [json.loads(expression.meta.serialize(format="json"))]
    while nodes:
        match nodes.pop():
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                nodes += [right, left]
            case node:
                try:
                    yield _part(node)
                except UnsupportedError:
                    yield FunctionCall(UNTRANSLATABLE, ())


def _part(node: Any) -> ExpressionPart:
    match node:
        case {"Literal": {"Dyn": {"Float": None}} | {"Scalar": {"Float64": None} | {"Float32": None}}}:
            reason = "NaN and infinities are lost in Polars' JSON, but for lists of is_in(); is_nan() finds NaN"
            raise untranslatable(_shown(node), reason)
        case {"Column": str(name)}:
            return ColumnPath((name,))
        case {"Literal": _}:
            return _literal(node)
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _OPERATORS:
            return FunctionCall(_OPERATORS[op], (_part(left), _part(right)))
        case {"Function": {"input": inputs, "function": function}}:
            return _function(node, inputs, function)
    raise _refused(node)


def _function(node: Any, inputs: list[Any], function: Any) -> ExpressionPart:
    match function:
        case {"Boolean": str(name)} if name in _TESTS:
            return FunctionCall(_TESTS[name], tuple(map(_part, inputs)))
        case {"Boolean": {"IsIn": {"nulls_equal": nulls_equal}}}:
            column, values = _part(inputs[0]), _set(inputs[1])
            return FunctionCall("in", (column, values), "match" if nulls_equal else "propagate")
        case {"Boolean": {"IsBetween": {"closed": closed}}}:
            column, low, high = map(_part, inputs)
            if LiteralValue(None) in (low, high):
                raise untranslatable("is_between", "a bound None; leave the comparison out, or keep no row")
            first, last = _CLOSED[closed]
            return FunctionCall("and", (FunctionCall(first, (column, low)), FunctionCall(last, (column, high))))
        case {"StringExpr": "StartsWith"}:
            return FunctionCall("starts with", tuple(map(_part, inputs)))
        case {"StructExpr": {"FieldByName": name}}:
            struct = _part(inputs[0])
            if isinstance(struct, ColumnPath):
                return ColumnPath((*struct.names, name))
    raise _refused(node)


def _literal(node: Any) -> LiteralValue:
    """Return a literal's value. A literal with the type List or Array gives a list."""
    import polars

    if "Series" in node["Literal"]:
        raise untranslatable("Series", "outside of is_in(), give the value itself, not a Series of one")
    series = _series(node)
    if series.dtype == polars.Enum:
        raise untranslatable(_shown(node), "give the text itself, not a literal of an Enum")
    if not isinstance(series.dtype, polars.List | polars.Array):
        return LiteralValue(_values(series, node)[0], _aware(series))
    if series[0] is None:
        raise untranslatable(_shown(node), "null is not a list of values")
    return LiteralValue(_values(series[0], node), _aware(series[0]))


def _set(node: Any) -> ExpressionPart:
    """Return the values that is_in() looks for: a Series' elements, or the elements of its only list."""
    import polars

    match node:
        case {"Literal": {"Series": _}}:
            series = _series(node)
            if isinstance(series.dtype, polars.List | polars.Array):
                if len(series) != 1 or series[0] is None:
                    raise untranslatable("is_in", "its Series has a list for each row; give one list of values")
                series = series[0]
            return LiteralValue(_values(series, node), _aware(series))
    return _part(node)


def _series(node: Any) -> Any:
    import polars

    try:
        return polars.select(polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")).to_series()
    except (polars.exceptions.PolarsError, ValueError, OverflowError) as error:
        raise untranslatable(_shown(node), f"Polars does not evaluate it: {error}") from error


def _aware(values: Any) -> bool | None:
    import polars

    return values.dtype.time_zone is not None if isinstance(values.dtype, polars.Datetime) else None


def _values(values: Any, node: Any) -> list[Any]:
    """Convert values to Python objects, moments to datetime64 and times to timedelta64, with all their digits."""
    import polars

    dtype = values.dtype
    if isinstance(dtype, polars.Duration):
        raise untranslatable(_shown(node), "Polars rounds durations to the coarser unit; give (column, op, timedelta)")
    constructors: dict[Any, Callable[[Any], Any]] = {
        polars.Datetime: lambda value: np.datetime64(value, dtype.time_unit),
        polars.Date: lambda value: np.datetime64(value, "D"),
        polars.Time: lambda value: np.timedelta64(value, "ns"),
        polars.Float32: np.float32,
    }
    if (constructor := constructors.get(dtype.base_type())) is not None:
        return [value if value is None else constructor(value) for value in values.to_physical().to_list()]
    try:
        return list(values.to_list())
    except (polars.exceptions.PolarsError, ValueError, OverflowError) as error:
        raise untranslatable(_shown(node), f"no Python object can hold the value: {error}") from error


def _shown(node: Any) -> str:
    """Return a part as text, as Polars shows it."""
    import polars

    try:
        text = str(polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")) if _kind(node) != _OF_PYTHON else ""
    except (polars.exceptions.PolarsError, ValueError, OverflowError):
        text = ""
    return _TYPED.sub("", text.removeprefix("[").removesuffix("]") if text.startswith("[(") else text) or _kind(node)


def _kind(node: Any) -> str:
    """Return a part's name in Polars' JSON."""
    return str(node if isinstance(node, str) else next(iter(node), "expression"))


def _refused(node: Any) -> UnsupportedError:
    """Return the error for a part that is not a condition on a column."""
    return untranslatable(_shown(node), _REASONS.get(_kind(node), _OTHERWISE))
