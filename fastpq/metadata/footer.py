"""Footers read, decrypted and verified."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastpq import format as fmt
from fastpq.encryption.file_ciphers import open_file_decryptor, open_signed_footer
from fastpq.errors import FormatError, LimitError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC, StoredFooter, stored_footer
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import ReaderProperties

if TYPE_CHECKING:
    from fastpq.encryption.properties import FileDecryptionProperties
    from fastpq.io.source import Source


def read_footer(
    source_size: int,
    read: Callable[[int, int], Any],
    *,
    properties: ReaderProperties,
    decryption_properties: FileDecryptionProperties | None = None,
) -> FileMetaData:
    """Read and decode the footer of a file.

    Args:
        source_size: bytes of the file.
        read: function (offset, length) -> a buffer of length bytes, which nobody else can change.
        properties: bounds of footers.
        decryption_properties: keys, or None.

    Raises:
        FormatError: no Parquet file, or a broken footer.
        LimitError: the footer is larger than max_footer_size, or has more than max_row_groups, max_columns or max_metadata_size.
        KeyAccessError, TagVerificationError: an encrypted footer cannot be opened, or a signed footer cannot be verified.
        CryptoError: a policy of the decryption properties refuses the file.
        SchemaError: a key for a column that the file does not have.
    """
    stored = stored_footer(source_size, read, properties.max_footer_size)
    try:
        if stored.is_encrypted or decryption_properties is not None:
            _check_head(stored, source_size, read)
        if stored.is_encrypted:
            metadata = _open_encrypted(stored.data, decryption_properties)
        else:
            decryptor, size = open_signed_footer(decryption_properties, stored.data)
            metadata = FileMetaData(stored.data[:size], decryptor)
    except FormatError as error:
        if "offset" in error.context:
            error.context["offset"] += stored.start
        raise
    for found, noun, bound in (
        (metadata.num_row_groups, "row groups", "max_row_groups"),
        (metadata.num_schema_elements - 1, "columns and groups in the schema", "max_columns"),
        (metadata.key_value_bytes, "bytes of key-value metadata", "max_metadata_size"),
    ):
        if found > getattr(properties, bound):
            raise LimitError(f"{found} {noun}, over {bound} ({getattr(properties, bound)})")
    if decryption_properties is not None and len(decryption_properties.column_keys):
        paths = metadata.schema.paths
        decryption_properties.check_paths(paths)
        metadata.decryptor.name_columns(paths)
    return metadata


def _check_head(stored: StoredFooter, source_size: int, read: Callable[[int, int], Any]) -> None:
    """Refuse a file with one magic at its beginning and another at its end."""
    magic = ENCRYPTED_MAGIC if stored.is_encrypted else MAGIC
    head = bytes(stored.tail[:4] if len(stored.tail) == source_size else read(0, 4))
    if head != magic:
        raise FormatError(f"the file begins with {head!r} and ends with {magic!r}", offset=-stored.start)


def _open_encrypted(footer: memoryview, properties: FileDecryptionProperties | None) -> FileMetaData:
    crypto, size = fmt.decode(fmt.FileCryptoMetaData, footer)
    decryptor = open_file_decryptor(
        properties, algorithm=crypto.encryption_algorithm, key_metadata=crypto.key_metadata, encrypted_footer=True
    )
    metadata = FileMetaData(memoryview(decryptor.open_footer(footer[size:])), decryptor)
    decryptor.confirm_algorithm(metadata.encryption_algorithm)
    return metadata


def read_finished(
    source: Source, properties: ReaderProperties, decryption_properties: FileDecryptionProperties | None
) -> FileMetaData:
    """Read the footer of a finished file; refuses checkpoints.

    Raises:
        FormatError: no footer, a broken footer, or an unfinished file.
        KeyAccessError, TagVerificationError, CryptoError: as ``read_footer``.
    """
    metadata = read_footer(source.size, source.read, properties=properties, decryption_properties=decryption_properties)
    if metadata.key_value_bytes and metadata.is_checkpoint:
        raise FormatError(
            f"the file was not finished: it ends with a checkpoint of {metadata.num_row_groups} row groups (recover_table and "
            'on_error="null" read it)'
        )
    return metadata
