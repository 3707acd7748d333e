"""Compares the rows of two files: row by row, by key, or without regard to the order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypedDict

from fastpq.cli.cell_values import json_value
from fastpq.cli.failures import USAGE, CommandFailure

if TYPE_CHECKING:
    from fastpq.arrays.table import Table
    from fastpq.cli.places import OpenRows

BATCH_ROWS = 65_536


class ValueDifference(TypedDict):
    """One value that differs.

    Attributes:
        row: row number, or the key's values.
        column: top-level column.
        path: place inside a list or a struct, or an empty text.
        one: value in the first file.
        other: value in the second file.
    """

    row: Any
    column: str
    path: str
    one: Any
    other: Any


class ValueFacts(TypedDict):
    """How the values of two files differ.

    Attributes:
        rows_one: row count of the first file.
        rows_other: row count of the second file.
        differing_rows: rows that are in both files and differ.
        only_in_one: rows or keys that only the first file has.
        only_in_other: rows or keys that only the second file has.
        columns: differing values by column.
        first: the first differences.
        first_only_in_one: the first rows or keys that only the first file has.
        first_only_in_other: the first rows or keys that only the second file has.
    """

    rows_one: int
    rows_other: int
    differing_rows: int
    only_in_one: int
    only_in_other: int
    columns: dict[str, int]
    first: list[ValueDifference]
    first_only_in_one: list[Any]
    first_only_in_other: list[Any]


class ValueComparison:
    """Comparison of two files' rows.

    Args:
        names: top-level columns that both files have.
        tolerance: numbers are equal if they differ by at most this, relative to the larger one, or absolutely below 1.
        most: how many differences are kept as examples.
    """

    def __init__(self, names: Sequence[str], tolerance: float, most: int) -> None:
        self._names = list(names)
        self._tolerance = tolerance
        self._most = most
        self.facts = ValueFacts(
            rows_one=0,
            rows_other=0,
            differing_rows=0,
            only_in_one=0,
            only_in_other=0,
            columns={},
            first=[],
            first_only_in_one=[],
            first_only_in_other=[],
        )

    def compare_in_order(self, one: OpenRows, other: OpenRows, filters: Any) -> None:
        """Compare row by row, in bounded memory."""
        pairs = _aligned(self._batches(one, filters), self._batches(other, filters))
        for start, first, second in pairs:
            shared_rows = min(first.num_rows, second.num_rows)
            self._compare(first.slice(0, shared_rows), second.slice(0, shared_rows), range(start, start + shared_rows))
            self.facts["rows_one"] += first.num_rows
            self.facts["rows_other"] += second.num_rows
        surplus = self.facts["rows_one"] - self.facts["rows_other"]
        self.facts["only_in_one"], self.facts["only_in_other"] = max(surplus, 0), max(-surplus, 0)

    def compare_by_key(self, one: OpenRows, other: OpenRows, filters: Any, key: Sequence[str]) -> None:
        """Compare rows with equal keys. Both files are read whole."""
        import numpy as np

        first, second = one.read(self._names, filters=filters), other.read(self._names, filters=filters)
        places_one, places_other = _places(first, key, "first"), _places(second, key, "second")
        common_keys = [each for each in places_one if each in places_other]
        self.facts["rows_one"], self.facts["rows_other"] = first.num_rows, second.num_rows
        self._note_missing([each for each in places_one if each not in places_other], "only_in_one", "first_only_in_one")
        self._note_missing([each for each in places_other if each not in places_one], "only_in_other", "first_only_in_other")
        for start in range(0, len(common_keys), BATCH_ROWS):
            keys = common_keys[start : start + BATCH_ROWS]
            rows_one = _taken(first, np.array([places_one[each] for each in keys], np.int64))
            rows_other = _taken(second, np.array([places_other[each] for each in keys], np.int64))
            labels = [json_value(each[0] if len(each) == 1 else list(each)) for each in keys]
            self._compare(rows_one, rows_other, labels, frozenset(key))

    def compare_without_order(self, one: OpenRows, other: OpenRows, filters: Any) -> None:
        """Compare the rows as multisets. Both files are read whole."""
        counts = []
        for rows, name in ((one, "rows_one"), (other, "rows_other")):
            count: Counter[Any] = Counter()
            for table in self._batches(rows, filters):
                count.update(map(_hashable, zip(*(table[each].to_pylist() for each in self._names), strict=True)))
                self.facts[name] += table.num_rows  # type: ignore[literal-required]
            counts.append(count)
        self._note_missing(list((counts[0] - counts[1]).elements()), "only_in_one", "first_only_in_one")
        self._note_missing(list((counts[1] - counts[0]).elements()), "only_in_other", "first_only_in_other")

    def _batches(self, rows: OpenRows, filters: Any) -> Iterator[Table]:
        return rows.iter_batches(BATCH_ROWS, self._names, filters=filters)

    def _note_missing(self, rows: list[Any], count: str, examples: str) -> None:
        self.facts[count] = len(rows)  # type: ignore[literal-required]
        plain = [each[0] if isinstance(each, tuple) and len(each) == 1 else each for each in rows[: self._most]]
        self.facts[examples] = [json_value(each) for each in plain]  # type: ignore[literal-required]

    def _compare(self, one: Table, other: Table, labels: Sequence[Any], key: frozenset[str] = frozenset()) -> None:
        rows: set[int] = set()
        for name in self._names:
            if name in key or one[name].equals(other[name]):
                continue
            values = zip(one[name].to_pylist(), other[name].to_pylist(), strict=True)
            for place, (first, second) in enumerate(values):
                path = self._difference(first, second)
                if path is not None:
                    rows.add(place)
                    self._note(labels[place], name, path, first, second)
        self.facts["differing_rows"] += len(rows)

    def _note(self, label: Any, name: str, path: str, first: Any, second: Any) -> None:
        self.facts["columns"][name] = self.facts["columns"].get(name, 0) + 1
        if len(self.facts["first"]) < self._most:
            one, other = json_value(first), json_value(second)
            self.facts["first"].append(ValueDifference(row=label, column=name, path=path, one=one, other=other))

    def _difference(self, one: Any, other: Any) -> str | None:
        """Return the path of the first difference inside two values, or None if they are equal."""
        if isinstance(one, dict) and isinstance(other, dict):
            for name in dict.fromkeys([*one, *other]):
                if (name in one) != (name in other):
                    return f".{name}"
                inner = self._difference(one[name], other[name])
                if inner is not None:
                    return f".{name}{inner}"
            return None
        if isinstance(one, list | tuple) and isinstance(other, list | tuple):
            for place, (first, second) in enumerate(zip(one, other, strict=False)):
                inner = self._difference(first, second)
                if inner is not None:
                    return f"[{place}]{inner}"
            return None if len(one) == len(other) else f"[{min(len(one), len(other))}]"
        return None if self._are_equal(one, other) else ""

    def _are_equal(self, one: Any, other: Any) -> bool:
        if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
            return True
        if one is None or other is None:
            return one is other
        try:
            if bool(one == other):
                return True
            if self._tolerance and not isinstance(one, str | bytes | bool):
                return bool(abs(one - other) <= self._tolerance * max(1, abs(one), abs(other)))
        except (TypeError, ValueError, ArithmeticError):
            return False
        return False


def _aligned(one: Iterator[Table], other: Iterator[Table]) -> Iterator[tuple[int, Table, Table]]:
    """Yield pairs of Tables, and the number of their first row. The shorter file gives Tables with fewer or no rows at its end.

    Args:
        one, other: Tables that have BATCH_ROWS rows each, but for the last one of a file.
    """
    for number, (first, second) in enumerate(zip_longest(one, other)):
        whole = second if first is None else first
        nothing = whole.slice(0, 0)
        yield number * BATCH_ROWS, nothing if first is None else first, nothing if second is None else second


def _places(table: Table, key: Sequence[str], which: str) -> dict[Any, int]:
    """Return the row number of each key.

    Raises:
        CommandFailure: two rows have the same key.
    """
    columns = [table[name].to_pylist() for name in key]
    places: dict[Any, int] = {}
    for place, each in enumerate(zip(*columns, strict=True)):
        value = _hashable(each)
        if value in places:
            key_text = json_value(each[0] if len(each) == 1 else list(each))
            raise CommandFailure(f"the key {key_text!r} occurs twice in the {which} file", USAGE, "name more columns: --key a,b")
        places[value] = place
    return places


def _taken(table: Table, rows: Any) -> Table:
    from fastpq.arrays.table import Table

    return Table({name: column.take(rows) for name, column in table.items()}, num_rows=len(rows))


def _hashable(value: Any) -> Any:
    """Return a value that can be a key of a dict, and in which all NaNs are equal."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return tuple((name, _hashable(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    return value
