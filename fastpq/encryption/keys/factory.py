"""CryptoFactory: makes files' encryption and decryption properties from master keys in a key service.

Master keys are rotated here too: data keys are unwrapped with a master key's old version, and wrapped with its new version.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from fastpq.encryption.audit import AuditLog, FileAudit, KeyUse, check_audit
from fastpq.encryption.dataset_properties import DatasetDecryptionProperties, DatasetEncryptionProperties
from fastpq.encryption.keys.cache import TokenCache
from fastpq.encryption.keys.configuration import (
    DEFAULT_CACHE_LIFETIME,
    DecryptionConfiguration,
    EncryptionConfiguration,
    TrustedMasterKeys,
)
from fastpq.encryption.keys.kms import KmsClientFactory, KmsConnectionConfig
from fastpq.encryption.keys.material import (
    COLUMN_REFERENCE,
    FOOTER_REFERENCE,
    KeyMaterial,
    generation_of,
    new_generation,
    parse_key_material,
    serialize_reference,
)
from fastpq.encryption.keys.secret import random_key
from fastpq.encryption.keys.store import MaterialFile, MaterialPath
from fastpq.encryption.keys.wrapping import (
    Caches,
    FileKeyUnwrapper,
    FileKeyWrapper,
    KeyEncryptionKey,
    KeyService,
    KeyServiceRetriever,
    ServiceAccess,
)
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
from fastpq.encryption.service_calls import DEFAULT_ATTEMPTS, DEFAULT_TIMEOUT, ServiceCalls, call_all
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import FormatError, ParquetError, SchemaError

PathLike = str | os.PathLike[str]
MOST_NAMES = 3      # largest number of file names in an error
# Policies of file_decryption_properties that dataset_decryption_properties takes too.
POLICIES = frozenset((
    "allow_plaintext_files", "allowed_algorithms", "verify_footer_signature", "allow_duckdb_dialect", "allow_weaker_columns",
    "allow_missing_columns",
))
UnwrapperOf = Callable[[MaterialFile], FileKeyUnwrapper]


class CryptoFactory(KeyHolder):
    """Makes encryption and decryption properties for files whose data keys are wrapped by a key management service (KMS).

    Key material is compatible with parquet-java and Arrow in both directions. The factory caches service clients and key
    encryption keys (KEKs) for each connection: instance, URL, token and all options. The configurations set the lifetimes, and
    the caches have a limited size. Credentials that a client takes from elsewhere, for example from the environment, do not
    belong to a connection: give each identity its own factory. Any number of threads may share a factory.

    Args:
        kms_client_factory: function or class that takes a KmsConnectionConfig and makes a KmsClient.
        timeout: longest time in seconds for all calls of the key service for one file, with all their attempts. Calls run in
            threads of their own. None sets no limit, and calls in the caller's thread.
        attempts: largest number of attempts if the service does not answer, with growing pauses. After a call that took
            too long, or several that failed, the service is not asked again for 5 seconds.
        audit: log that records each use of a key in files whose properties the factory makes.

    Raises:
        TypeError: kms_client_factory is not callable.
        ValueError: timeout or attempts is not positive.
    """

    def __init__(
        self,
        kms_client_factory: KmsClientFactory,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        attempts: int = DEFAULT_ATTEMPTS,
        audit: AuditLog | None = None,
    ) -> None:
        check_audit(audit)
        self._audit = audit
        if not callable(kms_client_factory):
            raise TypeError("kms_client_factory must be callable with a KmsConnectionConfig, and return a KmsClient")
        self._kms_client_factory = kms_client_factory
        self._caches = Caches(ServiceCalls(timeout, attempts))

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
        """Return properties for one new file, with its own data keys.

        Args:
            kms_connection_config: how to reach the key service.
            encryption_config: which columns to encrypt, and their master keys.
            parquet_file_path: the new file's path or URL. External key material needs it. The material file is written at once,
                before the Parquet file, so that the Parquet file is readable from its first moment. If the path has a file with
                external key material, the material file gets the new keys too, and the old file stays readable until the new
                one replaces it.
            filesystem: fsspec filesystem for the path.
            aad_prefix: the file's identifier, which readers verify (Encryption.md, 4.4.1).
            store_aad_prefix: store the prefix in the file. If False, readers have to supply it.
            v2_layout: layout for encrypted V2 data pages: ``"arrow"`` or ``"parquet-java"``, as in FileEncryptionProperties.

        Raises:
            KeyAccessError: the key service did not wrap a key.
            SchemaError: a column is there twice, or key material is external but there is no path.
            FormatError, UnsupportedError, LimitError: the path's present material file is malformed, or too large.
        """
        service = KeyService(
            self._kms_client_factory,
            kms_connection_config.resolved(),
            self._caches,
            encryption_config.cache_lifetime,
            self._caches.calls.time_of_file(),
        )
        wrapper = FileKeyWrapper(
            service,
            double_wrapping=encryption_config.double_wrapping,
            kek_bits=encryption_config.kek_length_bits or encryption_config.data_key_length_bits,
            keks=self._caches.write_keks,
        )
        material_file = (
            None if encryption_config.internal_key_material else _material_file(parquet_file_path, filesystem)
        )
        storage = _KeyMaterialStorage(material_file)
        options: dict[str, Any] = {"aad_prefix": aad_prefix, "store_aad_prefix": store_aad_prefix, "v2_layout": v2_layout}
        name = None if parquet_file_path is None else os.fspath(parquet_file_path)
        options |= {"audit": self._audit}
        audit = FileAudit.of(self._audit, "write", name)
        properties = _encryption_properties(encryption_config, wrapper, storage, options, audit)
        properties.audited_file = name
        storage.save()
        return properties

    @hides_arguments
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
        """Return properties for reading a file.

        If key material is internal, the properties serve any number of files. If kms_connection_config leaves the key service's
        instance or URL open, and decryption_config trusts the files, each file's keys come from the service that it names.

        Args:
            kms_connection_config: how to reach the key service.
            decryption_config: lifetimes, and what is trusted. None means the defaults.
            parquet_file_path: the file's path or URL. External key material needs it.
            filesystem: fsspec filesystem for the path.
            footer_key: explicit key with 16, 24 or 32 bytes. The key service is not asked for it.
            column_keys: explicit keys by column path. The key service is not asked for them.
            aad_prefix: the file's AAD prefix. It is needed if the file does not store its prefix.
            allow_plaintext_files: read plaintext files too. FileDecryptionProperties explains this and the other policies.
            allowed_algorithms: the algorithms that are accepted.
            verify_footer_signature: verify a plaintext footer's signature before the footer is parsed.
            allow_duckdb_dialect: read files that DuckDB encrypted. Their modules are not bound to a file or a position.
            allow_weaker_columns: also read columns that column_keys has a key for, although they are plaintext or encrypted with
                the footer key.
            allow_missing_columns: accept keys for columns that the file does not have.

        Raises:
            SchemaError: a column path is there in two spellings.
            ValueError, TypeError: an option is unknown, contradicts another or has a wrong type.
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
            audit=self._audit,
        )

    def dataset_encryption_properties(
        self,
        kms_connection_config: KmsConnectionConfig,
        encryption_config: EncryptionConfiguration,
        *,
        table_id: str | None = None,
        root: PathLike | None = None,
        store_aad_prefix: bool = True,
        v2_layout: V2Layout = DEFAULT_V2_LAYOUT,
    ) -> DatasetEncryptionProperties:
        """Return properties for all new files of a dataset. Each file gets data keys of its own, and its own key material.

        Args:
            kms_connection_config, encryption_config, v2_layout: as for ``file_encryption_properties``.
            table_id, root, store_aad_prefix: as for DatasetEncryptionProperties.

        Raises:
            ValueError: ``root`` or ``store_aad_prefix`` is given without ``table_id``.
        """
        def keys_of(where: Any) -> FileEncryptionProperties:
            place = MaterialPath(where)
            return self.file_encryption_properties(
                kms_connection_config, encryption_config, place.path, place.filesystem, v2_layout=v2_layout)

        properties = DatasetEncryptionProperties(keys_of, table_id=table_id, root=root, store_aad_prefix=store_aad_prefix)
        properties._reader = self.dataset_decryption_properties(kms_connection_config, table_id=table_id, root=root)
        return properties

    def dataset_decryption_properties(
        self,
        kms_connection_config: KmsConnectionConfig,
        decryption_config: DecryptionConfiguration | None = None,
        *,
        table_id: str | None = None,
        root: PathLike | None = None,
        **policies: Any,
    ) -> DatasetDecryptionProperties:
        """Return properties for reading all files of a dataset. External key material is found beside each file.

        Args:
            kms_connection_config, decryption_config: as for ``file_decryption_properties``.
            table_id, root: as for DatasetDecryptionProperties.
            **policies: the policies of ``file_decryption_properties``, for example ``allow_plaintext_files``.

        Raises:
            ValueError: ``root`` is given without ``table_id``.
            TypeError: a policy is unknown.
        """
        def keys_of(where: Any) -> FileDecryptionProperties:
            place = MaterialPath(where)
            return self.file_decryption_properties(
                kms_connection_config, decryption_config, place.path, place.filesystem, **policies)

        if unknown := policies.keys() - POLICIES:
            raise TypeError(f"unknown policies: {', '.join(sorted(unknown))}")
        properties = DatasetDecryptionProperties(keys_of, table_id=table_id, root=root)
        properties.service = DatasetService(self, kms_connection_config, decryption_config or DecryptionConfiguration())
        return properties

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
        """Wrap files' data keys again, with the newest versions of their master keys. Key material must be external.

        The Parquet files stay unchanged. Each material file is replaced as a whole. After an interrupted rotation, every file is
        readable as long as the service also knows the old versions, and a second rotation completes the work.

        Args:
            kms_connection_config: how to reach the key service. The service must unwrap with a master key's old version, and wrap
                with its new version.
            parquet_file_path: a file, or a folder for all files in it and in its subfolders. Names that begin with ``_`` or ``.``
                are left out.
            filesystem: fsspec filesystem for the path.
            double_wrapping: wrap data keys with new KEKs. If False, the service wraps each data key.
            cache_lifetime_seconds: how long clients and KEKs stay in the cache.
            read_kms_url: pyarrow's name for trust_kms_url_from_file.
            trust_kms_url_from_file: as in DecryptionConfiguration.
            trusted_master_keys: as in DecryptionConfiguration. Material under another master key is not rotated.

        Returns:
            The files' paths.

        Raises:
            SchemaError: a file has no material file, or there is no file. Then nothing is rotated.
            KeyAccessError: the key service did not unwrap or wrap a key, or the material has a name that is not trusted. The
                error has the file's path. All files before it are rotated.
        """
        configuration = DecryptionConfiguration(
            timedelta(seconds=cache_lifetime_seconds),
            read_kms_url,
            trust_kms_url_from_file=trust_kms_url_from_file,
            trusted_master_keys=trusted_master_keys,
        )
        access = ServiceAccess(self._kms_client_factory, kms_connection_config, configuration, self._caches)
        self._caches.write_keks.clear()     # the old versions wrapped them
        return _rotate(
            MaterialPath(parquet_file_path, filesystem),
            lambda material_file: FileKeyUnwrapper(access, material_file, serialize_reference(FOOTER_REFERENCE)),
            double_wrapping,
            self._audit,
        )

    def remove_cache_entries_for_token(self, access_token: str) -> None:
        """Drop the cached clients and keys that belong to one access token.

        Args:
            access_token: the token.
        """
        self._caches.remove(access_token)

    def remove_cache_entries_for_all_tokens(self) -> None:
        """Drop all cached clients and keys."""
        self._caches.clear()


