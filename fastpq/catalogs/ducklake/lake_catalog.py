"""The catalog of a lake, asked by SQL: tables, columns, files, keys and deleted rows of one snapshot (DuckLake 1.0).

The catalog database holds the keys of all files in plaintext. Here they become AesKey objects at once.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq.encryption.evp import AesKey
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import KeyAccessError, SchemaError, UnsupportedError

VERSIONS = ("1.0",)     # of catalogs that are understood
_IS_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


class LakeColumn(NamedTuple):
    """A column of a table, or a field inside of a column.

    Attributes:
        field_id: its id in the files.
        name: its name.
        type_name: its type, as the catalog spells it.
        default: text of the value that it has in files without it, or None for null.
        nullable: whether it may be null.
        children: fields inside of it.
    """

    field_id: int
    name: str
    type_name: str
    default: str | None
    nullable: bool
    children: tuple[LakeColumn, ...]


class DuckLakeFile(NamedTuple):
    """A data file of a table.

    Attributes:
        path: its place.
        num_rows: number of its rows, deleted ones too.
        size: its size in bytes.
        decryption_properties: its keys, or None for a plaintext file.
        deleted_rows: numbers of its deleted rows, ascending.
    """

    path: str
    num_rows: int
    size: int
    decryption_properties: FileDecryptionProperties | None
    deleted_rows: NDArray[np.int64]


class LakeCatalog:
    """One table in one snapshot of a lake's catalog.

    Args:
        connection: a connection of DuckDB that sees the catalog database.
        table: name of the table.
        schema: name of its schema.
        snapshot: number of the snapshot, or None for the newest.
        data_path: the lake's folder, or None for the one in the catalog.
        metadata: name under which the connection has attached the catalog database. None means that it is the connection's own.

    Raises:
        SchemaError: the lake has no such snapshot or table.
        UnsupportedError: the connection is not DuckDB's, or the catalog has another version.
    """

    def __init__(
        self, connection: Any, table: str, schema: str, snapshot: int | None, data_path: str | None, metadata: str | None
    ) -> None:
        if type(connection).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise UnsupportedError("the catalog of a lake must be read through a connection of the package duckdb")
        self.connection, self._metadata = connection, metadata
        settings = dict(self.rows("SELECT key, value FROM {ducklake_metadata} WHERE scope IS NULL"))
        if settings.get("version") not in VERSIONS:
            versions = ", ".join(VERSIONS)
            raise UnsupportedError(f"the catalog has the version {settings.get('version')}, and the known ones are {versions}")
        self.is_encrypted = settings.get("encrypted") == "true"
        newest = self.rows("SELECT max(snapshot_id) FROM {ducklake_snapshot}")[0][0]
        self.snapshot: int = newest if snapshot is None else snapshot
        if not self.rows("SELECT 1 FROM {ducklake_snapshot} WHERE snapshot_id = ?", self.snapshot):
            raise SchemaError(f"the lake has no snapshot {self.snapshot}")
        entries = self.rows(
            "SELECT t.table_id, s.path, s.path_is_relative, t.path, t.path_is_relative FROM {ducklake_table} t "
            "JOIN {ducklake_schema} s USING (schema_id) WHERE t.table_name = ? AND s.schema_name = ?"
            f" AND {self.valid('t')} AND {self.valid('s')}", table, schema)
        if not entries:
            raise SchemaError(f"the lake has no table {schema}.{table} in the snapshot {self.snapshot}")
        self.table_id, *places = entries[0]
        root = data_path or settings.get("data_path") or ""
        folder = _joined(root if root.endswith("/") else f"{root}/", places[0], places[1])
        self.folder = _joined(folder, places[2], places[3])

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Tables of the catalog stand in braces, and values are parameters."""
        rows: list[tuple[Any, ...]] = self.connection.execute(self._in_catalog(query), list(parameters)).fetchall()
        return rows

    def _in_catalog(self, query: str) -> str:
        """Return a query with the names of the catalog's tables in place of the braces."""
        return re.sub(r"\{(\w+)\}", lambda name: self._place_of(name[1]), query)

    def _place_of(self, table_name: str) -> str:
        prefix = "" if self._metadata is None else f"{sql_name(self._metadata)}."
        return prefix + sql_name(table_name)

    def inlined_rows(self, table_name: str, columns: Sequence[str]) -> Any:
        """Return columns of the rows that a table of the catalog holds, as Arrow data. Without columns, a column of ones."""
        expressions = ", ".join(f"t.{sql_name(name)}" for name in columns) or "1 AS one"
        query = f"SELECT {expressions} FROM {self._place_of(table_name)} t WHERE {self.valid('t')} ORDER BY t.row_id"
        return self.connection.sql(query).to_arrow_table()

    def valid(self, name: str, snapshot: int | None = None) -> str:
        """Return the condition that a row of a table belongs to the snapshot."""
        at = int(self.snapshot if snapshot is None else snapshot)
        return f"{name}.begin_snapshot <= {at} AND ({name}.end_snapshot IS NULL OR {name}.end_snapshot > {at})"

    @cached_property
    def columns(self) -> tuple[LakeColumn, ...]:
        """The table's columns."""
        return self.columns_at(self.snapshot)

    def columns_at(self, snapshot: int) -> tuple[LakeColumn, ...]:
        """Return the columns that the table has in a snapshot."""
        rows = self.rows(
            "SELECT column_id, column_name, column_type, initial_default, nulls_allowed, parent_column FROM {ducklake_column} c "
            f"WHERE table_id = ? AND {self.valid('c', snapshot)} ORDER BY column_order, column_id", self.table_id)
        return _columns(rows, None)

    def files(self) -> list[DuckLakeFile]:
        """Return the data files, in the order of their rows.

        Raises:
            KeyAccessError: the lake is encrypted, and the catalog has no key for a file.
            UnsupportedError: a file is not a Parquet file, or belongs to later snapshots too.
        """
        query = (
            "SELECT data_file_id, path, path_is_relative, record_count, file_size_bytes, encryption_key, file_format, "
            "partial_max, mapping_id FROM {ducklake_data_file} f WHERE table_id = ? AND "
            f"{self.valid('f')} ORDER BY file_order NULLS LAST, row_id_start, data_file_id"
        )
        return [self._file(*row) for row in self.rows(query, self.table_id)]

    @hides_arguments
    def _file(
        self, number: int, path: str, is_relative: bool, count: int, size: int, key: str | None, format_: str, *others: int | None
    ) -> DuckLakeFile:
        last_snapshot, mapping = others
        place = _joined(self.folder, path, is_relative)
        self._check(place, format_, last_snapshot)
        if mapping is not None:
            raise UnsupportedError("a file whose columns are entries by a mapping of names (ducklake_add_data_files)", path=place)
        return DuckLakeFile(place, count, size, self._properties(place, key), self._deleted_rows(number))

    def _deleted_rows(self, number: int) -> NDArray[np.int64]:
        """Return which rows of a data file are deleted, by delete files and by the catalog itself."""
        parts = [np.empty(0, np.int64)]
        if self.has_table(f"ducklake_inlined_delete_{self.table_id}"):
            query = f"SELECT row_id FROM {{ducklake_inlined_delete_{self.table_id}}} WHERE file_id = ? AND begin_snapshot <= ?"
            parts.append(np.array([row for row, in self.rows(query, number, self.snapshot)], np.int64))
        query = (
            "SELECT path, path_is_relative, encryption_key, format, partial_max FROM {ducklake_delete_file} f "
            f"WHERE data_file_id = ? AND {self.valid('f')}"
        )
        parts += [self._rows_of_delete_file(*row) for row in self.rows(query, number)]
        return np.unique(np.concatenate(parts))

    @hides_arguments
    def _rows_of_delete_file(self, path: str, is_relative: bool, key: str | None, format_: str, last: Any) -> NDArray[np.int64]:
        from fastpq.api.file import ParquetFile

        place = _joined(self.folder, path, is_relative)
        self._check(place, format_, last)
        with ParquetFile(place, decryption_properties=self._properties(place, key)) as file:
            positions = file.read(["pos"]).flat("pos")
        if positions.null_count:
            raise SchemaError("a delete file has a null in place of a row's number", path=place)
        numbers = np.asarray(positions.to_numpy(), np.int64)
        if len(numbers) and numbers.min() < 0:
            raise SchemaError("a delete file has a negative row number", path=place)
        return numbers

    def _check(self, place: str, format_: str, last: int | None) -> None:
        if format_ != "parquet":
            raise UnsupportedError(f"a file in the format {format_} in a lake", path=place)
        if last is not None and last > self.snapshot:
            raise UnsupportedError("a merged file with rows of later snapshots; read the newest snapshot", path=place)

    def _properties(self, place: str, key: str | None) -> FileDecryptionProperties | None:
        """Return the keys of a file. A plaintext file in an encrypted lake is refused, because anybody could put it there."""
        if key is None:
            if self.is_encrypted:
                raise KeyAccessError("the lake is encrypted, but its catalog has no key for a file", path=place)
            return None
        try:
            key_bytes = bytearray(base64.b64decode(key, validate=True))
        except (binascii.Error, ValueError):
            raise KeyAccessError("the catalog's key of a file is not base64", path=place) from None
        return FileDecryptionProperties(AesKey(key_bytes), allow_duckdb_dialect=True)

    def has_table(self, name: str) -> bool:
        """Return whether the catalog database has a table."""
        query = "SELECT 1 FROM duckdb_tables() WHERE table_name = ? AND database_name = coalesce(?, current_database())"
        return bool(self.rows(query, name, self._metadata))


def sql_name(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def _joined(folder: str, path: str, is_relative: bool) -> str:
    """Return the place of a path. A relative one must stay below its folder."""
    if not is_relative:
        return path
    if _IS_ABSOLUTE.match(path) or ".." in path.split("/"):
        raise SchemaError("a relative path in the catalog leaves the lake's folder", path=path)
    return folder + path


def _columns(rows: Sequence[tuple[Any, ...]], parent: int | None) -> tuple[LakeColumn, ...]:
    return tuple(
        LakeColumn(number, name, type_name, default, nullable, _columns(rows, number))
        for number, name, type_name, default, nullable, above in rows
        if above == parent
    )
