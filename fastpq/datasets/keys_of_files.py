"""The keys of each file in a dataset, from what a caller passes: keys for all files, or a function of the path."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import TypeAlias

from fastpq.datasets.discovery import DataFile
from fastpq.encryption.dataset_properties import DatasetDecryptionProperties, DatasetEncryptionProperties
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import SchemaError
from fastpq.io.location import Remote, RemotePath

DatasetDecryption: TypeAlias = FileDecryptionProperties | Callable[[str], FileDecryptionProperties | None] | None
DatasetEncryption: TypeAlias = FileEncryptionProperties | Callable[[str], FileEncryptionProperties | None] | None


def decryption_of(keys: DatasetDecryption, file: DataFile) -> FileDecryptionProperties | None:
    """Return the keys for reading a file. A function of the caller gets its path, our own class also its filesystem.

    Raises:
        TypeError: a function of the caller returned something else than keys.
    """
    if keys is None or isinstance(keys, FileDecryptionProperties):
        return keys
    if isinstance(keys, DatasetDecryptionProperties):
        return keys(file.where)
    file_keys: object = keys(file.path)
    if file_keys is None or isinstance(file_keys, FileDecryptionProperties):
        return file_keys
    advice = " (pass it as decryption_properties, or its name)" if isinstance(file_keys, DatasetDecryptionProperties) else ""
    raise TypeError(
        "a function as decryption_properties must return FileDecryptionProperties or None, not "
        f"{type(file_keys).__name__}{advice}"
    )


def check_dataset_keys(keys: object, option: str) -> None:
    """Refuse what is neither keys, nor a function that returns keys for a path, nor None.

    Args:
        keys: what the caller passes.
        option: the argument, ``encryption_properties`` or ``decryption_properties``.

    Raises:
        TypeError: the keys have another class.
    """
    expected: type[object] = FileEncryptionProperties
    others: tuple[type[object], ...] = (FileDecryptionProperties, DatasetDecryptionProperties)
    if option == "decryption_properties":
        expected, others = FileDecryptionProperties, (FileEncryptionProperties, DatasetEncryptionProperties)
    if keys is None or isinstance(keys, expected) or (callable(keys) and not isinstance(keys, others)):
        return
    name = type(keys).__name__
    way = f"CryptoFactory.dataset_{option} makes them from it" if name.endswith("Configuration") else ""
    raise TypeError(
        f"{option} must be {expected.__name__}, or a function that returns them for a path, not {name}{way and f': {way}'}")


def check_names(keys: DatasetDecryption | DatasetEncryption, files: Sequence[DataFile]) -> None:
    """Refuse files with one name if only names tell files apart. One of them may be a copy that somebody put there.

    Raises:
        SchemaError: two files have the same name.
    """
    if not isinstance(keys, DatasetDecryptionProperties | DatasetEncryptionProperties) or not keys.is_bound_to_names:
        return
    earlier: dict[str, str] = {}
    for file in files:
        name = posixpath.basename(file.path.replace("\\", "/"))
        if name in earlier:
            raise SchemaError(
                f"{earlier[name]} has the same name, and only the name binds a file to its table: one may be a copy of the other "
                "(root=... binds files to their paths)", path=file.path)
        earlier[name] = file.path


def check_template(keys: DatasetEncryption, template: str | None, partition_by: Sequence[str]) -> None:
    """Refuse a template that gives files in different partitions one name, if only names tell files apart.

    Raises:
        SchemaError: the template repeats names.
    """
    if template is not None and partition_by and isinstance(keys, DatasetEncryptionProperties) and keys.is_bound_to_names:
        raise SchemaError(
            "with basename_template the partitions have files of the same names, and only the name binds a file to its table: "
            "leave the template out, or bind files to their paths (root=...)"
        )


def encryption_by_path(
    keys: DatasetEncryption, partition_by: Sequence[str], root: str | Remote | None
) -> Callable[[str], FileEncryptionProperties | None]:
    """Return a function that returns the keys for a new file's path. Keys for partition columns are refused.

    Args:
        keys: the keys, or a function that returns the keys for a file's path.
        partition_by: names of partition columns.
        root: the dataset's folder. Its filesystem has the files.
    """
    def keys_of(path: str) -> FileEncryptionProperties | None:
        if keys is None or isinstance(keys, FileEncryptionProperties):
            file_keys = keys
        elif isinstance(keys, DatasetEncryptionProperties) and isinstance(root, Remote):
            file_keys = keys(RemotePath(root.filesystem, path))
        else:
            file_keys = keys(path)
        for name in partition_by:
            if file_keys is not None and file_keys.column_keys.find((name,)) is not None:
                raise SchemaError("a partition column cannot have a key: its values are in the paths, in plaintext", column=name)
        return file_keys

    check_dataset_keys(keys, "encryption_properties")
    if isinstance(keys, FileEncryptionProperties):
        keys_of("")     # refuses the keys before anything is written
    return keys_of
