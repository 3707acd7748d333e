"""Columns and filters of ``read_pandas`` by the labels of the DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastpq.errors import SchemaError
from fastpq.filters.predicate import And, Or


def field_of_label(label: Any, by_label: Mapping[Any, str]) -> Any:
    """The field of a column label; a label that is text, or any key of a file without other labels, stays.

    Raises:
        SchemaError: a number that is no label.
    """
    if label in by_label:
        return by_label[label]
    if by_label and not isinstance(label, str | tuple):
        raise SchemaError(f"no column has the label {label!r}; there are {[*by_label][:10]}")
    return label


def with_fields(filters: Any, by_label: Mapping[Any, str]) -> Any:
    """Filters with fields in the place of column labels."""
    if not by_label or filters is None:
        return filters
    if isinstance(filters, And | Or):
        return type(filters)(*(with_fields(child, by_label) for child in filters.children))
    if isinstance(filters, list):
        return [with_fields(child, by_label) for child in filters]
    if isinstance(filters, tuple) and filters:
        return (field_of_label(filters[0], by_label), *filters[1:])
    return filters
