"""The job that reads and checks everything in a dataset's files (verify_dataset)."""

from __future__ import annotations

from typing import Unpack

from pyspark.sql import DataFrame, SparkSession

from fastpq.spark.core import ParquetFile, SchemaError
from fastpq.spark.jobs.running import Progress, TaskOutcome, report_on_files
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.option_keywords import ServiceKeywords
from fastpq.spark.options import lists_options, options_as_text, service_of
from fastpq.spark.scan.file_scan import open_file
from fastpq.spark.service_checks import require_service

_ROWS_AT_A_TIME = 100_000


@lists_options(ServiceOptions)
def verify_dataset(
    spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Unpack[ServiceKeywords]
) -> DataFrame:
    """Read every page in a dataset's files, and check checksums, tags, page indexes, bloom filters and row counts.

    Args:
        spark: the session.
        path: a file, a folder or a glob.
        progress: called on the driver as ``progress(done, total)``, in files. The last call is ``(total, total)``. An exception
            from it cancels the job. With None, the numbers are logged.
        **options: any data source options:

    Returns:
        A row for each file: path, status (``ok`` or ``error``), rows, bytes, seconds, error.
    """
    service = service_of(options_as_text(options))
    require_service(spark, service)
    return report_on_files(spark, path, "verify", lambda file: TaskOutcome(rows=_verify(file, service)), progress)


def _verify(path: str, service: ServiceOptions | None) -> int:
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
