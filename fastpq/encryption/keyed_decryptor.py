"""Decryptors that have keys. They decrypt the footer, column metadata and column chunks of a file (Encryption.md, 5)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Self, TypeVar

from fastpq import format as fmt
from fastpq.encryption.audit import FileAudit, KeyUse, name_of_key
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.decryptor import FileDecryptor, Sealed, column_name, refuse_column
from fastpq.encryption.evp import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import (
    ColumnEncryptionProperties,
    FileDecryptionProperties,
    FileEncryptionProperties,
    Key,
    KeyRetriever,
    as_key,
)
from fastpq.encryption.service_calls import FAR_SECONDS, call_all
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.encryption.variants import CtrModuleCipher, DuckDbModuleCipher
from fastpq.errors import CryptoError, FormatError, KeyAccessError, ParquetError, TagVerificationError, UnsupportedError

T = TypeVar("T")


class RetrievedKeys:
    """One file's keys by key metadata. Threads can share it.

    Args:
        retriever: the key retriever.
        is_thread_safe: whether several threads may call the retriever at the same time, as with a CryptoFactory's retrievers.
    """

    def __init__(self, retriever: KeyRetriever, *, is_thread_safe: bool) -> None:
        self._retriever = retriever
        self._keys: dict[bytes, AesKey | None] = {}
        self._pending_keys: dict[bytes, Future[AesKey | None]] = {}
        self._lock = None if is_thread_safe else threading.RLock()
        self._key_locks: dict[bytes, threading.RLock] = {}
        self._longest_seconds = 0.0     # the slowest call's time
        self.far_calls = 0      # number of slow calls that were made one after the other

    @classmethod
    def for_file(cls, properties: FileDecryptionProperties, footer_key_metadata: bytes | None) -> Self | None:
        """Return a file's keys for the key metadata in its footer, or None without a key retriever."""
        retriever = properties.retriever_of(footer_key_metadata)
        return None if retriever is None else cls(retriever, is_thread_safe=retriever is not properties.key_retriever)

    def get(self, key_metadata: bytes) -> AesKey | None:
        """Return the key for key metadata, or None if the retriever has none.

        Raises:
            CryptoError: the retriever returned something that is not a key.
            Exceptions from the retriever, which is asked again at the next call.
        """
        with self._lock or self._key_locks.setdefault(key_metadata, threading.RLock()):
            if key_metadata not in self._keys:
                pending_key = self._pending_keys.pop(key_metadata, None)
                start = time.monotonic()
                self._keys[key_metadata] = self._retrieve(key_metadata) if pending_key is None else pending_key.result()
                self.far_calls += pending_key is None and time.monotonic() - start >= FAR_SECONDS
            return self._keys[key_metadata]

    def use_of(self, key_metadata: bytes) -> KeyUse:
        """Return how the key for key metadata was found, for audits."""
        uses: dict[bytes, KeyUse] = getattr(self._retriever, "uses", {})
        if key_metadata in uses:
            return uses[key_metadata]
        retriever = self._retriever
        return KeyUse("retrieved", name_of_key(key_metadata), getattr(retriever, "__qualname__", type(retriever).__name__))

    def prefetch(self, key_metadata: Iterable[bytes]) -> None:
        """Ask for several keys at once, if the calls take long. ``get`` then returns the keys, or raises the errors.

        Args:
            key_metadata: each key's key metadata.
        """
        if self._lock is not None:
            return
        new_metadata = dict.fromkeys(one for one in key_metadata if one not in self._keys and one not in self._pending_keys)
        if len(new_metadata) > 1:
            make_batches: Callable[..., dict[bytes, Future[AesKey | None]]] | None = getattr(self._retriever, "batched", None)
            batched_keys = {} if make_batches is None else make_batches(new_metadata)
            self._pending_keys.update(batched_keys)
            rest = [one for one in new_metadata if one not in batched_keys]
            self._pending_keys.update(call_all(self._retrieve, rest, is_far=self._longest_seconds >= FAR_SECONDS))

    def _retrieve(self, key_metadata: bytes) -> AesKey | None:
        return _check_key(self._call_retriever(key_metadata))       # no variable here: a traceback would show the key

    def _call_retriever(self, key_metadata: bytes) -> Key | None:
        start = time.monotonic()
        key = self._retriever(key_metadata)
        self._longest_seconds = max(self._longest_seconds, time.monotonic() - start)
        return key


