"""Columns of rows to be appended to a dataset, compared with the columns of a file that is there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import Table
from fastpq.datasets.discovery import DataFile, find_files, find_local_file
from fastpq.datasets.unify import DatasetField, field_of_column, given_fields, holds_same_values
from fastpq.errors import KeyAccessError, SchemaError
from fastpq.io.location import Remote, locate
from fastpq.schema.parquet_schema import ParquetSchema

_LACKING = "give the column, of nulls too, or check_schema=False, and readers fill it with nulls"
_NEW = "leave the column out, or give check_schema=False, and readers fill the files before with nulls"
_OTHER = "schema= casts values where nothing is lost, and check_schema=False appends other types"


class SchemaCheck:
    """Compares the first rows for a dataset with a file of the dataset.

    Args:
        root: the directory, or an fsspec URL.
        partition_by: names of the partition columns of the new rows.
        schema: types of columns that a caller gave; None for those of the rows.
    """

    def __init__(self, root: Any, partition_by: Sequence[str], schema: Any) -> None:
        self._root, self._partition_by = root, list(partition_by)
        self._given = {} if schema is None else given_fields(schema)
        self._is_done = False

    def check(self, table: Table) -> None:
        """Refuse rows of other columns than the files have, once; the file has the first path of the dataset.

        A file with an encrypted footer is not compared, since writers have no keys to read.

        Args:
            table: rows of a file, without partition columns.

        Raises:
            SchemaError: a column is missing, new or of another type, or other partition columns.
            FormatError: the file is no Parquet file.
        """
        if self._is_done:
            return
        self._is_done = True
        found = _first_file(self._root)
        if found is None:
            return
        try:
            with ParquetFile(found.where) as file:
                columns = file.read(row_groups=[])
                own = {name: field_of_column(name, column) for name, column in columns.items() if name not in found.partitions}
        except KeyAccessError:
            return
        self._compare_partitions(found)
        fields = {name: self._given.get(name) or field_of_column(name, column) for name, column in table.items()}
        _compare(own, fields, found.path)

    def _compare_partitions(self, found: DataFile) -> None:
        names = list(found.partitions)
        if names != self._partition_by:
            differing = [*set(names) ^ set(self._partition_by), *names]
            reason = f"the files are partitioned by {names}, and these rows by {self._partition_by} (check_schema=False)"
            raise SchemaError(reason, column=differing[0], path=found.path)


def _first_file(root: Any) -> DataFile | None:
    """The data file of the first path of a dataset; None for a dataset without a file."""
    located = locate(root)
    if isinstance(located, str):
        return find_local_file(located) if os.path.isdir(located) else None
    if not isinstance(located, Remote):
        return None
    try:
        return find_files(root)[0]
    except FileNotFoundError:
        return None


def _compare(own: Mapping[str, DatasetField], new: Mapping[str, DatasetField], path: str) -> None:
    for name in (name for name in own if name not in new):
        raise SchemaError(f"the rows lack a column of the dataset; {_LACKING}", column=name, path=path)
    for name, field in new.items():
        known = own.get(name)
        if known is None:
            raise SchemaError(f"the dataset has no column of the name; it has {[*own]}; {_NEW}", column=name, path=path)
        if not holds_same_values(known, field):
            raise SchemaError(f"{field} is not the {known} of the dataset; {_OTHER}", column=name, path=path)


def schema_without_partitions(schema: Any, partition_by: Sequence[str]) -> Any:
    """The schema of the files of a dataset, from a schema that may have the partition columns, too."""
    if schema is None or not partition_by:
        return schema
    if isinstance(schema, ParquetSchema):
        fields = given_fields(schema)
        return ParquetSchema.of(fields[name].field for name in fields if name not in partition_by)
    if hasattr(schema, "__arrow_c_schema__"):
        from fastpq.arrow.capsules_in import take_schema

        schema = {child.name: child for child in take_schema(schema.__arrow_c_schema__()).children}
    return {name: type_ for name, type_ in schema.items() if name not in partition_by} if isinstance(schema, Mapping) else schema
