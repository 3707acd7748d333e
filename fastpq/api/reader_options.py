"""The options of readers as keyword arguments: types, defaults and documentation in one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar

from fastpq import encryption
from fastpq.io.location import placed
from fastpq.options import MemoryMap, OnError, ReaderProperties, listed, show_options
from fastpq.read.opener import StringLayout
from fastpq.schema.parquet_schema import Int96UnitName

Reader = TypeVar("Reader")


class DatasetReaderOptions(TypedDict, total=False):
    """Options of readers of files and datasets, for ``**options: Unpack[DatasetReaderOptions]``.

    Attributes:
        memory_map: ``"keep"`` maps a local file, and columns may be views of the map: nobody may truncate or change the file as
            long as a column is in use. False and True read the file, and a change of the file later changes no column.
        threads: number of chunks decoded at the same time; None for one a core.
        strings: layout of variable-length values: ``"views"`` (no copy; many rows of few texts are codes until their views are
            asked for), ``"offsets"`` or ``"dictionary"`` (codes).
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory. ``"ms"``, ``"us"``, ``"ns"``: values out of range are
            refused. ``"auto"``: nanoseconds, and where the values read of a column do not fit, microseconds, then milliseconds. A
            read has one unit for a column, in all row groups and batches; other rows may have another one. ``iter_batches``
            decodes INT96 columns twice for this, and ``read`` where a value does not fit.
        arrow_schema: give columns the Arrow types in the metadata's ARROW:schema on export to Arrow (fastpq.arrow.hints).
        properties: bounds and checks.
        on_error: treatment of unreadable values. ``"raise"``: the read fails. ``"null"``: unreadable values become null, in a
            nested column the whole row. ``"skip"``: rows with unreadable values in the columns of the read are left out. With
            ``"null"`` and ``"skip"`` the last checkpoint replaces a missing footer, and ``recovery`` lists the losses.
        filesystem: filesystem of the path, of fsspec or of pyarrow.fs; None finds one by the URL.
        storage_options: options of the fsspec filesystem of a URL, as for pandas and Polars.
        timeout: most seconds without a byte from a server, for URLs of HTTP (30 by default) and S3.
    """

    memory_map: MemoryMap
    threads: int | None
    strings: StringLayout
    coerce_int96_timestamp_unit: Int96UnitName
    arrow_schema: bool
    properties: ReaderProperties | None
    on_error: OnError
    filesystem: Any
    storage_options: Mapping[str, Any] | None
    timeout: float | None


class ReaderOptions(DatasetReaderOptions, total=False):
    """Options of readers of one file, for ``**options: Unpack[ReaderOptions]``.

    Attributes:
        decryption_properties: keys, for encrypted files.
    """

    decryption_properties: encryption.FileDecryptionProperties | None


DEFAULTS: dict[str, Any] = {
    "memory_map": False,
    "threads": None,
    "strings": "views",
    "coerce_int96_timestamp_unit": "auto",
    "arrow_schema": True,
    "properties": None,
    "on_error": "raise",
    "filesystem": None,
    "storage_options": None,
    "timeout": None,
    "decryption_properties": None,
}
# Options that name a place together with a path.
PLACING = ("filesystem", "storage_options", "timeout")
_ENTRY = re.compile(r"^( *)\*\*options: any of the options of readers:\n", re.MULTILINE)


def unknown(options: Mapping[str, Any]) -> TypeError:
    """The error of unknown options: near names, or what to do for those of other libraries."""
    from fastpq.common.foreign_options import READING, unknown_options

    return unknown_options(sorted(options.keys() - DEFAULTS.keys()), DEFAULTS, READING)


def taken_place(where: Any, options: dict[str, Any]) -> Any:
    """A place by the options for places, which are taken out of the options.

    Raises:
        TypeError: an unknown option.
    """
    if not options.keys() <= DEFAULTS.keys():
        raise unknown(options)
    given = [options.pop(name, None) for name in PLACING]
    return placed(where, *given)


def reading(target: Reader) -> Reader:
    """Show the options of readers in the signature and the docstring of a function or class with ``**options``.

    A target with an argument ``decryption_properties`` of its own has the options of datasets.
    """
    function: Any = target.__init__ if isinstance(target, type) else target     # type: ignore[misc]
    kind = DatasetReaderOptions if "decryption_properties" in function.__annotations__ else ReaderOptions
    types = {name: hint.__forward_arg__ for name, hint in kind.__annotations__.items()}
    show_options(target, {name: (default, types[name]) for name, default in DEFAULTS.items() if name in types})
    target.__doc__ = with_options_of_readers(target.__doc__)
    return target


def with_options_of_readers(docstring: str | None) -> str | None:
    """A docstring with the list of the options of readers below its entry ``**options``; None without docstrings."""
    attributes = DatasetReaderOptions.__doc__
    if attributes is not None and docstring is not None and "decryption_properties: " not in docstring:
        attributes += (ReaderOptions.__doc__ or "").partition("Attributes:")[2]
    return listed(docstring, attributes, _ENTRY)
