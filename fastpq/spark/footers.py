"""What scans are planned by: the footers of a dataset's files, each read once; on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.evidence import chunk_bounds
from fastpq.metadata import FileMetaData
from fastpq.schema_tree import ColumnDescriptor, SchemaNode
from fastpq.spark.batches import columns_by_name, open_file
from fastpq.spark.keyservice import KeyService
from fastpq.spark.listing import DataFile
from fastpq.spark.types import spark_schema

AT_ONCE = 16        # files that are opened at the same time


class Footers:
    """The footers of files, read when they are asked for.

    Args:
        service: the key service; None for plaintext files.
    """

    def __init__(self, service: KeyService | None) -> None:
        self._service = service
        self._read: dict[str, FileMetaData] = {}

    def of(self, file: DataFile) -> FileMetaData:
        """The footer of a file; raises as opening it does."""
        if file.path not in self._read:
            with open_file(file.path, self._service) as opened:
                self._read[file.path] = opened.metadata
        return self._read[file.path]

    def schema(self, file: DataFile) -> st.StructType:
        return spark_schema(self.of(file).schema)

    def row_group_sizes(self, file: DataFile) -> list[int]:
        """About how many bytes each row group has."""
        metadata = self.of(file)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        return [group.total_compressed_size or group.total_byte_size for group in groups]

    def complete_columns(self, files: Sequence[DataFile], names: Sequence[str]) -> frozenset[str]:
        """Which columns are flat and without a null, by the statistics of every row group of every file.

        What is wrong with a file is left to the task that reads it.
        """
        missing = [file for file in files if file.path not in self._read]
        in_folders = {name for file in files for name, _ in file.partition}
        found = [name for name in names if name not in in_folders] if files else []
        try:
            if missing:
                with ThreadPoolExecutor(min(len(missing), AT_ONCE)) as threads:
                    list(threads.map(self.of, missing))
            for file in files:
                found = _complete_columns(self.of(file), found)
        except (ParquetError, OSError):
            return frozenset()
        return frozenset(found)


def _complete_columns(metadata: FileMetaData, names: Sequence[str]) -> list[str]:
    columns = columns_by_name(metadata.schema, names)
    return [name for name, column in columns.items() if _is_complete(metadata, column)]


def _is_complete(metadata: FileMetaData, column: SchemaNode) -> bool:
    if not isinstance(column, ColumnDescriptor) or column.max_repetition_level:
        return False
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    try:
        return all(
            chunk_bounds(metadata, column, group.column(column.index), group.num_rows).null_count == 0 for group in groups
        )
    except KeyAccessError:      # who has no key of a column may still read the others
        return False
