"""Opens what is plaintext in a file: its footer, its column metadata and its column chunks (Encryption.md, 5)."""

from __future__ import annotations

from typing import NoReturn

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, KeyAccessError

Sealed = bytes | memoryview


class FileDecryptor:
    """Opens the modules of a file for which there are no keys: a plaintext file, or the plaintext part of another."""

    def open_footer(self, module: Sealed) -> bytes:
        """The serialized FileMetaData of an encrypted footer.

        Args:
            module: the stored footer module, all of it.

        Raises:
            KeyAccessError: there is no key for it.
            TagVerificationError: it was altered, or key or AAD prefix are not those of the file.
        """
        raise KeyAccessError("the footer is encrypted, and there is no key for it", module="FOOTER")

    def verify_footer(self, footer: Sealed, signature: Sealed) -> None:
        """Check the signature of a plaintext footer (5.5); nothing is opened before, unless the properties say so.

        Args:
            footer: the serialized FileMetaData, exactly as stored.
            signature: the 28 bytes behind it.

        Raises:
            FormatError: a signature of another size.
            TagVerificationError: footer or signature were altered, or key or AAD prefix are not those of the file.
        """

    def confirm_algorithm(self, algorithm: fmt.EncryptionAlgorithm | None) -> None:
        """Compare the algorithm with its copy inside an encrypted footer, which unlike FileCryptoMetaData is authentic.

        Args:
            algorithm: ``encryption_algorithm`` of the FileMetaData that open_footer returned; None where it has none.

        Raises:
            CryptoError: they differ.
        """

    def column_metadata(
        self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int
    ) -> fmt.ColumnMetaData:
        """The metadata of a column chunk, decrypted if they are encrypted and there is a key.

        Returns:
            All of the metadata; without a key what a plaintext footer shows of them.

        Raises:
            KeyAccessError: they are encrypted and there is no key.
            FormatError: the chunk has none.
        """
        if chunk.meta_data is not None:
            return chunk.meta_data
        if chunk.encrypted_column_metadata is not None:
            refuse_column(chunk)
        raise FormatError("a column chunk without metadata")

    def chunk_cipher(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        """The cipher of a column chunk: the null cipher, if it is not encrypted.

        Raises:
            KeyAccessError: there is no key for it.
        """
        if chunk.crypto_metadata is not None:
            refuse_column(chunk)
        return ModuleCipher()


def column_name(chunk: fmt.ColumnChunk) -> str | None:
    """The dotted path of a column, as far as the footer tells without the column's key."""
    crypto = chunk.crypto_metadata
    if crypto is not None and crypto.ENCRYPTION_WITH_COLUMN_KEY is not None:
        return ".".join(crypto.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema)
    return None if chunk.meta_data is None else ".".join(chunk.meta_data.path_in_schema)


def refuse_column(chunk: fmt.ColumnChunk) -> NoReturn:
    """Raise the KeyAccessError of an encrypted column without a key."""
    raise KeyAccessError("the column is encrypted, and there is no key for it", column=column_name(chunk))
