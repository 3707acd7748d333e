"""Footers of a dataset's files, read on the driver for planning a scan: schemas, sizes of row groups, and statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.filters.predicate import Bounds
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.rewriting.redaction import SPARK_ROW_METADATA
from fastpq.schema.tree import ColumnDescriptor, SchemaNode
from fastpq.schema.types import Decimal
from fastpq.spark.batches import columns_by_name, open_file
from fastpq.spark.handover import MAX_INT32, MIN_INT32
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.listing import ListedFile
from fastpq.spark.row_metadata import refined
from fastpq.spark.types import spark_schema

AT_ONCE = 16            # footers read at the same time, each in a thread
MOST_KEPT = 64          # footers cached by a Footers, bounding the driver's memory
MOST_CHUNKS = 10_000    # column chunks with statistics read in planning: half a second
INTEGERS = (st.LongType, st.DecimalType)


@dataclass(frozen=True)
class Facts:
    """Names of columns with properties proven by the statistics of all files.

    Attributes:
        complete: columns without nulls.
        small: integer columns, and decimals by their unscaled values, within 32 bits.
    """

    complete: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()


class Footers:
    """Footers of files, read on first use and cached.

    Args:
        service: options of the key service; None reads plaintext files only.
    """

    def __init__(self, service: ServiceOptions | None) -> None:
        self._service = service
        self._read: dict[str, FileMetaData] = {}

    def of(self, file: ListedFile) -> FileMetaData:
        """The footer of a file; raises the errors of open_file."""
        known = self._read.get(file.path)
        if known is None:
            with open_file(file.path, self._service) as opened:
                known = opened.metadata
            if len(self._read) < MOST_KEPT:
                self._read[file.path] = known
        return known

    def schema(self, file: ListedFile) -> st.StructType:
        """The Spark schema of a file.

        Raises:
            UnsupportedError: types unknown to Spark, or to Spark's Arrow types.
        """
        footer = self.of(file)
        return refined(spark_schema(footer.schema), footer.key_value(SPARK_ROW_METADATA))

    def row_group_sizes(self, file: ListedFile) -> list[int]:
        """Compressed bytes of each row group; uncompressed bytes where the footer has no compressed size."""
        return [group.total_compressed_size or group.total_byte_size for group in self.of(file).row_groups]

    def facts(self, files: Sequence[ListedFile], schema: st.StructType) -> Facts:
        """Columns without nulls and columns of small integers, by the statistics of all row groups of all files.

        Only flat columns are judged. Returns empty Facts above MOST_CHUNKS column chunks, or if a footer cannot be read: the
        task reading the damaged file raises the error.
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
    """Whether a condition on bounds holds for every chunk of a column outside lists and maps."""
    if not isinstance(column, ColumnDescriptor) or column.max_repetition_level:
        return False
    try:
        return all(
            holds(chunk_bounds(claims_of(metadata, column, group.column(column.index), group.num_rows))[0])
            for group in metadata.row_groups
        )
    except KeyAccessError:      # a reader without the column's key may read other columns
        return False


def _is_complete(bounds: Bounds) -> bool:
    return bounds.null_count == 0


def _is_counted(column: SchemaNode | None, wanted: st.DataType) -> bool:
    """Whether a column's bounds count in the units of the Spark type: always for LongType, for decimals of equal scale."""
    if not isinstance(column, ColumnDescriptor) or not isinstance(wanted, st.DecimalType):
        return isinstance(wanted, st.LongType)
    return isinstance(decimal := column.type.logical, Decimal) and decimal.scale == wanted.scale


def _is_small(bounds: Bounds) -> bool:
    low, high = bounds.minimum, bounds.maximum
    return bounds.all_null or (isinstance(low, int) and isinstance(high, int) and low >= MIN_INT32 and high <= MAX_INT32)
