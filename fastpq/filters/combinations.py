"""And and Or, which combine filters, and functions that tell the forms of filters apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class And:
    """A filter that holds where all its children hold. The operator ``&`` makes one too.

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
    """A filter that holds where at least one child holds. The operator ``|`` makes one too.

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


def is_condition(filters: Any) -> bool:
    """Return whether a filter is one condition: a tuple or list with a column, an operator and at most one value."""
    return isinstance(filters, tuple | list) and len(filters) in (2, 3) and isinstance(filters[1], str)


def junction(filters: Any) -> tuple[type[And | Or], Sequence[Any]] | None:
    """Return And or Or, and the filters that it joins, or None for conditions, expressions and objects that are not filters."""
    if isinstance(filters, And | Or):
        return type(filters), filters.children
    if not isinstance(filters, list | tuple) or is_condition(filters):
        return None
    if isinstance(filters, tuple) and not all(isinstance(part, list | tuple | And | Or) for part in filters):
        return None
    alternatives = bool(filters) and all(isinstance(part, list | tuple) and not is_condition(part) for part in filters)
    return Or if alternatives else And, filters
