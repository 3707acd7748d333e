"""The job that wraps a dataset's data keys again, or encrypts its files under new ones (rotate_keys)."""

from __future__ import annotations

from typing import Unpack

from pyspark.sql import DataFrame, SparkSession

from fastpq.spark.core import CryptoError, SchemaError
from fastpq.spark.jobs.reencryption import is_encrypted_file, reencrypt_dataset
from fastpq.spark.jobs.running import SKIPPED, Progress, TaskOutcome, report_on_files
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.option_keywords import EncryptionKeywords
from fastpq.spark.options import EncryptionOptions, encryption_of, lists_options, options_as_text, service_of
from fastpq.spark.service_checks import require_service


@lists_options(EncryptionOptions, ServiceOptions)
def rotate_keys(
    spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Unpack[EncryptionKeywords]
) -> DataFrame:
    """Put a dataset under the newest versions of its master keys.

    Without encryption options, the data keys in each key material file are wrapped again, and data files stay as they are. Files
    with internal key material and plaintext files report an error. With encryption options (``parquet.encryption.footer.key``
    ...), each file is encrypted page by page under new data keys, as encrypt_dataset does.

    Args:
        spark: the session.
        path: a file, a folder or a glob. It must be a folder if files are encrypted again.
        progress: called on the driver as ``progress(done, total)``, in files. The last call is ``(total, total)``. An exception
            from it cancels the job. With None, the numbers are logged.
        **options: any data source options:

    Returns:
        A row for each file: path, status, rows, bytes, seconds, error. The status is ``ok`` or ``error``. With
        ``allowPlaintextFiles``, it is ``skipped`` for a plaintext file.

    Raises:
        SchemaError: no key service is given.
        JobError: a file could not be encrypted again. Also raised if there are plaintext files without ``allowPlaintextFiles``,
            because they may have replaced encrypted ones. The dataset stays as it was.
    """
    texts = options_as_text(options)
    service = service_of(texts)
    if service is None:
        raise SchemaError("rotating keys needs the option kms.client")
    encryption = encryption_of(texts)
    require_service(spark, service)
    if encryption is not None:
        return reencrypt_dataset(spark, path, encryption, service, progress)
    return report_on_files(spark, path, "rotate keys", lambda file: _rotate(file, service), progress)


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