@hides_arguments
def _check_key(key: Key | None) -> AesKey | None:
    """Return what a key retriever returned as an AesKey, or None if it has no key."""
    if key is None:
        return None
    if not isinstance(key, AesKey | bytes | bytearray | memoryview):
        raise CryptoError(f"the key retriever must return a key in bytes, not {type(key).__name__}")
    return as_key(key)


MOST_SINGLE_CALLS = 3   # number of slow calls, the footer's among them, after which all columns' keys are asked for at once
NO_FOOTER_KEY = "there is no footer key to open the footer with"
NO_SIGNING_KEY = (
    "there is no footer key to verify the signature of the plaintext footer with (verify_footer_signature=False reads the file "
    "without this check: then anybody may have altered the footer)"
)
NO_PAGE = -1        # page ordinal for modules that do not belong to a page


class KeyedFileDecryptor(FileDecryptor):
    """Decryptor for an encrypted file, with the reader's keys. Columns whose key is missing cannot be read."""

    has_keys = True

    def __init__(
        self,
        properties: FileDecryptionProperties,
        algorithm: fmt.EncryptionAlgorithm,
        key_metadata: bytes | None,
        encrypted_footer: bool,
        name: str | None = None,
    ) -> None:
        self._audit = FileAudit.of(properties.audit, "read", name)
        self._properties = properties
        self._algorithm = algorithm
        self._cipher_class = self._choose_cipher()
        self._file_aad = self._check_aad()
        self._footer_key_metadata = key_metadata
        self._is_footer_trusted = not encrypted_footer and not properties.verify_footer_signature
        self._paths: Sequence[tuple[str, ...]] = ()
        self._retrieved_keys = None if properties.key_retriever is None else RetrievedKeys.for_file(properties, key_metadata)
        self.may_refuse_columns = True      # until the footer is trusted
        self.may_prefetch_keys = self._retrieved_keys is not None
        self._has_keys: dict[tuple[tuple[str, ...], bytes | None] | None, bool] = {}
        self._chunks: Callable[[], Iterable[fmt.ColumnChunk]] | None = None     # one chunk of each column, until it was called

    def open_footer(self, module: Sealed) -> bytes:
        def open_with(cipher: GcmModuleCipher) -> bytes:
            return cipher.open(ModuleType.FOOTER, NO_PAGE, module)

        return self._trust_footer(NO_FOOTER_KEY, open_with)

    def verify_footer(self, footer: Sealed, signature: Sealed) -> None:
        def verify_with(cipher: GcmModuleCipher) -> None:
            cipher.verify_signature(footer, signature)

        self._trust_footer(NO_SIGNING_KEY, verify_with)

    def name_columns(self, paths: Sequence[tuple[str, ...]]) -> None:
        self._paths = paths

    def know_chunks(self, chunks: Callable[[], Iterable[fmt.ColumnChunk]]) -> None:
        self._chunks = chunks

    def confirm_algorithm(self, algorithm: fmt.EncryptionAlgorithm | None) -> None:
        if algorithm is not None and algorithm != self._algorithm:
            raise CryptoError("the encryption algorithm in front of the footer differs from the one inside: it was altered")

    def column_metadata(
        self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int
    ) -> fmt.ColumnMetaData:
        self._require_trusted_footer()
        self._check_protection(chunk, column_ordinal)
        if chunk.encrypted_column_metadata is None:
            return chunk.meta_data or super().column_metadata(chunk, row_group_ordinal, column_ordinal)
        if chunk.crypto_metadata is None:
            raise FormatError("encrypted column metadata of a column that is not encrypted", column=column_ordinal)
        self._prefetch_for_walk()
        key = self._column_key(chunk)
        if key is None:
            return super().column_metadata(chunk, row_group_ordinal, column_ordinal)
        cipher = self._cipher(key, chunk, row_group_ordinal, column_ordinal)
        plain = cipher.open(ModuleType.COLUMN_METADATA, NO_PAGE, chunk.encrypted_column_metadata)
        return fmt.decode(fmt.ColumnMetaData, plain)[0]     # parquet-java pads the struct with zeros

    def chunk_cipher(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        self._require_trusted_footer()
        self._check_protection(chunk, column_ordinal)
        if chunk.crypto_metadata is None:
            return ModuleCipher()
        key = self._column_key(chunk)
        if key is None:
            refuse_column(chunk)
        return self._cipher(key, chunk, row_group_ordinal, column_ordinal)

    def has_key(self, chunk: fmt.ColumnChunk) -> bool:
        crypto = chunk.crypto_metadata
        if crypto is None:
            return not self.seals_every_chunk or self._footer_key() is not None
        column = crypto.ENCRYPTION_WITH_COLUMN_KEY
        name = None if column is None else (tuple(column.path_in_schema), column.key_metadata)
        if name not in self._has_keys:
            try:
                self._has_keys[name] = self._column_key(chunk) is not None
            except KeyAccessError as error:
                if not error.is_denied:
                    raise
                self._has_keys[name] = False
        return self._has_keys[name]

    def check_column(self, path: tuple[str, ...], *, is_under_footer_key: bool) -> None:
        self._require_trusted_footer()
        self._check_own_key(path, is_under_footer_key=is_under_footer_key)

    def own_encryption(
        self, chunks: Mapping[tuple[str, ...], fmt.ColumnChunk], *, plaintext_footer: bool
    ) -> tuple[FileEncryptionProperties, bytes] | None:
        footer_key = self._footer_key()
        if footer_key is None:
            raise KeyAccessError("there is no footer key to encrypt or sign the footer with", module="FOOTER")
        column_keys: dict[tuple[str, ...], ColumnEncryptionProperties] = {}
        for path, chunk in chunks.items():
            crypto = chunk.crypto_metadata
            if crypto is None:
                continue
            column, key = crypto.ENCRYPTION_WITH_COLUMN_KEY, self._column_key(chunk)
            if key is None:
                refuse_column(chunk)
            own_key = (None, None) if column is None else (key, column.key_metadata)
            column_keys[path] = ColumnEncryptionProperties(own_key[0], key_metadata=own_key[1])
        parameters = self._parameters
        unique = parameters.aad_file_unique
        assert unique is not None       # _check_aad refuses files without it
        properties = FileEncryptionProperties(
            footer_key,
            column_keys,
            footer_key_metadata=self._footer_key_metadata,
            plaintext_footer=plaintext_footer,
            algorithm="AES_GCM_V1" if self._algorithm.AES_GCM_V1 is not None else "AES_GCM_CTR_V1",
            aad_prefix=self._properties.aad_prefix or parameters.aad_prefix,
            store_aad_prefix=bool(parameters.aad_prefix) or not parameters.supply_aad_prefix,
            unlisted="plaintext",     # column_keys names each encrypted column
        )
        return properties, unique

    def footer_key_cipher(self, path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        if self.may_refuse_columns:
            self.check_column(path, is_under_footer_key=True)
        key = self._footer_key()
        if key is None:
            return super().footer_key_cipher(path, row_group_ordinal, column_ordinal)
        name = ".".join(path)
        self._record_footer_key(name)
        return self._cipher_class(key, self._file_aad, row_group_ordinal, column_ordinal, name)

    def open_own_metadata(
        self, path: tuple[str, ...], key_metadata: bytes | None, row_group_ordinal: int, column_ordinal: int, module: Sealed
    ) -> bytes | None:
        if self._audit is not None:
            return None
        self._require_trusted_footer()
        key = self._own_key(path, key_metadata)
        if key is None:
            return None
        cipher = self._cipher_class(key, self._file_aad, row_group_ordinal, column_ordinal, ".".join(path))
        return cipher.open(ModuleType.COLUMN_METADATA, NO_PAGE, module)

    def own_key_cipher(
        self, path: tuple[str, ...], key_metadata: bytes | None, row_group_ordinal: int, column_ordinal: int
    ) -> ModuleCipher:
        key = self._own_key(path, key_metadata)
        if key is None:
            return super().own_key_cipher(path, key_metadata, row_group_ordinal, column_ordinal)
        return self._cipher_class(key, self._file_aad, row_group_ordinal, column_ordinal, ".".join(path))

    def prefetch_keys(self, chunks: Iterable[fmt.ColumnChunk]) -> None:
        if self._retrieved_keys is None:
            return
        columns = [chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY for chunk in chunks if chunk.crypto_metadata is not None]
        explicit_keys = self._properties.column_keys
        self._retrieved_keys.prefetch(
            column.key_metadata
            for column in columns
            if column is not None and column.key_metadata is not None and not explicit_keys.find(tuple(column.path_in_schema))
        )

    def _prefetch_for_walk(self) -> None:
        """Ask for all columns' keys at once, if somebody looks at one column's metadata after the other's and calls take long."""
        keys, chunks = self._retrieved_keys, self._chunks
        if keys is not None and chunks is not None and keys.far_calls >= MOST_SINGLE_CALLS:
            self._chunks = None
            self.prefetch_keys(chunks())

    def _check_protection(self, chunk: fmt.ColumnChunk, column_ordinal: int) -> None:
        """Refuse a column if the reader's properties have a key for it, but the column is not encrypted with a column key.

        The column's path comes from the schema. The crypto metadata must have the same path, because somebody with the footer key
        could write the path of another column there.
        """
        if column_ordinal >= len(self._paths):
            return
        path = self._paths[column_ordinal]
        crypto = chunk.crypto_metadata
        column_key = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
        if column_key is not None and tuple(column_key.path_in_schema) != path:
            wrong_path = ".".join(column_key.path_in_schema)
            raise FormatError(f"the crypto metadata of a column name another one, {wrong_path}", column=".".join(path))
        if column_key is None:
            self._check_own_key(path, is_under_footer_key=self._is_under_footer_key(chunk))

    def _check_own_key(self, path: tuple[str, ...], *, is_under_footer_key: bool) -> None:
        """Refuse a column that has a key in the reader's properties, but is in plaintext or encrypted with another footer key.

        It is accepted if the footer key equals the column's key, or if the properties allow weaker columns.
        """
        key = self._properties.column_keys.find(path)
        if key is None or self._properties.allow_weaker_columns:
            return
        footer_key = self._footer_key() if is_under_footer_key else None
        if footer_key is None or not footer_key.matches(key):
            protection = "in plaintext" if footer_key is None else "encrypted with the footer key"
            raise CryptoError(
                f"the column is {protection}, although column_keys has a key for it: it may have been replaced "
                "(allow_weaker_columns=True reads it anyway)",
                column=".".join(path),
            )

    def _is_under_footer_key(self, chunk: fmt.ColumnChunk) -> bool:
        return chunk.crypto_metadata is not None

    def _cipher(
        self, key: AesKey, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int
    ) -> GcmModuleCipher:
        return self._cipher_class(key, self._file_aad, row_group_ordinal, column_ordinal, column_name(chunk))

    def _require_trusted_footer(self) -> None:
        if not self._is_footer_trusted:
            raise CryptoError("the signature of the plaintext footer has not been verified", module="FOOTER")

    def _footer_cipher(self, refusal: str) -> GcmModuleCipher:
        key = self._footer_key()
        if key is None:
            raise KeyAccessError(refusal, module="FOOTER")
        return self._cipher_class(key, self._file_aad)

    def _choose_cipher(self) -> type[GcmModuleCipher]:
        """Return the cipher class for the file's algorithm, if the properties allow the algorithm."""
        if self._algorithm.AES_GCM_V1 is not None:
            name = "AES_GCM_V1"
        elif self._algorithm.AES_GCM_CTR_V1 is not None:
            name = "AES_GCM_CTR_V1"
        else:
            raise UnsupportedError("an encryption algorithm other than AES_GCM_V1 and AES_GCM_CTR_V1")
        if name not in self._properties.allowed_algorithms:
            raise CryptoError(
                f"the file says that it is encrypted with {name}, which allowed_algorithms does not list. This statement is "
                "not authenticated, and may have been altered to weaken the checks"
            )
        return CtrModuleCipher if name == "AES_GCM_CTR_V1" else GcmModuleCipher

    @property
    def _parameters(self) -> fmt.AesGcmV1 | fmt.AesGcmCtrV1:
        parameters = self._algorithm.AES_GCM_V1 or self._algorithm.AES_GCM_CTR_V1
        assert parameters is not None
        return parameters

    def _check_aad(self) -> bytes:
        """Return the bytes with which every AAD of the file begins: the AAD prefix, if any, and the file's identifier (4.4).

        Raises:
            CryptoError: a prefix is missing, is not expected, or differs from the stored one.
            UnsupportedError: the file has no identifier.
        """
        parameters = self._parameters
        supplied_prefix, stored_prefix = self._properties.aad_prefix, parameters.aad_prefix or None
        if parameters.aad_file_unique is None:
            raise UnsupportedError(
                "an encrypted file without aad_file_unique, as DuckDB writes them (allow_duckdb_dialect=True reads those)"
            )
        if supplied_prefix is None and parameters.supply_aad_prefix:
            raise CryptoError("the file has an AAD prefix that it does not store: aad_prefix must be supplied")
        if supplied_prefix is not None and stored_prefix is None and not parameters.supply_aad_prefix:
            raise CryptoError("an AAD prefix is supplied, but the file was written without one")
        if supplied_prefix is not None and stored_prefix is not None and supplied_prefix != stored_prefix:
            raise CryptoError(
                "the AAD prefix in the file is not the supplied one: the file was replaced, or the supplied prefix is wrong"
            )
        return (supplied_prefix or stored_prefix or b"") + parameters.aad_file_unique

    def _trust_footer(self, refusal: str, open_with: Callable[[GcmModuleCipher], T]) -> T:
        """Open or verify the footer with its cipher, return the result, and record whether the footer key could be used.

        Args:
            refusal: message of the KeyAccessError if there is no key.
            open_with: function that takes the footer's cipher. An exception means that the footer is not trusted.
        """
        try:
            result = open_with(self._footer_cipher(refusal))
        except Exception as error:
            if (
                isinstance(error, TagVerificationError)
                and self._properties.aad_prefix is not None and not self._parameters.aad_prefix
            ):
                error.message += ". The file does not store its AAD prefix: the supplied prefix may be wrong"
            self._record_footer(error)
            raise
        self._record_footer(None)
        self._is_footer_trusted = True
        self.may_refuse_columns = self._properties.column_keys.has_entries
        return result

    def _footer_key(self) -> AesKey | None:
        return self._properties.footer_key or self._retrieve(self._footer_key_metadata)

    def _column_key(self, chunk: fmt.ColumnChunk) -> AesKey | None:
        """Return an encrypted column's key, or None if it is missing, and record its use."""
        if self._audit is None:
            return self._find_column_key(chunk)
        column = column_name(chunk) or "?"
        try:
            key = self._find_column_key(chunk)
        except Exception as error:
            self._audit.record(self._use_of_column(chunk), column, error)
            raise
        refusal = None if key is not None else KeyAccessError.denied("there is no key for the column")
        self._audit.record(self._use_of_column(chunk), column, refusal)
        return key

    def _use_of_column(self, chunk: fmt.ColumnChunk) -> KeyUse:
        """Return how a column's key is found."""
        column = None if chunk.crypto_metadata is None else chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY
        if column is None:
            return self._footer_key_use()
        is_explicit = self._properties.column_keys.find(tuple(column.path_in_schema)) is not None
        return self._use(column.key_metadata, is_explicit)

    def _use(self, key_metadata: bytes | None, is_explicit: bool) -> KeyUse:
        if is_explicit or self._retrieved_keys is None or key_metadata is None:
            return KeyUse("explicit", name_of_key(key_metadata))
        return self._retrieved_keys.use_of(key_metadata)

    def _footer_key_use(self) -> KeyUse:
        """Return how the key of a column is found that has the footer's key."""
        return KeyUse("footer key", self._use(self._footer_key_metadata, self._properties.footer_key is not None).key_id)

    def _record_footer_key(self, column: str) -> None:
        """Record that a column is opened with the footer's key."""
        if self._audit is not None:
            self._audit.record(self._footer_key_use(), column, None)

    def _record_footer(self, error: Exception | None) -> None:
        """Record the footer key's use, and the error if it did not open or verify the footer."""
        if self._audit is not None:
            self._audit.record(self._use(self._footer_key_metadata, self._properties.footer_key is not None), None, error)

    def _find_column_key(self, chunk: fmt.ColumnChunk) -> AesKey | None:
        """Return an encrypted column's key, or None if it is missing."""
        crypto = chunk.crypto_metadata
        assert crypto is not None
        if crypto.ENCRYPTION_WITH_FOOTER_KEY is not None:
            return self._footer_key()
        column = crypto.ENCRYPTION_WITH_COLUMN_KEY
        if column is None:
            raise UnsupportedError("a ColumnCryptoMetaData that names neither the footer key nor a column key")
        return self._own_key(tuple(column.path_in_schema), column.key_metadata)

    def _own_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> AesKey | None:
        """Return a column's own key, or None if it is missing. ``column_keys`` is asked before the key retriever."""
        explicit_key = self._properties.column_keys.find(path)
        try:
            return explicit_key or self._retrieve(key_metadata)
        except ParquetError as error:
            error.at(column=".".join(path))
            raise

    def _retrieve(self, key_metadata: bytes | None) -> AesKey | None:
        return None if self._retrieved_keys is None or key_metadata is None else self._retrieved_keys.get(key_metadata)


class DuckDbFileDecryptor(KeyedFileDecryptor):
    """Decryptor for DuckDB's dialect. The footer key encrypts every column, there is no crypto metadata, and AADs are empty."""

    seals_every_chunk = True

    def own_encryption(
        self, chunks: Mapping[tuple[str, ...], fmt.ColumnChunk], *, plaintext_footer: bool
    ) -> tuple[FileEncryptionProperties, bytes] | None:
        raise UnsupportedError("a file in DuckDB's dialect of encryption is not changed in place")

    @staticmethod
    def is_own_algorithm(algorithm: fmt.EncryptionAlgorithm) -> bool:
        """Return whether an algorithm is DuckDB's: AES_GCM_V1 without parameters."""
        return algorithm == fmt.EncryptionAlgorithm(AES_GCM_V1=fmt.AesGcmV1())

    def chunk_cipher(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        self._require_trusted_footer()
        self._check_protection(chunk, column_ordinal)
        if chunk.crypto_metadata is not None:
            raise UnsupportedError("DuckDB's dialect has no crypto metadata of columns", column=column_name(chunk))
        key = self._footer_key()
        if key is None:
            refuse_column(chunk)
        self._record_footer_key(column_name(chunk) or "?")
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
