"""DataFrames of files, and their columns and filters by the labels of the DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fastpq.convert.dataframe_labels import fields_by_label
from fastpq.convert.dataframes import dataframe_of
from fastpq.convert.pandas_metadata import ATTRIBUTES_KEY, PANDAS_KEY, PandasMetadata, pandas_metadata
from fastpq.convert.series import becomes_objects
from fastpq.errors import SchemaError
from fastpq.filters.predicate import is_condition, junction

if TYPE_CHECKING:
    import pandas

    from fastpq.api.file import ParquetFile
    from fastpq.arrays.table import Table
    from fastpq.common.progress import Progress
    from fastpq.schema.parquet_schema import ColumnKey


def frame_of_file(
    file: ParquetFile,
    columns: Iterable[ColumnKey] | None,
    row_groups: Iterable[int] | None,
    filters: Any,
    dtype_backend: Any,
    progress: Progress | None,
) -> pandas.DataFrame:
    """The rows of a file as a DataFrame; arguments and errors as for ``ParquetFile.to_pandas``."""
    described = pandas_metadata(file.metadata.key_value(PANDAS_KEY), file.metadata.key_value(ATTRIBUTES_KEY))
    if dtype_backend is None:
        file = file._by_codes(lambda leaf: becomes_objects(leaf.type, described.columns.get(leaf.name, {})))
    read = partial(file.read, row_groups=row_groups, progress=progress)
    return frame_by(described, read, file.schema.names, columns, filters, dtype_backend)


def frame_by(
    described: PandasMetadata, read: Callable[..., Table], names: Sequence[str], columns: Any, filters: Any, dtype_backend: Any
) -> pandas.DataFrame:
    """The rows of a file or a dataset as a DataFrame by pandas' metadata, with the index whatever the chosen columns.

    Args:
        described: pandas' metadata.
        read: returns the rows, by columns and ``filters=``.
        names: the fields.
        columns: labels or fields; None for all.
        filters: conditions on labels or fields.
        dtype_backend: as for ``read_pandas``.

    Raises:
        SchemaError: a number that is no label.
        ParquetError: as ``read`` and ``dataframe_of``.
    """
    by_label = fields_by_label(names, described)
    if isinstance(columns, Iterable) and not isinstance(columns, str):
        columns = [field_of_label(column, by_label) for column in columns]
        columns += [name for name in described.index if name in names and name not in columns]
    return dataframe_of(read(columns, filters=with_fields(filters, by_label)), described, dtype_backend)


def field_of_label(label: Any, by_label: Mapping[Any, str]) -> Any:
    """The field of a column label; a label that is text, or any key of a file without other labels, stays.

    Raises:
        SchemaError: a number that is no label.
    """
    if isinstance(label, Hashable) and label in by_label:
        return by_label[label]
    if by_label and not isinstance(label, str | tuple):
        raise SchemaError(f"no column has the label {label!r}; there are {[*by_label][:10]}")
    return label


def with_fields(filters: Any, by_label: Mapping[Any, str]) -> Any:
    """Filters with fields in the place of column labels."""
    if not by_label or filters is None:
        return filters
    if (found := junction(filters)) is not None:
        kind, parts = found
        return kind(*(with_fields(part, by_label) for part in parts))
    if is_condition(filters):
        return (field_of_label(filters[0], by_label), *filters[1:])
    return filters
