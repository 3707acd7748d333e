"""Predicates: a caller's filters, parsed into a tree of conditions and typed to a schema's columns. Pure, no I/O.

A filter is a condition ``(column, op, value)``, a list of conditions that must all hold, a list of lists (at least one inner list
must hold: disjunctive normal form, as in pyarrow), or a tree of ``And``, ``Or`` and conditions. Lists and tuples are alike, so
that filters may come from JSON: ``["x", ">", 3]`` is a condition too. A pyarrow.compute or Polars expression keeps the rows
that the other library keeps (fastpq.filters.expressions). op is one of
``==  !=  <  <=  >  >=  in  not in  starts with``, or ``is null  is not null`` without a value.

The semantics are SQL's:

- A null matches nothing but ``is null``: not ``!=``, and not ``not in``. A row is kept where the whole filter is true.
- ``in`` ignores None among its values. ``not in`` a list with None holds for no row. No other op takes None.
- NaN equals NaN and is greater than every other number, so ``x > 5`` keeps NaN. -0.0 equals 0.0.
- A value is typed to its column. Integers, decimals, dates, times and durations are compared exactly, in any unit or scale.
  Floats are rounded to the column's precision. A moment without a time zone does not fit a UTC column, and a moment with a time
  zone does not fit a local column. numpy.datetime64 fits both. Text, bytes and UUIDs are compared byte by byte.
"""

from __future__ import annotations

import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.filters.combinations import And, Or, is_condition, junction
from fastpq.filters.key_sets import KeySet, ListOfValues, list_of
from fastpq.filters.literals import BytesDomain, Domain, Ordering, SortKey, domain_of, domain_of_durations
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.types import ColumnType, Type, Unknown

R = TypeVar("R")

UnitOf: TypeAlias = Callable[[ColumnDescriptor], str | None]
_Domains: TypeAlias = Callable[[ColumnDescriptor], Domain]

_ALIASES = {"=": "==", "<>": "!=", "isin": "in"}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_OPS = ("==", "!=", *_COMPARE, "in", "not in", "starts with", "is null", "is not null")


class Outcome(IntEnum):
    """Whether a predicate holds for no row, some rows or all rows, as far as is known.

    And has the smallest outcome among its parts, Or has the largest.
    """

    NONE = 0
    SOME = 1        # or unknown
    ALL = 2


class Bounds(NamedTuple):
    """Bounds and counts for the values that a column has in a row group or a page.

    Attributes:
        minimum, maximum: lower and upper bound, as keys. None if unknown, or if all values are null. NaN counts as the
            largest value.
        null_count: number of nulls, or None if unknown.
        num_values: number of values with nulls included, or None if unknown.
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
class Condition(ABC):
    """A condition on one column."""

    column: ColumnDescriptor

    @abstractmethod
    def outcome(self, bounds: Bounds) -> Outcome:
        """Return whether the condition holds for none, some or all of the values within bounds."""


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
class KeyCondition(Condition):
    """A condition that compares values with keys in the column's domain. It holds for no null."""

    def outcome(self, bounds: Bounds) -> Outcome:
        if bounds.all_null:
            return Outcome.NONE
        of_values = self._of_values(bounds)
        return Outcome.SOME if of_values is Outcome.ALL and not bounds.no_nulls else of_values

    @abstractmethod
    def _of_values(self, bounds: Bounds) -> Outcome:
        """Return the outcome for the values that are not null."""


@dataclass(frozen=True, slots=True)
class Comparison(KeyCondition):
    """A comparison with a key, such as ``<``."""

    ordering: Ordering
    key: SortKey

    def _of_values(self, bounds: Bounds) -> Outcome:
        holds = _COMPARE[self.ordering]
        # If the worst value passes, all do. If the best value does not pass, none does.
        worst, best = bounds.minimum, bounds.maximum
        if self.ordering in ("<", "<="):
            worst, best = best, worst
        if best is not None and not holds(best, self.key):
            return Outcome.NONE
        return Outcome.ALL if worst is not None and holds(worst, self.key) else Outcome.SOME

    def __str__(self) -> str:
        return f"{self.column.name} {self.ordering} {_spelled(self.column, self.key)}"


@dataclass(frozen=True, slots=True)
class Membership(KeyCondition):
    """The condition ``in``, or ``not in`` (negated). ``==`` and ``!=`` are the same with one key."""

    keys: KeySet
    is_negated: bool = False

    def _of_values(self, bounds: Bounds) -> Outcome:
        low, high = bounds.minimum, bounds.maximum
        if not self.keys.has_key_between(low, high):
            among_keys = Outcome.NONE
        elif low is not None and low == high:
            among_keys = Outcome.ALL
        else:
            among_keys = Outcome.SOME
        return Outcome(Outcome.ALL - among_keys) if self.is_negated else among_keys

    @property
    def plain_hashes(self) -> NDArray[np.uint64] | None:
        """XXH64 of the PLAIN encodings to look up in a bloom filter. If none is there, no value meets the condition.

        None for a negated condition, and if the encodings are unknown.
        """
        return None if self.is_negated else self.keys.plain_hashes

    def __str__(self) -> str:
        op = "not in" if self.is_negated else "in"
        first_keys = ", ".join(_spelled(self.column, key) for key in itertools.islice(self.keys, 5))
        return f"{self.column.name} {op} ({first_keys}{', ...' if len(self.keys) > 5 else ''})"


