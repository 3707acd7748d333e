"""Decimals as Python objects."""

from __future__ import annotations

import decimal
from collections.abc import Iterable

# Digits enough for the largest decimal of a column: no conversion rounds.
EXACT = decimal.Context(prec=100, traps=[decimal.Inexact, decimal.InvalidOperation])


def decimals(unscaled: Iterable[int], scale: int) -> list[decimal.Decimal]:
    """Decimals of unscaled integers, each worth 10 ** -scale."""
    return [decimal.Decimal(integer).scaleb(-scale, EXACT) for integer in unscaled]
