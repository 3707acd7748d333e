"""Scan filters: taken from Spark's plans, converted to and from an option's JSON, and simplified by a file's known values."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastpq.spark.core import And, Or, SchemaError, is_condition, junction
from fastpq.spark.versions import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

_COMPARISONS: dict[type[Filter], str] = {
    EqualTo: "==",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    In: "in",
    StringStartsWith: "starts with",
}
_NEGATED = {"==": "!=", "in": "not in", "is null": "is not null", "is not null": "is null"}
_TAGS: tuple[tuple[str, type[Any], Callable[[Any], str], Callable[[str], Any]], ...] = (
    ("timestamp", datetime.datetime, lambda value: value.isoformat(), datetime.datetime.fromisoformat),
    ("date", datetime.date, lambda value: value.isoformat(), datetime.date.fromisoformat),
    ("time", datetime.time, lambda value: value.isoformat(), datetime.time.fromisoformat),
    ("decimal", decimal.Decimal, str, decimal.Decimal),
    ("bytes", bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
)


def from_spark(filters: Iterable[Filter]) -> And | None:
    """Return the pushed filters that fastpq supports, joined by And. None if it supports none. Spark applies all again."""
    conditions = [condition for condition in map(_condition, filters) if condition is not None]
    return And(*conditions) if conditions else None


def _condition(spark_filter: Filter) -> tuple[Any, ...] | None:
    is_negated = isinstance(spark_filter, Not)
    inner: Any = spark_filter.child if isinstance(spark_filter, Not) else spark_filter
    if len(getattr(inner, "attribute", ())) != 1:
        return None
    (column,) = inner.attribute
    condition: tuple[Any, ...]
    if isinstance(inner, IsNull | IsNotNull):
        condition = (column, "is null" if isinstance(inner, IsNull) else "is not null")
    elif type(inner) in _COMPARISONS:
        value = list(inner.value) if isinstance(inner, In) else inner.value
        if value is None:
            return None
        condition = (column, _COMPARISONS[type(inner)], value)
    else:
        return None
    if not is_negated:
        return condition
    return (column, _NEGATED[condition[1]], *condition[2:]) if condition[1] in _NEGATED else None


def tree_of(filters: Any) -> Any:
    """Return filters as a tree of And, Or and conditions. A list of conditions becomes And. A list of lists becomes Or of And."""
    if (pair := junction(filters)) is not None:
        kind, parts = pair
        return kind(*map(tree_of, parts))
    if is_condition(filters) and isinstance(filters[0], str):
        return tuple(filters)
    raise SchemaError(f"filters are conditions (column, op, value), lists, And and Or of them, not {type(filters).__name__}")


def columns_of(tree: Any) -> set[str]:
    """Return the names of columns that a filter tree uses."""
    if isinstance(tree, And | Or):
        return {name for child in tree.children for name in columns_of(child)}
    return {tree[0]}


def and_together(tree: Any, constants: Mapping[str, Any]) -> Any:
    """Simplify a filter tree by columns that have the same known value in all rows.

    Args:
        tree: And, Or and conditions.
        constants: the value by column name. None for null, and for columns that the file lacks.

    Returns:
        True or False if the known values decide the whole tree. Otherwise the remaining tree.
    """
    if not isinstance(tree, And | Or):
        return holds(constants[tree[0]], *tree[1:]) if tree[0] in constants else tree
    decisive = isinstance(tree, Or)
    remaining_children = []
    for child in tree.children:
        simple_child = and_together(child, constants)
        if simple_child is decisive:
            return decisive
        if not isinstance(simple_child, bool):
            remaining_children.append(simple_child)
    if not remaining_children:
        return not decisive
    return type(tree)(*remaining_children)


def holds(value: Any, op: str, operand: Any = None) -> bool:
    """Whether a condition holds for a value, by the rules in fastpq.filters.predicate."""
    op = {"=": "==", "<>": "!=", "isin": "in"}.get(op, op)
    if op in ("is null", "is not null"):
        return (value is None) is (op == "is null")
    if value is None:
        return False
    if op in ("in", "not in"):
        values = list(operand)
        is_in = _ranked(value) in [None if one is None else _ranked(one) for one in values]
        return is_in if op == "in" else None not in values and not is_in
    if op == "starts with":
        return str(value).startswith(operand)
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "==": lambda a, b: bool(a == b),
        "!=": lambda a, b: bool(a != b),
        "<": lambda a, b: bool(a < b),
        "<=": lambda a, b: bool(a <= b),
        ">": lambda a, b: bool(a > b),
        ">=": lambda a, b: bool(a >= b),
    }
    if op not in compare:
        raise SchemaError(f"there is no operator {op!r}")
    try:
        return compare[op](_ranked(value), _ranked(operand))
    except TypeError:
        kinds = f"{type(value).__name__} values of a partition column cannot be compared with {type(operand).__name__}"
        raise SchemaError(kinds) from None


def _ranked(value: Any) -> tuple[bool, Any]:
    """Return a sort key for a value. NaN equals NaN and is the largest number."""
    is_nan = (isinstance(value, float) and math.isnan(value)) or (isinstance(value, decimal.Decimal) and value.is_nan())
    return (True, 0) if is_nan else (False, value)


def encode_filters(filters: Any) -> str:
    """Return filters as JSON text for the option ``filters``."""
    return json.dumps(_encoded(tree_of(filters)))


def decode_filters(text: str) -> Any:
    """Decode a filter tree from an option's JSON: ``["and", ...]``, ``["or", ...]`` and ``{"column", "op", "value"}``.

    Raises:
        SchemaError: the JSON is malformed, or has another structure.
    """
    try:
        return _decoded(json.loads(text))
    except (ValueError, KeyError, TypeError, IndexError):
        raise SchemaError("the option filters is JSON as fastpq.spark.scan.filter_trees.encode_filters writes it") from None


def _encoded(tree: Any) -> Any:
    if isinstance(tree, And | Or):
        return ["and" if isinstance(tree, And) else "or", *map(_encoded, tree.children)]
    entry = {"column": tree[0], "op": tree[1]}
    if len(tree) == 3:
        entry["value"] = _encoded_value(tree[2])
    return entry


def _decoded(entry: Any) -> Any:
    if isinstance(entry, list):
        kinds: dict[str, type[And] | type[Or]] = {"and": And, "or": Or}
        return kinds[entry[0]](*map(_decoded, entry[1:]))
    value = (_decoded_value(entry["value"]),) if "value" in entry else ()
    return (entry["column"], entry["op"], *value)


def _encoded_value(value: Any) -> Any:
    if isinstance(value, list | tuple | set | frozenset):
        return [_encoded_value(one) for one in value]
    for tag, kind, encode, _ in _TAGS:
        if isinstance(value, kind):
            return {tag: encode(value)}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise SchemaError(f"a {type(value).__name__} in filters cannot be sent to executors; give a Python value")


def _decoded_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded_value(one) for one in value]
    if isinstance(value, dict):
        ((tag, text),) = value.items()
        return next(decode for name, _, _, decode in _TAGS if name == tag)(text)
    return value