class DatasetService(NamedTuple):
    """The key service behind a dataset's decryption properties.

    Attributes:
        factory: the factory that made the properties.
        connection: how it reaches the service.
        configuration: what is trusted.
    """

    factory: CryptoFactory
    connection: KmsConnectionConfig
    configuration: DecryptionConfiguration

    def rotate_file(
        self, place: MaterialPath, keks: TokenCache[KeyEncryptionKey], *, double_wrapping: bool, generation: str
    ) -> None:
        """Wrap a file's data keys in its material file again, with the newest versions of their master keys.

        Args:
            place: the Parquet file.
            generation: end of the file's references. The keys of files that it has replaced stay as they are.
            keks: new key encryption keys, which several files share.
            double_wrapping: whether key encryption keys wrap the data keys.

        Raises:
            KeyAccessError: the key service did not unwrap or wrap a key, or the material has a name that is not trusted.
        """
        access = ServiceAccess(
            self.factory._kms_client_factory, self.connection, self.configuration, self.factory._caches
        )
        material_file = MaterialFile(place)
        unwrapper = FileKeyUnwrapper(access, material_file, serialize_reference(FOOTER_REFERENCE + generation))
        audit = FileAudit.of(self.factory._audit, "write", place.path)
        _rotate_file(material_file, unwrapper, double_wrapping, keks, audit, generation)

    def forget_write_keys(self) -> None:
        """Drop the cached key encryption keys for new files, because old versions of master keys may have wrapped them."""
        self.factory._caches.write_keks.clear()


