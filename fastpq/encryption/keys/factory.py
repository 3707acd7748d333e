"""CryptoFactory: encryption and decryption properties of files, from master keys in a key service."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from fastpq.encryption.keys.configuration import (
    DEFAULT_CACHE_LIFETIME,
    DecryptionConfiguration,
    EncryptionConfiguration,
    TrustedMasterKeys,
)
from fastpq.encryption.keys.kms import (
    DEFAULT_KMS_INSTANCE_ID,
    DEFAULT_KMS_INSTANCE_URL,
    KmsClientFactory,
    KmsConnectionConfig,
)
from fastpq.encryption.keys.material import COLUMN_REFERENCE, FOOTER_REFERENCE, KeyMaterial, serialize_reference
from fastpq.encryption.keys.rotation import rotate
from fastpq.encryption.keys.secret import random_key
from fastpq.encryption.keys.store import MaterialFile, MaterialPath
from fastpq.encryption.keys.unwrapping import FileKeyUnwrapper, KeyServiceRetriever, ServiceAccess
from fastpq.encryption.keys.wrapping import Caches, FileKeyWrapper, KeyService
from fastpq.encryption.properties import (
    DEFAULT_ALLOWED_ALGORITHMS,
    DEFAULT_V2_LAYOUT,
    Algorithm,
    ColumnEncryptionProperties,
    ColumnPath,
    FileDecryptionProperties,
    FileEncryptionProperties,
    Key,
    PathT,
    V2Layout,
)
from fastpq.errors import SchemaError

PathLike = str | os.PathLike[str]


class CryptoFactory:
    """Makes encryption and decryption properties of files; their data keys are wrapped by master keys in a key service (KMS).

    Key material is compatible with parquet-java and Arrow in both directions. Clients of the service and key encryption keys
    (KEKs) are cached for each connection (instance, URL, token and all options), with the lifetimes of the configurations and
    up to a number. Credentials that a client takes from elsewhere, as from the environment, are no part of a connection: give
    each identity a factory of its own. Any number of threads may share a factory.

    Args:
        kms_client_factory: function or class that makes a KmsClient of a KmsConnectionConfig.

    Raises:
        TypeError: kms_client_factory is not callable.
    """

    def __init__(self, kms_client_factory: KmsClientFactory) -> None:
        if not callable(kms_client_factory):
            raise TypeError("kms_client_factory must be callable with a KmsConnectionConfig, and return a KmsClient")
        self._kms_client_factory = kms_client_factory
        self._caches = Caches()

    def file_encryption_properties(
        self,
        kms_connection_config: KmsConnectionConfig,
        encryption_config: EncryptionConfiguration,
        parquet_file_path: PathLike | None = None,
        filesystem: Any = None,
        *,
        aad_prefix: bytes | None = None,
        store_aad_prefix: bool = True,
        v2_layout: V2Layout = DEFAULT_V2_LAYOUT,
    ) -> FileEncryptionProperties:
        """Make properties for one new file, with data keys of its own.

        Args:
            kms_connection_config: how to reach the key service.
            encryption_config: columns to encrypt, and their master keys.
            parquet_file_path: path or URL of the new file; needed for external key material. The material file is written at
                once, before the file: the file is readable from its first moment.
            filesystem: fsspec filesystem of the path.
            aad_prefix: identifier of the file, verified by readers (Encryption.md, 4.4.1).
            store_aad_prefix: keep the prefix in the file; else readers have to supply the prefix.
            v2_layout: layout of encrypted data pages V2: ``"arrow"`` or ``"parquet-java"``, as in FileEncryptionProperties.

        Raises:
            KeyAccessError: the key service does not wrap a key.
            SchemaError: a column twice; external key material without a path, or for the path of a file with key material.
        """
        service = KeyService(
            self._kms_client_factory,
            kms_connection_config.resolved(
                kms_connection_config.kms_instance_id or DEFAULT_KMS_INSTANCE_ID,
                kms_connection_config.kms_instance_url or DEFAULT_KMS_INSTANCE_URL,
            ),
            self._caches,
            encryption_config.cache_lifetime,
        )
        wrapper = FileKeyWrapper(
            service,
            double_wrapping=encryption_config.double_wrapping,
            kek_bits=encryption_config.kek_length_bits or encryption_config.data_key_length_bits,
            keks=self._caches.write_keks,
        )
        storage = _Storage(None if encryption_config.internal_key_material else _material_file(parquet_file_path, filesystem))
        options = {"aad_prefix": aad_prefix, "store_aad_prefix": store_aad_prefix, "v2_layout": v2_layout}
        properties = _encryption_properties(encryption_config, wrapper, storage, options)
        storage.save()
        return properties

    def file_decryption_properties(
        self,
        kms_connection_config: KmsConnectionConfig,
        decryption_config: DecryptionConfiguration | None = None,
        parquet_file_path: PathLike | None = None,
        filesystem: Any = None,
        *,
        footer_key: Key | None = None,
        column_keys: Mapping[PathT, Key] | None = None,
        aad_prefix: bytes | None = None,
        allow_plaintext_files: bool = False,
        allowed_algorithms: Iterable[Algorithm] = DEFAULT_ALLOWED_ALGORITHMS,
        verify_footer_signature: bool = True,
        allow_duckdb_dialect: bool = False,
        allow_weaker_columns: bool = False,
        allow_missing_columns: bool = False,
    ) -> FileDecryptionProperties:
        """Make properties for reading a file.

        Properties for internal key material serve any number of files. Where kms_connection_config leaves instance or URL of the
        key service open and decryption_config trusts the files, each file's keys come from the service that the file names.

        Args:
            kms_connection_config: how to reach the key service.
            decryption_config: lifetimes and trust; None for the defaults.
            parquet_file_path: path or URL of the file; needed for external key material.
            filesystem: fsspec filesystem of the path.
            footer_key: explicit key of 16, 24 or 32 bytes; the key service is not asked for this key.
            column_keys: explicit keys by column path; the key service is not asked for these keys.
            aad_prefix: AAD prefix of the file; needed for files without a stored prefix.
            allow_plaintext_files: read plaintext files too; see FileDecryptionProperties for this and the other policies.
            allowed_algorithms: algorithms accepted in a file.
            verify_footer_signature: verify the signature of plaintext footers before parsing.
            allow_duckdb_dialect: read files encrypted by DuckDB. Their modules are not tied to file and place.
            allow_weaker_columns: read columns of column_keys in plaintext or under the footer key too.
            allow_missing_columns: accept keys for columns that the file does not have.

        Raises:
            SchemaError: two spellings of one column path.
            ValueError, TypeError: options unknown, contradictory or of a wrong type.
        """
        access = ServiceAccess(
            self._kms_client_factory, kms_connection_config, decryption_config or DecryptionConfiguration(), self._caches
        )
        material_file = None if parquet_file_path is None else _material_file(parquet_file_path, filesystem)
        return FileDecryptionProperties(
            footer_key,
            column_keys,
            key_retriever=KeyServiceRetriever(access, material_file),
            aad_prefix=aad_prefix,
            allow_plaintext_files=allow_plaintext_files,
            allowed_algorithms=allowed_algorithms,
            verify_footer_signature=verify_footer_signature,
            allow_duckdb_dialect=allow_duckdb_dialect,
            allow_weaker_columns=allow_weaker_columns,
            allow_missing_columns=allow_missing_columns,
        )

    def rotate_master_keys(
        self,
        kms_connection_config: KmsConnectionConfig,
        parquet_file_path: PathLike,
        filesystem: Any = None,
        double_wrapping: bool = True,
        cache_lifetime_seconds: float = DEFAULT_CACHE_LIFETIME.total_seconds(),
        read_kms_url: bool | None = None,
        *,
        trust_kms_url_from_file: bool = False,
        trusted_master_keys: TrustedMasterKeys | None = None,
    ) -> list[str]:
        """Wrap the data keys of files anew, with the newest versions of their master keys; key material must be external.

        The files themselves stay unchanged. Each material file is replaced as a whole: after an interrupted rotation every file
        is readable as long as the service knows the old versions too, and a second rotation completes the work.

        Args:
            kms_connection_config: how to reach the key service; the service must unwrap with the old version of a master key
                and wrap with the new version.
            parquet_file_path: a file; or a folder, with all files below. Names beginning with ``_`` or ``.`` are left out.
            filesystem: fsspec filesystem of the path.
            double_wrapping: wrap data keys with new KEKs; else the service wraps each data key.
            cache_lifetime_seconds: lifetime of cached clients and KEKs.
            read_kms_url: pyarrow's name of trust_kms_url_from_file.
            trust_kms_url_from_file: as in DecryptionConfiguration.
            trusted_master_keys: as in DecryptionConfiguration; material under another master key is not rotated.

        Returns:
            Paths of the files.

        Raises:
            SchemaError: a file without a material file, or no file; nothing is rotated then.
            KeyAccessError: the key service does not unwrap or wrap a key, or a name from the material is not trusted. The error
                has the path of the file; all files before are rotated.
        """
        configuration = DecryptionConfiguration(
            timedelta(seconds=cache_lifetime_seconds),
            read_kms_url,
            trust_kms_url_from_file=trust_kms_url_from_file,
            trusted_master_keys=trusted_master_keys,
        )
        access = ServiceAccess(self._kms_client_factory, kms_connection_config, configuration, self._caches)
        self._caches.write_keks.clear()     # wrapped by the old versions
        return rotate(
            MaterialPath(parquet_file_path, filesystem),
            lambda material_file: FileKeyUnwrapper(access, material_file, serialize_reference(FOOTER_REFERENCE)),
            double_wrapping,
        )

    def remove_cache_entries_for_token(self, access_token: str) -> None:
        """Drop the cached clients and keys of an access token.

        Args:
            access_token: the token.
        """
        self._caches.remove(access_token)

    def remove_cache_entries_for_all_tokens(self) -> None:
        """Drop all cached clients and keys."""
        self._caches.clear()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a CryptoFactory holds keys and cannot be copied or pickled")


class _Storage:
    """Destination of a new file's key material: the key metadata in the file, or a material file.

    Args:
        material_file: the material file; None for the key metadata.
    """

    def __init__(self, material_file: MaterialFile | None) -> None:
        self._material_file = material_file
        self._entries: dict[str, str] = {}
        self._columns = 0
        if material_file is not None:
            material_file.begin()

    def key_metadata(self, material: KeyMaterial) -> bytes:
        """Key metadata of a data key: the material itself, or a reference to its entry in the material file."""
        if self._material_file is None:
            return material.serialize(internal=True).encode()
        reference = FOOTER_REFERENCE
        if not material.is_footer_key:
            reference = COLUMN_REFERENCE.format(self._columns)
            self._columns += 1
        self._entries[reference] = material.serialize(internal=False)
        return serialize_reference(reference)

    def save(self) -> None:
        if self._material_file is not None:
            self._material_file.write(self._entries)


def _encryption_properties(
    configuration: EncryptionConfiguration, wrapper: FileKeyWrapper, storage: _Storage, options: dict[str, Any]
) -> FileEncryptionProperties:
    bits = configuration.data_key_length_bits
    footer_key = random_key(bits)
    footer_metadata = storage.key_metadata(wrapper.material(footer_key, configuration.footer_key, True))
    columns: dict[ColumnPath, ColumnEncryptionProperties] = {}
    for master_key_id, path in _pairs(configuration):
        key = random_key(bits)
        metadata = storage.key_metadata(wrapper.material(key, master_key_id, False))
        columns[path] = ColumnEncryptionProperties(key, key_metadata=metadata)
    everything = configuration.uniform_encryption or configuration.complete_columns
    return FileEncryptionProperties(
        footer_key,
        columns,
        footer_key_metadata=footer_metadata,
        plaintext_footer=configuration.plaintext_footer,
        algorithm=configuration.encryption_algorithm,
        encrypt_unlisted="footer_key" if everything else "plaintext",
        **options,
    )


def _pairs(configuration: EncryptionConfiguration) -> Sequence[tuple[str, ColumnPath]]:
    """Master key and column path of each column, in the order of the configuration."""
    pairs: list[tuple[str, ColumnPath]] = []
    seen: set[ColumnPath] = set()
    for master_key_id, paths in configuration.column_keys.items():
        for path in paths:
            if path in seen:
                raise SchemaError(f"two keys for the column path {path if isinstance(path, str) else '.'.join(path)}")
            seen.add(path)
            pairs.append((master_key_id, path))
    return pairs


def _material_file(parquet_file_path: PathLike | None, filesystem: Any) -> MaterialFile:
    if parquet_file_path is None:
        raise SchemaError("external key material is found by the file's name: parquet_file_path is needed")
    return MaterialFile(MaterialPath(parquet_file_path, filesystem))
