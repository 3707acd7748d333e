"""Tables to pandas DataFrames, with the index, the labels and the dtypes of pandas' metadata and of Arrow fields.

pyarrow is not needed, except for pandas' own Arrow dtypes. Text is faster with pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from fastpq.arrays.table import Table
from fastpq.convert.dataframe_labels import column_labels
from fastpq.convert.pandas_metadata import ATTRIBUTES_KEY, PANDAS_KEY, PandasMetadata, RangeLevel, name_of_level, pandas_metadata
from fastpq.convert.series import Backend, index_of, series_of
from fastpq.errors import ParquetError, SchemaError, UnsupportedError

if TYPE_CHECKING:
    import pandas

__all__ = ["Backend", "dataframe_of", "dataframe_of_table"]


def dataframe_of_table(table: Table, dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None) -> pandas.DataFrame:
    """A DataFrame of a table, by pandas' metadata among the table's metadata.

    Args:
        table: the columns.
        dtype_backend: as for ``dataframe_of``.

    Raises:
        ParquetError: as ``dataframe_of``.
    """
    described = pandas_metadata(table.metadata.get(PANDAS_KEY), table.metadata.get(ATTRIBUTES_KEY))
    return dataframe_of(table, described, dtype_backend)


def dataframe_of(
    table: Table, described: PandasMetadata | None = None, dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None
) -> pandas.DataFrame:
    """A DataFrame of a table.

    Integers and booleans with nulls become pandas' nullable dtypes if named in the metadata, else floats and objects.

    Args:
        table: the columns.
        described: pandas' metadata; None without metadata.
        dtype_backend: ``"numpy_nullable"`` for pandas' nullable dtypes, ``"pyarrow"`` for pandas' Arrow dtypes in all columns;
            None for the dtypes of the metadata.

    Raises:
        FormatError: a column's values contradict the metadata.
        SchemaError: an unknown dtype_backend.
        UnsupportedError: pandas is not installed.
    """
    if dtype_backend not in (None, *get_args(Backend)):
        raise SchemaError(f"dtype_backend is one of {get_args(Backend)} or None, not {dtype_backend!r}")
    try:
        import pandas as pd
    except ImportError as error:
        raise UnsupportedError("a DataFrame needs the package pandas (pip install pandas)") from error
    described = described or PandasMetadata()
    series: list[Any] = []
    for name, column in table.items():
        try:
            series.append(series_of(column, described.columns.get(name, {}), dtype_backend))
        except ParquetError as error:
            raise error.at(column=name) from None
    names = table.names
    index = [name for name in described.index if names.count(name) == 1]
    kept = [(name, values) for name, values in zip(names, series, strict=True) if name not in index]
    rows = _index(described, dict(zip(names, series, strict=True)), index, table.num_rows)
    for _, values in kept:
        values.index = rows
    frame = pd.DataFrame(dict(enumerate(values for _, values in kept)), index=rows, copy=False)
    frame.columns = column_labels([name for name, _ in kept], described)
    frame.attrs = dict(described.attributes)
    return frame


def _index(described: PandasMetadata, series: dict[str, Any], fields: list[str], rows: int) -> pandas.Index[Any]:
    """The index of the metadata, of fields and of ranges of as many rows; 0, 1, 2 ... without."""
    import pandas as pd

    levels: list[Any] = []
    for level in described.levels:
        if isinstance(level, RangeLevel):
            bounds = level.bounds
            if len(bounds) == rows:
                levels.append(pd.RangeIndex(bounds.start, bounds.stop, bounds.step, name=level.name))
        elif level in fields:
            label = name_of_level(described.columns.get(level, {"name": level}).get("name"))
            levels.append(index_of(series[level], label))
    if len(levels) > 1:
        return pd.MultiIndex.from_arrays(levels, names=[level.name for level in levels])
    return levels[0] if levels else pd.RangeIndex(rows)