class _KeyMaterialStorage:
    """Where a new file's key material goes: into the file's key metadata, or into a material file.

    Args:
        material_file: the material file, or None for the key metadata.
    """

    def __init__(self, material_file: MaterialFile | None) -> None:
        self._material_file = material_file
        self._entries: dict[str, str] = {}
        self._columns = 0
        self._generation = new_generation() if material_file is not None and material_file.is_in_use() else ""

    def key_metadata(self, material: KeyMaterial) -> bytes:
        """Return a data key's key metadata: the material itself, or a reference to its entry in the material file."""
        if self._material_file is None:
            return material.serialize(internal=True).encode()
        reference = FOOTER_REFERENCE
        if not material.is_footer_key:
            reference = COLUMN_REFERENCE.format(self._columns)
            self._columns += 1
        reference += self._generation
        self._entries[reference] = material.serialize(internal=False)
        return serialize_reference(reference)

    def save(self) -> None:
        """Write the material file. The keys of an existing file stay in it until the new file has its place."""
        if self._material_file is None:
            return
        if self._generation:
            self._material_file.add(self._entries)
        else:
            self._material_file.write(self._entries)


def _encryption_properties(
    configuration: EncryptionConfiguration,
    wrapper: FileKeyWrapper,
    storage: _KeyMaterialStorage,
    options: dict[str, Any],
    audit: FileAudit | None,
) -> FileEncryptionProperties:
    bits = configuration.data_key_length_bits
    footer_key = random_key(bits)
    try:
        footer_material, footer_use = wrapper.material(footer_key, configuration.footer_key, True)
    except Exception as error:
        if audit is not None:
            audit.record(KeyUse("wrap", configuration.footer_key), None, error)
        raise
    if audit is not None:
        audit.record(footer_use, None)
    footer_metadata = storage.key_metadata(footer_material)
    columns: dict[ColumnPath, ColumnEncryptionProperties] = {}
    new_keys = {path: (random_key(bits), master_key_id) for master_key_id, path in _master_keys_and_paths(configuration)}
    calls = call_all(lambda path: wrapper.material(*new_keys[path], False), new_keys)
    for path, (_, master_key_id) in new_keys.items():       # all calls are recorded, also those after one that failed
        if audit is not None:
            failure = calls[path].exception()
            use = KeyUse("wrap", master_key_id) if failure is not None else calls[path].result()[1]
            audit.record(use, path if isinstance(path, str) else ".".join(path), failure)
    for path, (key, _) in new_keys.items():
        material, use = calls[path].result()
        columns[path] = ColumnEncryptionProperties(key, key_metadata=storage.key_metadata(material))
        columns[path].use = use
    properties = FileEncryptionProperties(
        footer_key,
        columns,
        footer_key_metadata=footer_metadata,
        plaintext_footer=configuration.plaintext_footer,
        algorithm=configuration.encryption_algorithm,
        unlisted="footer_key" if configuration.uniform_encryption else configuration.unlisted,
        plaintext_columns=configuration.plaintext_columns,
        **options,
    )
    properties.footer_use = footer_use
    return properties


