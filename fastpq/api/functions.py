"""Functions to read the table, the pandas DataFrame, the footer or the schema of a file."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from fastpq.api.file import ParquetFile
from fastpq.api.indexed_file import RowRangesLike
from fastpq.api.reader_options import PLACING, ReaderOptions, reading, taken_place
from fastpq.arrays.table import Table
from fastpq.common.extensions import registered
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Progress
from fastpq.errors import SchemaError
from fastpq.io.location import Remote, locate
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnKey, ParquetSchema

if TYPE_CHECKING:
    import pandas

    from fastpq.convert import dataframes
else:
    pandas = LazyModule("pandas")
    dataframes = LazyModule("fastpq.convert.dataframes")


@reading
def read_table(
    where: Any,
    columns: Iterable[ColumnKey] | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    row_ranges: RowRangesLike | None = None,
    filters: Any = None,
    out: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Unpack[ReaderOptions],
) -> Table:
    """Read a file into memory, by a ParquetFile; or a directory, a glob or a list of files, by ``read_dataset``.

    Args:
        where: a path, a bytes-like object, a URL known to fsspec, or a binary file object; a directory, a glob, or a list of
            paths and URLs.
        columns: names (dotted paths for leaves of groups) or numbers, in the order of the result; None for all. Of a dataset,
            names of whole columns.
        row_groups: indices, in the order of the result; None for all.
        row_ranges: rows of the file as ``(start, stop)`` each, ascending, counted from 0 through all row groups; None for all.
        filters: conditions on rows: ``(column, op, value)``, lists of conditions, or And and Or, as for ``ParquetFile.read``.
        out: arrays to read columns into, by name, as for ``ParquetFile.read``.
        progress: called as ``progress(done, total)`` after each column chunk, in rows; the last call is
            ``(total, total)``.
        **options: any of the options of readers:

    Returns:
        A Table of the chosen columns and rows, in the order of the file.

    Raises:
        FormatError: not a Parquet file, or bytes in breach of the specification.
        SchemaError: columns, row groups, rows, filters or arrays unfit for the file.
        KeyAccessError, TagVerificationError: encrypted parts cannot be opened.
        UnsupportedError, LimitError: see fastpq.errors.
    """
    given: dict[str, Any] = {**options}
    if not given.keys().isdisjoint(PLACING):
        where = taken_place(where, given)
    if not isinstance(where, list | tuple):
        try:
            with ParquetFile(where, **given) as file:
                return file.read(
                    columns, row_groups=row_groups, row_ranges=row_ranges, filters=filters, out=out, progress=progress
                )
        except (FileNotFoundError, IsADirectoryError):
            if not _names_a_dataset(where):
                raise
    _refuse_for_datasets(row_groups=row_groups, row_ranges=row_ranges, out=out)
    table: Table = _of_datasets("read_dataset")(where, columns, filters=filters, progress=progress, **given)
    return table


@reading
def read_pandas(
    where: Any,
    columns: Iterable[ColumnKey] | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    filters: Any = None,
    dtype_backend: dataframes.Backend | None = None,
    progress: Progress | None = None,
    **options: Unpack[ReaderOptions],
) -> pandas.DataFrame:
    """Read a file as a pandas DataFrame, with the index, labels, categories and dtypes of the file's metadata.

    Categories have the order of the metadata of fastpq's files, or of the dictionary pages. Values of ordered categories whose
    order is in neither place are no categorical.

    Args:
        where: a path, a bytes-like object, a URL known to fsspec, or a binary file object; a directory, a glob, or a list of
            paths and URLs (``read_dataset``).
        columns: names (dotted paths for leaves of groups) or numbers; None for all. The index comes in any case. Of a DataFrame
            whose labels are not text, the labels; filters name the columns so too.
        row_groups: indices, in the order of the result; None for all.
        filters: conditions on rows: ``(column, op, value)``, lists of conditions, or And and Or, as for ``ParquetFile.read``.
        dtype_backend: ``"numpy_nullable"`` for pandas' nullable dtypes, ``"pyarrow"`` for pandas' Arrow dtypes in all columns, as
            for ``pandas.read_parquet``; None for the dtypes of the metadata.
        progress: called as ``progress(done, total)``, in rows, as for ``read_table``.
        **options: any of the options of readers:

    Raises:
        UnsupportedError: pandas is not installed.
        ParquetError: as ``read_table``.
    """
    given: dict[str, Any] = {**options}
    if not given.keys().isdisjoint(PLACING):
        where = taken_place(where, given)
    if not isinstance(where, list | tuple):
        try:
            with ParquetFile(where, **given) as file:
                return file.to_pandas(
                    columns, row_groups=row_groups, filters=filters, dtype_backend=dtype_backend, progress=progress
                )
        except (FileNotFoundError, IsADirectoryError):
            if not _names_a_dataset(where):
                raise
    _refuse_for_datasets(row_groups=row_groups)
    frame: pandas.DataFrame = _of_datasets("read_frame")(
        where, columns, filters=filters, dtype_backend=dtype_backend, progress=progress, **given
    )
    return frame


def _names_a_dataset(where: Any) -> bool:
    """Whether where is a directory or a glob."""
    place = locate(where)
    if isinstance(place, Remote):
        return glob.has_magic(place.path) or place.filesystem.isdir(place.path)
    return place is not None and (os.path.isdir(place) or (glob.has_magic(place) and not os.path.exists(place)))


def _refuse_for_datasets(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise SchemaError(f"{name} is an argument for one file, not for a directory, a glob or a list of files")


def _of_datasets(role: str) -> Callable[..., Any]:
    """A function of the room of datasets."""
    function = registered(role)
    assert function is not None, "fastpq registers the functions of fastpq.datasets"
    return function


@reading
def read_metadata(
    where: Any,
    **options: Unpack[ReaderOptions],
) -> FileMetaData:
    """The footer of a file (parquet.thrift, ``FileMetaData``).

    Args:
        where: a path, a bytes-like object, a URL known to fsspec, or a binary file object.
        **options: any of the options of readers:

    Raises:
        FormatError: not a Parquet file, or a broken footer.
        KeyAccessError, TagVerificationError: the footer is encrypted and cannot be opened.
    """
    with ParquetFile(where, **options) as file:
        return file.metadata


@reading
def read_schema(
    where: Any,
    **options: Unpack[ReaderOptions],
) -> ParquetSchema:
    """The schema of a file.

    Args:
        where: a path, a bytes-like object, a URL known to fsspec, or a binary file object.
        **options: any of the options of readers:

    Raises:
        FormatError: not a Parquet file, or a broken footer.
        KeyAccessError, TagVerificationError: the footer is encrypted and cannot be opened.
    """
    with ParquetFile(where, **options) as file:
        return file.schema
