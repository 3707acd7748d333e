"""Jobs rewriting the files of a dataset page by page: encrypt_dataset, decrypt_dataset, and encryption under new keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession

from fastpq.api.functions import read_metadata
from fastpq.common.progress import Progress
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import KeyAccessError, SchemaError
from fastpq.rewriting.files import decrypt_file, encrypt_file
from fastpq.spark.keyservice import Encryption, ServiceOptions
from fastpq.spark.keywords import EncryptionKeywords, ServiceKeywords
from fastpq.spark.options import encryption_of, options_as_text, service_of
from fastpq.spark.probing import require_service
from fastpq.spark.replacing import Skipping, replace, stage_of
from fastpq.spark.staging import WriteFile


def encrypt_dataset(
    spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Unpack[EncryptionKeywords]
) -> DataFrame:
    """Encrypt the plaintext files of a dataset, a task for each file, and replace the plaintext files all at once.

    Pages are neither decompressed nor decoded. Run a failed job again to continue with the missing files. A second run of a
    finished job changes nothing. A fastpq.spark reader of the folder sees either all old or all new files, even during the
    replacement; other readers may see both for a moment.

    Args:
        spark: the session.
        path: the dataset's folder, on a filesystem that driver and executors share, or in S3.
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
        A row for each file: path, status (``ok``, or ``skipped`` for an already encrypted file), rows, bytes, seconds,
        error.

    Raises:
        SchemaError: wrong options, or files changed during the job.
        JobError: a file could not be encrypted; or, without ``allowPlaintextFiles``, encrypted files stand beside plaintext
            files: encrypting a forged plaintext file would make the forgery genuine. The dataset stays as it was.
    """
    encryption, service = encryption_options(options)
    require_service(spark, service)

    def write(sources: list[str], target: Any, place: str) -> int | None:
        (source,) = sources
        if is_encrypted_file(source):
            return None
        encrypt_file(source, target, service.encryption(encryption, place))
        return read_metadata(source).num_rows

    skipping: Skipping = "some" if service.allow_plaintext_files else "all"
    return _over_files(spark, path, ("encrypt", encryption, service), write, progress, skipping)


def decrypt_dataset(
    spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Unpack[ServiceKeywords]
) -> DataFrame:
    """Decrypt the files of a dataset, all of them encrypted, in the manner of encrypt_dataset.

    Args:
        spark: the session.
        path: the dataset's folder, on a filesystem that driver and executors share, or in S3.
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
        A row for each file: path, status (``ok``; with ``allowPlaintextFiles`` also ``skipped``, for a plaintext file), rows,
        bytes, seconds, error.

    Raises:
        SchemaError: no key service, wrong options, or files changed during the job.
        JobError: a file could not be decrypted; or, without ``allowPlaintextFiles``, there are plaintext files: they may have
            been put in the place of encrypted ones. After a finished job all files are plaintext. The dataset stays as it was.
    """
    service = service_of(options_as_text(options))
    if service is None:
        raise SchemaError("decrypting a dataset needs the option kms.client")
    require_service(spark, service)

    def write(sources: list[str], target: Any, place: str) -> int | None:
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
    """Encrypt a dataset's encrypted files under new data keys; returns and raises as decrypt_dataset."""

    def write(sources: list[str], target: Any, place: str) -> int | None:
        (source,) = sources
        if not is_encrypted_file(source):
            return None
        keys = service.decryption(source)
        encrypt_file(source, target, service.encryption(encryption, place), decryption_properties=keys)
        return rows_of(source, keys)

    return _over_files(spark, path, ("rotate", encryption, service), write, progress, _skipping_plaintext(service))


def encryption_options(options: Mapping[str, object]) -> tuple[Encryption, ServiceOptions]:
    """Encryption and key service named in options.

    Raises:
        SchemaError: no footer key or no key service.
    """
    given = options_as_text(options)
    encryption, service = encryption_of(given), service_of(given)
    if encryption is None or service is None:
        raise SchemaError("encrypting needs parquet.encryption.footer.key or .uniform.key, and the option kms.client")
    return encryption, service


def is_encrypted_file(path: str) -> bool:
    """Whether a file has an encrypted footer, or a plaintext footer with an encryption algorithm."""
    try:
        return read_metadata(path, memory_map=False).encryption_algorithm is not None
    except KeyAccessError:      # an encrypted footer, read without a key
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
    """Which plaintext files a job skips whose files should be encrypted: none, unless the caller allows plaintext files."""
    return "some" if service.allow_plaintext_files else "none"
