"""DataFrames of files, and their columns and filters by the labels of the DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    columns, filters = of_fields(columns, filters, file.schema.names, described)
    if dtype_backend is None:
        file = file._by_codes(lambda leaf: becomes_objects(leaf.type, described.columns.get(leaf.name, {})))
    table = file.read(columns, row_groups=row_groups, filters=filters, progress=progress)
    return dataframe_of(table, described, dtype_backend)


def of_fields(columns: Any, filters: Any, names: Sequence[str], described: PandasMetadata) -> tuple[Any, Any]:
    """Columns and filters by fields in the place of labels; the columns with the index.

    Args:
        columns: labels or fields; None for all.
        filters: conditions on labels or fields.
        names: the fields.
        described: pandas' metadata.

    Raises:
        SchemaError: a number that is no label.
    """
    by_label = fields_by_label(names, described)
    filters = with_fields(filters, by_label)
    if isinstance(columns, Iterable) and not isinstance(columns, str):
        columns = [field_of_label(column, by_label) for column in columns]
        columns += [name for name in described.index if name in names and name not in columns]
    return columns, filters


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
    if (found := junction(filters)) is not None:
        kind, parts = found
        return kind(*(with_fields(part, by_label) for part in parts))
    if is_condition(filters):
        return (field_of_label(filters[0], by_label), *filters[1:])
    return filters
