"""Registry of functions of higher rooms for columns and tables: module and name by role, imported at the first call."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_REGISTERED: dict[str, str] = {}


def register_extension(role: str, where: str) -> None:
    """Register the function for a role, by module and name.

    Args:
        role: ``"export_schema"``, ``"export_array"``, ``"export_stream"``, ``"export_batches"`` or ``"export_request"`` of the
            Arrow C data interface, ``"column_of"`` for columns of arrays, ``"to_pandas"`` for DataFrames of tables,
            ``"read_dataset"`` and ``"read_frame"`` for directories in the place of a file, ``"statistics_of"`` for decoded
            statistics, or ``"to_pylist NAME"`` for structs of a logical type.
        where: the function, as ``"module:name"``.
    """
    _REGISTERED[role] = where


def registered(role: str) -> Callable[..., Any] | None:
    """The function of a role; None where no function is registered."""
    where = _REGISTERED.get(role)
    if where is None:
        return None
    module, _, name = where.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def export(what: str, *arguments: object) -> Any:
    """The capsules of the Arrow C data interface (https://arrow.apache.org/docs/format/CDataInterface.html).

    Args:
        what: ``"schema"``, ``"array"``, ``"stream"``, ``"batches"`` or ``"request"``.
        *arguments: the column, table or tables, and the requested schema.
    """
    function = registered(f"export_{what}")
    assert function is not None, "fastpq registers the functions of fastpq.arrow"
    return function(*arguments)
