"""Jobs over all files of a dataset, a task for each file; a job that stopped is run again, and ends with a report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from fastpq.errors import ParquetError, SchemaError
from fastpq.file import ParquetFile
from fastpq.spark.batches import open_file
from fastpq.spark.keyservice import KeyService
from fastpq.spark.listing import list_files
from fastpq.spark.options import service_of
from fastpq.spark.types import arrow_schema

REPORT = st.StructType(
    [
        st.StructField("path", st.StringType()),
        st.StructField("status", st.StringType()),
        st.StructField("rows", st.LongType()),
        st.StructField("bytes", st.LongType()),
        st.StructField("seconds", st.DoubleType()),
        st.StructField("error", st.StringType()),
    ]
)
_ROWS_AT_A_TIME = 100_000


def verify_dataset(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    """Read everything in each file of a dataset: checksums, tags, page indexes, bloom filters, and counts of rows.

    Args:
        spark: the session.
        path: a file, a folder or a glob.
        **options: of the key service, as the data source has them.

    Returns:
        A row for each file: path, status (``ok`` or ``error``), rows, bytes, seconds, error.
    """
    service = service_of({name: str(value) for name, value in options.items()})
    return _run(spark, path, lambda file: _verify(file, service))


def rotate_keys(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    """Wrap the data keys of each file anew with the newest versions of its master keys; files stay as they are.

    Args, returns: as verify_dataset. Files whose key material is in the file itself report an error: such a file cannot
        be rotated without being rewritten.

    Raises:
        SchemaError: no key service.
    """
    service = service_of({name: str(value) for name, value in options.items()})
    if service is None:
        raise SchemaError("rotating keys needs the option kms.client")
    return _run(spark, path, lambda file: _rotate(file, service))


def _run(spark: SparkSession, path: str, action: Callable[[str], int | None]) -> DataFrame:
    """Do something with each file, a task each; its report is made now."""
    files = [file.path for file in list_files([path])]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist([_reported(files[number], action)], schema=arrow_schema(REPORT))

    rows = spark.range(0, len(files), 1, max(len(files), 1)).mapInArrow(work, REPORT).collect()
    return spark.createDataFrame(rows, REPORT)


def _reported(path: str, action: Callable[[str], int | None]) -> dict[str, Any]:
    started = time.perf_counter()
    rows = error = size = None
    try:
        size = os.path.getsize(path)
        rows = action(path)
    except (ParquetError, OSError) as found:
        error = f"{type(found).__name__}: {found}"
    seconds = time.perf_counter() - started
    status = "ok" if error is None else "error"
    return {"path": path, "status": status, "rows": rows, "bytes": size, "seconds": seconds, "error": error}


def _rotate(path: str, service: KeyService) -> None:
    service.factory().rotate_master_keys(
        service.connection(), path, cache_lifetime_seconds=service.cache_lifetime_seconds
    )


def _verify(path: str, service: KeyService | None) -> int:
    with open_file(path, service) as file:
        rows = sum(table.num_rows for table in file.iter_batches(_ROWS_AT_A_TIME))
        if rows != file.metadata.num_rows:
            raise SchemaError(f"{rows} rows, and the footer says {file.metadata.num_rows}", path=path)
        for row_group in range(file.num_row_groups):
            for column in range(len(file.schema)):
                _verify_indexes(file, row_group, column)
        return rows


def _verify_indexes(file: ParquetFile, row_group: int, column: int) -> None:
    file.offset_index(row_group, column)
    file.column_index(row_group, column)
    file.bloom_filter(row_group, column)
