"""FileDecryptor, the base class of decryptors: opens the plaintext modules of a file (Encryption.md, 5).

The functions below choose the decryptor of a stored file by the caller's properties and the encryption algorithm in the file. A
plaintext file has a decryptor too, with the null cipher.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, NoReturn

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import CryptoError, FormatError, KeyAccessError

if TYPE_CHECKING:
    from fastpq.encryption.properties import FileDecryptionProperties

Sealed = bytes | memoryview

SIGNATURE_SIZE = 28     # bytes of nonce and tag (Encryption.md, 5.5)
ALL_BUT_SIGNING = (1, 2, 3, 4, 5, 6, 7)     # ids of FileMetaData's fields before encryption_algorithm


class FileDecryptor:
    """Decryptor without keys: opens the modules of a plaintext file, or the plaintext modules of an encrypted file.

    Attributes:
        seals_every_chunk: whether chunks without crypto metadata are encrypted too.
        asks_for_keys: whether keys of columns may come from a distant key service.
    """

    seals_every_chunk: ClassVar[bool] = False
    asks_for_keys = False

    def open_footer(self, module: Sealed) -> bytes:
        """The serialized FileMetaData of an encrypted footer.

        Args:
            module: all bytes of the stored footer module.

        Raises:
            KeyAccessError: there is no key for the footer.
            TagVerificationError: the module was altered, or key or AAD prefix are wrong.
        """
        raise KeyAccessError("the footer is encrypted, and there is no key for it", module="FOOTER")

    def verify_footer(self, footer: Sealed, signature: Sealed) -> None:
        """Check the signature of a plaintext footer (5.5). No module opens before, unless verify_footer_signature is False.

        Args:
            footer: the serialized FileMetaData, exactly as stored.
            signature: the 28 bytes behind FileMetaData.

        Raises:
            FormatError: a signature of another size.
            TagVerificationError: footer or signature were altered, or key or AAD prefix are wrong.
        """

    def name_columns(self, paths: Sequence[tuple[str, ...]]) -> None:
        """Set the paths of all leaves; columns with explicit keys are refused from then on if their protection is weaker."""

    def confirm_algorithm(self, algorithm: fmt.EncryptionAlgorithm | None) -> None:
        """Compare the algorithm of FileCryptoMetaData, which is not authenticated, with the copy inside an encrypted footer.

        Args:
            algorithm: ``encryption_algorithm`` of the FileMetaData returned by open_footer; None if there is none.

        Raises:
            CryptoError: the algorithms differ.
        """

    def ask_for_keys(self, chunks: Iterable[fmt.ColumnChunk]) -> None:
        """Ask a distant key service for the keys of column chunks all at once; the errors come when the chunks are opened."""

    def column_metadata(
        self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int
    ) -> fmt.ColumnMetaData:
        """The metadata of a column chunk, decrypted if encrypted and if there is a key.

        Returns:
            All of the metadata; without a key the part visible in a plaintext footer.

        Raises:
            KeyAccessError: the metadata are encrypted, and there is no key.
            FormatError: the chunk has no metadata.
        """
        if chunk.meta_data is not None:
            return chunk.meta_data
        if chunk.encrypted_column_metadata is not None:
            refuse_column(chunk)
        raise FormatError("a column chunk without metadata")

    def chunk_cipher(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        """The cipher of a column chunk: the null cipher for a plaintext column.

        Raises:
            KeyAccessError: there is no key for the column.
        """
        if chunk.crypto_metadata is not None:
            refuse_column(chunk)
        return ModuleCipher()


    def check_column(self, path: tuple[str, ...], *, is_under_footer_key: bool) -> None:
        """Refuse a column that is in plaintext, or encrypted with the footer key, against what the reader's keys say of it.

        Args:
            path: names of the column's groups and of the leaf.
            is_under_footer_key: whether the column is encrypted with the footer key; otherwise it is in plaintext.

        Raises:
            CryptoError: the column has a key of its own in the reader's properties, or the footer is not verified.
        """

    def footer_key_cipher(self, path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        """The cipher of a column chunk that is encrypted with the footer key.

        Args:
            path: names of the column's groups and of the leaf.
            row_group_ordinal: ordinal of the chunk's row group; the cipher may be moved to others of them.
            column_ordinal: number of the leaf column.

        Raises:
            KeyAccessError: there is no footer key.
            CryptoError: the column has a key of its own in the reader's properties.
        """
        raise KeyAccessError("the column is encrypted, and there is no key for it", column=".".join(path))


def column_name(chunk: fmt.ColumnChunk) -> str | None:
    """The dotted path of a column; None if the footer hides the path without the column's key."""
    crypto = chunk.crypto_metadata
    if crypto is not None and crypto.ENCRYPTION_WITH_COLUMN_KEY is not None:
        return ".".join(crypto.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema)
    return None if chunk.meta_data is None else ".".join(chunk.meta_data.path_in_schema)


