"""Predicates: the filters of callers, parsed and typed to the columns of a schema, as an expression tree; pure, no I/O.

A filter is a condition ``(column, op, value)``, a list of conditions (all must hold), a list of lists (the conditions of one of
the inner lists must hold: disjunctive normal form, as in pyarrow), or a tree of ``And``, ``Or`` and conditions. Lists and tuples
are alike, so that filters may come from JSON: ``["x", ">", 3]`` is a condition, too. An expression of pyarrow.compute or Polars
stands for the rows kept by the other library (fastpq.filters.expressions). op is one of
``==  !=  <  <=  >  >=  in  not in  starts with``, or ``is null  is not null`` without a value.

The semantics are SQL's:

- A null matches nothing but ``is null``: not ``!=``, and not ``not in``. A row is kept where the whole filter is true.
- ``in`` ignores None among its values; ``not in`` a list with None holds for no row. No other op takes None.
- NaN equals NaN and is greater than every other number, so ``x > 5`` keeps NaN; -0.0 equals 0.0.
- A value is typed to its column. Integers, decimals, dates, times and durations of any unit or scale are compared exactly. Floats
  are rounded to the column's precision. A naive moment does not fit a UTC column, nor an aware one a local column;
  numpy.datetime64 fits both. Text, bytes and UUIDs are compared byte by byte.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.filters.literals import BytesDomain, Domain, Ordering, SortKey, domain_of, domain_of_durations
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.types import ColumnType, Type, Unknown

R = TypeVar("R")

UnitOf: TypeAlias = Callable[[ColumnDescriptor], str | None]
_Domains: TypeAlias = Callable[[ColumnDescriptor], Domain]

_ALIASES = {"=": "==", "<>": "!=", "isin": "in"}
_ORDERINGS = ("<", "<=", ">", ">=")
_OPS = ("==", "!=", *_ORDERINGS, "in", "not in", "starts with", "is null", "is not null")


class Outcome(IntEnum):
    """For how many rows a predicate holds, as far as is known. And takes the minimum of two outcomes, Or the maximum."""

    NONE = 0
    SOME = 1        # or unknown
    ALL = 2


@dataclass(frozen=True, slots=True)
class And:
    """A filter that holds where all of its children hold; ``&`` makes one, too.

    Args:
        *children: filters: ``(column, op, value)``, lists of these, And or Or.
    """

    children: tuple[Any, ...]

    def __init__(self, *children: Any) -> None:
        object.__setattr__(self, "children", children)

    def __and__(self, other: Any) -> And:
        return And(*self.children, other)

    def __or__(self, other: Any) -> Or:
        return Or(self, other)


@dataclass(frozen=True, slots=True)
class Or:
    """A filter that holds where any of its children holds; ``|`` makes one, too.

    Args:
        *children: filters: ``(column, op, value)``, lists of these, And or Or.
    """

    children: tuple[Any, ...]

    def __init__(self, *children: Any) -> None:
        object.__setattr__(self, "children", children)

    def __and__(self, other: Any) -> And:
        return And(self, other)

    def __or__(self, other: Any) -> Or:
        return Or(*self.children, other)


class Bounds(NamedTuple):
    """Bounds and counts of the values of a column in a row group or a page.

    Attributes:
        minimum, maximum: lower and upper bound, as keys; None where unknown, or where all values are null. NaN counts
            as the largest value.
        null_count: number of nulls; None where unknown.
        num_values: number of values, nulls included; None where unknown.
    """

    minimum: SortKey | None = None
    maximum: SortKey | None = None
    null_count: int | None = None
    num_values: int | None = None

    @property
    def all_null(self) -> bool:
        return self.num_values is not None and self.null_count == self.num_values

    @property
    def no_nulls(self) -> bool:
        return self.null_count == 0


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column; its keys have the column's type."""

    column: ColumnDescriptor

    def outcome(self, bounds: Bounds) -> Outcome:
        """For how many of the values within some bounds the condition holds."""
        if bounds.all_null:
            return Outcome.NONE
        found = self._of_values(bounds)
        return Outcome.SOME if found is Outcome.ALL and not bounds.no_nulls else found

    def _of_values(self, bounds: Bounds) -> Outcome:
        """For how many of the values other than null the condition holds."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class NullTest(Condition):
    """The condition ``is null``, or ``is not null``."""

    is_null: bool

    def outcome(self, bounds: Bounds) -> Outcome:
        if bounds.all_null or isinstance(self.column.logical_type, Unknown):
            return Outcome.ALL if self.is_null else Outcome.NONE
        if bounds.no_nulls:
            return Outcome.NONE if self.is_null else Outcome.ALL
        return Outcome.SOME

    def __str__(self) -> str:
        return f"{self.column.name} is {'' if self.is_null else 'not '}null"


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """The condition of an ordering, such as ``<``, by a key."""

    ordering: Ordering
    key: SortKey

    def _of_values(self, bounds: Bounds) -> Outcome:
        low, high = bounds.minimum, bounds.maximum
        if self.ordering in (">", ">="):
            below = high is not None and (high < self.key or (high == self.key and self.ordering == ">"))
            above = low is not None and (low > self.key or (low == self.key and self.ordering == ">="))
            return Outcome.NONE if below else Outcome.ALL if above else Outcome.SOME
        above = low is not None and (low > self.key or (low == self.key and self.ordering == "<"))
        below = high is not None and (high < self.key or (high == self.key and self.ordering == "<="))
        return Outcome.NONE if above else Outcome.ALL if below else Outcome.SOME

    def __str__(self) -> str:
        return f"{self.column.name} {self.ordering} {_spelled(self.column, self.key)}"


@dataclass(frozen=True, slots=True)
class Membership(Condition):
    """The condition ``in``, or ``not in`` (negated), with ascending keys; ``==`` and ``!=`` have one key."""

    keys: tuple[SortKey, ...]
    negated: bool = False

    def _of_values(self, bounds: Bounds) -> Outcome:
        low, high = bounds.minimum, bounds.maximum
        first = 0 if low is None else bisect_left(self.keys, low)
        inside = first < len(self.keys) and (high is None or self.keys[first] <= high)
        if not inside:
            found = Outcome.NONE
        elif low is not None and low == high:
            found = Outcome.ALL
        else:
            found = Outcome.SOME
        return Outcome(Outcome.ALL - found) if self.negated else found

    def stored(self) -> list[bytes] | None:
        """PLAIN encodings to look up in a bloom filter; without any, no value meets the condition. None where unknown."""
        if self.negated:
            return None
        encodings = [domain_of(self.column.type).stored(key) for key in self.keys]
        if any(encoding is None for encoding in encodings):
            return None
        return list(itertools.chain.from_iterable(encoding for encoding in encodings if encoding is not None))

    def __str__(self) -> str:
        op = "not in" if self.negated else "in"
        shown = ", ".join(_spelled(self.column, key) for key in self.keys[:5])
        return f"{self.column.name} {op} ({shown}{', ...' if len(self.keys) > 5 else ''})"


@dataclass(frozen=True, slots=True)
class Prefix(Condition):
    """The condition ``starts with``."""

    prefix: bytes

    def _of_values(self, bounds: Bounds) -> Outcome:
        low, high = bounds.minimum, bounds.maximum
        if low is not None and low > self.prefix and not low.startswith(self.prefix):
            return Outcome.NONE
        if high is not None and high < self.prefix:
            return Outcome.NONE
        if low is not None and high is not None and low.startswith(self.prefix) and high.startswith(self.prefix):
            return Outcome.ALL
        return Outcome.SOME

    def __str__(self) -> str:
        return f"{self.column.name} starts with {_spelled(self.column, self.prefix)}"


def _spelled(column: ColumnDescriptor, key: SortKey) -> str:
    """A key as text for messages: text as a string, a float as a number."""
    if isinstance(key, bytes) and column.type.is_text:
        return repr(key.decode(errors="replace"))
    if isinstance(key, tuple):
        return repr(key[1]) if key[0] == 0 else "NaN"
    return repr(key)


Predicate: TypeAlias = And | Or | Condition


def fold(
    predicate: Predicate, leaf: Callable[[Condition], R], both: Callable[[R, R], R], either: Callable[[R, R], R]
) -> R:
    """Evaluate a predicate from its conditions upwards.

    Args:
        predicate: a result of bind_filters.
        leaf: returns the result of a condition.
        both, either: combine two results under And, and under Or.
    """
    if isinstance(predicate, Condition):
        return leaf(predicate)
    join = both if isinstance(predicate, And) else either
    children = iter(predicate.children)
    result = fold(next(children), leaf, both, either)
    for child in children:
        result = join(result, fold(child, leaf, both, either))
    return result


def leaves(predicate: Predicate) -> Iterator[Condition]:
    """The conditions of a predicate, from left to right."""
    if isinstance(predicate, Condition):
        yield predicate
    else:
        for child in predicate.children:
            yield from leaves(child)


def outcome(predicate: Predicate, bounds: Callable[[Condition], Bounds]) -> Outcome:
    """For how many rows a predicate holds, by the bounds of each condition's column."""
    return fold(predicate, lambda leaf: leaf.outcome(bounds(leaf)), min, max)


