"""Expressions of pyarrow.compute and Polars as filters, where the translation is exact.

A row is kept where the expression is true: comparisons of null are null, ``and`` and ``or`` follow Kleene's logic, and ``not`` of
null is null. So each part has two filters: for the rows where the part is true, and for the rows where it is false; ``not``
exchanges the two. In pyarrow NaN equals nothing and has no order; in Polars NaN equals NaN and is the largest number, as in
fastpq's filters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from fastpq.errors import ParquetError, UnsupportedError
from fastpq.filters.predicate import And, Or
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import Date, Float16, Timestamp, Type

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="} | {op: op for op in ("==", "!=", "== or both null", "!= or one null")}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_LONGEST = 200          # characters of a part in a message
_UNITS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT = 1 << 53        # integers below are floats without loss, and no other integer is rounded to them


@dataclass(frozen=True, slots=True)
class Path:
    """A column, or a field of a struct."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class Given:
    """A value, None for null; or the list of values of ``in``.

    Attributes:
        value: the value or the list.
        aware: of moments, whether they have a time zone; None for other values.
    """

    value: Any
    aware: bool | None = None

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
        if len(self.args) == 2 and self.name in _FLIPPED:
            return f"{self.args[0]} {self.name} {self.args[1]}"
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
    try:
        return _Translation(schema, of_arrow).of(part_of(expression), True)
    except RecursionError:
        reason = "nested too deeply; give isin() or is_in() all values at once, or fastpq.Or or fastpq.And all conditions"
        raise UnsupportedError(f"a filter {reason}") from None


