"""Appends rows to a table of a lake: a new data file with a key of its own, and a snapshot in the catalog that has it."""

from __future__ import annotations

import base64
import os
import secrets
import struct
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fastpq.api.functions import write_table
from fastpq.arrays.table import Table
from fastpq.catalogs.ducklake.lake_catalog import LakeCatalog, LakeColumn
from fastpq.catalogs.ducklake.lake_types import arrow_schema_of
from fastpq.convert.caller_input import table_from
from fastpq.datasets.unify import conform, field_of_column, given_fields
from fastpq.encryption.properties import FileEncryptionProperties, ForReader
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import SchemaError, UnsupportedError

ROWS = 100_000          # rows of a row group, and of its only page, in files that DuckDB reads
KEY_SIZE = 16           # bytes, as DuckDB's own keys
# DuckDB 2.0 reads encrypted files if each column chunk is one page. The bounds in bytes are beyond any page.
DUCKDB_OPTIONS = {
    "row_group_size": ROWS, "data_page_rows": ROWS, "data_page_size": 1 << 30, "dictionary_page_size": 1 << 30,
}


class _NewFile(NamedTuple):
    """A data file that the catalog does not have yet.

    Attributes:
        name: its name in the table's folder.
        size: its size in bytes.
        footer_size: the length of its footer in bytes, as the end of the file says.
        num_rows: number of rows.
    """

    name: str
    size: int
    footer_size: int
    num_rows: int


@hides_arguments
def append_ducklake(
    connection: Any,
    table: str,
    data: Any,
    *,
    schema: str = "main",
    data_path: str | None = None,
    metadata: str | None = None,
    for_reader: ForReader | None = "duckdb",
    **options: Any,
) -> int:
    """Append rows to a table of a lake in one new file and one snapshot, and return the number of the snapshot.

    In an encrypted lake the file gets a new key, which the catalog holds in plaintext, as it holds those of DuckDB's files. The
    file is removed again if the catalog refuses the snapshot.

    Args:
        connection: a connection of the package duckdb that may write the catalog database. It must not be in a transaction.
        table, schema, data_path, metadata: as for ``read_ducklake``. ``data_path`` must be a local folder.
        data: columns as for ``fastpq.write_table``, all of the table's and no others.
        for_reader: ``"duckdb"`` writes encrypted files as DuckDB reads them: in its dialect, whose AADs are empty, and with one
            page in each column chunk (``row_group_size``, ``data_page_rows``, ``data_page_size`` and ``dictionary_page_size`` are
            set). None writes the format's standard: fastpq reads such a file, and DuckDB does not.
        **options: any option of ``write_table``.

    Raises:
        SchemaError: the columns are not those of the table, or a value does not fit, or the lake has a newer snapshot now.
        UnsupportedError: the table is partitioned, or its folder is not local.
        ParquetError: as ``read_ducklake``.
    """
    if for_reader not in ("duckdb", None):
        raise ValueError(f'for_reader must be "duckdb" or None, not {for_reader!r}')
    catalog = LakeCatalog(connection, table, schema, None, data_path, metadata)
    if catalog.rows(f"SELECT 1 FROM {{ducklake_partition_info}} p WHERE table_id = ? AND {catalog.valid('p')}", catalog.table_id):
        raise UnsupportedError(f"rows for the partitioned table {schema}.{table} of a lake")
    is_for_duckdb = catalog.is_encrypted and for_reader == "duckdb"
    if is_for_duckdb and (more_options := sorted(options.keys() & DUCKDB_OPTIONS.keys())):
        raise ValueError(f'for_reader="duckdb" sets {", ".join(more_options)}')
    if "://" in catalog.folder:
        raise UnsupportedError("a lake's folder must be local to be written to")
    rows = _fitted(data, catalog.columns)
    key = bytearray(secrets.token_bytes(KEY_SIZE)) if catalog.is_encrypted else None
    try:
        properties = None if key is None else FileEncryptionProperties(bytes(key), for_reader=for_reader)
        new_file = _written(rows, catalog, properties, {**(DUCKDB_OPTIONS if is_for_duckdb else {}), **options})
        try:
            return _committed(catalog, new_file, None if key is None else base64.b64encode(key).decode())
        except BaseException:
            if not _is_in_catalog(catalog, new_file):       # Ctrl-C may come when the snapshot is there already
                os.unlink(catalog.folder + new_file.name)
            raise
    finally:
        if key is not None:
            key[:] = bytes(KEY_SIZE)


