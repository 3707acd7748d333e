"""Functions that read, decrypt and verify a file's footer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from fastpq import format as fmt
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.encryption.decryptor_choice import open_encrypted_footer, open_signed_footer
from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC, stored_footer
from fastpq.metadata.file_metadata import FileEnd, FileMetaData
from fastpq.options import ReaderProperties

if TYPE_CHECKING:
    from fastpq.encryption.properties import FileDecryptionProperties
    from fastpq.io.source import Source

# At most this many bytes at a footer's end are compared with a file, to tell whether the footer is the file's.
COMPARED_BYTES = 4096


def read_footer(
    source_size: int,
    read: Callable[[int, int], Any],
    *,
    properties: ReaderProperties,
    decryption_properties: FileDecryptionProperties | None = None,
    name: str | None = None,
) -> FileMetaData:
    """Read and decode a file's footer.

    Args:
        source_size: file size in bytes.
        read: function (offset, length) -> a buffer with length bytes, which nobody else can change.
        properties: size limits for footers.
        decryption_properties: keys, or None.
        name: the file's path or URL, for audits.

    Raises:
        FormatError: this is not a Parquet file, or its footer is broken.
        LimitError: the footer exceeds max_footer_size, max_row_groups, max_columns or max_metadata_size.
        KeyAccessError, TagVerificationError: an encrypted footer cannot be opened, or a signed footer cannot be verified.
        CryptoError: a policy in the decryption properties refuses the file.
        SchemaError: there is a key for a column that the file does not have.
    """
    footer = stored_footer(source_size, read, properties.max_footer_size, with_head=decryption_properties is not None)
    magic = ENCRYPTED_MAGIC if footer.is_encrypted else MAGIC
    tail = bytes(footer.data[-COMPARED_BYTES:]) + len(footer.data).to_bytes(4, "little") + magic
    end = FileEnd(source_size, tail)
    try:
        if footer.is_encrypted:
            decryptor, data = open_encrypted_footer(decryption_properties, footer.data, name)
            metadata = FileMetaData(data, decryptor, properties.chunk_order, end)
            decryptor.confirm_algorithm(metadata.encryption_algorithm)
        else:
            decryptor, size = open_signed_footer(decryption_properties, footer.data, name)
            metadata = FileMetaData(footer.data[:size], decryptor, properties.chunk_order, end)
    except FormatError as error:
        if "offset" in error.context:
            error.context["offset"] += footer.start
        raise
    for count, noun, limit in (
        (metadata.num_row_groups, "row groups", "max_row_groups"),
        (metadata.num_schema_elements - 1, "columns and groups in the schema", "max_columns"),
        (metadata.key_value_bytes, "bytes of key-value metadata", "max_metadata_size"),
    ):
        if count > getattr(properties, limit):
            raise LimitError(f"{count} {noun}, over {limit} ({getattr(properties, limit)})")
    if decryption_properties is not None and decryption_properties.column_keys.has_entries:
        paths = metadata.schema.paths
        decryption_properties.check_paths(paths)
        decryptor.name_columns(paths)
    if decryptor.may_prefetch_keys and metadata.num_row_groups:
        decryptor.know_chunks(partial(_first_chunks, ref(metadata)))      # the footer refers to the decryptor
    return metadata


def _first_chunks(footer: ref[FileMetaData]) -> Iterator[fmt.ColumnChunk]:
    """Yield each column's chunk in the first row group, as long as the footer is in use."""
    metadata = footer()
    if metadata is not None:
        group = metadata.row_group(0)
        yield from (group.column(index).chunk for index in range(group.num_columns))


def read_finished(
    source: Source, properties: ReaderProperties, decryption_properties: FileDecryptionProperties | None
) -> FileMetaData:
    """Return a finished file's footer. It is read from the file unless the source knows it already.

    Raises:
        FormatError: the footer is missing or broken, or it is a checkpoint, so that the file is unfinished.
        KeyAccessError, TagVerificationError, CryptoError: as in ``read_footer``.
    """
    if source.footer is not None and decryption_properties is None:
        return FileMetaData(memoryview(source.footer), FileDecryptor(), properties.chunk_order)
    metadata = read_footer(
        source.size, source.read, properties=properties, decryption_properties=decryption_properties, name=source.name
    )
    if metadata.key_value_bytes and metadata.is_checkpoint:
        raise _unfinished(metadata)
    return metadata


def footer_of_caller(metadata: object, source: Source, *, check: bool) -> FileMetaData:
    """Return a footer that the caller of a reader has passed.

    Args:
        metadata: the footer.
        source: the file.
        check: whether to compare the file's size and last bytes with those of the file from which the footer was read.

    Raises:
        SchemaError: the file is another one, or it has changed.
        FormatError: the footer is a checkpoint, so that the file is unfinished.
        TypeError: the footer has another class.
    """
    if not isinstance(metadata, FileMetaData):
        advice = "fastpq.read_metadata(path) reads it"
        raise TypeError(f"metadata must be a fastpq.FileMetaData, not a {type(metadata).__name__}: {advice}")
    if metadata.key_value_bytes and metadata.is_checkpoint:
        raise _unfinished(metadata)
    if check:
        _check_end(metadata.file_end, source)
    return metadata


def _check_end(end: FileEnd | None, source: Source) -> None:
    """Refuse a file that does not have a certain size and last bytes."""
    if end is None:
        raise SchemaError("this metadata was not read from the end of a file: check_metadata=False uses it without a check")
    size = source.size
    if size != end.size or bytes(source.read(size - len(end.tail), len(end.tail))) != end.tail:
        raise SchemaError(
            f"the metadata belongs to another file, or the file changed: it has {size} bytes and had {end.size} "
            "(read the metadata again)"
        )


def _unfinished(metadata: FileMetaData) -> FormatError:
    return FormatError(
        f"the file was not finished: it ends with a checkpoint of {metadata.num_row_groups} row groups (recover_table and "
        'on_error="null" read it)'
    )
