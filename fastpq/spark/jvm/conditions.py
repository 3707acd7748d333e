"""Conditions of Spark's plans: trees of JSON from Conditions.java as filters of fastpq.

fastpq compares as Spark does (NaN equals NaN and is the largest number, -0.0 equals 0.0, text by its bytes).
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

from fastpq.filters.predicate import And, Or
from fastpq.spark.filters import columns_of

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
    """A condition as a filter.

    Attributes:
        tree: And, Or and conditions (fastpq.filters.predicate).
        columns: names of its columns.
    """

    tree: Any
    columns: frozenset[str]


def known_columns(schema: st.StructType) -> dict[str, st.DataType]:
    """Top-level columns by name that conditions may name."""
    return {part.name: part.dataType for part in schema.fields if _kind(part.dataType) is not None}


def condition_of(tree: Sequence[Any], columns: Mapping[str, st.DataType]) -> PushedCondition | None:
    """A condition as a filter; None where fastpq has no such filter, or a value is beyond Python's types.

    Args:
        tree: the condition, as Conditions.java writes it.
        columns: types of the columns of the dataset, by name.
    """
    found = _tree(tree, columns, False)
    return None if found is None else PushedCondition(found, frozenset(columns_of(found)))


def _tree(tree: Sequence[Any], columns: Mapping[str, st.DataType], negated: bool) -> Any:
    name = tree[0]
    if name == "NOT":
        return _tree(tree[1], columns, not negated)
    if name in ("AND", "OR"):
        parts = [_tree(part, columns, negated) for part in tree[1:]]
        if any(part is None for part in parts):
            return None
        return (And if (name == "AND") is not negated else Or)(*parts)
    path, *values = tree[1:]
    type_ = columns.get(path[0]) if len(path) == 1 else None
    return None if type_ is None else _leaf(name, path[0], values, type_, negated)


def _leaf(name: str, column: str, values: Sequence[Mapping[str, Any]], type_: st.DataType, negated: bool) -> Any:
    """A filter on one column; a condition that is null for a row does not keep the row, negated or not."""
    if name in ("IS_NULL", "IS_NOT_NULL"):
        return (column, "is null" if (name == "IS_NULL") is not negated else "is not null")
    found = [_value(value, type_) for value in values]
    if any(value is _UNKNOWN for value in found):
        return None
    if name == "<=>":
        if found[0] is None:
            return (column, "is not null" if negated else "is null")
        return Or((column, "is null"), (column, "!=", found[0])) if negated else (column, "==", found[0])
    if name == "IN":
        if negated and None in found:
            return None
        return (column, "not in" if negated else "in", [value for value in found if value is not None])
    if name == "STARTS_WITH" and not negated and isinstance(found[0], str):
        return (column, "starts with", found[0])
    if name not in _COMPARISONS or found[0] is None:
        return None
    op = _COMPARISONS[name]
    return (column, _NEGATED[op] if negated else op, found[0])


class _Unknown:
    pass


_UNKNOWN = _Unknown()


def _kind(type_: st.DataType) -> str | None:
    if type_ == st.StringType():        # with collations text compares in other ways
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
    except OverflowError:       # dates outside of the years 1 to 9999
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
