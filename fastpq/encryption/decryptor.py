"""FileDecryptor, the base class of decryptors: opens the plaintext modules of a file (Encryption.md, 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NoReturn

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, KeyAccessError

Sealed = bytes | memoryview


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
        """Tell the paths of all leaves by the schema. Columns with explicit keys are then refused in weaker protection."""

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


def column_name(chunk: fmt.ColumnChunk) -> str | None:
    """The dotted path of a column; None if the footer hides the path without the column's key."""
    crypto = chunk.crypto_metadata
    if crypto is not None and crypto.ENCRYPTION_WITH_COLUMN_KEY is not None:
        return ".".join(crypto.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema)
    return None if chunk.meta_data is None else ".".join(chunk.meta_data.path_in_schema)


def refuse_column(chunk: fmt.ColumnChunk) -> NoReturn:
    """Raise the KeyAccessError of an encrypted column without a key."""
    raise KeyAccessError("the column is encrypted, and there is no key for it", column=column_name(chunk))
