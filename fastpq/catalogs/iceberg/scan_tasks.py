"""Reads the tasks of PyIceberg scans, with keys, deletes, field ids and filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import AnyColumn, Table
from fastpq.catalogs.iceberg.deleted_rows import EqualityDeletes, deleted_positions
from fastpq.catalogs.iceberg.file_columns import TableField, nodes_by_id, partition_constants
from fastpq.catalogs.iceberg.scan_filters import ScanFilter
from fastpq.catalogs.iceberg.table_files import TableFiles, is_encrypted_table
from fastpq.catalogs.row_ranges import ranges_without
from fastpq.common.lazy import package
from fastpq.encryption.audit import AuditLog
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.schema.tree import SchemaNode

EQUALITY_DELETES = 2        # DataFile.content


@hides_arguments
def read_scan(
    scan: Any,
    tasks: Iterable[Any] | None = None,
    *,
    require_encryption: bool | None = None,
    require_length: bool = True,
    threads: int | None = None,
    audit: AuditLog | None = None,
) -> Table:
    """Read a PyIceberg scan, as its ``to_arrow`` does for plaintext tables.

    Columns are found by field id. Rows that delete files remove are left out: by position, by deletion vector or by equal values.
    The scan's filter is applied, and rules out row groups and pages before they are read.

    Args:
        scan: what ``table.scan(...)`` returns.
        tasks: some of the tasks that ``scan.plan_files()`` returns, for example the share of one worker. None reads all.
        require_encryption: whether files without key metadata are refused. None refuses them if the table has the property
            ``encryption.key-id``.
        require_length: whether Puffin files must have their length in the key metadata.
        threads: how many columns are decoded at the same time. None takes one for each core.
        audit: log that records which keys open files.

    Returns:
        A Table with the scan's columns, in the order of the tasks.

    Raises:
        KeyAccessError: a file in an encrypted table has no key metadata.
        CryptoError: a file cannot be decrypted, or is not the file of its key metadata.
        UnsupportedError: PyIceberg is not installed, or a file is not Parquet, or a nested column was changed later.
        ParquetError: a file is malformed.
    """
    reader = ScanReader(scan, require_encryption, require_length=require_length, audit=audit, threads=threads)
    tables = list(reader.tables(tasks))
    return Table.concat(tables) if tables else reader.empty()


def iter_scan(
    scan: Any,
    tasks: Iterable[Any] | None = None,
    *,
    require_encryption: bool | None = None,
    require_length: bool = True,
    threads: int | None = None,
    audit: AuditLog | None = None,
) -> Iterator[Table]:
    """Read a PyIceberg scan, one data file after the other. The largest data file bounds the memory.

    Args:
        scan, tasks, require_encryption, require_length, threads, audit: as for ``read_scan``.

    Returns:
        An iterator with a Table for each data file that has matching rows.

    Raises:
        ParquetError: as for ``read_scan``.
    """
    reader = ScanReader(scan, require_encryption, require_length=require_length, audit=audit, threads=threads)
    return _without_variables(reader.tables(tasks))


def _without_variables(tables: Iterator[Table]) -> Iterator[Table]:
    """Yield tables. The traceback of an error shows no variables: descriptions of data files hold keys."""
    while (table := _next(tables)) is not None:
        yield table


@hides_arguments
def _next(tables: Iterator[Table]) -> Table | None:
    return next(tables, None)


class ScanReader:
    """Reads one scan's tasks.

    Args:
        scan: a PyIceberg DataScan.
        require_encryption: whether files without key metadata are refused, or None to go by the table's properties.
        **options: further attributes of TableFiles.
    """

    def __init__(self, scan: Any, require_encryption: bool | None, **options: Any) -> None:
        package("pyiceberg", "a scan of an Iceberg table")
        package("pyarrow", "a scan of an Iceberg table")
        self._scan, self._metadata = scan, scan.table_metadata
        is_encrypted = is_encrypted_table(self._metadata.properties)
        self._files = TableFiles(scan.io, is_encrypted if require_encryption is None else require_encryption, **options)
        self._projection = scan.projection()
        self._schema = scan.update(selected_fields=("*",)).projection()
        self._name_mapping = self._metadata.name_mapping()
        self._specs = self._metadata.specs()
        self._fields: dict[int, TableField] = {}

    def tables(self, tasks: Iterable[Any] | None) -> Iterator[Table]:
        """Yield a Table for each task that has matching rows, up to the scan's limit.

        Args:
            tasks: the tasks, or None for all of the scan.
        """
        rest = self._scan.limit
        for task in self._scan.plan_files() if tasks is None else tasks:
            if rest == 0:
                return
            table = self._read(task)
            if rest is not None and table.num_rows > rest:
                table = table.slice(0, rest)
            if table.num_rows:
                rest = None if rest is None else rest - table.num_rows
                yield table

    def empty(self) -> Table:
        """Return the scan's columns without rows."""
        return Table([(field.name, field.empty()) for field in map(self._field, self._projected_ids)], num_rows=0)

    @cached_property
    def _row_filter(self) -> Any:
        from pyiceberg.expressions.visitors import bind

        return bind(self._schema, self._scan.row_filter, case_sensitive=self._scan.case_sensitive)

    @cached_property
    def _projected_ids(self) -> list[int]:
        return [field.field_id for field in self._projection.fields]

    def _field(self, field_id: int) -> TableField:
        """Return the table's field for an id. Equality deletes may name columns that were dropped since."""
        if field_id not in self._fields:
            schemas = [self._projection, self._schema, *reversed(self._metadata.schemas)]
            fields = (field for schema in schemas for field in schema.fields if field.field_id == field_id)
            field = next(fields, None)
            if field is None:
                raise SchemaError(f"the table has no column with the field id {field_id}")
            self._fields[field_id] = TableField(field)
        return self._fields[field_id]

    def _read(self, task: Any) -> Table:
        data_file = task.file
        if data_file.file_format.value.upper() != "PARQUET":
            raise UnsupportedError(f"a data file in the format {data_file.file_format.value}", path=data_file.file_path)
        by_value = [each for each in task.delete_files if int(each.content) == EQUALITY_DELETES]
        by_position = [each for each in task.delete_files if int(each.content) != EQUALITY_DELETES]
        positions = deleted_positions(self._files, data_file, by_position)
        equality_deletes = self._equality_deletes(by_value)
        with self._files.parquet(data_file) as file:
            row_ranges = ranges_without(positions, file.num_rows) if len(positions) else None
            part = _FilePart(file, nodes_by_id(file, self._name_mapping), partition_constants(data_file, self._specs))
            row_filter = ScanFilter(self._row_filter, self._schema, part.nodes, part.constants)
            filters, is_late = row_filter.for_file(self._field, file.schema)
            other_ids = {field_id for deletes in equality_deletes for field_id in deletes.field_ids}
            other_ids |= row_filter.column_ids if is_late else set()
            field_ids = list(dict.fromkeys([*self._projected_ids, *sorted(other_ids)]))
            columns, num_rows = part.columns(list(map(self._field, field_ids)), row_ranges, filters)
        remaining_rows = np.ones(num_rows, np.bool_)
        for deletes in equality_deletes:
            remaining_rows &= deletes.keeps([columns[field_id] for field_id in deletes.field_ids])
        if is_late:
            remaining_rows &= row_filter.matching_rows(columns, self._field)
        return self._projected(columns, remaining_rows)

    def _projected(self, columns: Mapping[int, AnyColumn], remaining_rows: NDArray[np.bool_]) -> Table:
        pairs = [(self._field(field_id).name, columns[field_id]) for field_id in self._projected_ids]
        if remaining_rows.all():
            return Table(pairs, num_rows=len(remaining_rows))
        rows = np.flatnonzero(remaining_rows)
        return Table([(name, column.take(rows)) for name, column in pairs], num_rows=len(rows))

    def _equality_deletes(self, delete_files: Iterable[Any]) -> list[EqualityDeletes]:
        deletes_by_ids: dict[tuple[int, ...], EqualityDeletes] = {}
        for delete_file in delete_files:
            if delete_file.file_format.value.upper() != "PARQUET":
                raise UnsupportedError(f"a delete file in the format {delete_file.file_format.value}", path=delete_file.file_path)
            field_ids = tuple(sorted(delete_file.equality_ids or ()))
            if not field_ids:
                raise SchemaError("an equality delete file does not say which columns it compares", path=delete_file.file_path)
            deletes = deletes_by_ids.setdefault(field_ids, EqualityDeletes(field_ids))
            with self._files.parquet(delete_file) as file:
                deletes.add(file, self._field)
        return list(deletes_by_ids.values())


