"""Iceberg table files: opened through the table's FileIO, with their key metadata, and refused without them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote, urlparse

from fastpq.api.file import ParquetFile
from fastpq.catalogs.iceberg.gcm_streams import GcmStreamReader
from fastpq.catalogs.iceberg.key_chain import KEY_ID_PROPERTY
from fastpq.catalogs.iceberg.parquet_properties import as_key_metadata, file_properties
from fastpq.catalogs.iceberg.table_io import EncryptedTableIO
from fastpq.encryption.audit import AuditLog
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import KeyAccessError, ParquetError, TagVerificationError

OWN_FILE_IO = "pyiceberg.io."       # modules of FileIO classes that open a local path as it is


@dataclass(frozen=True)
class TableFiles:
    """How a table's files are opened.

    Attributes:
        io: the table's FileIO.
        is_encrypted: whether every file must have key metadata.
        require_length: whether encrypted streams must have their length in the key metadata.
        audit: log that records which keys open files, or None.
        threads: how many columns are decoded at the same time, or None.
    """

    io: Any
    is_encrypted: bool
    require_length: bool = True
    audit: AuditLog | None = None
    threads: int | None = None

    @contextmanager
    def parquet(self, data_file: Any) -> Iterator[ParquetFile]:
        """Open a data file or a delete file in Parquet.

        Args:
            data_file: a PyIceberg DataFile.

        Raises:
            KeyAccessError: the table is encrypted, but there are no key metadata for the file.
            TagVerificationError: the file has another length than its key metadata say.
            ParquetError: as for ParquetFile.
        """
        with opened_place(self.io, data_file.file_path) as where, self._opened(where, data_file) as file:
            yield file

    @contextmanager
    def _opened(self, where: Any, data_file: Any) -> Iterator[ParquetFile]:
        file = self._open_parquet(where, data_file)
        with file:
            try:
                yield file
            except ParquetError as error:
                error.at(path=data_file.file_path)
                raise

    @hides_arguments
    def _open_parquet(self, where: Any, data_file: Any) -> ParquetFile:
        key_metadata = self._key_metadata(data_file)
        if key_metadata is None:
            return ParquetFile(where, threads=self.threads)
        metadata = as_key_metadata(key_metadata)
        keys = file_properties(metadata, audit=self.audit).decryption
        file = ParquetFile(where, decryption_properties=keys, threads=self.threads)
        if metadata.file_length not in (None, file._size):
            file.close()
            raise TagVerificationError(
                f"the file has {file._size} bytes, but its key metadata say {metadata.file_length}", path=data_file.file_path
            )
        return file

    @contextmanager
    def stream(self, data_file: Any) -> Iterator[BinaryIO]:
        """Open a file that is not Parquet, such as a Puffin file. Encrypted ones are decrypted as AGS1 streams.

        Args:
            data_file: a PyIceberg DataFile.

        Raises:
            KeyAccessError: the table is encrypted, but there are no key metadata for the file.
            ParquetError: as for GcmStreamReader.
        """
        with self.io.new_input(data_file.file_path).open() as file:
            try:
                if self._key_metadata(data_file) is None:
                    yield file
                else:
                    with self._decrypted(file, data_file) as stream:
                        yield stream  # type: ignore[misc]  # it has all that a BinaryIO needs here
            except ParquetError as error:
                error.at(path=data_file.file_path)
                raise

    @hides_arguments
    def _decrypted(self, file: Any, data_file: Any) -> GcmStreamReader:
        return GcmStreamReader(file, data_file.key_metadata, require_length=self.require_length)

    def _key_metadata(self, data_file: Any) -> bytes | None:
        key_metadata: bytes | None = data_file.key_metadata
        if key_metadata is None and self.is_encrypted:
            raise KeyAccessError(
                "the table is encrypted, but there are no key metadata for this file: somebody may have put it there",
                path=data_file.file_path,
            )
        return key_metadata


@contextmanager
def opened_place(io: Any, path: str) -> Iterator[Any]:
    """Yield what ParquetFile opens: a local path, which threads read in parallel, or a file object of the FileIO.

    Args:
        io: the table's FileIO.
        path: path or URL in the table's metadata.
    """
    local_path = local_path_of(path) if is_own_file_io(io) else None
    if local_path is not None:
        yield local_path
    else:
        with io.new_input(path).open() as file:
            yield file


def is_own_file_io(io: Any) -> bool:
    """Return whether a FileIO is one of PyIceberg's, which open a local path as it is."""
    if isinstance(io, EncryptedTableIO):
        return is_own_file_io(io.inner)
    return type(io).__module__.startswith(OWN_FILE_IO)


def is_encrypted_table(properties: Any) -> bool:
    """Return whether a table's properties name a master key."""
    return bool(properties.get(KEY_ID_PROPERTY))


def local_path_of(path: str) -> str | None:
    """Return the local path for a path or a ``file:`` URL, or None for other URLs."""
    if "://" not in path and not path.startswith("file:"):
        return path if os.path.isabs(path) else None
    parts = urlparse(path)
    is_local = parts.scheme == "file" and parts.netloc in ("", "localhost") and not parts.query and not parts.fragment
    return parts.path if is_local and unquote(parts.path) == parts.path else None