@dataclass(frozen=True, slots=True)
class Prefix(KeyCondition):
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
    """Return a key as text for messages."""
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
        leaf: returns the result for a condition.
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
    """Yield a predicate's conditions, from left to right."""
    if isinstance(predicate, Condition):
        yield predicate
    else:
        for child in predicate.children:
            yield from leaves(child)


def outcome(predicate: Predicate, bounds: Callable[[Condition], Bounds]) -> Outcome:
    """Return whether a predicate holds for no row, some rows or all rows, by the bounds for each condition."""
    return fold(predicate, lambda leaf: leaf.outcome(bounds(leaf)), min, max)


def bind_filters(
    filters: Any, schema: ParquetSchema, types: Mapping[int, ColumnType] | None = None, unit_of: UnitOf | None = None
) -> Predicate:
    """Parse filters into a predicate over a schema's columns.

    Args:
        filters: filters in any form that this module's docstring describes.
        schema: the schema. Filters give columns by name, path or number.
        types: column types in memory that differ from those in the schema, by column number.
        unit_of: returns the unit of a duration column, which is INT64 in the schema, or None for other columns.

    Raises:
        SchemaError: filters have another shape, a column is unknown, or a value does not fit its column.
        UnsupportedError: a column is within a list or a map.
    """

    def domain(column: ColumnDescriptor) -> Domain:
        type_ = types.get(column.index, column.type) if types else column.type
        if unit_of is not None and type_.physical is Type.INT64 and type_.logical is None:
            return domain_of_durations(lambda: unit_of(column))
        return domain_of(type_)

    return _bind(filters, schema, domain)


def with_shared_lists(filters: Any) -> Any:
    """Return filters whose lists for ``in`` and ``not in`` are converted once, although each file binds the filters again.

    Args:
        filters: filters in any shape, which is not checked. Expressions from other libraries are returned as they are.
    """
    if (parts := junction(filters)) is not None:
        return parts[0](*map(with_shared_lists, parts[1]))
    if is_condition(filters) and len(filters) == 3 and _spelling(filters[1]) in ("in", "not in"):
        column, op, values = filters
        if hasattr(values, "__iter__") and not isinstance(values, str | bytes | ListOfValues):
            return (column, op, ListOfValues(values))
    return filters


def _spelling(op: str) -> str:
    """Return an operator's standard spelling."""
    name = " ".join(op.lower().split())
    return _ALIASES.get(name, name)


def _bind(filters: Any, schema: ParquetSchema, domains: _Domains) -> Predicate:
    if (combination := junction(filters)) is not None:
        kind, parts = combination
        return _join(kind, [_bind(part, schema, domains) for part in parts])
    if is_condition(filters):
        return _condition(schema, domains, *filters)
    if type(filters).__module__.partition(".")[0] in ("pyarrow", "polars"):
        from fastpq.filters.expressions import filter_of, is_expression

        if is_expression(filters):
            return _bind(filter_of(filters, schema), schema, domains)
    what = repr(type(filters)) if hasattr(filters, "__array__") else repr(filters)      # a mask's values stay out of logs
    raise SchemaError(
        f"{what} is not a filter: a tuple (column, op, value), a list of filters, a list of lists, And or Or, or an expression "
        "of pyarrow.compute or Polars"
    )


def _join(kind: type[And | Or], children: Sequence[Predicate]) -> Predicate:
    if not children:
        raise SchemaError("the filter has no condition; to keep all rows, pass filters=None")
    return children[0] if len(children) == 1 else kind(*children)


def _condition(schema: ParquetSchema, domains: _Domains, key: Any, op: str, value: Any = None) -> Condition:
    op_name = _spelling(op)
    if op_name not in _OPS:
        raise SchemaError(f"{op!r} is not one of {', '.join(_OPS)}")
    column = schema.column(key)
    if column.max_repetition_level:
        raise UnsupportedError("a filter cannot use a repeated column, because a row may have many values", column=column.name)
    if op_name in ("is null", "is not null"):
        if value is not None:
            raise SchemaError(f"{op_name!r} takes no value; 'is null' and 'is not null' are the two conditions")
        return NullTest(column, op_name == "is null")
    try:
        return _typed(column, domains(column), op_name, value)
    except SchemaError as error:
        raise error.at(column=column.name) from None


def _typed(column: ColumnDescriptor, domain: Domain, op: str, value: Any) -> Condition:
    if op in ("in", "not in"):
        return _membership(column, domain, value, op == "not in")
    if value is None:
        raise SchemaError(f"{op} None holds for no row; for nulls there are 'is null' and 'is not null'")
    if isinstance(column.logical_type, Unknown):
        return Membership(column, KeySet(domain, ()))
    if op in ("==", "!="):
        return _membership(column, domain, (value,), op == "!=")
    if op == "starts with":
        if not isinstance(domain, BytesDomain) or (prefix := domain.to_bytes(value)) is None:
            raise domain.refuse(value)
        return Prefix(column, prefix)
    comparison = domain.compared(cast(Ordering, op), value)
    if isinstance(comparison, bool):
        return NullTest(column, False) if comparison else Membership(column, KeySet(domain, ()))
    return Comparison(column, *comparison)


def _membership(column: ColumnDescriptor, domain: Domain, values: Any, is_negated: bool) -> Condition:
    values = values if isinstance(values, ListOfValues) else list_of(values)
    if isinstance(column.logical_type, Unknown) or (is_negated and any(value is None for value in values)):
        return Membership(column, KeySet(domain, ()))
    keys = values.keys_for(domain) if isinstance(values, ListOfValues) else KeySet.of(domain, values)
    return Membership(column, keys, is_negated)
