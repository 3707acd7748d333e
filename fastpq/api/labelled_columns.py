"""DataFrames from a file or a dataset, with columns and filters that use the DataFrame labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastpq.convert.dataframe_labels import fields_by_label
from fastpq.convert.dataframes import dataframe_of
from fastpq.convert.pandas_metadata import PANDAS_KEY, PandasMetadata, pandas_metadata
from fastpq.errors import SchemaError
from fastpq.filters.combinations import is_condition, junction
from fastpq.read.missing_keys import MISSING_KEYS, names_in_report

if TYPE_CHECKING:
    import pandas

    from fastpq.arrays.table import Table


def frame_by(
    metadata: PandasMetadata,
    read: Callable[..., Table],
    names: Sequence[str],
    columns: Any,
    filters: Any,
    dtype_backend: Any,
    types_mapper: Callable[[Any], Any] | None,
) -> pandas.DataFrame:
    """Return the rows in a file or a dataset as a DataFrame, following pandas' metadata. The index is always read.

    Args:
        metadata: pandas' metadata.
        read: function (columns, filters=...) that returns the rows as a Table.
        names: field names.
        columns: labels or fields. None reads all columns.
        filters: conditions on labels or fields.
        dtype_backend, types_mapper: as in ``read_pandas``.

    Raises:
        SchemaError: a number is not a label.
        ParquetError: as in ``read`` and ``dataframe_of``.
    """
    by_label = fields_by_label(names, metadata)
    if isinstance(columns, Iterable) and not isinstance(columns, str):
        columns = [field_of_label(column, by_label) for column in columns]
        columns += [name for name in metadata.index if name in names and name not in columns]
    table = read(columns, filters=with_fields(filters, by_label))
    own_text = table.metadata.get(PANDAS_KEY)
    if metadata.text is not None and own_text is not None and own_text != metadata.text:   # files with other categories
        metadata = replace(metadata, columns={**metadata.columns, **pandas_metadata(table.metadata.get).columns})
    frame = dataframe_of(table, metadata, dtype_backend, types_mapper)
    if missing_names := names_in_report(table):
        frame.attrs[MISSING_KEYS] = missing_names
    return frame


def field_of_label(label: Any, by_label: Mapping[Any, str]) -> Any:
    """Return the field for a column label. A label that is text stays as it is. If all labels are text, any key stays as it is.

    Raises:
        SchemaError: a number is not a label.
    """
    if isinstance(label, Hashable) and label in by_label:
        return by_label[label]
    if by_label and not isinstance(label, str | tuple):
        raise SchemaError(f"no column has the label {label!r}; there are {[*by_label][:10]}")
    return label


def with_fields(filters: Any, by_label: Mapping[Any, str]) -> Any:
    """Replace column labels by fields in filters, and return the filters."""
    if not by_label or filters is None:
        return filters
    if (connective := junction(filters)) is not None:
        kind, parts = connective
        return kind(*(with_fields(part, by_label) for part in parts))
    if is_condition(filters):
        return (field_of_label(filters[0], by_label), *filters[1:])
    return filters
