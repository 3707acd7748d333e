"""Aggregates in Spark's plan as the jar sends them, and the types of their expressions.

An expression is a tree: ``["column", name]``, ``["decimal", text, precision, scale]``, ``["double", text]``, and ``["+", tree,
tree]``, also of ``-`` and ``*``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import types as st

from fastpq.spark.handover import MOST_DIGITS
from fastpq.spark.types import MAX_SPARK_PRECISION

ARITHMETIC = ("+", "-", "*")
_NUMBERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.FloatType, st.DoubleType)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a dataset.

    Attributes:
        kind: ``count``, ``sum``, ``min`` or ``max``.
        tree: what is aggregated; None counts rows.
        type: Spark type of the result, and of a part of it. Spark adds parts of a sum in the type of what is summed.
        has_parts: whether tasks can compute parts.
    """

    kind: str
    tree: Any
    type: st.DataType
    has_parts: bool

    @property
    def column(self) -> str | None:
        """The name of the column that is aggregated; None for other expressions."""
        return self.tree[1] if self.tree is not None and self.tree[0] == "column" else None


def aggregate_of(asked: Sequence[Any], columns: Mapping[str, st.DataType], averages: Sequence[Any] = ()) -> Aggregate | None:
    """An aggregate as the jar sends it: its kind and a tree; None where a column or an expression is unknown.

    Args:
        asked: ``["count"]``, ``["sum", tree]`` and alike.
        columns: types of the dataset's columns.
        averages: trees of which Spark wants averages, too. It averages 64-bit integers as doubles, for their sum may overflow.
    """
    kind, *trees = asked
    if not trees:
        return Aggregate(kind, None, st.LongType(), True)
    (tree,) = trees
    is_column = tree[0] == "column" and tree[1] in columns
    if kind == "count":
        return Aggregate(kind, tree, st.LongType(), True) if is_column else None
    type_ = type_of(tree, columns)
    if kind == "sum":
        # Spark adds floats as doubles: a part of a sum would be rounded to a float
        is_other = isinstance(type_, st.FloatType) or (tree in averages and isinstance(type_, st.LongType))
        return None if type_ is None or is_other else Aggregate(kind, tree, type_, True)
    return Aggregate(kind, tree, columns[tree[1]], type_ is not None) if is_column else None


def type_of(tree: Any, columns: Mapping[str, st.DataType]) -> st.DataType | None:
    """The Spark type of an expression of numbers; None where tasks cannot compute it as Spark does.

    Integers are not computed with: Spark raises an error where one overflows.
    """
    match tree:
        case ["column", name]:
            type_ = columns.get(name)
            is_short = isinstance(type_, st.DecimalType) and type_.precision <= MOST_DIGITS
            return type_ if is_short or isinstance(type_, _NUMBERS) else None
        case ["decimal", _, precision, scale]:
            return st.DecimalType(precision, scale) if precision <= MOST_DIGITS else None
        case ["double", _]:
            return st.DoubleType()
        case [name, one, other] if name in ARITHMETIC:
            return _result(name, type_of(one, columns), type_of(other, columns))
    return None


def _result(name: str, one: st.DataType | None, other: st.DataType | None) -> st.DataType | None:
    """The type of a sum, difference or product; None where Spark would round it."""
    if isinstance(one, st.DoubleType) and isinstance(other, st.DoubleType):
        return one
    if not isinstance(one, st.DecimalType) or not isinstance(other, st.DecimalType):
        return None
    if name == "*":
        precision, scale = one.precision + other.precision + 1, one.scale + other.scale
    else:
        scale = max(one.scale, other.scale)
        precision = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
    return st.DecimalType(precision, scale) if precision <= MAX_SPARK_PRECISION else None


def columns_in(tree: Any) -> set[str]:
    """Names of the columns in an expression."""
    if tree is None or tree[0] in ("decimal", "double"):
        return set()
    return {tree[1]} if tree[0] == "column" else columns_in(tree[1]) | columns_in(tree[2])


def largest(tree: Any, type_of_column: Mapping[str, st.DataType], bounds: Mapping[str, int]) -> int:
    """A bound of the absolute digits of an expression of decimals or integers.

    Args:
        tree: the expression.
        type_of_column: types of its columns.
        bounds: largest absolute digits of the columns.
    """
    match tree:
        case ["column", name]:
            return bounds[name]
        case ["decimal", text, _, scale]:
            return abs(int(Decimal(text).scaleb(scale)))
    name, *trees = tree
    one, other = (largest(part, type_of_column, bounds) for part in trees)
    if name == "*":
        return one * other
    scales = [_scale(type_of(part, type_of_column)) for part in trees]
    shifts = [int(10 ** (max(scales) - scale)) for scale in scales]
    return one * shifts[0] + other * shifts[1]


def _scale(type_: st.DataType | None) -> int:
    return type_.scale if isinstance(type_, st.DecimalType) else 0
