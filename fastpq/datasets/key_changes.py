"""Change the encryption of all files in a folder: encrypt_dataset, decrypt_dataset, rotate_dataset and revoke.

Each file is replaced in one step, and pages are neither decompressed nor decoded. A job that was interrupted leaves some files
done, and a second call does the rest. Two jobs never run at the same time on a folder.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fastpq.common.progress import Progress
from fastpq.datasets.encrypting_jobs import DecryptingJob, EncryptingJob
from fastpq.datasets.folder_job import Folder, JobOptions
from fastpq.datasets.key_change_report import KeyChangeReport
from fastpq.datasets.keys_of_files import DatasetDecryption, DatasetEncryption
from fastpq.datasets.rotating_jobs import RevokingJob, RotatingJob
from fastpq.encryption.dataset_properties import DatasetDecryptionProperties
from fastpq.options import ReaderProperties


def encrypt_dataset(
    where: Any,
    encryption_properties: DatasetEncryption,
    *,
    decryption_properties: DatasetDecryption = None,
    dry_run: bool = False,
    allow_plaintext_files: bool = False,
    keep_metadata: Collection[str] = (),
    properties: ReaderProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> KeyChangeReport:
    """Encrypt all plaintext files in a folder in place, page by page. Each file is replaced in one step.

    An encrypted list of the plaintext files is written into the folder first, and removed at the end. If the call is interrupted,
    a second call encrypts those files of the list that are still plaintext and were not changed. ``_metadata`` and
    ``_common_metadata`` are removed before the first file is replaced, because they hold statistics in plaintext. Nobody else may
    change the files meanwhile. Until all files are done, readers with keys refuse the plaintext files, unless their keys have
    ``allow_plaintext_files=True``. Copies of the plaintext files, and snapshots of the folder, stay as they are.

    Args:
        where: the dataset's folder, a path or an fsspec URL.
        encryption_properties: keys for every file, a DatasetEncryptionProperties, or a function that returns the keys for a
            file's path. The function is also called with the path of the list, ``_fastpq_job.parquet`` in the folder.
        decryption_properties: keys that open what ``encryption_properties`` encrypt. They are needed to go on after an
            interruption, if ``encryption_properties`` is a function whose keys differ from call to call.
        dry_run: change nothing, and report what would be changed.
        allow_plaintext_files: encrypt plaintext files although other files in the folder are encrypted, and no interrupted job
            explains it. If somebody has put a forged file in the place of an encrypted one, it becomes genuine then.
        keep_metadata: as for ``encrypt_file``.
        properties: limits and checks for reading.
        progress: called as ``progress(done, total)`` after each file, in files. The last call is ``(total, total)``.
        filesystem: an fsspec or pyarrow.fs filesystem for the path, or None to find one by the URL.
        storage_options: options for the URL's fsspec filesystem, as for pandas and Polars.
        timeout: an HTTP or S3 URL fails after this many seconds without a byte from the server.

    Returns:
        A KeyChangeReport. Files that were encrypted before are unchanged in it.

    Raises:
        FileNotFoundError: there is no such folder, or no data file in it.
        SchemaError: ``where`` is no folder, or a file's columns do not fit the keys. Nothing is changed then.
        CryptoError: plaintext and encrypted files stand side by side, or a plaintext file was changed during an interrupted job,
            or another job is changing the folder. Nothing is changed then.
        UnsupportedError: the folder is neither local nor in S3, Azure or Google's store. Two jobs cannot be kept apart there.
        FormatError, UnsupportedError, LimitError, KeyAccessError: as for ``encrypt_file``. Files before this one are done.
    """
    folder = Folder.of(where, filesystem, storage_options, timeout)
    options = JobOptions(dry_run, allow_plaintext_files, keep_metadata, properties, progress)
    return EncryptingJob(folder, options, encryption_properties, decryption_properties).run()


def decrypt_dataset(
    where: Any,
    decryption_properties: DatasetDecryption,
    *,
    dry_run: bool = False,
    allow_plaintext_files: bool = False,
    properties: ReaderProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> KeyChangeReport:
    """Decrypt all files in a folder in place, page by page. Each file is replaced in one step.

    A list of the encrypted files is written into the folder first, and removed at the end. If the call is interrupted, a second
    call decrypts the rest. Key material beside a file is removed after it. Until all files are done, readers need keys with
    ``allow_plaintext_files=True``. Without ``table_id``, files that were exchanged with each other are decrypted where they are.

    Args:
        where: as for ``encrypt_dataset``.
        decryption_properties: keys for every file, a DatasetDecryptionProperties, or a function that returns the keys for a
            file's path. ``rotate_dataset`` also calls it with the path of its list.
        dry_run: as for ``encrypt_dataset``.
        allow_plaintext_files: leave plaintext files as they are. By default they are refused, unless an interrupted job has made
            them: somebody may have put them in the place of encrypted ones. After a finished job all files are plaintext.
        properties, progress, filesystem, storage_options, timeout: as for ``encrypt_dataset``.

    Returns:
        A KeyChangeReport.

    Raises:
        FileNotFoundError: there is no such folder, or no data file in it.
        SchemaError: ``where`` is no folder. Nothing is changed then.
        CryptoError: there are plaintext files that no interrupted decrypt_dataset explains, also if all files are plaintext. Or
            another job is changing the folder. Nothing is changed then.
        UnsupportedError: as for ``encrypt_dataset``.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError: as for ``decrypt_file``. Files before
            this one are done.
    """
    folder = Folder.of(where, filesystem, storage_options, timeout)
    options = JobOptions(dry_run, allow_plaintext_files, (), properties, progress)
    return DecryptingJob(folder, options, decryption_properties).run()


def rotate_dataset(
    where: Any,
    decryption_properties: DatasetDecryption,
    encryption_properties: DatasetEncryption = None,
    *,
    new_data_keys: bool = False,
    dry_run: bool = False,
    allow_plaintext_files: bool = False,
    keep_metadata: Collection[str] = (),
    properties: ReaderProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> KeyChangeReport:
    """Put all files in a folder under the newest versions of their master keys, or under new keys.

    Files with external key material stay as they are: their data keys are wrapped again. All other files are encrypted page by
    page under new data keys, and each is replaced in one step. If the call is interrupted, a second call rotates the rest, and
    wraps external keys once more. It then needs ``decryption_properties`` that open old and rotated files. Files that the
    interrupted call has put under other keys or master keys than ``encryption_properties`` are rotated again. Without
    ``encryption_properties`` the rotated files stay as they are, also if a master key has had a new version since: a further call
    rotates all files.

    Args:
        where: as for ``encrypt_dataset``.
        decryption_properties: as for ``decrypt_dataset``. Without ``encryption_properties`` it has to come from
            ``CryptoFactory.dataset_decryption_properties``, with ``trusted_master_keys``: a file names its master keys itself,
            and under a name that somebody wrote there, the new keys would be theirs.
        encryption_properties: as for ``encrypt_dataset``. None keeps master keys, encrypted columns, algorithm and AAD prefix of
            each file.
        new_data_keys: encrypt files with external key material too.
        dry_run, keep_metadata, properties, progress, filesystem, storage_options, timeout: as for ``encrypt_dataset``.
        allow_plaintext_files: leave plaintext files as they are. By default they are refused.

    Returns:
        A KeyChangeReport.

    Raises:
        FileNotFoundError: there is no such folder, or no data file in it.
        SchemaError: ``where`` is no folder, or there are no trusted master keys. Nothing is changed then.
        CryptoError: there are plaintext files, or another job is changing the folder. Nothing is changed then.
        KeyAccessError: a key is missing, or a file's keys are not wrapped by a key service. Files before this one are done.
        UnsupportedError: as for ``encrypt_dataset``.
        FormatError, UnsupportedError, LimitError, TagVerificationError: as for ``encrypt_file``.
    """
    folder = Folder.of(where, filesystem, storage_options, timeout)
    options = JobOptions(dry_run, allow_plaintext_files, keep_metadata, properties, progress)
    return RotatingJob(folder, options, decryption_properties, encryption_properties, new_data_keys).run()


def revoke(
    where: Any,
    columns: Sequence[str | tuple[str, ...]],
    master_key: str,
    decryption_properties: DatasetDecryptionProperties,
    *,
    dry_run: bool = False,
    allow_plaintext_files: bool = False,
    keep_metadata: Collection[str] = (),
    properties: ReaderProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> KeyChangeReport:
    """Put columns of all files in a folder under new data keys and another master key, so that holders of the old keys lose them.

    Each file is encrypted page by page and replaced in one step. All its data keys are new. Other columns and the footer stay
    under their master keys. Whoever has no access to ``master_key`` in the key service cannot open the columns in the new files.
    Copies that somebody has taken before stay readable with the old keys, and so do snapshots and old versions in a store. If the
    call is interrupted, a second call does the rest: a file whose columns are under ``master_key`` is done. Afterwards readers
    should no longer have the old master key in ``trusted_master_keys``: its holders can still encrypt other values under it.

    Args:
        where: as for ``encrypt_dataset``.
        columns: dotted column paths, or tuples of names. A group stands for all its columns.
        master_key: identifier of the new master key, which must wrap no key of these columns yet.
        decryption_properties: from ``CryptoFactory.dataset_decryption_properties``. ``trusted_master_keys`` has to list the old
            master keys and the new one.
        dry_run, keep_metadata, properties, progress, filesystem, storage_options, timeout: as for ``encrypt_dataset``.
        allow_plaintext_files: leave plaintext files as they are. By default they are refused.

    Returns:
        A KeyChangeReport.

    Raises:
        FileNotFoundError: there is no such folder, or no data file in it.
        SchemaError: ``where`` is no folder, no file has one of the columns, a partition column is named, or ``master_key`` is not
            trusted. Nothing is changed then.
        CryptoError: there are plaintext files, or another job is changing the folder. Nothing is changed then.
        KeyAccessError: a key is missing, or a file's keys are not wrapped by a key service. Nothing is changed then.
        UnsupportedError: as for ``encrypt_dataset``.
        FormatError, UnsupportedError, LimitError, TagVerificationError: as for ``encrypt_file``.
    """
    folder = Folder.of(where, filesystem, storage_options, timeout)
    options = JobOptions(dry_run, allow_plaintext_files, keep_metadata, properties, progress)
    return RevokingJob(folder, options, decryption_properties, columns, master_key).run()
