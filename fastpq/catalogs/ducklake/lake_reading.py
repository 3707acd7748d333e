"""Reads tables of a lake: columns by field id, without deleted rows, with filters, and with rows in the catalog itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import AnyColumn, Table
from fastpq.catalogs.ducklake.lake_catalog import DuckLakeFile, LakeCatalog, LakeColumn
from fastpq.catalogs.ducklake.lake_types import arrow_schema_of
from fastpq.catalogs.row_ranges import ranges_without
from fastpq.convert.caller_input import table_from
from fastpq.datasets.hive import partition_value
from fastpq.datasets.partition_filters import matching
from fastpq.datasets.unify import DatasetField, conform, field_of_column, given_fields, schema_of
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.filters.predicate import bind_filters, leaves
from fastpq.schema.types import ColumnType


@hides_arguments
def ducklake_files(
    connection: Any,
    table: str,
    *,
    schema: str = "main",
    snapshot: int | None = None,
    data_path: str | None = None,
    metadata: str | None = None,
) -> list[DuckLakeFile]:
    """Return the data files of a table in a lake, each with its keys and its deleted rows.

    Rows that the catalog itself holds (inlined data) are in no file.

    Args:
        connection, table, schema, snapshot, data_path, metadata: as for ``read_ducklake``.

    Raises:
        ParquetError: as ``read_ducklake``.
    """
    return LakeCatalog(connection, table, schema, snapshot, data_path, metadata).files()


@hides_arguments
def read_ducklake(
    connection: Any,
    table: str,
    columns: Iterable[str] | None = None,
    *,
    filters: Any = None,
    schema: str = "main",
    snapshot: int | None = None,
    data_path: str | None = None,
    metadata: str | None = None,
) -> Table:
    """Read a table of a lake, encrypted or not. The extension ducklake is not needed.

    Columns are found by field id. Deleted rows are left out. Filters rule out row groups and pages of the files. Rows that the
    catalog itself holds are read too.

    Args:
        connection: a connection of the package duckdb that sees the catalog database: ``duckdb.connect("lake.ducklake")``, or one
            that has attached the lake or the database.
        table: name of the table.
        columns: names of the columns, in result order, or None for all.
        filters: as for ``ParquetFile.read``, on the table's columns.
        schema: name of the table's schema.
        snapshot: number of the snapshot, or None for the newest.
        data_path: the lake's folder, or None for the one that the catalog names.
        metadata: name of the catalog database in the connection, for example ``"__ducklake_metadata_lake"`` if the lake is
            attached as ``lake``. None: it is the connection's own database.

    Raises:
        KeyAccessError: the lake is encrypted, and a file has no key.
        CryptoError: a file is not encrypted with its key.
        SchemaError: there is no such table, snapshot or column.
        UnsupportedError: pyarrow is not installed, the catalog is of another version, or a type or a kind of file is not known.
    """
    return _LakeTable(LakeCatalog(connection, table, schema, snapshot, data_path, metadata)).read(columns, filters)


class _LakeTable:
    def __init__(self, catalog: LakeCatalog) -> None:
        self._catalog = catalog
        self._fields: dict[str, DatasetField] = given_fields(arrow_schema_of(catalog.columns))
        self._columns = {column.name: column for column in catalog.columns}
        self._schema = schema_of(self._fields.values())

    def read(self, columns: Iterable[str] | None, filters: Any) -> Table:
        names = list(self._fields) if columns is None else list(columns)
        if unknown_names := [name for name in names if name not in self._fields]:
            raise SchemaError(f"the table has no column {', '.join(map(repr, unknown_names))}")
        conditions = [] if filters is None else leaves(bind_filters(filters, self._schema))
        filtered_names = {condition.column.path[0] for condition in conditions}
        read_names = list(dict.fromkeys([*names, *sorted(filtered_names)]))
        tables = [self._of_file(file, read_names, filtered_names, filters) for file in self._catalog.files()]
        tables += self._inlined(read_names, filters)
        if not tables:
            tables = [Table([(name, self._fields[name].of_nulls(0)) for name in read_names], num_rows=0)]
        return Table.concat([table.select(names) for table in tables])

    def _of_file(self, data_file: DuckLakeFile, names: Sequence[str], filtered_names: set[str], filters: Any) -> Table:
        """Return the matching rows of a data file."""
        with ParquetFile(data_file.path, decryption_properties=data_file.decryption_properties) as file:
            if file.num_rows != data_file.num_rows:
                raise SchemaError("a file has another number of rows than the catalog says", path=data_file.path)
            names_by_id = {node.element.field_id: node.element.name for node in file.schema.root.children}
            ids = {name: self._columns[name].field_id for name in names}
            own_names = {name: names_by_id[field_id] for name, field_id in ids.items() if field_id in names_by_id}
            own_types = file.read([(own,) for own in own_names.values()], row_groups=[])
            is_pushed = filters is not None and all(
                own_names.get(name) == name
                and field_of_column(name, own_types[name]).is_stored_as(self._fields[name])
                for name in filtered_names
            )
            row_ranges = ranges_without(data_file.deleted_rows, file.num_rows) if len(data_file.deleted_rows) else None
            rows = file.read(
                [(own,) for own in own_names.values()], row_ranges=row_ranges, filters=filters if is_pushed else None)
        columns = {name: rows[own] for name, own in own_names.items()}
        return self._whole(columns, rows.num_rows, names, None if is_pushed else filters)

    def _inlined(self, names: Sequence[str], filters: Any) -> list[Table]:
        """Return the rows that the catalog holds, with the names that the columns had when the rows were inserted."""
        catalog, tables = self._catalog, []
        query = (
            "SELECT i.table_name, v.begin_snapshot FROM {ducklake_inlined_data_tables} i JOIN {ducklake_schema_versions} v "
            "USING (table_id, schema_version) WHERE i.table_id = ? AND v.begin_snapshot <= ? ORDER BY schema_version"
        )
        for table_name, first_snapshot in catalog.rows(query, catalog.table_id, catalog.snapshot):
            own_columns = {column.field_id: column.name for column in catalog.columns_at(first_snapshot)}
            ids = {name: self._columns[name].field_id for name in names}
            own_names = {name: own_columns[field_id] for name, field_id in ids.items() if field_id in own_columns}
            rows = table_from(catalog.inlined_rows(table_name, list(own_names.values())))
            if rows.num_rows:
                columns = {name: rows[own] for name, own in own_names.items()}
                tables.append(self._whole(columns, rows.num_rows, names, filters))
        return tables

    def _whole(self, columns: Mapping[str, AnyColumn], num_rows: int, names: Sequence[str], filters: Any) -> Table:
        """Return all columns in the table's types, and of these the rows that match filters."""
        pairs = []
        for name in names:
            field = self._fields[name]
            if name in columns:
                pairs.append((name, conform(columns[name], field_of_column(name, columns[name]), field)))
            else:
                pairs.append((name, field.of_value(_default_of(self._columns[name], field), num_rows, "views")))
        table = Table(pairs, num_rows=num_rows)
        return table if filters is None else matching(table, filters, self._schema)


def _default_of(column: LakeColumn, field: DatasetField) -> Any:
    """Return the value of a column in files that are older than the column."""
    if column.default is None:
        return None
    if not isinstance(field.field.type, ColumnType):
        raise UnsupportedError("a nested column with a default", column=column.name)
    return partition_value(column.default, field.field.type, column.name)
