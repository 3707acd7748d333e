"""pandas DataFrames from tables, with the index, labels and dtypes that pandas' metadata and Arrow fields describe.

pyarrow is needed only for pandas' own Arrow dtypes. With pyarrow, text is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from fastpq.arrays.table import Table
from fastpq.convert.dataframe_labels import column_labels
from fastpq.convert.pandas_metadata import PandasMetadata, RangeLevel, name_of_level, pandas_metadata
from fastpq.convert.series import Backend, index_of, numbers_as_stored, series_of
from fastpq.errors import ParquetError, SchemaError, UnsupportedError

if TYPE_CHECKING:
    import pandas

__all__ = ["Backend", "dataframe_of", "dataframe_of_table"]

# Columns of numbers get blocks in common if there are at least so many, and if they have at most so many rows. Longer columns are
# not copied.
FEWEST_IN_A_BLOCK = 64
MOST_ROWS_IN_A_BLOCK = 4096


def dataframe_of_table(table: Table, dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None) -> pandas.DataFrame:
    """Return a table as a DataFrame, following the pandas metadata that the table's metadata hold.

    Args:
        table: the columns.
        dtype_backend: as for ``dataframe_of``.

    Raises:
        ParquetError: as ``dataframe_of``.
    """
    metadata = pandas_metadata(table.metadata.get)
    return dataframe_of(table, metadata, dtype_backend)


def dataframe_of(
    table: Table,
    metadata: PandasMetadata | None = None,
    dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
    types_mapper: Callable[[Any], Any] | None = None,
) -> pandas.DataFrame:
    """Return a table as a DataFrame.

    Integers and booleans with nulls become pandas' nullable dtypes if the metadata name these, and floats and objects otherwise.

    Args:
        table: the columns.
        metadata: pandas' metadata, or None.
        dtype_backend: ``"numpy_nullable"`` for pandas' nullable dtypes, ``"pyarrow"`` for pandas' Arrow dtypes in all columns, or
            None for the dtypes in the metadata.
        types_mapper: function from a pyarrow type to the pandas extension dtype of columns with this type, or to None for the
            dtype that the columns would have otherwise.

    Raises:
        FormatError: values in a column contradict the metadata.
        SchemaError: an unknown dtype_backend.
        UnsupportedError: pandas is not installed.
    """
    if dtype_backend not in (None, *get_args(Backend)):
        raise SchemaError(f"dtype_backend must be one of {get_args(Backend)} or None, not {dtype_backend!r}")
    try:
        import pandas as pd
    except ImportError as error:
        raise UnsupportedError("a DataFrame needs the package pandas (pip install pandas)") from error
    metadata = metadata or PandasMetadata()
    names = table.names
    index = {name for name in metadata.index if names.count(name) == 1}
    numbers = {} if dtype_backend or types_mapper else _short_numbers(table, metadata, index)
    series: dict[int, Any] = {}
    mapped = _mapped_series(table, types_mapper)
    for number, (name, column) in enumerate(table.items()):
        if number in numbers:
            continue
        try:
            own = mapped.get(number)
            series[number] = series_of(column, metadata.columns.get(name, {}), dtype_backend) if own is None else own
        except ParquetError as error:
            raise error.at(column=name) from None
    rows = _index(metadata, {names[number]: values for number, values in series.items()}, index, table.num_rows)
    labelled_columns = [number for number, name in enumerate(names) if name not in index]
    labelled_series = {number: series[number] for number in labelled_columns if number not in numbers}
    for values in labelled_series.values():
        values.index = rows
    frame = pd.DataFrame(labelled_series, index=rows, copy=False)
    if numbers:
        frames = [*_frames_of_numbers(numbers, rows), *([frame] if labelled_series else [])]
        frame = frames[0] if len(frames) == 1 else pd.concat(frames, axis=1)[labelled_columns]
    frame.columns = column_labels([names[number] for number in labelled_columns], metadata)
    frame.attrs = dict(metadata.attributes)
    return frame


def _short_numbers(table: Table, metadata: PandasMetadata, index: Collection[str]) -> dict[int, Any]:
    """Return the values of short columns of numbers by column number. They are empty unless there are many such columns.

    One block of pandas holds all of them with one dtype. A Series for each would take longer than the read.
    """
    if len(table) < FEWEST_IN_A_BLOCK or table.num_rows > MOST_ROWS_IN_A_BLOCK:
        return {}
    numbers = {}
    for number, (name, column) in enumerate(table.items()):
        if name not in index and (values := numbers_as_stored(column, metadata.columns.get(name, {}))) is not None:
            numbers[number] = values
    return numbers if len(numbers) >= FEWEST_IN_A_BLOCK else {}


def _frames_of_numbers(numbers: Mapping[int, Any], rows: pandas.Index[Any]) -> list[pandas.DataFrame]:
    """Return a DataFrame for each dtype of some columns, which are labelled by their numbers."""
    import pandas as pd

    by_dtype: dict[Any, list[int]] = {}
    for number, values in numbers.items():
        by_dtype.setdefault(values.dtype, []).append(number)
    frames = []
    for dtype, own in by_dtype.items():
        block = np.concatenate([numbers[number] for number in own], dtype=dtype).reshape(len(own), len(rows))
        frames.append(pd.DataFrame(block.T, index=rows, columns=own, copy=False))
    return frames


def _mapped_series(table: Table, types_mapper: Callable[[Any], Any] | None) -> dict[int, Any]:
    """Return the series whose dtypes a function of Arrow types chooses, by column number."""
    if types_mapper is None:
        return {}
    import pandas as pd

    columns = table.to_arrow().columns
    dtypes = {number: types_mapper(column.type) for number, column in enumerate(columns)}
    return {
        number: pd.Series(dtype.__from_arrow__(columns[number])) for number, dtype in dtypes.items() if dtype is not None
    }


def _index(metadata: PandasMetadata, series: dict[str, Any], fields: Collection[str], rows: int) -> pandas.Index[Any]:
    """Return the index that the metadata describe by fields and ranges. If they describe none, number the rows from 0."""
    import pandas as pd

    levels: list[Any] = []
    for level in metadata.levels:
        if isinstance(level, RangeLevel):
            bounds = level.bounds
            if len(bounds) == rows:
                levels.append(pd.RangeIndex(bounds.start, bounds.stop, bounds.step, name=level.name))
        elif level in fields:
            label = name_of_level(metadata.columns.get(level, {"name": level}).get("name"))
            levels.append(index_of(series[level], label))
    if len(levels) > 1:
        return pd.MultiIndex.from_arrays(levels, names=[level.name for level in levels])
    return levels[0] if levels else pd.RangeIndex(rows)
