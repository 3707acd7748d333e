"""Parts of aggregates, computed in tasks from decoded columns; Spark puts the parts of all tasks together.

Integers and decimals are added exactly. Spark adds the parts of a sum in the type of what is summed: a part that this type does
not hold is cut into several.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import types as st

from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.spark.batches import FileScan
from fastpq.spark.jvm.expressions import Aggregate
from fastpq.spark.jvm.layout import BatchLayout, is_stored_as
from fastpq.spark.types import as_arrow, reader_schema

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_WIDE = Context(prec=76)        # all digits of Spark's decimals, before and behind the point
_INT64 = 1 << 63


@dataclass(frozen=True)
class PartialAggregates:
    """Aggregates of which each task computes a part; pickled to executors.

    Attributes:
        groups: names of the columns of folders to group by.
        aggregates: the aggregates.
        schema: Spark schema of the parts: groups, then aggregates.
    """

    groups: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    schema: st.StructType


@dataclass(frozen=True)
class Numbers:
    """Values of an expression.

    Attributes:
        values: floats, or the digits of decimals and integers as int64 or, where these do not hold them, as Python's integers;
            shape (rows,), or () for a literal.
        valid: False where null; None for no nulls.
        scale: digits behind the point.
    """

    values: NDArray[Any]
    valid: NDArray[np.bool_] | None
    scale: int = 0


class TaskParts:
    """The parts of aggregates of the rows added so far, by group."""

    def __init__(self, asked: PartialAggregates) -> None:
        self._asked = asked
        self._groups: dict[tuple[Any, ...], list[_Part]] = {} if asked.groups else {(): self._new()}

    def _new(self) -> list[_Part]:
        return [_KINDS[aggregate.kind](aggregate) for aggregate in self._asked.aggregates]

    def add(self, scan: FileScan, table: Table) -> None:
        """Add the rows of a table of a file."""
        if not table.num_rows:
            return
        group = tuple(scan.constants[name] for name in self._asked.groups)
        if group not in self._groups:
            self._groups[group] = self._new()
        rows = _Rows(scan, table)
        for part in self._groups[group]:
            part.add(rows)

    @property
    def num_rows(self) -> int:
        """Rows of the parts so far, at least."""
        return max((part.count for parts in self._groups.values() for part in parts), default=0)

    def columns(self) -> list[list[Any]]:
        """The columns of the schema: groups, then parts. Each further part of a sum takes a further row of its group."""
        names = self._asked.groups
        columns: list[list[Any]] = [[] for _ in self._asked.schema.fields]
        for group, parts in self._groups.items():
            found = [part.values() for part in parts]
            rows = max(map(len, found), default=1)
            for column, value in zip(columns, group, strict=False):
                column += [value] * rows
            for column, part, values in zip(columns[len(names) :], parts, found, strict=True):
                column += [*values, *[part.nothing] * (rows - len(values))]
        return columns

    def layout(self) -> tuple[int, BatchLayout]:
        """Number of rows, and the layout of the columns."""
        columns, layout = self.columns(), BatchLayout()
        for column, part in zip(columns, reader_schema(self._asked.schema), strict=True):
            layout.add(pa.array(column, part.type))
        return len(columns[0]), layout


class _Rows:
    """The columns of a table as numbers."""

    def __init__(self, scan: FileScan, table: Table) -> None:
        self._scan, self._table = scan, table
        self.count = table.num_rows

    def present(self, name: str) -> int:
        """Number of values of a column that are not null."""
        if name in self._scan.constants:
            return 0 if self._scan.constants[name] is None else self.count
        return 0 if name not in self._scan.nodes else self.count - self._column(name).null_count

    def values(self, tree: Any) -> NDArray[Any]:
        """The values of an expression that are not null."""
        found = self._evaluated(tree)
        values = np.broadcast_to(found.values, self.count)
        return values if found.valid is None else values[np.broadcast_to(found.valid, self.count)]

    def _evaluated(self, tree: Any) -> Numbers:
        match tree:
            case ["column", name]:
                return self._numbers(name)
            case ["decimal", text, _, scale]:
                return Numbers(_whole(_digits(Decimal(text), scale)), None, scale)
            case ["double", text]:
                return Numbers(np.array(float(text)), None)
        name, *trees = tree
        return _computed(name, *map(self._evaluated, trees))

    def _numbers(self, name: str) -> Numbers:
        wanted = self._scan.plan.schema[name].dataType
        scale = wanted.scale if isinstance(wanted, st.DecimalType) else 0
        part = self._scan.plan.arrow.field(name)
        if name not in self._scan.constants and name in self._scan.nodes:
            column = self._column(name)
            if isinstance(column, Column) and is_stored_as(column, wanted) and name not in self._scan.int96:
                valid = column.validity_mask() if column.null_count else None
                assert isinstance(column.values, np.ndarray)
                return Numbers(_as_int64(column.values), valid, scale)
            return Numbers(*_of_arrow(self._scan.conformed(as_arrow(column), part)), scale)
        value = self._scan.constants.get(name)
        if value is None:
            return Numbers(_whole(0), np.array(False), scale)
        if isinstance(value, float):
            return Numbers(np.array(value), None)
        return Numbers(_whole(_digits(value, scale) if isinstance(value, Decimal) else value), None, scale)

    def _column(self, name: str) -> AnyColumn:
        return self._table[self._scan.nodes[name].element.name]


def _of_arrow(array: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Values and validity of an Arrow array of numbers."""
    valid = np.asarray(array.is_valid()) if array.null_count else None
    if pa.types.is_decimal128(array.type):
        digits = np.frombuffer(array.buffers()[1], "<i8")[2 * array.offset :][: 2 * len(array)]
        return digits[::2], valid
    return _as_int64(np.asarray(array.fill_null(0))), valid


