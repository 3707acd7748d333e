"""Decimals as Python objects."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from itertools import repeat

# Digits enough for the largest decimal of a column: no conversion rounds.
EXACT = decimal.Context(prec=100, traps=[decimal.Inexact, decimal.InvalidOperation])


# First integers of a column that decide whether each is made a decimal once, or once for every row.
_TRIED = 4096


def decimals(unscaled: Sequence[int], scale: int) -> list[decimal.Decimal]:
    """Decimals of unscaled integers, each worth 10 ** -scale; rows of one value may share an object."""
    tried = unscaled[:_TRIED]
    if 2 * len(set(tried)) > len(tried):
        return _scaled(unscaled, scale)
    distinct = [*set(unscaled)]
    found = dict(zip(distinct, _scaled(distinct, scale), strict=True))
    return [*map(found.__getitem__, unscaled)]


def _scaled(integers: Sequence[int], scale: int) -> list[decimal.Decimal]:
    return [*map(EXACT.scaleb, integers, repeat(decimal.Decimal(-scale)))]
