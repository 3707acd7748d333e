"""What one file is: size, rows, writer, encryption, and what stands out. ``inspect`` and ``meta`` print parts of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from fastpq.cli.column_facts import ColumnFacts
from fastpq.errors import ParquetError

if TYPE_CHECKING:
    from fastpq.api.encryption_inspection import FileProtection, KeyDescription
    from fastpq.api.file import ParquetFile
    from fastpq.options import ReaderProperties


class KeyFacts(TypedDict):
    """How the footer or a column is encrypted, as far as this is known without keys.

    Attributes:
        part: footer or column.
        column: column path, or ``footer`` for the footer. The name of the entry in the material file if the path is hidden.
        key: none for plaintext, footer for the footer key, column for a key of its own.
        master_key_id: the master key that wraps the data key, or null.
        wrapping: single or double, or null without a key service.
        kms_instance_id: instance of the key service, or null.
        kms_instance_url: URL of the key service, or null.
        external: whether the wrapped key is in a material file.
        key_metadata_bytes: size of the stored key metadata.
        key_name: the key metadata of a key that no key service wraps, as text, or as 0x and hexadecimal digits, or null.
        problem: why the key metadata cannot be understood, or null.
    """

    part: str
    column: str
    key: str
    master_key_id: str | None
    wrapping: str | None
    kms_instance_id: str | None
    kms_instance_url: str | None
    external: bool
    key_metadata_bytes: int
    key_name: str | None
    problem: str | None


class EncryptionFacts(TypedDict):
    """How a file is encrypted. Nothing is authenticated. All is known without keys, except for columns in an encrypted footer.

    Attributes:
        file: the file.
        size: bytes.
        footer: plaintext, signed (readable and encrypted columns), or encrypted.
        footer_bytes: size of the serialized footer.
        algorithm: AES_GCM_V1, AES_GCM_CTR_V1, or null.
        aad_prefix: stored AAD prefix in hexadecimal digits, or null.
        needs_aad_prefix: whether the reader has to supply the AAD prefix.
        master_key_ids: identifiers of the master keys.
        material_file: file with the wrapped keys, or null.
        columns_hidden: whether the encrypted footer hides the columns, because no key has opened it.
        keys: the footer key, then the columns.
    """

    file: str
    size: int
    footer: Literal["plaintext", "signed", "encrypted"]
    footer_bytes: int
    algorithm: str | None
    aad_prefix: str | None
    needs_aad_prefix: bool
    master_key_ids: list[str]
    material_file: str | None
    columns_hidden: bool
    keys: list[KeyFacts]


class FileFacts(TypedDict):
    """One file on one screen. Without a key for an encrypted footer, only file, size, encryption and notes are there.

    Attributes:
        file: the file.
        size: bytes, or null for a stream.
        rows: row count.
        row_groups: row group count.
        columns: leaf column count.
        created_by: the writer, or null.
        format_version: version of the format in the footer.
        stored_bytes: bytes of all column chunks.
        decoded_bytes: bytes of all column chunks after decompression.
        footer_bytes: size of the serialized footer.
        codecs: compression codecs.
        rows_per_row_group: smallest, median and largest row group, in rows.
        chunks: column chunk count.
        chunks_with_statistics: chunks with usable bounds.
        chunks_with_page_index: chunks with a column index.
        chunks_with_bloom_filter: chunks with a bloom filter.
        sorted_by: columns by which all row groups say that they are sorted.
        key_values: keys of the key-value metadata, with the length of each value.
        largest_columns: the columns that take most space.
        encryption: how the file is encrypted, or null for a plaintext file.
        notes: what stands out, one sentence each.
    """

    file: str
    size: int | None
    rows: NotRequired[int]
    row_groups: NotRequired[int]
    columns: NotRequired[int]
    created_by: NotRequired[str | None]
    format_version: NotRequired[int]
    stored_bytes: NotRequired[int]
    decoded_bytes: NotRequired[int]
    footer_bytes: NotRequired[int]
    codecs: NotRequired[list[str]]
    rows_per_row_group: NotRequired[list[int]]
    chunks: NotRequired[int]
    chunks_with_statistics: NotRequired[int]
    chunks_with_page_index: NotRequired[int]
    chunks_with_bloom_filter: NotRequired[int]
    sorted_by: NotRequired[list[str]]
    key_values: NotRequired[dict[str, int]]
    largest_columns: NotRequired[list[ColumnFacts]]
    encryption: EncryptionFacts | None
    notes: list[str]


def key_facts(part: str, column: str, key: str, description: KeyDescription | None) -> KeyFacts:
    """Return the facts about the key of one part, which is the footer or a column."""
    from fastpq.api.encryption_inspection import KeyDescription

    each = description or KeyDescription()
    return KeyFacts(
        part=part,
        column=column,
        key=key,
        master_key_id=each.master_key_id,
        wrapping=each.wrapping,
        kms_instance_id=each.kms_instance_id,
        kms_instance_url=each.kms_instance_url,
        external=each.is_external,
        key_metadata_bytes=len(each.key_metadata or b""),
        key_name=_key_name(each),
        problem=each.problem,
    )


def _key_name(description: KeyDescription) -> str | None:
    """Return what an application named a key by, or None if a key service wraps the key or it has no name."""
    if description.master_key_id is not None or description.problem is not None or not description.key_metadata:
        return None
    return readable_bytes(description.key_metadata)


def readable_bytes(value: bytes) -> str:
    """Return printable ASCII as text, and other bytes as hexadecimal digits."""
    return value.decode() if value.isascii() and value.decode("ascii").isprintable() else f"0x{value.hex()}"


def encryption_facts(protection: FileProtection) -> EncryptionFacts:
    """Return the facts about one file's encryption."""
    keys = [key_facts("footer", "footer", "none" if protection.footer_key is None else "footer", protection.footer_key)]
    keys += [key_facts("column", each.column, each.key, each.description) for each in protection.columns or ()]
    return EncryptionFacts(
        file=protection.path,
        size=protection.size,
        footer=protection.footer,
        footer_bytes=protection.footer_size,
        algorithm=protection.algorithm,
        aad_prefix=None if protection.aad_prefix is None else protection.aad_prefix.hex(),
        needs_aad_prefix=protection.needs_aad_prefix,
        master_key_ids=list(protection.master_key_ids),
        material_file=protection.material_file,
        columns_hidden=protection.hides_columns,
        keys=keys,
    )


