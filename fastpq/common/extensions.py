"""Registry through which lower rooms call functions in higher rooms.

A function is registered by its module and name, and imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_REGISTERED: dict[str, str] = {}


def register_extension(role: str, where: str) -> None:
    """Register the function for a role, by module and name.

    Args:
        role: ``"export_schema"``, ``"export_array"``, ``"export_stream"``, ``"export_batches"``, ``"export_pyarrow_request"`` or
            ``"export_polars_request"`` for the Arrow C data interface. ``"column_of"`` makes columns from arrays.
            ``"to_pandas"`` makes DataFrames from tables. ``"read_dataset"`` and ``"read_frame"`` read a directory if the caller
            gives one in place of a file. ``"empty_table"`` makes a table without rows for a schema.
            ``"settle_metadata"`` updates the ``_metadata`` file that names a changed local file.
            ``"statistics_of"`` decodes statistics. ``"to_pylist NAME"`` converts structs that have the logical type NAME.
        where: the function, as ``"module:name"``.
    """
    _REGISTERED[role] = where


def registered(role: str) -> Callable[..., Any] | None:
    """Return the function for a role, or None if none is registered."""
    where = _REGISTERED.get(role)
    if where is None:
        return None
    module, _, name = where.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def export(what: str, *arguments: object) -> Any:
    """Return capsules for the Arrow C data interface (https://arrow.apache.org/docs/format/CDataInterface.html).

    Args:
        what: ``"schema"``, ``"array"``, ``"stream"``, ``"batches"``, ``"pyarrow_request"`` or ``"polars_request"``.
        *arguments: the column, table or tables, and the requested schema.
    """
    function = registered(f"export_{what}")
    assert function is not None, "fastpq registers the functions of fastpq.arrow"
    return function(*arguments)
