"""Functions that open a file, read from it and close it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fastpq.file import ParquetFile, RowRangesLike
from fastpq.metadata import FileMetaData
from fastpq.schema import ColumnKey, ParquetSchema
from fastpq.table import Table

if TYPE_CHECKING:
    import pandas


def read_table(
    where: Any,
    columns: Iterable[ColumnKey] | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    row_ranges: RowRangesLike | None = None,
    filters: Any = None,
    out: Mapping[str, Any] | None = None,
    **options: Any,
) -> Table:
    """Read a file into memory: ``ParquetFile(where, **options).read(columns, ...)``."""
    with ParquetFile(where, **options) as file:
        return file.read(columns, row_groups=row_groups, row_ranges=row_ranges, filters=filters, out=out)


def read_pandas(where: Any, columns: Iterable[ColumnKey] | None = None, **options: Any) -> pandas.DataFrame:
    """Read a file as a pandas DataFrame, with the index, categories and dtypes that its metadata tells of.

    Of categories that pyarrow wrote, the order is that in which they appear, for it stands in pyarrow's own metadata.

    Args:
        where: as for ParquetFile.
        columns: as for ``ParquetFile.read``; the index comes in any case.
        **options: ``filters`` and ``row_groups`` as for ``ParquetFile.read``, others as for ParquetFile.

    Raises:
        UnsupportedError: pandas is not installed.
        ParquetError: as ParquetFile and ``ParquetFile.read``.
    """
    from fastpq.conversion.dataframes import PANDAS_KEY, dataframe_of, pandas_metadata

    reading = {name: options.pop(name) for name in ("filters", "row_groups") if name in options}
    with ParquetFile(where, **options) as file:
        described = pandas_metadata(file.metadata.key_value_metadata.get(PANDAS_KEY))
        if columns is not None:
            columns = list(columns)
            columns += [name for name in described.index if name in file.schema.names and name not in columns]
        return dataframe_of(file.read(columns, **reading), described)


def read_metadata(where: Any, **options: Any) -> FileMetaData:
    """The footer of a file; options as for ParquetFile."""
    with ParquetFile(where, **options) as file:
        return file.metadata


def read_schema(where: Any, **options: Any) -> ParquetSchema:
    """The schema of a file; options as for ParquetFile."""
    with ParquetFile(where, **options) as file:
        return file.schema
