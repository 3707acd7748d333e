"""Expressions of pyarrow.compute and Polars as filters, where the translation is exact.

A row is kept where the expression is true: comparisons of null are null, ``and`` and ``or`` follow Kleene's logic, and ``not`` of
null is null. So each part has two filters: for the rows where the part is true, and for the rows where it is false; ``not``
exchanges the two. In pyarrow NaN equals nothing and has no order; in Polars NaN equals NaN and is the largest number, as in
fastpq's filters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastpq.errors import ParquetError, UnsupportedError
from fastpq.filters.predicate import And, Or
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import Float16, Type

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="} | {op: op for op in ("==", "!=", "== or both null", "!= or one null")}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_EXACT = 1 << 53        # integers below are floats without loss, and no other integer is rounded to them


@dataclass(frozen=True, slots=True)
class Path:
    """A column, or a field of a struct."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class Given:
    """A value, None for null; or the list of values of ``in``."""

    value: Any

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of other parts.

    Attributes:
        name: ``and``, ``or``, ``not``, a comparison, a test, or the name of a function without translation.
        args: its arguments.
        option: of ``in``, the treatment of nulls: ``"match"``, ``"skip"`` or ``"propagate"``.
    """

    name: str
    args: tuple[Part, ...]
    option: str = ""

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})"


Part = Path | Given | Call


def is_expression(filters: Any) -> bool:
    """Whether filters are an expression of pyarrow.compute or Polars."""
    module, name = type(filters).__module__.partition(".")[0], type(filters).__name__
    return (module, name) in (("pyarrow", "Expression"), ("polars", "Expr"))


def filter_of(expression: Any, schema: ParquetSchema) -> Any:
    """The filter of an expression: conditions, And and Or.

    Args:
        expression: of pyarrow.compute or Polars.
        schema: schema of the file or the dataset; types decide about NaN.

    Raises:
        UnsupportedError: a part without an exact translation.
    """
    of_arrow = type(expression).__module__.partition(".")[0] == "pyarrow"
    if of_arrow:
        from fastpq.filters.arrow_expressions import part_of_arrow as part_of
    else:
        from fastpq.filters.polars_expressions import part_of_polars as part_of
    return _Translation(schema, of_arrow).of(part_of(expression), True)


def refused(part: Any, reason: str = "") -> UnsupportedError:
    """The error of a part without an exact translation."""
    return UnsupportedError(f"the part {part} of the filter has no exact translation{reason and ': '}{reason}")


class _Translation:
    def __init__(self, schema: ParquetSchema, nan_is_unequal: bool) -> None:
        self._schema = schema
        self._nan_is_unequal = nan_is_unequal

    def of(self, part: Part, wanted: bool) -> Any:
        """The filter of the rows where a part is true, or where it is false."""
        if isinstance(part, Path):
            return (part.names, "==", wanted)       # a boolean column
        if not isinstance(part, Call):
            raise refused(part, "a condition names a column")
        match part.name, part.args:
            case "not", (inner,):
                return self.of(inner, not wanted)
            case "and" | "or", _:
                join = And if (part.name == "and") is wanted else Or
                return join(*(self.of(inner, wanted) for inner in part.args))
            case _, (Path() as column, *rest):
                return self._condition(part, column, rest, wanted)
            case _, (Given() as value, Path() as column) if part.name in _FLIPPED:
                return self.of(Call(_FLIPPED[part.name], (column, value)), wanted)
        raise refused(part)

    def _condition(self, part: Call, column: Path, rest: list[Part], wanted: bool) -> Any:
        path = column.names
        match part.name, rest:
            case "is null" | "is valid", []:
                return (path, "is null" if (part.name == "is null") is wanted else "is not null")
            case "is nan" | "is not nan", [] if self._is_float(path) or self._type(path) is None:
                return (path, "==" if (part.name == "is nan") is wanted else "!=", math.nan)
            case "is null or nan", []:
                return self._is_null_or_nan(path, wanted)
            case "in", [Given(values)]:
                return self._in(part, path, values, wanted)
            case "starts with", [Given(str() | bytes() as prefix)] if wanted:
                return (path, "starts with", prefix)
            case name, [Given(value)] if name in _FLIPPED:
                return self._comparison(part, path, name, value, wanted)
        raise refused(part)

    def _comparison(self, part: Call, path: tuple[str, ...], name: str, value: Any, wanted: bool) -> Any:
        self._check(part, path, value)
        if name.endswith("null"):
            wanted = wanted is (name == "== or both null")
            if value is None:
                return (path, "is null" if wanted else "is not null")
            return (path, "==", value) if wanted else Or((path, "!=", value), (path, "is null"))
        if value is None:
            return (path, "in", [])     # null for every row
        op = name if wanted else _OPPOSITE[name]
        if not (self._nan_is_unequal and self._is_float(path)):
            return (path, op, value)
        # NaN compares false, but for !=, which is true
        found = (path, op, value)
        is_true_for_nan = (name == "!=") is wanted
        if _is_nan(value):
            return (path, "is not null") if is_true_for_nan else (path, "in", [])
        return Or(found, (path, "==", math.nan)) if is_true_for_nan else And(found, (path, "!=", math.nan))

    def _in(self, part: Call, path: tuple[str, ...], values: list[Any], wanted: bool) -> Any:
        known = [value for value in values if value is not None]
        for value in known:
            self._check(part, path, value)
            if self._nan_is_unequal and self._is_float(path) and (_is_nan(value) or value == 0):
                raise refused(part, "pyarrow compares NaN and zeros of either sign by their bits")
        found = (path, "in" if wanted else "not in", known)
        if part.option == "propagate":
            return found
        null_is_in = part.option == "match" and len(known) < len(values)
        return Or(found, (path, "is null")) if null_is_in is wanted else found

    def _is_null_or_nan(self, path: tuple[str, ...], wanted: bool) -> Any:
        null = (path, "is null" if wanted else "is not null")
        if not self._is_float(path):
            return null
        return (Or if wanted else And)(null, (path, "==" if wanted else "!=", math.nan))

    def _check(self, part: Call, path: tuple[str, ...], value: Any) -> None:
        """Refuse values that the other library and fastpq round in different ways."""
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
            return
        type_ = self._type(path)
        size: Any = abs(value)
        if self._is_float(path) and type_.dtype is not None:
            exact = not (isinstance(value, int) and size > _EXACT)
            with np.errstate(over="ignore"):
                exact = exact and (_is_nan(value) or float(type_.dtype.type(value)) == value)
            if not exact:
                raise refused(part, f"the column rounds {value!r}; give a value of its precision")
        elif isinstance(value, float | np.floating) and type_ is not None and not size < _EXACT:
            raise refused(part, f"{value!r} is no number of the column's kind")

    def _type(self, path: tuple[str, ...]) -> Any:
        """The type of a column; None for a column that is not there, which the caller refuses or passes over."""
        try:
            return self._schema.column(path).type
        except ParquetError:
            return None

    def _is_float(self, path: tuple[str, ...]) -> bool:
        type_ = self._type(path)
        return type_ is not None and (type_.physical in (Type.FLOAT, Type.DOUBLE) or isinstance(type_.logical, Float16))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)