def _as_int64(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers, and decimals of up to 18 digits in 16 bytes, as int64; floats as they are."""
    if values.dtype.kind == "V":
        return values.view("<i8")[::2]
    return values.astype(np.int64, copy=False) if values.dtype.kind == "i" else values


def _computed(name: str, one: Numbers, other: Numbers) -> Numbers:
    a, b = one.values, other.values
    scale = one.scale + other.scale if name == "*" else max(one.scale, other.scale)
    if name != "*" and a.dtype.kind != "f":
        a, b = (_exactly("*", values, _whole(10 ** (scale - numbers.scale))) if scale > numbers.scale else values
                for numbers, values in ((one, a), (other, b)))
    valid = other.valid if one.valid is None else one.valid if other.valid is None else one.valid & other.valid
    return Numbers(_exactly(name, a, b), valid, scale)


def _exactly(name: str, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """A sum, difference or product of whole numbers, in Python's integers where int64 might overflow; or of floats."""
    if "f" in (a.dtype.kind, b.dtype.kind):
        with np.errstate(all="ignore"):     # infinities and NaNs are Spark's results, too
            return np.asarray(_OPERATORS[name](a, b), np.float64)
    if a.dtype == b.dtype == np.int64:
        most = _most(a) * _most(b) if name == "*" else _most(a) + _most(b)
        if most < _INT64:
            return np.asarray(_OPERATORS[name](a, b), np.int64)
    return np.asarray(_OPERATORS[name](a.astype(object), b.astype(object)), object)


def _whole(number: int) -> NDArray[Any]:
    """A whole number as an array of shape (): NumPy would take some for unsigned, and these and signed ones for floats."""
    return np.array(number, np.int64 if -_INT64 <= number < _INT64 else object)


def _most(values: NDArray[np.int64]) -> int:
    """The largest absolute value."""
    return max(-int(values.min()), int(values.max())) if values.size else 0


# ---- parts


class _Part:
    """A part of an aggregate; ``nothing`` is the part of no rows."""

    nothing: int | None = None

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate

    @property
    def count(self) -> int:
        """Number of values."""
        return 1

    def add(self, rows: _Rows) -> None:
        raise NotImplementedError

    def values(self) -> list[Any]:
        raise NotImplementedError


class _Count(_Part):
    nothing = 0

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self._count = 0

    def add(self, rows: _Rows) -> None:
        name = self.aggregate.column
        self._count += rows.count if name is None else rows.present(name)

    def values(self) -> list[Any]:
        return [self._count]


class _Sum(_Part):
    """Parts of a sum, none beyond the range of the type."""

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self._limit = part_limit(aggregate.type)
        self._full: list[int | float] = []
        self._sum: int | float | None = None

    def add(self, rows: _Rows) -> None:
        values = rows.values(self.aggregate.tree)
        if not len(values):
            return
        if values.dtype.kind == "f":
            with np.errstate(all="ignore"):     # one after the other, as Spark adds
                self._sum = float(np.add.accumulate(np.concatenate([[self._sum or 0.0], values]))[-1])
            return
        for part in _sums(values, self._limit):
            if self._sum is not None and abs(self._sum + part) >= self._limit:
                self._full.append(self._sum)
                self._sum = None
            self._sum = part if self._sum is None else self._sum + part

    @property
    def count(self) -> int:
        return len(self._full) + 1

    def values(self) -> list[Any]:
        return [_as_value(part, self.aggregate.type) for part in (*self._full, self._sum)]


class _Extreme(_Part):
    """The least or the largest value. NaN is the largest number."""

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self._is_least = aggregate.kind == "min"
        self._found: Any = None

    def add(self, rows: _Rows) -> None:
        values = rows.values(self.aggregate.tree)
        if len(values):
            better = np.fmin if self._is_least else np.maximum      # fmin passes over NaNs, maximum gives a NaN if there is one
            found = better.reduce(values)
            self._found = (found if self._found is None else better(found, self._found)).item()

    def values(self) -> list[Any]:
        return [_as_value(self._found, self.aggregate.type)]


_KINDS: dict[str, type[_Part]] = {"count": _Count, "sum": _Sum, "min": _Extreme, "max": _Extreme}


def part_limit(type_: st.DataType) -> int:
    """The least absolute value that a type of whole numbers or decimals may not hold."""
    match type_:
        case st.DecimalType():
            return int(10**type_.precision)
        case st.ByteType():
            return 1 << 7
        case st.ShortType():
            return 1 << 15
        case st.IntegerType():
            return 1 << 31
    return _INT64


def _sums(values: NDArray[Any], limit: int) -> Iterator[int]:
    """Sums of successive values, each less than the limit or of one value."""
    total = _total(values)
    if abs(total) < limit or len(values) == 1:
        yield total
    else:
        middle = len(values) // 2
        yield from _sums(values[:middle], limit)
        yield from _sums(values[middle:], limit)


def _total(values: NDArray[Any]) -> int:
    if values.dtype == object or _most(values) * len(values) < _INT64:
        return int(values.sum())
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def _digits(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, _WIDE))


def _as_value(number: int | float | None, type_: st.DataType) -> Any:
    if number is None or not isinstance(type_, st.DecimalType):
        return number
    return Decimal(number).scaleb(-type_.scale, _WIDE)
