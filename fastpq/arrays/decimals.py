"""Conversion of unscaled integers to Python decimals."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from itertools import repeat

# A context with enough digits for any column's largest decimal, so that no conversion rounds.
EXACT = decimal.Context(prec=100, traps=[decimal.Inexact, decimal.InvalidOperation])
# Number of values at a column's start that decide whether rows with the same value share one object.
_SAMPLE_SIZE = 4096


def decimals(integers: Sequence[int], scale: int) -> list[decimal.Decimal]:
    """Return unscaled integers as decimals, each times 10 ** -scale. Rows with the same value may share one object."""
    sample = integers[:_SAMPLE_SIZE]
    if 2 * len(set(sample)) > len(sample):
        return _scaled(integers, scale)
    distinct = [*set(integers)]
    decimal_of = dict(zip(distinct, _scaled(distinct, scale), strict=True))
    return [*map(decimal_of.__getitem__, integers)]


def _scaled(integers: Sequence[int], scale: int) -> list[decimal.Decimal]:
    return [*map(EXACT.scaleb, integers, repeat(decimal.Decimal(-scale)))]