def _fitted(data: Any, columns: Sequence[LakeColumn]) -> Table:
    """Return the rows with the table's columns and types."""
    rows = data if isinstance(data, Table) else table_from(data)
    fields = given_fields(arrow_schema_of(columns))
    if sorted(rows.names) != sorted(fields):
        missing_names, more_names = sorted(fields.keys() - set(rows.names)), sorted(set(rows.names) - fields.keys())
        raise SchemaError(
            f"the data must have exactly the columns of the table, once each: missing are {missing_names}, too many {more_names}")
    pairs = [(name, conform(rows[name], field_of_column(name, rows[name]), field)) for name, field in fields.items()]
    return Table(pairs, num_rows=rows.num_rows)


def _written(
    rows: Table, catalog: LakeCatalog, properties: FileEncryptionProperties | None, options: dict[str, Any]
) -> _NewFile:
    """Write the new file."""
    name = f"fastpq-{uuid.uuid4()}.parquet"
    os.makedirs(catalog.folder, exist_ok=True)
    place = catalog.folder + name
    ids = dict(_ids_by_path(catalog.columns, ""))
    write_table(rows, place, encryption_properties=properties, field_ids=ids, **options)
    with open(place, "rb") as file:
        file.seek(-8, os.SEEK_END)
        (footer_size,) = struct.unpack("<I", file.read(4))
    return _NewFile(name, os.path.getsize(place), footer_size, rows.num_rows)


def _ids_by_path(columns: Sequence[LakeColumn], prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the path in a Parquet schema and the field id of each column, nested ones too."""
    for column in columns:
        path = f"{prefix}{column.name}"
        yield path, column.field_id
        match column.type_name.lower():
            case "list":
                yield from _ids_by_path([column.children[0]._replace(name="element")], f"{path}.list.")
            case "map":
                names = zip(("key", "value"), column.children, strict=True)
                yield from _ids_by_path([child._replace(name=name) for name, child in names], f"{path}.key_value.")
            case _:
                yield from _ids_by_path(column.children, f"{path}.")


def _committed(catalog: LakeCatalog, new_file: _NewFile, key: str | None) -> int:
    """Add the file to the catalog in one transaction, and return the number of the new snapshot."""
    connection = catalog.connection
    connection.begin()
    try:
        number = _added(catalog, new_file, key)
    except BaseException:
        connection.rollback()
        raise
    connection.commit()     # ends the transaction, also if it fails
    return number


def _is_in_catalog(catalog: LakeCatalog, new_file: _NewFile) -> bool:
    return bool(catalog.rows("SELECT 1 FROM {ducklake_data_file} WHERE path = ?", new_file.name))


def _added(catalog: LakeCatalog, new_file: _NewFile, key: str | None) -> int:
    newest, version, next_catalog_id, next_file_id = catalog.rows(
        "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM {ducklake_snapshot} "
        "ORDER BY snapshot_id DESC LIMIT 1")[0]
    if newest != catalog.snapshot:
        raise SchemaError(f"the lake has the snapshot {newest} since this append began with the snapshot {catalog.snapshot}")
    number: int = newest + 1
    statistics = catalog.rows("SELECT next_row_id FROM {ducklake_table_stats} WHERE table_id = ?", catalog.table_id)
    first_row = statistics[0][0] if statistics else 0
    catalog.rows(
        "INSERT INTO {ducklake_snapshot} (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id) "
        "VALUES (?, now(), ?, ?, ?)", number, version, next_catalog_id, next_file_id + 1)
    catalog.rows(
        "INSERT INTO {ducklake_snapshot_changes} (snapshot_id, changes_made) VALUES (?, ?)",
        number, f"inserted_into_table:{catalog.table_id}")
    catalog.rows(
        "INSERT INTO {ducklake_data_file} (data_file_id, table_id, begin_snapshot, path, path_is_relative, file_format, "
        "record_count, file_size_bytes, footer_size, row_id_start, encryption_key) "
        "VALUES (?, ?, ?, ?, true, 'parquet', ?, ?, ?, ?, ?)",
        next_file_id, catalog.table_id, number, new_file.name, new_file.num_rows, new_file.size, new_file.footer_size, first_row,
        key)
    if statistics:
        catalog.rows(
            "UPDATE {ducklake_table_stats} SET record_count = record_count + ?, next_row_id = next_row_id + ?, "
            "file_size_bytes = file_size_bytes + ? WHERE table_id = ?",
            new_file.num_rows, new_file.num_rows, new_file.size, catalog.table_id)
    else:
        catalog.rows(
            "INSERT INTO {ducklake_table_stats} (table_id, record_count, next_row_id, file_size_bytes) VALUES (?, ?, ?, ?)",
            catalog.table_id, new_file.num_rows, new_file.num_rows, new_file.size)
    # Bounds and nulls of the whole table are not known any more. DuckDB then looks into the files.
    catalog.rows(
        "UPDATE {ducklake_table_column_stats} SET contains_null = NULL, contains_nan = NULL, min_value = NULL, max_value = NULL, "
        "extra_stats = NULL WHERE table_id = ?", catalog.table_id)
    return number