def protection_of(
    source: Any, properties: ReaderProperties | None = None, file: ParquetFile | None = None
) -> FileProtection:
    """Return how one file is encrypted.

    Args:
        source: its place or its bytes.
        properties: limits and checks for reading.
        file: the same file, open. Then the columns in an encrypted footer are listed too.
    """
    from fastpq.api.encryption_inspection import inspect_encryption, with_columns

    protection = inspect_encryption(source, properties=properties).files[0]
    return with_columns(protection, file.metadata, source) if file is not None and protection.hides_columns else protection


def sealed_facts(name: str, protection: FileProtection) -> FileFacts:
    """Return what can be told of a file whose encrypted footer has no key."""
    encryption = encryption_facts(protection)
    return FileFacts(
        file=name,
        size=protection.size,
        encryption=encryption,
        notes=["The footer is encrypted and there is no key for it: schema, rows and values are hidden."],
    )


def file_facts(file: ParquetFile, name: str, columns: list[ColumnFacts], protection: FileProtection) -> FileFacts:
    """Return the facts about an open file, without notes.

    Args:
        file: the file.
        name: how messages call it.
        columns: the facts about its columns.
        protection: how it is encrypted.
    """
    metadata = file.metadata
    encryption = None if protection.algorithm is None else encryption_facts(protection)
    counts = sorted(metadata.row_counts)
    return FileFacts(
        file=name,
        size=protection.size,
        rows=metadata.num_rows,
        row_groups=metadata.num_row_groups,
        columns=len(columns),
        created_by=metadata.created_by,
        format_version=metadata.version,
        stored_bytes=sum(each["stored_bytes"] for each in columns),
        decoded_bytes=sum(each["decoded_bytes"] for each in columns),
        footer_bytes=protection.footer_size,
        codecs=list(dict.fromkeys(codec for each in columns for codec in each["codecs"])),
        rows_per_row_group=[counts[0], counts[len(counts) // 2], counts[-1]] if counts else [],
        chunks=sum(each["chunks"] for each in columns),
        chunks_with_statistics=sum(each["chunks_with_statistics"] for each in columns),
        chunks_with_page_index=sum(each["chunks_with_page_index"] for each in columns),
        chunks_with_bloom_filter=sum(each["chunks_with_bloom_filter"] for each in columns),
        sorted_by=_sorting(file),
        key_values=_key_values(file),
        largest_columns=sorted(columns, key=lambda each: -each["stored_bytes"])[:5],
        encryption=encryption,
        notes=[],
    )


def _key_values(file: ParquetFile) -> dict[str, int]:
    return {key: len(value or "") for key, value in file.metadata.key_value_metadata.items()}


def _sorting(file: ParquetFile) -> list[str]:
    """Return the sorting columns that all row groups share, with ``desc`` behind descending ones."""
    common_columns: list[str] | None = None
    for group in file.metadata.row_groups:
        try:
            columns = [
                file.schema.columns[each.column_idx].name + (" desc" if each.descending else "") for each in group.sorting_columns
            ]
        except (ParquetError, IndexError):
            return []
        if common_columns is None:
            common_columns = columns
        common_columns = [one for one, other in zip(common_columns, columns, strict=False) if one == other]
    return common_columns or []
