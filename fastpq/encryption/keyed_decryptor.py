"""Decryptors with keys: open the footer, the column metadata and the column chunks of an encrypted file (Encryption.md, 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.decryptor import FileDecryptor, Sealed, column_name, refuse_column
from fastpq.encryption.evp import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.encryption.retrieved_keys import RetrievedKeys
from fastpq.encryption.variants import CtrModuleCipher, DuckDbModuleCipher
from fastpq.errors import CryptoError, FormatError, KeyAccessError, ParquetError, TagVerificationError, UnsupportedError

NO_PAGE = -1        # page ordinal of modules outside of pages


class KeyedFileDecryptor(FileDecryptor):
    """Decryptor of an encrypted file, with the reader's keys; columns without a key stay closed."""

    def __init__(
        self,
        properties: FileDecryptionProperties,
        algorithm: fmt.EncryptionAlgorithm,
        key_metadata: bytes | None,
        encrypted_footer: bool,
    ) -> None:
        self._properties = properties
        self._algorithm = algorithm
        self._cipher_class = self._choose_cipher()
        self._file_aad = self._check_aad()
        self._footer_key_metadata = key_metadata
        self._authentic = not encrypted_footer and not properties.verify_footer_signature
        self._paths: Sequence[tuple[str, ...]] = ()
        self._retrieved = None if properties.key_retriever is None else RetrievedKeys.of(properties, key_metadata)
        self.asks_for_keys = self._retrieved is not None

    def open_footer(self, module: Sealed) -> bytes:
        with self._naming_an_unstored_prefix():
            footer = self._footer_cipher().open(ModuleType.FOOTER, NO_PAGE, module)
        self._authentic = True
        return footer

    def verify_footer(self, footer: Sealed, signature: Sealed) -> None:
        with self._naming_an_unstored_prefix():
            self._footer_cipher().verify_signature(footer, signature)
        self._authentic = True

    def name_columns(self, paths: Sequence[tuple[str, ...]]) -> None:
        self._paths = paths

    def confirm_algorithm(self, algorithm: fmt.EncryptionAlgorithm | None) -> None:
        if algorithm is not None and algorithm != self._algorithm:
            raise CryptoError("the encryption algorithm in front of the footer is not the one inside: it was altered")

    def column_metadata(
        self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int
    ) -> fmt.ColumnMetaData:
        self._require_authentic_footer()
        self._check_protection(chunk, column_ordinal)
        if chunk.encrypted_column_metadata is None:
            return chunk.meta_data or super().column_metadata(chunk, row_group_ordinal, column_ordinal)
        if chunk.crypto_metadata is None:
            raise FormatError("encrypted column metadata of a column that is not encrypted", column=column_ordinal)
        key = self._column_key(chunk)
        if key is None:
            return super().column_metadata(chunk, row_group_ordinal, column_ordinal)
        cipher = self._cipher(key, chunk, row_group_ordinal, column_ordinal)
        plain = cipher.open(ModuleType.COLUMN_METADATA, NO_PAGE, chunk.encrypted_column_metadata)
        return fmt.decode(fmt.ColumnMetaData, plain)[0]     # parquet-java pads the struct with zeros

    def chunk_cipher(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        self._require_authentic_footer()
        self._check_protection(chunk, column_ordinal)
        if chunk.crypto_metadata is None:
            return ModuleCipher()
        key = self._column_key(chunk)
        if key is None:
            refuse_column(chunk)
        return self._cipher(key, chunk, row_group_ordinal, column_ordinal)

    def check_column(self, path: tuple[str, ...], *, is_under_footer_key: bool) -> None:
        self._require_authentic_footer()
        self._check_own_key(path, is_under_footer_key=is_under_footer_key)

    def footer_key_cipher(self, path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        self.check_column(path, is_under_footer_key=True)
        key = self._footer_key()
        if key is None:
            return super().footer_key_cipher(path, row_group_ordinal, column_ordinal)
        return self._cipher_class(key, self._file_aad, row_group_ordinal, column_ordinal, ".".join(path))

    def ask_for_keys(self, chunks: Iterable[fmt.ColumnChunk]) -> None:
        if self._retrieved is None:
            return
        columns = [chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY for chunk in chunks if chunk.crypto_metadata is not None]
        explicit = self._properties.column_keys
        self._retrieved.ask(
            column.key_metadata
            for column in columns
            if column is not None and column.key_metadata is not None and not explicit.find(tuple(column.path_in_schema))
        )

    def _check_protection(self, chunk: fmt.ColumnChunk, column_ordinal: int) -> None:
        """Refuse a column with an explicit key that is not encrypted under a key of its own.

        The schema says which column this is: whoever has the footer key could name another column in the crypto metadata.
        """
        if column_ordinal >= len(self._paths):
            return
        path = self._paths[column_ordinal]
        crypto = chunk.crypto_metadata
        own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
        if own is not None and tuple(own.path_in_schema) != path:
            raise FormatError(f"a column that says to be {'.'.join(own.path_in_schema)}", column=".".join(path))
        if own is None:
            self._check_own_key(path, is_under_footer_key=self._is_under_footer_key(chunk))

    def _check_own_key(self, path: tuple[str, ...], *, is_under_footer_key: bool) -> None:
        """Refuse a column with an explicit key that is in plaintext, or under a footer key other than this key."""
        key = self._properties.column_keys.find(path)
        if key is None or self._properties.allow_weaker_columns:
            return
        footer_key = self._footer_key() if is_under_footer_key else None
        if footer_key is None or not footer_key.matches(key):
            stored = "in plaintext" if footer_key is None else "under the footer key"
            raise CryptoError(
                f"the column is {stored}, though column_keys has a key for it: it may have been replaced "
                "(allow_weaker_columns=True reads it all the same)",
                column=".".join(path),
            )

    def _is_under_footer_key(self, chunk: fmt.ColumnChunk) -> bool:
        return chunk.crypto_metadata is not None

    def _cipher(
        self, key: AesKey, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int
    ) -> GcmModuleCipher:
        return self._cipher_class(key, self._file_aad, row_group_ordinal, column_ordinal, column_name(chunk))

    def _require_authentic_footer(self) -> None:
        if not self._authentic:
            raise CryptoError("the signature of the plaintext footer has not been verified", module="FOOTER")

    def _footer_cipher(self) -> GcmModuleCipher:
        key = self._footer_key()
        if key is None:
            raise KeyAccessError("there is no footer key to open or to verify the footer with", module="FOOTER")
        return self._cipher_class(key, self._file_aad)

    def _choose_cipher(self) -> type[GcmModuleCipher]:
        """The cipher class of the file's algorithm, if the properties allow the algorithm."""
        if self._algorithm.AES_GCM_V1 is not None:
            name = "AES_GCM_V1"
        elif self._algorithm.AES_GCM_CTR_V1 is not None:
            name = "AES_GCM_CTR_V1"
        else:
            raise UnsupportedError("an encryption algorithm other than AES_GCM_V1 and AES_GCM_CTR_V1")
        if name not in self._properties.allowed_algorithms:
            raise CryptoError(
                f"the file says that it is encrypted with {name}, which allowed_algorithms does not list: what it says is "
                f"not authenticated, and may have been altered to have weaker checks"
            )
        return CtrModuleCipher if name == "AES_GCM_CTR_V1" else GcmModuleCipher

    @property
    def _parameters(self) -> fmt.AesGcmV1 | fmt.AesGcmCtrV1:
        parameters = self._algorithm.AES_GCM_V1 or self._algorithm.AES_GCM_CTR_V1
        assert parameters is not None
        return parameters

    def _check_aad(self) -> bytes:
        """The file's part of every AAD: the prefix, compared with the supplied one, and the file's identifier (4.4)."""
        parameters = self._parameters
        supplied, stored = self._properties.aad_prefix, parameters.aad_prefix or None
        if parameters.aad_file_unique is None:
            raise UnsupportedError(
                "an encrypted file without aad_file_unique, as DuckDB writes them (allow_duckdb_dialect=True reads those)"
            )
        if supplied is None and parameters.supply_aad_prefix:
            raise CryptoError("the file has an AAD prefix that it does not store: aad_prefix must be supplied")
        if supplied is not None and stored is None and not parameters.supply_aad_prefix:
            raise CryptoError("an AAD prefix is supplied, but the file was written without one")
        if supplied is not None and stored is not None and supplied != stored:
            raise CryptoError("the AAD prefix that the file stores is not the one supplied: this is another file")
        return (supplied or stored or b"") + parameters.aad_file_unique

    @contextmanager
    def _naming_an_unstored_prefix(self) -> Iterator[None]:
        """Extend the error of a failed verification: a supplied AAD prefix may be wrong, if the file stores no prefix."""
        try:
            yield
        except TagVerificationError as error:
            if self._properties.aad_prefix is not None and not self._parameters.aad_prefix:
                error.message += "; the file does not store its AAD prefix, so that it may be the supplied one that is wrong"
            raise

    def _footer_key(self) -> AesKey | None:
        return self._properties.footer_key or self._retrieve(self._footer_key_metadata)

    def _column_key(self, chunk: fmt.ColumnChunk) -> AesKey | None:
        """The key of an encrypted column; an explicit key comes before the key retriever's."""
        crypto = chunk.crypto_metadata
        assert crypto is not None
        if crypto.ENCRYPTION_WITH_FOOTER_KEY is not None:
            return self._footer_key()
        column = crypto.ENCRYPTION_WITH_COLUMN_KEY
        if column is None:
            raise UnsupportedError("a ColumnCryptoMetaData that is neither of a footer key nor of a column key")
        explicit = self._properties.column_keys.find(tuple(column.path_in_schema))
        try:
            return explicit or self._retrieve(column.key_metadata)
        except ParquetError as error:
            error.at(column=column_name(chunk))
            raise

    def _retrieve(self, key_metadata: bytes | None) -> AesKey | None:
        return None if self._retrieved is None or key_metadata is None else self._retrieved.get(key_metadata)


class DuckDbFileDecryptor(KeyedFileDecryptor):
    """Decryptor of DuckDB's dialect: the footer key encrypts every column, without crypto metadata, and AADs are empty."""

    seals_every_chunk = True

    @staticmethod
    def wrote(algorithm: fmt.EncryptionAlgorithm) -> bool:
        """Whether an algorithm is DuckDB's: AES_GCM_V1 without parameters."""
        return algorithm == fmt.EncryptionAlgorithm(AES_GCM_V1=fmt.AesGcmV1())

    def chunk_cipher(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        self._require_authentic_footer()
        self._check_protection(chunk, column_ordinal)
        if chunk.crypto_metadata is not None:
            raise UnsupportedError("crypto metadata of a column in DuckDB's dialect, which has none", column=column_name(chunk))
        key = self._footer_key()
        if key is None:
            refuse_column(chunk)
        return self._cipher(key, chunk, row_group_ordinal, column_ordinal)

    def _is_under_footer_key(self, chunk: fmt.ColumnChunk) -> bool:
        return True

    def _choose_cipher(self) -> type[GcmModuleCipher]:
        super()._choose_cipher()
        return DuckDbModuleCipher

    def _check_aad(self) -> bytes:
        if self._properties.aad_prefix is not None:
            raise CryptoError("an AAD prefix is supplied, but DuckDB writes files without one")
        return b""
