"""Verdicts: the conditions of one column, judged together; a dictionary entry is judged once for all rows with its index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from fastpq.arrays.layouts import Array
from fastpq.arrays.table import Column
from fastpq.filters.filtering import Mask, leaf_mask
from fastpq.filters.predicate import Condition, NullTest, Predicate, leaves

# Conditions of a column, a bit of a verdict each.
MOST_CONDITIONS = 8


class Verdicts:
    """Judges values by up to MOST_CONDITIONS conditions on one column, other than tests for nulls.

    Args:
        conditions: the conditions; bit i of a verdict tells whether condition i holds.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._bits = {condition: bit for bit, condition in enumerate(conditions)}

    def judge(self, column: Column) -> Array:
        """The verdicts on the values of a column without nulls, shape (n,), uint8."""
        found = np.zeros(len(column), np.uint8)
        for condition, bit in self._bits.items():
            found |= leaf_mask(condition, column).view(np.uint8) << bit
        return found

    def mask(self, condition: Condition, column: Column) -> Mask:
        """A mask of the values where a condition holds.

        Args:
            condition: on the judged column.
            column: verdicts, 0 where null.
        """
        assert isinstance(column.values, np.ndarray)
        if isinstance(condition, NullTest):
            return leaf_mask(condition, column)
        if len(self._bits) == 1:
            return column.values.view(np.bool_)
        return np.asarray(column.values & np.uint8(1 << self._bits[condition]) != 0)


def judged_columns(predicate: Predicate, others: Iterable[int]) -> Mapping[int, Verdicts]:
    """Verdicts by column number, for flat columns with conditions that verdicts have bits for.

    Args:
        predicate: the predicate.
        others: numbers of columns whose values are needed.
    """
    found: dict[int, dict[Condition, None]] = {}
    for leaf in leaves(predicate):
        if leaf.column.is_flat and not isinstance(leaf, NullTest):
            found.setdefault(leaf.column.index, {})[leaf] = None
    for number in others:
        found.pop(number, None)
    return {number: Verdicts(conditions) for number, conditions in found.items() if len(conditions) <= MOST_CONDITIONS}
