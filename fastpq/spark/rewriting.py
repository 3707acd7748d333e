"""Jobs that write the files of a dataset anew page by page: encrypt_dataset, decrypt_dataset, and other keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import KeyAccessError, SchemaError
from fastpq.reading import read_metadata
from fastpq.rewriting.files import decrypt_file, encrypt_file
from fastpq.spark.keyservice import Encryption, KeyService
from fastpq.spark.options import encryption_of, options_as_text, service_of
from fastpq.spark.running import Progress
from fastpq.spark.staging import each_file, replace, stage_of


def encrypt_dataset(spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Any) -> DataFrame:
    """Encrypt the plaintext files of a dataset, a task each, and put them in the place of the plaintext all at once.

    Pages are neither decompressed nor decoded. A job that died is run again and goes on from the files that are done; run again
    after its end it changes nothing. What reads the folder while the files are exchanged sees old or new with fastpq.spark;
    other readers may see both for a moment.

    Args:
        spark: the session.
        path: the dataset's folder, on a filesystem that driver and executors share.
        progress: called on the driver with the number of files that are done, and of all; None logs it.
        **options: of encryption and of the key service, as the data source has them.

    Returns:
        A row for each file: path, status (``ok``, or ``skipped`` for a file that is encrypted already), rows, bytes, seconds,
        error.

    Raises:
        SchemaError: options that do not fit, or files that changed meanwhile.
        JobError: a file could not be encrypted, or some are encrypted already and others not, without ``allowPlaintextFiles``:
            a forged one would be made genuine. The dataset stays as it was.
    """
    encryption, service = encryption_options(options)

    def write(sources: list[str], target: str) -> int | None:
        (source,) = sources
        if is_encrypted_file(source):
            return None
        encrypt_file(source, target, service.encryption(encryption, target))
        return read_metadata(source).num_rows

    return _over_files(spark, path, ("encrypt", encryption, service), service, write, progress)


def decrypt_dataset(spark: SparkSession, path: str, *, progress: Progress | None = None, **options: Any) -> DataFrame:
    """Decrypt the encrypted files of a dataset, as encrypt_dataset encrypts plaintext ones.

    Args, returns, raises: as encrypt_dataset; options are those of the key service, and plaintext files are skipped.
    """
    service = service_of(options_as_text(options))
    if service is None:
        raise SchemaError("decrypting a dataset needs the option kms.client")

    def write(sources: list[str], target: str) -> int | None:
        (source,) = sources
        if not is_encrypted_file(source):
            return None
        keys = service.decryption(source)
        decrypt_file(source, target, keys)
        return rows_of(source, keys)

    return _over_files(spark, path, ("decrypt", service), service, write, progress)


def reencrypt_dataset(
    spark: SparkSession, path: str, encryption: Encryption, service: KeyService, progress: Progress | None
) -> DataFrame:
    """Encrypt the encrypted files of a dataset under new data keys; returns, raises as encrypt_dataset; others are skipped."""

    def write(sources: list[str], target: str) -> int | None:
        (source,) = sources
        if not is_encrypted_file(source):
            return None
        keys = service.decryption(source)
        encrypt_file(source, target, service.encryption(encryption, target), decryption_properties=keys)
        return rows_of(source, keys)

    return _over_files(spark, path, ("rotate", encryption, service), service, write, progress)


def encryption_options(options: dict[str, Any]) -> tuple[Encryption, KeyService]:
    """What options say of encryption.

    Raises:
        SchemaError: they say nothing of a footer key or of a key service.
    """
    given = options_as_text(options)
    encryption, service = encryption_of(given), service_of(given)
    if encryption is None or service is None:
        raise SchemaError("encrypting needs parquet.encryption.footer.key or .uniform.key, and the option kms.client")
    return encryption, service


def is_encrypted_file(path: str) -> bool:
    """Whether a file says that it is encrypted."""
    try:
        return read_metadata(path, memory_map=False).encryption_algorithm is not None
    except KeyAccessError:      # of its footer
        return True


def rows_of(path: str, keys: FileDecryptionProperties | None) -> int:
    return read_metadata(path, decryption_properties=keys).num_rows


def _over_files(
    spark: SparkSession,
    path: str,
    settings: tuple[Any, ...],
    service: KeyService,
    write: Callable[[list[str], str], int | None],
    progress: Progress | None,
) -> DataFrame:
    stage = stage_of(path, settings[0], *settings[1:])
    return replace(spark, stage, each_file(stage.root), write, progress, mixed=service.allow_plaintext_files)
