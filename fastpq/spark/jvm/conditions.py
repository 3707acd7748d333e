"""Translate conditions from Spark's plan, which FilterTrees.java sends as JSON trees, into fastpq filters.

fastpq compares as Spark does: NaN equals NaN and is the largest number, -0.0 equals 0.0, and text is compared by its bytes.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from pyspark.sql import types as st

from fastpq.spark.core import And, Or
from fastpq.spark.scan.filter_trees import columns_of

_EPOCH = datetime.datetime(1970, 1, 1)
_KINDS: tuple[tuple[type[st.DataType], str], ...] = (
    (st.BooleanType, "boolean"), (st.ByteType, "integer"), (st.ShortType, "integer"), (st.IntegerType, "integer"),
    (st.LongType, "integer"), (st.FloatType, "float"), (st.DoubleType, "float"), (st.DecimalType, "decimal"),
    (st.BinaryType, "bytes"), (st.DateType, "date"), (st.TimestampType, "timestamp"), (st.TimestampNTZType, "local timestamp"),
)
_COMPARISONS = {"=": "==", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<>": "!="}
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "in": "not in"}


@dataclass(frozen=True)
class PushedCondition:
    """A condition from Spark's plan, as a fastpq filter.

    Attributes:
        tree: And, Or and conditions (fastpq.filters.predicate).
        columns: names of the columns that the condition uses.
    """

    tree: Any
    columns: frozenset[str]


def known_columns(schema: st.StructType) -> dict[str, st.DataType]:
    """Return the names and types of the top-level columns that conditions may use."""
    return {part.name: part.dataType for part in schema.fields if _kind(part.dataType) is not None}


def condition_of(tree: Sequence[Any], columns: Mapping[str, st.DataType]) -> PushedCondition | None:
    """Translate a condition into a filter.

    Return None if fastpq has no such filter, or if Python's types cannot hold one of the values.

    Args:
        tree: the condition, as FilterTrees.java writes it.
        columns: types of the dataset's columns, by name.
    """
    condition = _tree(tree, columns, False)
    return None if condition is None else PushedCondition(condition, frozenset(columns_of(condition)))


def _tree(tree: Sequence[Any], columns: Mapping[str, st.DataType], is_negated: bool) -> Any:
    name = tree[0]
    if name == "NOT":
        return _tree(tree[1], columns, not is_negated)
    if name in ("AND", "OR"):
        parts = [_tree(part, columns, is_negated) for part in tree[1:]]
        if any(part is None for part in parts):
            return None
        return (And if (name == "AND") is not is_negated else Or)(*parts)
    path, *values = tree[1:]
    type_ = columns.get(path[0]) if len(path) == 1 else None
    return None if type_ is None else _leaf(name, path[0], values, type_, is_negated)


def _leaf(name: str, column: str, values: Sequence[Mapping[str, Any]], type_: st.DataType, is_negated: bool) -> Any:
    """Translate a condition on one column.

    A row for which the condition is null is left out, whether the condition is negated or not.
    """
    if name in ("IS_NULL", "IS_NOT_NULL"):
        return (column, "is null" if (name == "IS_NULL") is not is_negated else "is not null")
    operands = [_value(value, type_) for value in values]
    if any(value is _UNKNOWN for value in operands):
        return None
    if name == "<=>":
        if operands[0] is None:
            return (column, "is not null" if is_negated else "is null")
        return Or((column, "is null"), (column, "!=", operands[0])) if is_negated else (column, "==", operands[0])
    if name == "IN":
        if is_negated and None in operands:
            return None
        return (column, "not in" if is_negated else "in", [value for value in operands if value is not None])
    if name == "STARTS_WITH" and not is_negated and isinstance(operands[0], str):
        return (column, "starts with", operands[0])
    if name not in _COMPARISONS or operands[0] is None:
        return None
    op = _COMPARISONS[name]
    return (column, _NEGATED[op] if is_negated else op, operands[0])


class _Unknown:
    pass


_UNKNOWN = _Unknown()


def _kind(type_: st.DataType) -> str | None:
    if type_ == st.StringType():        # text with a collation is not compared by its bytes
        return "text"
    return next((kind for class_, kind in _KINDS if isinstance(type_, class_)), None)


def _value(value: Mapping[str, Any], type_: st.DataType) -> Any:
    ((kind, text),) = value.items()
    if kind == "null":
        return None
    if kind != _kind(type_):
        return _UNKNOWN
    if isinstance(type_, st.FloatType):
        return float(np.float32(text))
    try:
        return _PARSERS[kind](text)
    except OverflowError:       # a date before year 1 or after year 9999
        return _UNKNOWN


_PARSERS: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: text == "true",
    "integer": int,
    "float": float,
    "decimal": Decimal,
    "text": str,
    "bytes": base64.b64decode,
    "date": lambda text: (_EPOCH + datetime.timedelta(days=int(text))).date(),
    "timestamp": lambda text: (_EPOCH + datetime.timedelta(microseconds=int(text))).replace(tzinfo=datetime.UTC),
    "local timestamp": lambda text: _EPOCH + datetime.timedelta(microseconds=int(text)),
}