def refuse_column(chunk: fmt.ColumnChunk) -> NoReturn:
    """Raise the KeyAccessError of an encrypted column without a key."""
    raise KeyAccessError("the column is encrypted, and there is no key for it", column=column_name(chunk))


def open_file_decryptor(
    properties: FileDecryptionProperties | None,
    *,
    algorithm: fmt.EncryptionAlgorithm | None,
    key_metadata: bytes | None,
    encrypted_footer: bool,
) -> FileDecryptor:
    """The decryptor of a stored file, for a reader's keys.

    Args:
        properties: the keys, if any.
        algorithm: from FileCryptoMetaData for an encrypted footer, else from FileMetaData; None for a plaintext file.
        key_metadata: key metadata of the footer key, from the same struct.
        encrypted_footer: whether the file ends in ``PARE``.

    Raises:
        KeyAccessError: the footer is encrypted, and there are no properties.
        CryptoError: a policy of the properties refuses the file, or its AAD prefix differs from the supplied one.
        UnsupportedError: an algorithm unknown to fastpq, or DuckDB's dialect.
        TypeError: properties of another class.
    """
    if properties is None:
        if encrypted_footer:
            raise KeyAccessError("the footer is encrypted: reading needs decryption_properties", module="FOOTER")
        return FileDecryptor()
    from fastpq.encryption.keyed_decryptor import DuckDbFileDecryptor, KeyedFileDecryptor
    from fastpq.encryption.properties import FileDecryptionProperties

    if not isinstance(properties, FileDecryptionProperties):
        raise TypeError(f"decryption_properties are fastpq.FileDecryptionProperties, not {type(properties)}")
    if algorithm is None:
        if encrypted_footer:
            raise FormatError("an encrypted footer without an encryption algorithm")
        if not properties.allow_plaintext_files:
            raise CryptoError(
                "the file is not encrypted, though there are decryption_properties for it: it may have been replaced "
                "(allow_plaintext_files=True reads it all the same)"
            )
        return FileDecryptor()
    if encrypted_footer and properties.allow_duckdb_dialect and DuckDbFileDecryptor.wrote(algorithm):
        return DuckDbFileDecryptor(properties, algorithm, key_metadata, encrypted_footer)
    return KeyedFileDecryptor(properties, algorithm, key_metadata, encrypted_footer)


def open_encrypted_footer(
    properties: FileDecryptionProperties | None, footer: memoryview
) -> tuple[FileDecryptor, memoryview]:
    """The decryptor of a file with an encrypted footer, and the serialized FileMetaData.

    Args:
        properties: the keys, if any.
        footer: FileCryptoMetaData and the footer module.

    Raises:
        FormatError: no FileCryptoMetaData.
        TagVerificationError: the module was altered, or key or AAD prefix are wrong.
        KeyAccessError, CryptoError, UnsupportedError: as for open_file_decryptor.
    """
    crypto, size = fmt.decode(fmt.FileCryptoMetaData, footer)
    decryptor = open_file_decryptor(
        properties, algorithm=crypto.encryption_algorithm, key_metadata=crypto.key_metadata, encrypted_footer=True
    )
    return decryptor, memoryview(decryptor.open_footer(footer[size:]))


def open_signed_footer(
    properties: FileDecryptionProperties | None, footer: memoryview
) -> tuple[FileDecryptor, int]:
    """The decryptor of a file with a plaintext footer, after verification of the footer's signature, if signed.

    Before verification, only the algorithm and the key metadata of the footer are decoded.

    Args:
        properties: the keys, if any.
        footer: the serialized FileMetaData and all bytes up to the footer's length.

    Returns:
        The decryptor, and the size of FileMetaData.

    Raises:
        FormatError: no FileMetaData; or a signature cut off, or followed by other bytes.
        TagVerificationError: footer or signature were altered, or key or AAD prefix are wrong.
        KeyAccessError: there is no key to verify the footer with.
        CryptoError, UnsupportedError: as for open_file_decryptor.
    """
    if properties is None:
        return FileDecryptor(), len(footer)
    names, _, size = fmt.decode_partly(fmt.FileMetaData, footer, 0, ALL_BUT_SIGNING)
    decryptor = open_file_decryptor(
        properties,
        algorithm=names.encryption_algorithm,
        key_metadata=names.footer_signing_key_metadata,
        encrypted_footer=False,
    )
    if names.encryption_algorithm is None:
        return decryptor, size
    signed = len(footer) - size
    if signed != SIGNATURE_SIZE and (signed or properties.verify_footer_signature):
        raise FormatError(f"{signed} bytes where the footer's signature of {SIGNATURE_SIZE} should be", offset=size)
    if properties.verify_footer_signature:
        decryptor.verify_footer(footer[:size], footer[size:])
    return decryptor, size
