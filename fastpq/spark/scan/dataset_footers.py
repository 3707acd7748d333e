"""File footers that the driver reads to plan a scan. They give schemas, row group sizes and statistics."""

from __future__ import annotations

from pyspark.sql import types as st

from fastpq.spark.core import SPARK_ROW_METADATA, FileMetaData
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.scan.file_scan import open_file
from fastpq.spark.tables.listing import ListedFile
from fastpq.spark.tables.row_metadata import refined
from fastpq.spark.tables.spark_types import spark_schema

MOST_KEPT = 64          # maximum number of cached footers, to limit the driver's memory


class Footers:
    """File footers, which are read on first use and cached.

    Args:
        service: key service options. With None, only plaintext files can be read.
    """

    def __init__(self, service: ServiceOptions | None) -> None:
        self._service = service
        self._cache: dict[str, FileMetaData] = {}

    def of(self, file: ListedFile) -> FileMetaData:
        """Return a file's footer. Raises the same errors as open_file."""
        footer = self._cache.get(file.path)
        if footer is None:
            with open_file(file.path, self._service) as parquet_file:
                footer = parquet_file.metadata
            if len(self._cache) < MOST_KEPT:
                self._cache[file.path] = footer
        return footer

    def schema(self, file: ListedFile) -> st.StructType:
        """Return a file's Spark schema.

        Raises:
            UnsupportedError: the file has types that Spark, or PySpark's conversion to Arrow, does not know.
        """
        footer = self.of(file)
        return refined(spark_schema(footer.schema), footer.key_value(SPARK_ROW_METADATA))

    def row_group_sizes(self, file: ListedFile) -> list[int]:
        """Return each row group's compressed bytes, or its uncompressed bytes if the footer has no compressed size."""
        return [group.total_compressed_size or group.total_byte_size for group in self.of(file).row_groups]
