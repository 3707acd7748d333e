"""Values narrowed to the type that a test relies on; any other type fails the test."""

from __future__ import annotations

from typing import TypeVar

from fastpq.arrays.table import AnyColumn, Column

T = TypeVar("T")


def flat(column: AnyColumn) -> Column:
    """A column, which is not nested."""
    assert isinstance(column, Column)
    return column


def present(value: T | None) -> T:
    """A value, which is not None."""
    assert value is not None
    return value
