"""Footers read, decrypted and verified."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastpq.encryption.decryptor import FileDecryptor, open_encrypted_footer, open_signed_footer
from fastpq.errors import FormatError, LimitError
from fastpq.format.stored_footer import stored_footer
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
    stored = stored_footer(source_size, read, properties.max_footer_size, with_head=decryption_properties is not None)
    try:
        if stored.is_encrypted:
            decryptor, serialized = open_encrypted_footer(decryption_properties, stored.data)
            metadata = FileMetaData(serialized, decryptor)
            decryptor.confirm_algorithm(metadata.encryption_algorithm)
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
    if decryption_properties is not None and decryption_properties.column_keys.is_given:
        paths = metadata.schema.paths
        decryption_properties.check_paths(paths)
        metadata.decryptor.name_columns(paths)
    return metadata


def read_finished(
    source: Source, properties: ReaderProperties, decryption_properties: FileDecryptionProperties | None
) -> FileMetaData:
    """Read the footer of a finished file, unless it is known; refuses checkpoints.

    Raises:
        FormatError: no footer, a broken footer, or an unfinished file.
        KeyAccessError, TagVerificationError, CryptoError: as ``read_footer``.
    """
    if source.footer is not None and decryption_properties is None:
        return FileMetaData(memoryview(source.footer), FileDecryptor())
    metadata = read_footer(source.size, source.read, properties=properties, decryption_properties=decryption_properties)
    if metadata.key_value_bytes and metadata.is_checkpoint:
        raise FormatError(
            f"the file was not finished: it ends with a checkpoint of {metadata.num_row_groups} row groups (recover_table and "
            'on_error="null" read it)'
        )
    return metadata
