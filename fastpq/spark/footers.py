"""What scans are planned by: the footers of a dataset's files, each read once; on the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.evidence import chunk_bounds
from fastpq.filters.predicate import Bounds
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.tree import ColumnDescriptor, SchemaNode
from fastpq.schema.types import Decimal
from fastpq.spark.batches import columns_by_name, open_file
from fastpq.spark.handover import MAX_INT32, MIN_INT32
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.listing import ListedFile
from fastpq.spark.types import spark_schema

AT_ONCE = 16            # files that are opened at the same time
MOST_KEPT = 64          # footers
MOST_CHUNKS = 10_000    # column chunks whose statistics are looked at: half a second
INTEGERS = (st.LongType, st.DecimalType)


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

    def __init__(self, service: ServiceOptions | None) -> None:
        self._service = service
        self._read: dict[str, FileMetaData] = {}

    def of(self, file: ListedFile) -> FileMetaData:
        """The footer of a file; raises as opening it does."""
        known = self._read.get(file.path)
        if known is None:
            with open_file(file.path, self._service) as opened:
                known = opened.metadata
            if len(self._read) < MOST_KEPT:
                self._read[file.path] = known
        return known

    def schema(self, file: ListedFile) -> st.StructType:
        return spark_schema(self.of(file).schema)

    def row_group_sizes(self, file: ListedFile) -> list[int]:
        """About how many bytes each row group has."""
        return [group.total_compressed_size or group.total_byte_size for group in self.of(file).row_groups]

    def facts(self, files: Sequence[ListedFile], schema: st.StructType) -> Facts:
        """What the statistics of every row group of every file tell of the flat columns of a schema; none for more chunks
        than MOST_CHUNKS.

        What is wrong with a file is left to the task that reads it.
        """
        in_folders = {name for file in files for name, _ in file.partition}
        fields = {part.name: part.dataType for part in schema.fields if part.name not in in_folders}
        if not files or not fields:
            return Facts()
        complete, small = {*fields}, {name for name, type_ in fields.items() if isinstance(type_, INTEGERS)}
        try:
            with ThreadPoolExecutor(min(len(files), AT_ONCE)) as threads:
                footers = list(threads.map(self.of, files))
            if sum(footer.num_row_groups for footer in footers) * len(fields) > MOST_CHUNKS:
                return Facts()
            for footer in footers:
                columns = columns_by_name(footer.schema, complete | small)
                complete &= {name for name in complete if _all(footer, columns.get(name), _is_complete)}
                small &= {
                    name
                    for name in small
                    if _is_counted(columns.get(name), fields[name]) and _all(footer, columns.get(name), _is_small)
                }
        except (ParquetError, OSError):
            return Facts()
        return Facts(frozenset(complete), frozenset(small))


def _all(metadata: FileMetaData, column: SchemaNode | None, holds: Callable[[Bounds], bool]) -> bool:
    """Whether something holds for each chunk of a flat column."""
    if not isinstance(column, ColumnDescriptor) or column.max_repetition_level:
        return False
    try:
        return all(
            holds(chunk_bounds(metadata, column, group.column(column.index), group.num_rows)) for group in metadata.row_groups
        )
    except KeyAccessError:      # who has no key of a column may still read the others
        return False


def _is_complete(bounds: Bounds) -> bool:
    return bounds.null_count == 0


def _is_counted(column: SchemaNode | None, wanted: st.DataType) -> bool:
    """Whether the bounds of a column are in the units of the type as which it is read."""
    if not isinstance(column, ColumnDescriptor) or not isinstance(wanted, st.DecimalType):
        return isinstance(wanted, st.LongType)
    return isinstance(decimal := column.type.logical, Decimal) and decimal.scale == wanted.scale


def _is_small(bounds: Bounds) -> bool:
    low, high = bounds.minimum, bounds.maximum
    return bounds.all_null or (isinstance(low, int) and isinstance(high, int) and low >= MIN_INT32 and high <= MAX_INT32)