def bind_filters(
    filters: Any, schema: ParquetSchema, types: Mapping[int, ColumnType] | None = None, unit_of: UnitOf | None = None
) -> Predicate:
    """Parse filters into a predicate over the columns of a schema.

    Args:
        filters: see the module's documentation.
        schema: the schema; filters give columns by name, path or number.
        types: by column number, column types in memory that differ from the schema's.
        unit_of: returns the unit of a column of durations, which are INT64 in the schema; None for other columns.

    Raises:
        SchemaError: filters of another shape, an unknown column, or a value that does not fit its column.
        UnsupportedError: a column within a list or a map.
    """

    def domain(column: ColumnDescriptor) -> Domain:
        type_ = types.get(column.index, column.type) if types else column.type
        if unit_of is not None and type_.physical is Type.INT64 and type_.logical is None:
            return domain_of_durations(lambda: unit_of(column))
        return domain_of(type_)

    return _bind(filters, schema, domain)


def is_condition(filters: Any) -> bool:
    """Whether a filter is one condition, a tuple or list of a column, an operator and at most one value."""
    return isinstance(filters, tuple | list) and len(filters) in (2, 3) and isinstance(filters[1], str)


def junction(filters: Any) -> tuple[type[And | Or], Sequence[Any]] | None:
    """And or Or, and the filters joined by it; None for a condition, an expression, and objects that are no filters."""
    if isinstance(filters, And | Or):
        return type(filters), filters.children
    if not isinstance(filters, list | tuple) or is_condition(filters):
        return None
    if isinstance(filters, tuple) and not all(isinstance(part, list | tuple | And | Or) for part in filters):
        return None
    alternatives = bool(filters) and all(isinstance(part, list | tuple) and not is_condition(part) for part in filters)
    return Or if alternatives else And, filters


