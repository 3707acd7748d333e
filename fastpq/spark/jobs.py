"""verify_dataset checks all files of a dataset; rotate_keys wraps their data keys anew, or encrypts the files under new keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession

from fastpq.api.file import ParquetFile
from fastpq.common.progress import Progress
from fastpq.errors import CryptoError, SchemaError
from fastpq.spark.batches import open_file
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.keywords import EncryptionKeywords, ServiceKeywords
from fastpq.spark.listing import ListedFile, list_files
from fastpq.spark.options import encryption_of, options_as_text, service_of
from fastpq.spark.probing import require_service
from fastpq.spark.rewriting import is_encrypted_file, reencrypt_dataset
from fastpq.spark.running import SKIPPED, TaskOutcome, Work, report_of, run_tasks

_ROWS_AT_A_TIME = 100_000


def verify_dataset(
    spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Unpack[ServiceKeywords]
) -> DataFrame:
    """Read every page of a dataset's files, checking checksums, tags, page indexes, bloom filters and row counts.

    Args:
        spark: the session.
        path: a file, a folder or a glob.
        progress: called on the driver as ``progress(done, total)``, in files; the last call is ``(total, total)``. An exception
            from it cancels the job. None logs the numbers.
        **options: any of the options of the data source (fastpq.spark.keywords):

            - ``kms.client``: client of the key service: ``"package.module:Class"``, or ``"keyring"``. Without it only plaintext
              files are read.
            - ``kms.token.file``: path of a file with the access token, on each machine. Default: the environment variable
              FASTPQ_KEY_ACCESS_TOKEN.
            - ``kms.trusted.keys``: names of the master keys that files may be under, separated by commas. Default: all.
            - ``kms.instance.id``: instance of the key service; files that name an instance are refused without. Default: the
              instance of the client.
            - ``kms.instance.url``: URL of the key service. Default: the URL of the client.
            - ``cache.lifetime.seconds``: seconds for which a worker keeps clients and keys. Default ``600``.
            - ``allowPlaintextFiles``: with a key service, read plaintext files too. Default ``False``.
            - ``kms.conf.NAME``: option NAME of the client.

    Returns:
        A row for each file: path, status (``ok`` or ``error``), rows, bytes, seconds, error.
    """
    service = service_of(options_as_text(options))
    require_service(spark, service)
    return _over_files(spark, path, "verify", lambda file: TaskOutcome(rows=_verify(file, service)), progress)


def rotate_keys(
    spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Unpack[EncryptionKeywords]
) -> DataFrame:
    """Put a dataset under the newest versions of its master keys.

    Without options of encryption, the data keys of each file are wrapped anew in its key material file, and data files stay as
    they are; files with internal key material and plaintext files report an error. With options of encryption
    (``parquet.encryption.footer.key`` ...), each file is encrypted page by page under new data keys, as by encrypt_dataset.

    Args:
        spark: the session.
        path: a file, a folder or a glob; a folder where files are encrypted anew.
        progress: called on the driver as ``progress(done, total)``, in files; the last call is ``(total, total)``. An exception
            from it cancels the job. None logs the numbers.
        **options: any of the options of the data source (fastpq.spark.keywords):

            - ``parquet.encryption.footer.key``: name of the master key of footers.
            - ``parquet.encryption.column.keys``: names of master keys and their columns: ``"key:column,column;key:column"``.
            - ``parquet.encryption.uniform.key``: name of one master key for footers and columns, in the place of both above.
            - ``parquet.encryption.algorithm``: ``"AES_GCM_V1"`` or ``"AES_GCM_CTR_V1"``. Default ``"AES_GCM_V1"``.
            - ``parquet.encryption.complete.columns``: encrypt columns without a key under the footer key. Default ``False``.
            - ``parquet.encryption.plaintext.footer``: leave footers readable, and sign them. Default ``False``.
            - ``parquet.encryption.double.wrapping``: wrap data keys by key encryption keys, and these by master keys. Default
              ``True``.
            - ``parquet.encryption.key.material.store.internally``: keep key material in the files, not beside them. Default
              ``True``.
            - ``parquet.encryption.data.key.length.bits``: 128, 192 or 256. Default ``128``.
            - ``parquet.encryption.kek.length.bits``: 128, 192 or 256. Default ``128``.
            - ``kms.client``: client of the key service: ``"package.module:Class"``, or ``"keyring"``. Without it only plaintext
              files are read.
            - ``kms.token.file``: path of a file with the access token, on each machine. Default: the environment variable
              FASTPQ_KEY_ACCESS_TOKEN.
            - ``kms.trusted.keys``: names of the master keys that files may be under, separated by commas. Default: all.
            - ``kms.instance.id``: instance of the key service; files that name an instance are refused without. Default: the
              instance of the client.
            - ``kms.instance.url``: URL of the key service. Default: the URL of the client.
            - ``cache.lifetime.seconds``: seconds for which a worker keeps clients and keys. Default ``600``.
            - ``allowPlaintextFiles``: with a key service, read plaintext files too. Default ``False``.
            - ``kms.conf.NAME``: option NAME of the client.

    Returns:
        A row for each file: path, status (``ok`` or ``error``; with ``allowPlaintextFiles`` also ``skipped``, for a plaintext
        file), rows, bytes, seconds, error.

    Raises:
        SchemaError: no key service.
        JobError: a file could not be encrypted anew; or, without ``allowPlaintextFiles``, there are plaintext files: they may
            have been put in the place of encrypted ones. The dataset stays as it was.
    """
    given = options_as_text(options)
    service = service_of(given)
    if service is None:
        raise SchemaError("rotating keys needs the option kms.client")
    encryption = encryption_of(given)
    require_service(spark, service)
    if encryption is not None:
        return reencrypt_dataset(spark, path, encryption, service, progress)
    return _over_files(spark, path, "rotate keys", lambda file: _rotate(file, service), progress)


def _over_files(
    spark: SparkSession, path: str, description: str, action: Callable[[str], TaskOutcome], progress: Progress | None
) -> DataFrame:
    work: Work[ListedFile] = Work(description, lambda file: (file.path, file.size), lambda file: action(file.path))
    return report_of(spark, run_tasks(spark, list_files([path]), work, progress))


def _rotate(path: str, service: ServiceOptions) -> TaskOutcome:
    if not is_encrypted_file(path):
        if service.allow_plaintext_files:
            return TaskOutcome(SKIPPED)
        raise CryptoError(
            "the file is plaintext, and may have been put in the place of an encrypted one (allowPlaintextFiles=true skips it)"
        )
    service.factory().rotate_master_keys(
        service.connection(),
        path,
        cache_lifetime_seconds=service.cache_lifetime_seconds,
        trusted_master_keys=service.trusted_master_keys,
    )
    return TaskOutcome()


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