def refused(part: Any, reason: str = "") -> UnsupportedError:
    """The error of a part without an exact translation."""
    text = str(part)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return UnsupportedError(f"the part {shown} of the filter has no exact translation{reason and ': '}{reason}")


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
                return join(*(self.of(inner, wanted) for inner in _chain(part)))
            case _, (Path(), Path()) if part.name in _FLIPPED:
                raise refused(part, "two columns are compared, and a condition compares a column with a value")
            case _, (Path() as column, *rest):
                return self._condition(part, column, rest, wanted)
            case _, (Given() as value, Path() as column) if part.name in _FLIPPED:
                return self.of(Call(_FLIPPED[part.name], (column, value)), wanted)
        raise refused(part)

    def _condition(self, part: Call, column: Path, rest: list[Part], wanted: bool) -> Any:
        path = column.names
        self._refuse_group(part, path)
        match part.name, rest:
            case "is null" | "is valid", []:
                return (path, "is null" if (part.name == "is null") is wanted else "is not null")
            case "is nan" | "is not nan", [] if self._is_float(path) or self._type(path) is None:
                return (path, "==" if (part.name == "is nan") is wanted else "!=", math.nan)
            case "is null or nan", []:
                return self._is_null_or_nan(path, wanted)
            case "in", [Given(list(values), aware)]:
                self._check_zone(part, path, aware)
                return self._in(part, path, values, wanted)
            case "starts with", [Given(str() | bytes() as prefix)] if wanted:
                return (path, "starts with", prefix)
            case name, [Given(value, aware)] if name in _FLIPPED and not isinstance(value, list):
                self._check_zone(part, path, aware)
                return self._comparison(part, path, name, value, wanted)
        raise refused(part)

    def _comparison(self, part: Call, path: tuple[str, ...], name: str, value: Any, wanted: bool) -> Any:
        self._check(part, path, value)
        if name.endswith("null"):
            wanted = wanted is (name == "== or both null")
            if value is None:
                return (path, "is null" if wanted else "is not null")
            found = self._ordered(path, "==" if wanted else "!=", value)
            return found if wanted else Or(found, (path, "is null"))
        if value is None:
            return (path, "in", [])     # null for every row
        op = name if wanted else _OPPOSITE[name]
        if not (self._nan_is_unequal and self._is_float(path)):
            return self._ordered(path, op, value)
        # NaN compares false, but for !=, which is true
        found = (path, op, value)
        is_true_for_nan = (name == "!=") is wanted
        if _is_nan(value):
            return (path, "is not null") if is_true_for_nan else (path, "in", [])
        return Or(found, (path, "==", math.nan)) if is_true_for_nan else And(found, (path, "!=", math.nan))

    def _ordered(self, path: tuple[str, ...], op: str, value: Any) -> Any:
        """A comparison; Polars rounds two moments down to the coarser of their units, pyarrow compares them exactly."""
        type_ = self._type(path)
        if self._nan_is_unequal or type_ is None or not isinstance(value, np.datetime64):
            return (path, op, value)
        unit, own = np.datetime_data(value.dtype)[0], _unit(type_)
        if unit == "D" or own is None:
            return (path, op, value)
        if _UNITS[own] <= _UNITS[unit]:
            return (path, op, value.astype(f"datetime64[{own}]"))       # rounded down
        first, behind = (path, "<", value), (path, ">=", value + 1)
        match op:
            case "<":
                return first
            case ">=":
                return (path, ">=", value)
            case ">":
                return behind
            case "<=":
                return (path, "<", value + 1)
            case "==":
                return And((path, ">=", value), (path, "<", value + 1))
        return Or(first, behind)

    def _in(self, part: Call, path: tuple[str, ...], values: list[Any], wanted: bool) -> Any:
        known = [value for value in values if value is not None]
        for value in known:
            self._check(part, path, value)
            if self._cuts(path, value):
                raise refused(part, "a date is compared with moments; give dates")
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
        type_ = self._type(path)
        if isinstance(value, Decimal) and self._is_float(path):
            raise refused(part, f"the column's floats are compared with the decimal {value}; give a float")
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
            return
        size: Any = abs(value)
        if self._is_float(path) and type_.dtype is not None:
            exact = not (isinstance(value, int) and size > _EXACT)
            with np.errstate(over="ignore"):
                exact = exact and (_is_nan(value) or float(type_.dtype.type(value)) == value)
            if not exact:
                raise refused(part, f"the column rounds {value!r}; give a value of its precision")
        elif isinstance(value, float | np.floating) and type_ is not None and not size < _EXACT:
            raise refused(part, f"{value!r} is no number of the column's kind")

    def _check_zone(self, part: Call, path: tuple[str, ...], aware: bool | None) -> None:
        """Refuse moments with a time zone for a column without one, and the reverse."""
        type_ = self._type(path)
        if aware is None or type_ is None:
            return
        has_zone = isinstance(type_.logical, Timestamp) and type_.logical.utc
        if aware is not has_zone:
            own, others = ("a", "none") if has_zone else ("no", "one")
            raise refused(part, f"the column has {own} time zone, and the moments have {others}")

    def _cuts(self, path: tuple[str, ...], value: Any) -> bool:
        """Whether pyarrow would cut a moment to the date that it takes ``in`` a column of dates for."""
        type_ = self._type(path)
        if not (self._nan_is_unequal and isinstance(value, np.datetime64)):
            return False
        return type_ is not None and isinstance(type_.logical, Date) and bool(value != value.astype("datetime64[D]"))

    def _refuse_group(self, part: Call, path: tuple[str, ...]) -> None:
        try:
            column = self._schema.column(path)
        except ParquetError:
            return
        if column.path != path and column.max_repetition_level == 0:
            raise refused(part, f"{'.'.join(path)} is a struct; name one of its fields")

    def _type(self, path: tuple[str, ...]) -> Any:
        """The type of a column; None for a column that is not there, which the caller refuses or passes over."""
        try:
            return self._schema.column(path).type
        except ParquetError:
            return None

    def _is_float(self, path: tuple[str, ...]) -> bool:
        type_ = self._type(path)
        return type_ is not None and (type_.physical in (Type.FLOAT, Type.DOUBLE) or isinstance(type_.logical, Float16))


def _chain(part: Call) -> list[Part]:
    """The arguments of nested calls of the same name, from left to right."""
    found: list[Part] = []
    left: list[Part] = [part]
    while left:
        inner = left.pop()
        if isinstance(inner, Call) and inner.name == part.name:
            left.extend(reversed(inner.args))
        else:
            found.append(inner)
    return found


def _unit(type_: Any) -> str | None:
    """The unit of a column of moments in Polars, which reads INT96 as nanoseconds."""
    if isinstance(type_.logical, Timestamp):
        return str(type_.logical.unit)
    return "ns" if type_.physical is Type.INT96 else None


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)
