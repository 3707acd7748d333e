"""FileDecryptor, the base class for decryptors: it opens a file's plaintext modules (Encryption.md, 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NoReturn

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, KeyAccessError

if TYPE_CHECKING:
    from fastpq.encryption.properties import FileEncryptionProperties

Sealed = bytes | memoryview

NO_COLUMN_KEY = 'the column is encrypted, and there is no key for it (see on_missing_key="null" and readable_columns())'


class FileDecryptor:
    """Decryptor without keys. It opens a plaintext file, or the plaintext modules in an encrypted file.

    Attributes:
        seals_every_chunk: whether chunks without crypto metadata are encrypted too.
        may_prefetch_keys: whether column keys may come from a distant key service.
        may_refuse_columns: whether ``check_column`` may refuse a column.
        has_keys: whether the reader has keys, so that ``open_own_metadata`` may open something.
    """

    seals_every_chunk: ClassVar[bool] = False
    may_prefetch_keys = False
    may_refuse_columns = False
    has_keys: ClassVar[bool] = False

    def open_footer(self, module: Sealed) -> bytes:
        """Decrypt an encrypted footer and return the serialized FileMetaData.

        Args:
            module: the stored footer module.

        Raises:
            KeyAccessError: there is no key for the footer.
            TagVerificationError: the module was altered, or the key or the AAD prefix is wrong.
        """
        raise KeyAccessError("the footer is encrypted, and there is no key for it", module="FOOTER")

    def verify_footer(self, footer: Sealed, signature: Sealed) -> None:
        """Verify a plaintext footer's signature (5.5).

        Unless verify_footer_signature is False, no module opens before its footer is verified.

        Args:
            footer: the serialized FileMetaData, exactly as stored.
            signature: the 28 bytes after FileMetaData.

        Raises:
            FormatError: the signature has another size.
            TagVerificationError: the footer or the signature was altered, or the key or the AAD prefix is wrong.
        """

    def name_columns(self, paths: Sequence[tuple[str, ...]]) -> None:
        """Set all leaf columns' paths. From then on, a column with an explicit key is refused if it is less protected."""

    def know_chunks(self, chunks: Callable[[], Iterable[fmt.ColumnChunk]]) -> None:
        """Set the function that returns one column chunk of each column, so that many keys can be asked for at once."""

    def confirm_algorithm(self, algorithm: fmt.EncryptionAlgorithm | None) -> None:
        """Compare the algorithm in FileCryptoMetaData, which is not authenticated, with its copy inside the encrypted footer.

        Args:
            algorithm: ``encryption_algorithm`` in the FileMetaData that open_footer returned, or None if it has none.

        Raises:
            CryptoError: the algorithms differ.
        """

    def prefetch_keys(self, chunks: Iterable[fmt.ColumnChunk]) -> None:
        """Ask a distant key service for several column chunks' keys at once. Errors are raised when a chunk is opened."""

    def column_metadata(
        self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int
    ) -> fmt.ColumnMetaData:
        """Return a column chunk's metadata. Encrypted metadata is decrypted if there is a key.

        Without a key, the part that a plaintext footer shows is returned.

        Raises:
            KeyAccessError: the metadata is encrypted, no part of it is visible, and there is no key.
            FormatError: the chunk has no metadata.
        """
        if chunk.meta_data is not None:
            return chunk.meta_data
        if chunk.encrypted_column_metadata is not None:
            refuse_column(chunk)
        raise FormatError("a column chunk without metadata")

    def chunk_cipher(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        """Return a column chunk's cipher. A plaintext column has the null cipher.

        Raises:
            KeyAccessError: there is no key for the column.
        """
        if chunk.crypto_metadata is not None:
            refuse_column(chunk)
        return ModuleCipher()

    def has_key(self, chunk: fmt.ColumnChunk) -> bool:
        """Return whether the reader has the key for a column chunk. A plaintext column needs none.

        Raises:
            KeyAccessError: the key service did not say whether the reader may have the key.
            CryptoError, FormatError: the key, or its key metadata, is broken.
        """
        return chunk.crypto_metadata is None

    def check_column(self, path: tuple[str, ...], *, is_under_footer_key: bool) -> None:
        """Refuse a column that is plaintext or under the footer key, if the reader's properties hold its own key.

        Args:
            path: the names of the column's groups, and its own name.
            is_under_footer_key: True if the footer key encrypts the column, False if it is plaintext.

        Raises:
            CryptoError: the properties hold a key for the column, or the footer is not verified.
        """

    def own_encryption(
        self, chunks: Mapping[tuple[str, ...], fmt.ColumnChunk], *, plaintext_footer: bool
    ) -> tuple[FileEncryptionProperties, bytes] | None:
        """Return the properties that encrypt more row groups as the file's own are encrypted, and its ``aad_file_unique``.

        Args:
            chunks: a row group's chunks, by column path.
            plaintext_footer: whether the file's footer is plaintext.

        Returns:
            None for a plaintext file.

        Raises:
            KeyAccessError: there is no key for the footer or for a column.
            UnsupportedError: the file is in DuckDB's dialect.
        """
        return None

    def footer_key_cipher(self, path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        """Return the cipher for a column chunk that the footer key encrypts.

        Args:
            path: the names of the column's groups, and its own name.
            row_group_ordinal: the chunk's row group. The cipher can be moved to another row group later.
            column_ordinal: the leaf column's number.

        Raises:
            KeyAccessError: there is no footer key.
            CryptoError: the reader's properties hold a key for the column, or the footer is not verified.
        """
        raise KeyAccessError(NO_COLUMN_KEY, column=".".join(path))

    def open_own_metadata(
        self, path: tuple[str, ...], key_metadata: bytes | None, row_group_ordinal: int, column_ordinal: int, module: Sealed
    ) -> bytes | None:
        """Return the serialized metadata of a column chunk that has its own key, or None if ``column_metadata`` has to open them.

        Args:
            path: the column's path in the schema, which the crypto metadata have too.
            key_metadata: the key's key metadata, or None if there are none.
            row_group_ordinal, column_ordinal: the chunk's ordinals.
            module: ``encrypted_column_metadata``.

        Raises:
            TagVerificationError: the module was altered, or the key or the AAD prefix is wrong.
            CryptoError: the footer is not verified.
        """
        return None

    def own_key_cipher(
        self, path: tuple[str, ...], key_metadata: bytes | None, row_group_ordinal: int, column_ordinal: int
    ) -> ModuleCipher:
        """Return the cipher for a column chunk that has its own key. The arguments are those of ``open_own_metadata``.

        Raises:
            KeyAccessError: there is no key for the column.
        """
        raise KeyAccessError.denied(NO_COLUMN_KEY, column=".".join(path))


def column_name(chunk: fmt.ColumnChunk) -> str | None:
    """Return a column's dotted path, or None if the footer hides the path from readers without the column's key."""
    crypto = chunk.crypto_metadata
    if crypto is not None and crypto.ENCRYPTION_WITH_COLUMN_KEY is not None:
        return ".".join(crypto.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema)
    path = None if chunk.meta_data is None else chunk.meta_data.path_in_schema
    return None if path is None else ".".join(path)


def refuse_column(chunk: fmt.ColumnChunk) -> NoReturn:
    """Raise KeyAccessError for an encrypted column without a key."""
    raise KeyAccessError.denied(NO_COLUMN_KEY, column=column_name(chunk))
