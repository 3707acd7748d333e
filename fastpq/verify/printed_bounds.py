"""Bounds and values as texts in messages of violations."""

from __future__ import annotations

from fastpq.common.display import shorten
from fastpq.errors import ParquetError
from fastpq.filters.answers import values_of
from fastpq.filters.evidence import key_of_bound
from fastpq.filters.literals import domain_of
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.usable_statistics import UsableStatistics

LONGEST_TEXT = 40       # characters of a value in a message


def contrast(column: ColumnDescriptor, usable: UsableStatistics, noun: str, bound: bytes, value: bytes, owner: str) -> str:
    """Return a sentence with a bound and the value that it does not enclose, or "" if they cannot be printed.

    Args:
        column: the column.
        usable: how bounds are compared.
        noun: what the bound is.
        bound, value: in the form of statistics.
        owner: what holds the value.
    """
    texts = [_printed(column, usable, each) for each in (bound, value)]
    if None in texts or texts[0] == texts[1]:       # long texts may differ in the part that is cut off
        return ""
    return f": the {noun} is {texts[0]}, but the {owner} holds {texts[1]}"


def _printed(column: ColumnDescriptor, usable: UsableStatistics, bound: bytes) -> str | None:
    try:
        key = key_of_bound(domain_of(column.type), usable, bound)
        if key is None:
            return None
        (value,) = values_of([key], column.type)
    except (ParquetError, ValueError, NotImplementedError):     # a cut text, or a type without an order
        return None
    if isinstance(value, bytes):
        return shorten(f"0x{value.hex()}", LONGEST_TEXT)
    return shorten(repr(value) if isinstance(value, str) else str(value), LONGEST_TEXT)
