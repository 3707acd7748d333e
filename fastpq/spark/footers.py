"""Footers of a dataset's files, read on the driver for planning a scan: schemas, sizes of row groups, and statistics."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as st

from fastpq.common.parallel import run_parallel
from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.rewriting.redaction import SPARK_ROW_METADATA
from fastpq.schema.tree import ColumnDescriptor, SchemaNode
from fastpq.spark.batches import columns_by_name, open_file
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.listing import ListedFile
from fastpq.spark.row_metadata import refined
from fastpq.spark.types import spark_schema

AT_ONCE = 16            # footers read at the same time, each in a thread
FEW = 4                 # footers of local files read one after the other: starting threads takes longer
MOST_KEPT = 64          # footers cached by a Footers, bounding the driver's memory
MOST_CHUNKS = 10_000    # column chunks with statistics read in planning: half a second


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

    def readable(self, files: Sequence[ListedFile]) -> list[FileMetaData | None]:
        """The footer of each file; None where it cannot be read: the task that reads the file raises the error."""
        is_local = not any("://" in file.path for file in files)
        return list(run_parallel(self._readable, files, 1 if is_local and len(files) <= FEW else AT_ONCE))

    def _readable(self, file: ListedFile) -> FileMetaData | None:
        try:
            return self.of(file)
        except (ParquetError, OSError):
            return None

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

    def complete(self, files: Sequence[ListedFile], schema: st.StructType) -> frozenset[str]:
        """Names of columns without nulls, by the statistics of all row groups of all files.

        Only flat columns are judged. Returns none above MOST_CHUNKS column chunks, or if a footer cannot be read.
        """
        in_folders = {name for file in files for name, _ in file.partition}
        found = {part.name for part in schema.fields if part.name not in in_folders}
        if not files or not found:
            return frozenset()
        footers = [footer for footer in self.readable(files) if footer is not None]
        if len(footers) < len(files) or sum(footer.num_row_groups for footer in footers) * len(found) > MOST_CHUNKS:
            return frozenset()
        try:
            for footer in footers:
                columns = columns_by_name(footer.schema, found)
                found = {name for name in found if _is_complete(footer, columns.get(name))}
        except ParquetError:
            return frozenset()
        return frozenset(found)


def _is_complete(metadata: FileMetaData, column: SchemaNode | None) -> bool:
    """Whether no chunk of a column outside lists and maps has nulls."""
    if not isinstance(column, ColumnDescriptor) or column.max_repetition_level:
        return False
    try:
        return all(
            chunk_bounds(claims_of(metadata, column, group.column(column.index), group.num_rows))[0].null_count == 0
            for group in metadata.row_groups
        )
    except KeyAccessError:      # a reader without the column's key may read other columns
        return False
