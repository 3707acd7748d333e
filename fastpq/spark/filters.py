"""Filters of a scan: from Spark's plans, to and from the JSON of an option, and simplified by known values of a file."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import datasource as ds

from fastpq.errors import SchemaError
from fastpq.filters.predicate import And, Or, is_condition, junction

_COMPARISONS: dict[type[ds.Filter], str] = {
    ds.EqualTo: "==",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
    ds.In: "in",
    ds.StringStartsWith: "starts with",
}
_NEGATED = {"==": "!=", "in": "not in", "is null": "is not null", "is not null": "is null"}
_TAGS: tuple[tuple[str, type[Any], Callable[[Any], str], Callable[[str], Any]], ...] = (
    ("timestamp", datetime.datetime, lambda value: value.isoformat(), datetime.datetime.fromisoformat),
    ("date", datetime.date, lambda value: value.isoformat(), datetime.date.fromisoformat),
    ("time", datetime.time, lambda value: value.isoformat(), datetime.time.fromisoformat),
    ("decimal", decimal.Decimal, str, decimal.Decimal),
    ("bytes", bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
)


def from_spark(filters: Iterable[ds.Filter]) -> And | None:
    """Conditions of Spark's pushed filters supported by fastpq, joined by And; None without any. Spark applies all again."""
    conditions = [condition for condition in map(_condition, filters) if condition is not None]
    return And(*conditions) if conditions else None


def _condition(found: ds.Filter) -> tuple[Any, ...] | None:
    negated = isinstance(found, ds.Not)
    inner: Any = found.child if isinstance(found, ds.Not) else found
    if len(getattr(inner, "attribute", ())) != 1:
        return None
    (column,) = inner.attribute
    condition: tuple[Any, ...]
    if isinstance(inner, ds.IsNull | ds.IsNotNull):
        condition = (column, "is null" if isinstance(inner, ds.IsNull) else "is not null")
    elif type(inner) in _COMPARISONS:
        value = list(inner.value) if isinstance(inner, ds.In) else inner.value
        if value is None:
            return None
        condition = (column, _COMPARISONS[type(inner)], value)
    else:
        return None
    if not negated:
        return condition
    return (column, _NEGATED[condition[1]], *condition[2:]) if condition[1] in _NEGATED else None


def tree_of(filters: Any) -> Any:
    """Filters as a tree of And, Or and conditions; a list of conditions becomes And, a list of lists Or of And."""
    if (found := junction(filters)) is not None:
        kind, parts = found
        return kind(*map(tree_of, parts))
    if is_condition(filters) and isinstance(filters[0], str):
        return tuple(filters)
    raise SchemaError(f"filters are conditions (column, op, value), lists, And and Or of them, not {type(filters).__name__}")


def columns_of(tree: Any) -> set[str]:
    """Names of the columns used in a filter tree."""
    if isinstance(tree, And | Or):
        return {name for child in tree.children for name in columns_of(child)}
    return {tree[0]}


def and_together(tree: Any, known: Mapping[str, Any]) -> Any:
    """A filter tree simplified by columns with one known value; True or False where these decide the tree.

    Args:
        tree: And, Or and conditions.
        known: for each column of one known value in a file, the value; None for null and for columns missing in the file.

    Returns:
        True or False if the known values decide the whole tree, else the remaining tree.
    """
    if not isinstance(tree, And | Or):
        return holds(known[tree[0]], *tree[1:]) if tree[0] in known else tree
    decisive = isinstance(tree, Or)
    left = []
    for child in tree.children:
        folded = and_together(child, known)
        if folded is decisive:
            return decisive
        if not isinstance(folded, bool):
            left.append(folded)
    if not left:
        return not decisive
    return type(tree)(*left)


def holds(value: Any, op: str, wanted: Any = None) -> bool:
    """Whether a condition holds for a value, by the rules of fastpq.filters.predicate."""
    op = {"=": "==", "<>": "!=", "isin": "in"}.get(op, op)
    if op in ("is null", "is not null"):
        return (value is None) is (op == "is null")
    if value is None:
        return False
    if op in ("in", "not in"):
        values = list(wanted)
        is_in = _ranked(value) in [None if one is None else _ranked(one) for one in values]
        return is_in if op == "in" else None not in values and not is_in
    if op == "starts with":
        return str(value).startswith(wanted)
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
        return compare[op](_ranked(value), _ranked(wanted))
    except TypeError:
        kinds = f"{type(value).__name__} values of a partition column cannot be compared with {type(wanted).__name__}"
        raise SchemaError(kinds) from None


def _ranked(value: Any) -> tuple[bool, Any]:
    """A key of a value in its order: NaN equals NaN and is the largest number."""
    is_nan = (isinstance(value, float) and math.isnan(value)) or (isinstance(value, decimal.Decimal) and value.is_nan())
    return (True, 0) if is_nan else (False, value)


def encode_filters(filters: Any) -> str:
    """Filters as the JSON text of the option ``filters``."""
    return json.dumps(_encoded(tree_of(filters)))


def decode_filters(text: str) -> Any:
    """Filter tree from the JSON of an option: ``["and", ...]``, ``["or", ...]`` and ``{"column", "op", "value"}``.

    Raises:
        SchemaError: malformed JSON, or JSON of another structure.
    """
    try:
        return _decoded(json.loads(text))
    except (ValueError, KeyError, TypeError, IndexError):
        raise SchemaError("the option filters is JSON as fastpq.spark.filters.encode_filters writes it") from None


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