class _FilePart(NamedTuple):
    """A data file with what is known about its columns.

    Attributes:
        file: the open file.
        nodes: its top-level columns by field id.
        constants: values of columns that it may lack, by field id.
    """

    file: ParquetFile
    nodes: Mapping[int, SchemaNode]
    constants: Mapping[int, Any]

    def columns(
        self, fields: Sequence[TableField], row_ranges: Sequence[tuple[int, int]] | None, filters: Any
    ) -> tuple[dict[int, AnyColumn], int]:
        """Return the table's columns by field id, and the number of rows.

        Args:
            fields: the table's fields.
            row_ranges: the rows that are not deleted, or None for all.
            filters: a filter on the file's columns. True for all rows, False for none.
        """
        for field in fields:
            if field.field_id in self.nodes:
                field.check_nested(self.nodes[field.field_id])
        keys = [(self.nodes[field.field_id].element.name,) for field in fields if field.field_id in self.nodes]
        if isinstance(filters, bool):
            table = self.file.read(keys, row_ranges=row_ranges if filters else [])
        else:
            table = self.file.read(keys, row_ranges=row_ranges, filters=filters)
        columns = {}
        for field in fields:
            node = self.nodes.get(field.field_id)
            if node is None:
                value = self.constants.get(field.field_id, field.default)
                columns[field.field_id] = field.constant(value, table.num_rows)
            else:
                columns[field.field_id] = field.fitted(table[node.element.name])
        return columns, table.num_rows