def _master_keys_and_paths(configuration: EncryptionConfiguration) -> Sequence[tuple[str, ColumnPath]]:
    """Return each column's master key and path, in the configuration's order."""
    pairs: list[tuple[str, ColumnPath]] = []
    earlier_paths: set[ColumnPath] = set()
    for master_key_id, paths in configuration.column_keys.items():
        for path in paths:
            if path in earlier_paths:
                raise SchemaError(f"two keys for the column path {path if isinstance(path, str) else '.'.join(path)}")
            earlier_paths.add(path)
            pairs.append((master_key_id, path))
    return pairs


def _material_file(parquet_file_path: PathLike | None, filesystem: Any) -> MaterialFile:
    if parquet_file_path is None:
        raise SchemaError("external key material is found by the name of its file: parquet_file_path is needed")
    return MaterialFile(MaterialPath(parquet_file_path, filesystem))


def _rotate(
    place: MaterialPath, unwrapper_of: UnwrapperOf, double_wrapping: bool, audit: AuditLog | None
) -> list[str]:
    """Rotate the master keys for one file, or for all files in a folder.

    Args:
        place: the file or folder.
        unwrapper_of: function that makes the unwrapper for a material file.
        double_wrapping: wrap with new KEKs. One KEK for each master key serves all files.
        audit: log for the rotated keys, or None.

    Returns:
        The files' paths.

    Raises:
        SchemaError: a file has no material file, or there is no file. Then nothing is rotated.
        KeyAccessError: the key service did not unwrap or wrap a key.
    """
    files = files_with_material(place)
    keks: TokenCache[KeyEncryptionKey] = TokenCache()
    for file in files:
        material_file = MaterialFile(file)
        try:
            file_audit = FileAudit.of(audit, "write", file.path)
            _rotate_file(material_file, unwrapper_of(material_file), double_wrapping, keks, file_audit)
        except ParquetError as error:
            error.at(path=file.path)
            raise
    return [file.path for file in files]


