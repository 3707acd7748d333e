"""Jobs over all files of a dataset that leave the files as they are: verify_dataset, and rotate_keys of material beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fastpq.errors import SchemaError
from fastpq.file import ParquetFile
from fastpq.spark.batches import open_file
from fastpq.spark.keyservice import KeyService
from fastpq.spark.listing import DataFile, list_files
from fastpq.spark.options import encryption_of, options_as_text, service_of
from fastpq.spark.rewriting import reencrypt_dataset
from fastpq.spark.running import Outcome, Progress, Work, report_of, run

_ROWS_AT_A_TIME = 100_000


def verify_dataset(spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Any) -> DataFrame:
    """Read everything in each file of a dataset: checksums, tags, page indexes, bloom filters, and counts of rows.

    Args:
        spark: the session.
        path: a file, a folder or a glob.
        progress: called on the driver with the number of files that are done, and of all; None logs it.
        **options: of the key service, as the data source has them.

    Returns:
        A row for each file: path, status (``ok`` or ``error``), rows, bytes, seconds, error.
    """
    service = service_of(options_as_text(options))
    return _over_files(spark, path, "verify", lambda file: Outcome(rows=_verify(file, service)), progress)


def rotate_keys(spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Any) -> DataFrame:
    """Put a dataset under the newest versions of its master keys.

    Without options of encryption, the data keys of each file are wrapped anew in its key material file, and the files stay as
    they are; files whose key material is in the file itself report an error. With them (``parquet.encryption.footer.key`` ...),
    each file is encrypted page by page under new data keys, as encrypt_dataset does it.

    Args, returns: as verify_dataset; path is a folder where files are encrypted anew.

    Raises:
        SchemaError: no key service.
        JobError: a file could not be encrypted anew; the dataset stays as it was.
    """
    given = options_as_text(options)
    service = service_of(given)
    if service is None:
        raise SchemaError("rotating keys needs the option kms.client")
    encryption = encryption_of(given)
    if encryption is not None:
        return reencrypt_dataset(spark, path, encryption, service, progress)
    return _over_files(spark, path, "rotate keys", lambda file: _rotate(file, service), progress)


def _over_files(
    spark: SparkSession, path: str, description: str, action: Callable[[str], Outcome], progress: Progress | None
) -> DataFrame:
    work: Work[DataFile] = Work(description, lambda file: (file.path, file.size), lambda file: action(file.path))
    return report_of(spark, run(spark, list_files([path]), work, progress))


def _rotate(path: str, service: KeyService) -> Outcome:
    service.factory().rotate_master_keys(
        service.connection(), path, cache_lifetime_seconds=service.cache_lifetime_seconds
    )
    return Outcome()


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
