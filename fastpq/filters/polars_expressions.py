"""Expressions of Polars, taken apart by their form in JSON."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import numpy as np

from fastpq.errors import UnsupportedError
from fastpq.filters.expressions import Call, Given, Part, Path, refused

_OPERATORS = {
    "And": "and", "Or": "or", "LogicalAnd": "and", "LogicalOr": "or", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=",
    "Gt": ">", "GtEq": ">=", "EqValidity": "== or both null", "NotEqValidity": "!= or one null",
}
_TESTS = {"Not": "not", "IsNull": "is null", "IsNotNull": "is valid", "IsNan": "is nan", "IsNotNan": "is not nan"}
_TYPED = re.compile(r"\bdyn (int|float|str): ")       # types of literals, as Polars shows them
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


def part_of_polars(expression: Any) -> Part:
    """The parts of an expression.

    Raises:
        UnsupportedError: a part without translation.
    """
    return _part(json.loads(expression.meta.serialize(format="json")))


def _part(node: Any) -> Part:
    match node:
        case {"Literal": {"Dyn": {"Float": None}} | {"Scalar": {"Float64": None} | {"Float32": None}}}:
            reason = "NaN and infinities are lost in Polars' JSON, but for lists of is_in(); is_nan() finds NaN"
            raise refused(_shown(node), reason)
        case {"Column": str(name)}:
            return Path((name,))
        case {"Literal": _}:
            return _literal(node)
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _OPERATORS:
            return Call(_OPERATORS[op], (_part(left), _part(right)))
        case {"Function": {"input": inputs, "function": function}}:
            return _function(node, inputs, function)
    raise _refused(node)


def _function(node: Any, inputs: list[Any], function: Any) -> Part:
    match function:
        case {"Boolean": str(name)} if name in _TESTS:
            return Call(_TESTS[name], tuple(map(_part, inputs)))
        case {"Boolean": {"IsIn": {"nulls_equal": nulls_equal}}}:
            column, values = _part(inputs[0]), _set(inputs[1])
            return Call("in", (column, values), "match" if nulls_equal else "propagate")
        case {"Boolean": {"IsBetween": {"closed": closed}}}:
            column, low, high = map(_part, inputs)
            if Given(None) in (low, high):
                raise refused("is_between", "a bound None; leave the comparison out, or keep no row")
            first, last = _CLOSED[closed]
            return Call("and", (Call(first, (column, low)), Call(last, (column, high))))
        case {"StringExpr": "StartsWith"}:
            return Call("starts with", tuple(map(_part, inputs)))
        case {"StructExpr": {"FieldByName": name}}:
            struct = _part(inputs[0])
            if isinstance(struct, Path):
                return Path((*struct.names, name))
    raise _refused(node)


def _literal(node: Any) -> Given:
    """The value of a literal; a list for a literal of type List or Array."""
    import polars

    if "Series" in node["Literal"]:
        raise refused("Series", "outside of is_in(), give the value itself, not a Series of one")
    found = _series(node)
    if found.dtype == polars.Enum:
        raise refused(_shown(node), "give the text itself, not a literal of an Enum")
    if not isinstance(found.dtype, polars.List | polars.Array):
        return Given(_values(found, node)[0], _aware(found))
    if found[0] is None:
        raise refused(_shown(node), "null is no list of values")
    return Given(_values(found[0], node), _aware(found[0]))


def _set(node: Any) -> Part:
    """The values of is_in(): the elements of a Series, or those of its only list."""
    import polars

    match node:
        case {"Literal": {"Series": _}}:
            found = _series(node)
            if isinstance(found.dtype, polars.List | polars.Array):
                if len(found) != 1 or found[0] is None:
                    raise refused("is_in", "its Series has a list for each row; give one list of values")
                found = found[0]
            return Given(_values(found, node), _aware(found))
    return _part(node)


def _series(node: Any) -> Any:
    import polars

    try:
        return polars.select(polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")).to_series()
    except (polars.exceptions.PolarsError, ValueError, OverflowError) as error:
        raise refused(_shown(node), f"Polars does not evaluate it: {error}") from error


def _aware(values: Any) -> bool | None:
    import polars

    return values.dtype.time_zone is not None if isinstance(values.dtype, polars.Datetime) else None


def _values(values: Any, node: Any) -> list[Any]:
    """Values as Python objects, moments as datetime64 and times as timedelta64, with all their digits."""
    import polars

    dtype = values.dtype
    if isinstance(dtype, polars.Datetime):
        return [value if value is None else np.datetime64(value, dtype.time_unit) for value in values.to_physical().to_list()]
    if dtype == polars.Date:
        return [value if value is None else np.datetime64(value, "D") for value in values.to_physical().to_list()]
    if dtype == polars.Time:
        return [value if value is None else np.timedelta64(value, "ns") for value in values.to_physical().to_list()]
    if isinstance(dtype, polars.Duration):
        raise refused(_shown(node), "Polars rounds durations to the coarser unit; give (column, op, timedelta)")
    if dtype == polars.Float32:
        return [value if value is None else np.float32(value) for value in values.to_list()]
    try:
        return list(values.to_list())
    except (polars.exceptions.PolarsError, ValueError, OverflowError) as error:
        raise refused(_shown(node), f"a value that is no object of Python: {error}") from error


def _shown(node: Any) -> str:
    """A part as Polars shows it."""
    import polars

    try:
        text = str(polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")) if _kind(node) != _OF_PYTHON else ""
    except (polars.exceptions.PolarsError, ValueError, OverflowError):
        text = ""
    return _TYPED.sub("", text.removeprefix("[").removesuffix("]") if text.startswith("[(") else text) or _kind(node)


def _kind(node: Any) -> str:
    """The name of a part in Polars' JSON."""
    return str(node if isinstance(node, str) else next(iter(node), "expression"))


def _refused(node: Any) -> UnsupportedError:
    """The error of a part that is no condition on a column."""
    return refused(_shown(node), _REASONS.get(_kind(node), _OTHERWISE))
