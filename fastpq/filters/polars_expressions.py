"""Expressions of Polars, taken apart by their form in JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from fastpq.filters.expressions import Call, Given, Part, Path, refused

_OPERATORS = {
    "And": "and", "Or": "or", "LogicalAnd": "and", "LogicalOr": "or", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=",
    "Gt": ">", "GtEq": ">=", "EqValidity": "== or both null", "NotEqValidity": "!= or one null",
}
_TESTS = {"Not": "not", "IsNull": "is null", "IsNotNull": "is valid", "IsNan": "is nan", "IsNotNan": "is not nan"}
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
            return Given(_value(node))
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _OPERATORS:
            return Call(_OPERATORS[op], (_part(left), _part(right)))
        case {"Function": {"input": inputs, "function": function}}:
            return _function(node, inputs, function)
    raise refused(_shown(node))


def _function(node: Any, inputs: list[Any], function: Any) -> Part:
    match function:
        case {"Boolean": str(name)} if name in _TESTS:
            return Call(_TESTS[name], tuple(map(_part, inputs)))
        case {"Boolean": {"IsIn": {"nulls_equal": nulls_equal}}}:
            column, values = map(_part, inputs)
            return Call("in", (column, values), "match" if nulls_equal else "propagate")
        case {"Boolean": {"IsBetween": {"closed": closed}}}:
            column, low, high = map(_part, inputs)
            first, last = _CLOSED[closed]
            return Call("and", (Call(first, (column, low)), Call(last, (column, high))))
        case {"StringExpr": "StartsWith"}:
            return Call("starts with", tuple(map(_part, inputs)))
        case {"StructExpr": {"FieldByName": name}}:
            struct = _part(inputs[0])
            if isinstance(struct, Path):
                return Path((*struct.names, name))
    raise refused(_shown(node))


def _value(node: Any) -> Any:
    """The value of a literal, moments of all digits as datetime64; a list for a literal of type List."""
    import polars

    found = polars.select(polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")).to_series()
    if isinstance(found.dtype, polars.List | polars.Array):
        inner = found.explode()
        return [] if found.list.len()[0] == 0 else [_of(inner, place) for place in range(len(inner))]
    return _of(found, 0)


def _of(values: Any, place: int) -> Any:
    import polars

    value = values[place]
    if value is None:
        return None
    if isinstance(values.dtype, polars.Datetime) and values.dtype.time_unit == "ns":
        return np.datetime64(values.to_physical()[place], "ns")
    return np.float32(value) if values.dtype == polars.Float32 else value


def _shown(node: Any) -> str:
    text = json.dumps(node)
    return text if len(text) <= 200 else f"{text[:200]}..."
