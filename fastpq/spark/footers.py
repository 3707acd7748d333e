"""What scans are planned by: the footers of a dataset's files, each read once; on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.evidence import chunk_bounds
from fastpq.filters.predicate import Bounds
from fastpq.metadata import FileMetaData
from fastpq.schema_tree import ColumnDescriptor
from fastpq.spark.batches import columns_by_name, open_file
from fastpq.spark.handover import MAX_INT32, MIN_INT32
from fastpq.spark.keyservice import KeyService
from fastpq.spark.listing import DataFile
from fastpq.spark.types import spark_schema
from fastpq.types import Decimal

AT_ONCE = 16        # files that are opened at the same time


@dataclass(frozen=True)
class Facts:
    """What is known of columns, by name.

    Attributes:
        complete: without a null.
        small: integers, or decimals' digits, that fit 32 bits.
    """

    complete: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()


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
        return [group.total_compressed_size or group.total_byte_size for group in metadata.row_groups]

    def facts(self, files: Sequence[DataFile], schema: st.StructType) -> Facts:
        """What the statistics of every row group of every file tell of the flat columns of a schema.

        What is wrong with a file is left to the task that reads it.
        """
        missing = [file for file in files if file.path not in self._read]
        in_folders = {name for file in files for name, _ in file.partition}
        fields = [part for part in schema.fields if part.name not in in_folders] if files else []
        complete, small = {part.name for part in fields}, {part.name for part in fields}
        try:
            if missing:
                with ThreadPoolExecutor(min(len(missing), AT_ONCE)) as threads:
                    list(threads.map(self.of, missing))
            for file in files:
                known = _facts(self.of(file), fields)
                complete &= known.complete
                small &= known.small
        except (ParquetError, OSError):
            return Facts()
        return Facts(frozenset(complete), frozenset(small))


def _facts(metadata: FileMetaData, fields: Sequence[st.StructField]) -> Facts:
    complete, small = set(), set()
    columns = columns_by_name(metadata.schema, [part.name for part in fields])
    for part in fields:
        column = columns.get(part.name)
        if not isinstance(column, ColumnDescriptor) or column.max_repetition_level:
            continue
        try:
            known = [chunk_bounds(metadata, column, group.column(column.index), group.num_rows) for group in metadata.row_groups]
        except KeyAccessError:      # who has no key of a column may still read the others
            continue
        if all(bounds.null_count == 0 for bounds in known):
            complete.add(part.name)
        if _is_counted(column, part.dataType) and all(map(_is_small, known)):
            small.add(part.name)
    return Facts(frozenset(complete), frozenset(small))


def _is_counted(column: ColumnDescriptor, wanted: st.DataType) -> bool:
    """Whether the bounds of a column are in the units of the type as which it is read."""
    if isinstance(wanted, st.DecimalType):
        return isinstance(decimal := column.type.logical, Decimal) and decimal.scale == wanted.scale
    return isinstance(wanted, st.LongType)


def _is_small(bounds: Bounds) -> bool:
    low, high = bounds.minimum, bounds.maximum
    return bounds.all_null or (isinstance(low, int) and isinstance(high, int) and low >= MIN_INT32 and high <= MAX_INT32)