def _rotate_file(
    material_file: MaterialFile,
    unwrapper: FileKeyUnwrapper,
    double_wrapping: bool,
    keks: TokenCache[KeyEncryptionKey],
    audit: FileAudit | None,
    generation: str | None = None,
) -> None:
    """Wrap the keys in a material file again: all, or those of one generation, while the others stay."""
    texts = unwrapper.entries()
    entries = {
        reference: parse_key_material(text) for reference, text in texts.items()
        if generation is None or generation_of(reference) == generation
    }
    footer_reference = FOOTER_REFERENCE + (generation or "")
    if footer_reference not in entries:
        raise FormatError("a key material file without the footer key")
    service = unwrapper.service()     # the footer key's material names the key service, unless the caller does
    unwrapped_keys = call_all(lambda reference: unwrapper.unwrap(entries[reference]), entries)
    for reference, material in entries.items():     # all calls are recorded, also those after one that failed
        if audit is not None:
            failure = unwrapped_keys[reference].exception()
            client_name = service.client_name if failure is None else None
            column = None if reference == footer_reference else reference
            audit.record(KeyUse("rotate", material.master_key_id, client_name), column, failure)
    keys = {reference: call.result() for reference, call in unwrapped_keys.items()}
    wrapper = FileKeyWrapper(
        service,
        double_wrapping=double_wrapping,
        kek_bits=max(key.bits for key in keys.values()),
        keks=keks,
    )
    wrapped_keys = call_all(
        lambda reference: wrapper.material(keys[reference], entries[reference].master_key_id, entries[reference].is_footer_key),
        entries,
    )
    new_texts = {reference: call.result()[0].serialize(internal=False) for reference, call in wrapped_keys.items()}
    # other programs find the footer key under its plain name
    material_file.write({**texts, **new_texts, FOOTER_REFERENCE: new_texts[footer_reference]})


def files_with_material(place: MaterialPath) -> list[MaterialPath]:
    """Return a file, or all files in a folder, whose key material is external.

    Raises:
        SchemaError: a file has no material file, or there is no file.
    """
    files = list(place.visible_files()) if place.is_folder() else [place]
    if not files:
        raise SchemaError("no files to rotate master keys for", path=place.path)
    incomplete = [file for file in files if not MaterialFile(file).exists()]
    if incomplete:
        names = ", ".join(file.name for file in incomplete[:MOST_NAMES]) + (", ..." if len(incomplete) > MOST_NAMES else "")
        raise SchemaError(
            f"no key material file for {names}: if files hold their key material themselves, their master keys can only be "
            "rotated by writing the files again, as rotate_dataset does",
            path=place.path,
        )
    return files