def _bind(filters: Any, schema: ParquetSchema, domains: _Domains) -> Predicate:
    if (found := junction(filters)) is not None:
        kind, parts = found
        return _join(kind, [_bind(part, schema, domains) for part in parts])
    if is_condition(filters):
        return _condition(schema, domains, *filters)
    if type(filters).__module__.partition(".")[0] in ("pyarrow", "polars"):
        from fastpq.filters.expressions import filter_of, is_expression

        if is_expression(filters):
            return _bind(filter_of(filters, schema), schema, domains)
    what = repr(type(filters)) if hasattr(filters, "__array__") else repr(filters)      # no values of a mask in logs
    raise SchemaError(
        f"{what} is not a filter: a tuple (column, op, value), a list of filters, a list of lists, And or Or, or an expression "
        "of pyarrow.compute or Polars"
    )


def _join(kind: type[And | Or], children: Sequence[Predicate]) -> Predicate:
    if not children:
        raise SchemaError("a filter without a condition; to keep all rows, pass filters=None")
    return children[0] if len(children) == 1 else kind(*children)


def _condition(schema: ParquetSchema, domains: _Domains, key: Any, op: str, value: Any = None) -> Condition:
    spelled = " ".join(op.lower().split())
    spelled = _ALIASES.get(spelled, spelled)
    if spelled not in _OPS:
        raise SchemaError(f"{op!r} is not one of {', '.join(_OPS)}")
    column = schema.column(key)
    if column.max_repetition_level:
        raise UnsupportedError("a filter on a repeated column, of which a row has many values", column=column.name)
    if spelled in ("is null", "is not null"):
        if value is not None:
            raise SchemaError(f"{spelled!r} takes no value; 'is null' and 'is not null' are the two conditions")
        return NullTest(column, spelled == "is null")
    try:
        return _typed(column, domains(column), spelled, value)
    except SchemaError as error:
        raise error.at(column=column.name) from None


def _typed(column: ColumnDescriptor, domain: Domain, op: str, value: Any) -> Condition:
    if op in ("in", "not in"):
        return _membership(column, domain, value, op == "not in")
    if value is None:
        raise SchemaError(f"{op} None holds for no row; for nulls there are 'is null' and 'is not null'")
    if isinstance(column.logical_type, Unknown):
        return Membership(column, ())
    if op in ("==", "!="):
        return _membership(column, domain, (value,), op == "!=")
    if op == "starts with":
        if not isinstance(domain, BytesDomain) or (prefix := domain.to_bytes(value)) is None:
            raise domain.refuse(value)
        return Prefix(column, prefix)
    compared = domain.compared(cast(Ordering, op), value)
    if isinstance(compared, bool):
        return NullTest(column, False) if compared else Membership(column, ())
    return Comparison(column, *compared)


def _membership(column: ColumnDescriptor, domain: Domain, values: Any, negated: bool) -> Condition:
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise SchemaError(f"in and not in take a list of values, not {values!r}")
    given = list(values)
    if isinstance(column.logical_type, Unknown) or (negated and any(value is None for value in given)):
        return Membership(column, ())
    keys = {domain.equal(value) for value in given if value is not None} - {None}
    return Membership(column, tuple(sorted(keys)), negated)
