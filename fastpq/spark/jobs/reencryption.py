"""Jobs that rewrite a dataset's files page by page: encrypt_dataset, decrypt_dataset, and encryption under new keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession

from fastpq.spark.core import FileDecryptionProperties, KeyAccessError, SchemaError, decrypt_file, encrypt_file, read_metadata
from fastpq.spark.jobs.replacing import Skipping, replace, stage_of
from fastpq.spark.jobs.running import Progress
from fastpq.spark.jobs.staging import WriteFile
from fastpq.spark.keyservice import Encryption, ServiceOptions
from fastpq.spark.option_keywords import EncryptionKeywords, ServiceKeywords
from fastpq.spark.options import EncryptionOptions, encryption_of, lists_options, options_as_text, service_of
from fastpq.spark.service_checks import require_service


@lists_options(EncryptionOptions, ServiceOptions)
def encrypt_dataset(
    spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Unpack[EncryptionKeywords]
) -> DataFrame:
    """Encrypt a dataset's plaintext files, one task for each file, and replace the plaintext files all at once.

    Pages are neither decompressed nor decoded. Run a failed job again to continue with the missing files. A second run after a
    finished job changes nothing. A fastpq.spark reader of the folder sees either all old or all new files, even during the
    replacement. Other readers may see both for a moment.

    Args:
        spark: the session.
        path: the dataset's folder, on a filesystem that driver and executors share, or in S3.
        progress: called on the driver as ``progress(done, total)``, in files. The last call is ``(total, total)``. An exception
            from it cancels the job. With None, the numbers are logged.
        **options: any data source options:

    Returns:
        A row for each file: path, status, rows, bytes, seconds, error. The status is ``ok``, or ``skipped`` for an already
        encrypted file.

    Raises:
        SchemaError: options are wrong, or files changed during the job.
        JobError: a file could not be encrypted. Also raised if encrypted files stand beside plaintext files without
            ``allowPlaintextFiles``, because encrypting a forged plaintext file would make the forgery genuine. The dataset stays
            as it was.
    """
    encryption, service = encryption_options(options)
    require_service(spark, service)

    def write(sources: list[str], target: Any, place: str, name: str) -> int | None:
        (source,) = sources
        if is_encrypted_file(source):
            return None
        encrypt_file(source, target, service.encryption(encryption, place, name))
        return read_metadata(source).num_rows

    skipping: Skipping = "some" if service.allow_plaintext_files else "all"
    return _over_files(spark, path, ("encrypt", encryption, service), write, progress, skipping)


@lists_options(ServiceOptions)
def decrypt_dataset(
    spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Unpack[ServiceKeywords]
) -> DataFrame:
    """Decrypt a dataset's files, which must all be encrypted. Otherwise like encrypt_dataset.

    Args:
        spark: the session.
        path: the dataset's folder, on a filesystem that driver and executors share, or in S3.
        progress: called on the driver as ``progress(done, total)``, in files. The last call is ``(total, total)``. An exception
            from it cancels the job. With None, the numbers are logged.
        **options: any data source options:

    Returns:
        A row for each file: path, status, rows, bytes, seconds, error. The status is ``ok``. With ``allowPlaintextFiles``, it is
        ``skipped`` for a plaintext file.

    Raises:
        SchemaError: no key service is given, options are wrong, or files changed during the job.
        JobError: a file could not be decrypted. Also raised if there are plaintext files without ``allowPlaintextFiles``,
            because they may have replaced encrypted ones. (After a finished job all files are plaintext.) The dataset stays as it
            was.
    """
    service = service_of(options_as_text(options))
    if service is None:
        raise SchemaError("decrypting a dataset needs the option kms.client")
    require_service(spark, service)

    def write(sources: list[str], target: Any, place: str, name: str) -> int | None:
        (source,) = sources
        if not is_encrypted_file(source):
            return None
        keys = service.decryption(source)
        decrypt_file(source, target, keys)
        return rows_of(source, keys)

    return _over_files(spark, path, ("decrypt", None, service), write, progress, _skipping_plaintext(service))


def reencrypt_dataset(
    spark: SparkSession, path: str, encryption: Encryption, service: ServiceOptions, progress: Progress | None
) -> DataFrame:
    """Encrypt a dataset's encrypted files under new data keys. Returns and raises the same as decrypt_dataset."""

    def write(sources: list[str], target: Any, place: str, name: str) -> int | None:
        (source,) = sources
        if not is_encrypted_file(source):
            return None
        keys = service.decryption(source)
        encrypt_file(source, target, service.encryption(encryption, place, name), decryption_properties=keys)
        return rows_of(source, keys)

    return _over_files(spark, path, ("rotate", encryption, service), write, progress, _skipping_plaintext(service))


def encryption_options(options: Mapping[str, object]) -> tuple[Encryption, ServiceOptions]:
    """Return the encryption and the key service that options name.

    Raises:
        SchemaError: the options name no footer key or no key service.
    """
    texts = options_as_text(options)
    encryption, service = encryption_of(texts), service_of(texts)
    if encryption is None or service is None:
        raise SchemaError("encrypting needs parquet.encryption.footer.key or .uniform.key, and the option kms.client")
    return encryption, service


def is_encrypted_file(path: str) -> bool:
    """Whether a file has an encrypted footer, or a plaintext footer with an encryption algorithm."""
    try:
        return read_metadata(path, memory_map=False).encryption_algorithm is not None
    except KeyAccessError:      # the footer is encrypted, and no key was given
        return True


def rows_of(path: str, keys: FileDecryptionProperties | None) -> int:
    return read_metadata(path, decryption_properties=keys).num_rows


def _over_files(
    spark: SparkSession,
    path: str,
    settings: tuple[str, Encryption | None, ServiceOptions],
    write: WriteFile,
    progress: Progress | None,
    skipping: Skipping,
) -> DataFrame:
    stage = stage_of(path, *settings)
    return replace(spark, stage, stage.each_file(), write, progress, skipping=skipping)


def _skipping_plaintext(service: ServiceOptions) -> Skipping:
    """Return which plaintext files a job may skip if it expects encrypted ones: none, unless the caller allows plaintext."""
    return "some" if service.allow_plaintext_files else "none"
