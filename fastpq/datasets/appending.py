"""Compares rows that are appended to a dataset with the columns of one of its files, and casts narrower numbers."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import AnyColumn, Table
from fastpq.convert.fitting import fit
from fastpq.datasets.discovery import DataFile, find_files, find_local_file
from fastpq.datasets.unify import DatasetField, field_of_column, given_fields, holds_same_values, is_wider_number
from fastpq.errors import KeyAccessError, ParquetError, SchemaError
from fastpq.io.location import Remote, locate
from fastpq.schema.parquet_schema import ParquetSchema

_MISSING_ADVICE = "give the column, even if it has nulls alone, or check_schema=False to let readers fill it with nulls"
_NEW_ADVICE = "leave the column out, or give check_schema=False to let readers fill it with nulls in the earlier files"
_TYPE_ADVICE = "schema= casts values where nothing is lost, and check_schema=False appends other types"


class SchemaCheck:
    """Check that compares the rows for a dataset with one of its files.

    Args:
        root: the directory, or an fsspec URL.
        partition_by: partition column names for the new rows.
        schema: column types from the caller, or None for the types that the rows have.
        partitioning: ``"hive"``, or ``"directory"`` for directories without names.
    """

    def __init__(self, root: Any, partition_by: Sequence[str], schema: Any, partitioning: str = "hive") -> None:
        self._root, self._partition_by, self._partitioning = root, list(partition_by), partitioning
        self._types = {} if schema is None else given_fields(schema)
        self._is_done = False
        self._casts: dict[str, DatasetField] = {}       # the dataset's columns that are wider than those of the first rows

    def checked(self, table: Table) -> Table:
        """Return rows with the types of the first file of the dataset. Only the first call compares columns.

        The first file is the one whose path comes first. Integers and floats of the rows may be narrower than those of the file,
        and are cast. A file with an encrypted footer is not compared, because writers have no keys to read it.

        Args:
            table: rows for a file, without partition columns.

        Raises:
            SchemaError: a column is missing, is new or has another type, a value does not fit the type of the dataset, or the
                partition columns differ.
            FormatError: the file is not a Parquet file.
        """
        if not self._is_done:
            self._is_done = True
            self._look(table)
        if not self._casts:
            return table
        columns = {name: self._cast(name, column) if name in self._casts else column for name, column in table.items()}
        return Table(columns, num_rows=table.num_rows, metadata=table.metadata)

    def _look(self, table: Table) -> None:
        first = _first_file(self._root)
        if first is None:
            return
        try:
            with ParquetFile(first.where) as file:
                columns = file.read(row_groups=[])
                own = {name: field_of_column(name, column) for name, column in columns.items() if name not in first.partitions}
        except KeyAccessError:
            return
        if self._partitioning == "hive":
            self._compare_partitions(first)
        fields = {name: self._types.get(name) or field_of_column(name, column) for name, column in table.items()}
        self._casts = _compare(own, fields, self._types.keys(), first.path)

    def _cast(self, name: str, column: AnyColumn) -> AnyColumn:
        field = self._casts[name].field
        try:
            return column if column.type == field.type else fit(column, field, None)
        except ParquetError as error:
            raise error.at(column=name) from None

    def _compare_partitions(self, file: DataFile) -> None:
        names = list(file.partitions)
        if names != self._partition_by:
            differing = [*set(names) ^ set(self._partition_by), *names]
            reason = f"the files are partitioned by {names}, and these rows by {self._partition_by} (check_schema=False)"
            raise SchemaError(reason, column=differing[0], path=file.path)


def _first_file(root: Any) -> DataFile | None:
    """Return the data file of the dataset whose path comes first, or None if there is no file."""
    place = locate(root)
    if isinstance(place, str):
        return find_local_file(place) if os.path.isdir(place) else None
    if not isinstance(place, Remote):
        return None
    try:
        return find_files(root)[0]
    except FileNotFoundError:
        return None


def _compare(
    own: Mapping[str, DatasetField], new: Mapping[str, DatasetField], requested_names: Collection[str], path: str
) -> dict[str, DatasetField]:
    """Return the dataset's columns that are wider than those of the rows.

    Args:
        own: the dataset's columns.
        new: the columns of the rows.
        requested_names: columns whose types the caller has chosen. They are not cast.
        path: path of the file that has the dataset's columns.

    Raises:
        SchemaError: a column is missing, is new, or has a type that does not fit.
    """
    casts = {}
    for name in (name for name in own if name not in new):
        raise SchemaError(f"the rows lack a column of the dataset: {_MISSING_ADVICE}", column=name, path=path)
    for name, field in new.items():
        own_field = own.get(name)
        if own_field is None:
            raise SchemaError(f"the dataset has no column of this name. It has {[*own]}: {_NEW_ADVICE}", column=name, path=path)
        if holds_same_values(own_field, field):
            continue
        if name in requested_names or not is_wider_number(own_field, field):
            reason = f"{field} is not the {own_field} of the dataset: {_TYPE_ADVICE}"
            raise SchemaError(reason, column=name, path=path)
        casts[name] = own_field
    return casts


def schema_without_partitions(schema: Any, partition_by: Sequence[str]) -> Any:
    """Return the schema for a dataset's files, from a schema that may also have the partition columns."""
    if schema is None or not partition_by:
        return schema
    if isinstance(schema, ParquetSchema):
        fields = given_fields(schema)
        return ParquetSchema.of(fields[name].field for name in fields if name not in partition_by)
    if hasattr(schema, "__arrow_c_schema__"):
        from fastpq.arrow.capsules_in import take_schema

        schema = {child.name: child for child in take_schema(schema.__arrow_c_schema__()).children}
    return {name: type_ for name, type_ in schema.items() if name not in partition_by} if isinstance(schema, Mapping) else schema
