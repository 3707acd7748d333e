"""inspect_encryption: how files are encrypted and which master keys open them. No key is needed.

An encrypted footer hides the columns. With keys for the footer they are listed too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fastpq import format as fmt
from fastpq.api.file import ParquetFile
from fastpq.arrays.table import Table
from fastpq.encryption.dataset_properties import DatasetDecryptionProperties
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.encryption.keys.material import KeyMaterial, parse_key_material, parse_key_metadata
from fastpq.encryption.keys.store import MaterialFile, MaterialPath
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import ParquetError, SchemaError
from fastpq.format.stored_footer import TAIL_LENGTH, StoredFooter, stored_footer
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import ReaderProperties

Wrapping = Literal["single", "double"]
InspectionKeys = FileDecryptionProperties | Callable[[str], FileDecryptionProperties | None]

# names of the table's columns. All except the last are text, and null where the file says nothing.
TABLE_TEXTS = ("path", "footer", "algorithm", "part", "column", "key", "master_key_id", "wrapping", "kms_instance_url")


@dataclass(frozen=True, slots=True)
class KeyDescription:
    """Who can open a data key, as far as the file says it without any key. Nothing here is authenticated.

    Attributes:
        master_key_id: identifier of the master key that wraps the data key, or None if the key is not wrapped by a key service.
        wrapping: ``"single"`` if the master key wraps the data key, ``"double"`` if a key encryption key (KEK) is between them,
            or None.
        kek_id: identifier of the KEK, or None.
        kms_instance_id, kms_instance_url: the key service, or None if the file does not name it.
        is_external: whether the wrapped key is in a material file beside the Parquet file.
        key_metadata: the key metadata as stored, or None if there is none. With explicit keys, it is what the writing application
            chose to name the key by, and only that application can tell what it means.
        problem: why the key metadata or its material cannot be understood, or None.
    """

    master_key_id: str | None = None
    wrapping: Wrapping | None = None
    kek_id: bytes | None = None
    kms_instance_id: str | None = None
    kms_instance_url: str | None = None
    is_external: bool = False
    key_metadata: bytes | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnProtection:
    """How one column is protected.

    Attributes:
        column: dotted column path, or the name of the entry in the material file if the encrypted footer hides the path.
        key: ``"none"`` for a plaintext column, ``"footer"`` for the footer key, ``"column"`` for the column's own key.
        description: the key that opens the column: its own, or the footer key. None for a plaintext column.
    """

    column: str
    key: Literal["none", "footer", "column"]
    description: KeyDescription | None = None


@dataclass(frozen=True, slots=True)
class FileProtection:
    """How one file is encrypted.

    Attributes:
        path: the file.
        size: file size in bytes.
        footer: ``"plaintext"`` for a file without encryption, ``"signed"`` for an encrypted file whose footer is readable, or
            ``"encrypted"``.
        footer_size: serialized footer in bytes.
        algorithm: ``"AES_GCM_V1"``, ``"AES_GCM_CTR_V1"``, or None.
        aad_prefix: AAD prefix that the file stores, or None.
        needs_aad_prefix: whether a reader has to supply the AAD prefix.
        footer_key: the footer key, or None for a file without encryption.
        columns: the columns. An encrypted file without row groups lists none. With hidden columns, these are the column keys
            in the material file, or None without one.
        material_file: path of the file with the wrapped keys, or None.
        is_footer_open: whether keys opened an encrypted footer, so that ``columns`` has all columns.
    """

    path: str
    size: int
    footer: Literal["plaintext", "signed", "encrypted"]
    footer_size: int
    algorithm: str | None = None
    aad_prefix: bytes | None = None
    needs_aad_prefix: bool = False
    footer_key: KeyDescription | None = None
    columns: tuple[ColumnProtection, ...] | None = ()
    material_file: str | None = None
    is_footer_open: bool = False

    @property
    def master_key_ids(self) -> tuple[str, ...]:
        """Identifiers of all master keys that the file names, the footer's first."""
        keys = [self.footer_key, *(column.description for column in self.columns or ())]
        return tuple(dict.fromkeys(key.master_key_id for key in keys if key is not None and key.master_key_id is not None))

    @property
    def hides_columns(self) -> bool:
        """Whether the encrypted footer hides which columns there are, because no key has opened it."""
        return self.footer == "encrypted" and not self.is_footer_open


@dataclass(frozen=True, slots=True)
class EncryptionInspection:
    """How some files are encrypted.

    Attributes:
        files: the files, by path.
        problems: why files could not be inspected, by path. These are not Parquet files, or broken ones.
    """

    files: tuple[FileProtection, ...]
    problems: tuple[tuple[str, str], ...] = ()

    @property
    def master_key_ids(self) -> tuple[str, ...]:
        """Identifiers of all master keys that the files name."""
        return tuple(dict.fromkeys(identifier for file in self.files for identifier in file.master_key_ids))

    def table(self) -> Table:
        """Return a Table with one row for each footer and each known column of each file.

        ``part`` is ``"footer"`` or ``"column"``. What a file does not say is null. A column under the footer key has the footer's
        master key. The columns of a file with hidden columns have no rows, except for column keys in a material file.
        """
        rows = list(self._rows())
        texts = np.dtypes.StringDType(na_object=None)
        columns: dict[str, Any] = {
            name: np.array([row[number] for row in rows], texts) for number, name in enumerate(TABLE_TEXTS)
        }
        columns["is_external"] = np.array([row[-1] for row in rows], np.bool_)
        return Table(columns, num_rows=len(rows))

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for file in self.files:
            of_file = (file.path, file.footer, file.algorithm)
            yield *of_file, "footer", None, "none" if file.footer_key is None else "footer", *_key_members(file.footer_key)
            for each in file.columns or ():
                yield *of_file, "column", each.column, each.key, *_key_members(each.description)


def _key_members(description: KeyDescription | None) -> tuple[str | None, str | None, str | None, bool]:
    """Return what the table has about one key."""
    key = description or KeyDescription()
    return key.master_key_id, key.wrapping, key.kms_instance_url, key.is_external


def inspect_encryption(
    where: Any,
    *,
    filesystem: Any = None,
    properties: ReaderProperties | None = None,
    decryption_properties: InspectionKeys | None = None,
) -> EncryptionInspection:
    """Tell how a file, or each file in a folder, is encrypted, and which master keys open it. No key is needed.

    The answer comes from unencrypted bytes, which anybody may have altered. Do not base a decision about trust on it.

    Args:
        where: a path, an fsspec URL, a folder, a glob, a bytes-like object, a binary file object, or a list of these. In a folder
            and a glob, names that begin with ``_`` or ``.`` are left out.
        filesystem: fsspec filesystem for the path.
        properties: limits and checks for reading.
        decryption_properties: keys, or a function that returns the keys for a file's path. They open encrypted footers, so that
            the columns in these are listed too. Other files are inspected without them.

    Returns:
        An EncryptionInspection. A broken file in a folder or a glob is listed in its ``problems``.

    Raises:
        FormatError: the file is not a Parquet file, or its footer is broken.
        LimitError: the footer is larger than a reader accepts.
        CryptoError: the keys do not open an encrypted footer.
        FileNotFoundError: there is no such file.
    """
    if isinstance(where, list | tuple):
        parts = [
            inspect_encryption(
                each, filesystem=filesystem, properties=properties, decryption_properties=decryption_properties
            )
            for each in where
        ]
        return EncryptionInspection(
            tuple(file for part in parts for file in part.files), tuple(problem for part in parts for problem in part.problems)
        )
    inspector = _Inspector(properties or ReaderProperties(), decryption_properties)
    try:
        place = MaterialPath(where, filesystem)
    except SchemaError:  # bytes or a file object
        return EncryptionInspection((inspector.inspect(where, None),))
    members = _members(place)
    if members is None:
        return EncryptionInspection((inspector.inspect(place.io_argument, place),))
    files, problems = [], []
    for member in members:
        try:
            files.append(inspector.inspect(member.io_argument, member))
        except ParquetError as error:
            problems.append((member.path, error.message))
        except OSError as error:
            problems.append((member.path, error.strerror or str(error)))
    return EncryptionInspection(tuple(files), tuple(problems))


def _members(place: MaterialPath) -> Iterator[MaterialPath] | None:
    """Return the files in a folder or a glob. None for another path."""
    if _is_over_http(place):
        return None
    if place.is_folder():
        return place.visible_files()
    return place.matching_files() if place.is_glob else None


def _is_over_http(place: MaterialPath) -> bool:
    """Return whether a place is on an HTTP server, which has no folders. To look for one would fetch the whole file."""
    protocol = getattr(place.filesystem, "protocol", ())
    return bool({"http", "https"} & {*((protocol,) if isinstance(protocol, str) else protocol)})


def with_columns(protection: FileProtection, metadata: FileMetaData, where: Any) -> FileProtection:
    """Return a file's protection with all columns, after keys have opened its encrypted footer.

    Args:
        protection: what the file says without keys.
        metadata: the footer.
        where: the file's place, beside which external key material is found, or its bytes.
    """
    try:
        materials = _Materials(MaterialFile(MaterialPath(where)))
    except SchemaError:  # bytes or a file object
        materials = _Materials(None)
    columns = tuple(_columns(metadata, materials, protection.footer_key))
    return replace(protection, columns=columns, is_footer_open=True)


class _Inspector:
    """Inspects files, one at a time.

    Args:
        properties: limits and checks for reading.
        decryption: keys for encrypted footers, or None.
    """

    def __init__(self, properties: ReaderProperties, decryption: InspectionKeys | None) -> None:
        self._properties, self._decryption = properties, decryption

    def inspect(self, where: Any, place: MaterialPath | None) -> FileProtection:
        """Return how one file is encrypted.

        Args:
            where: the file.
            place: its path, or None for bytes and file objects.
        """
        protection = _without_keys(where, place, self._properties)
        keys = self._keys_of(where, place) if protection.footer == "encrypted" else None
        if keys is None:
            return protection
        with ParquetFile(where, decryption_properties=keys, properties=self._properties) as file:
            return with_columns(protection, file.metadata, where)

    def _keys_of(self, where: Any, place: MaterialPath | None) -> FileDecryptionProperties | None:
        """Return the keys for a file. A function of the caller gets its path, our own class also its filesystem."""
        keys = self._decryption
        if keys is None or isinstance(keys, FileDecryptionProperties):
            return keys
        if place is None:
            raise SchemaError("a function of the path cannot give keys for bytes or a file object")
        return keys(where) if isinstance(keys, DatasetDecryptionProperties) else keys(place.path)


def _without_keys(where: Any, place: MaterialPath | None, properties: ReaderProperties) -> FileProtection:
    with open_source(where) as source:
        try:
            footer = stored_footer(source.size, source.read, properties.max_footer_size, with_head=False)
            materials = _Materials(None if place is None else MaterialFile(place))
            if footer.is_encrypted:
                return _encrypted_footer(source, footer, materials)
            metadata = FileMetaData(footer.data, FileDecryptor(), properties.chunk_order or "position")
            return _open_footer(source, metadata, footer, materials)
        except ParquetError as error:
            error.at(path=source.name)
            raise


class _Materials:
    """The material file of one Parquet file, read on first use.

    Args:
        file: the material file, which need not exist, or None.
    """

    def __init__(self, file: MaterialFile | None) -> None:
        self._file = file
        self._entries: dict[str, str] | None = None

    @property
    def path(self) -> str | None:
        """Path of the material file, if it was read."""
        return None if self._file is None or self._entries is None else self._file.path

    @property
    def entries(self) -> dict[str, str]:
        """The material as JSON text, by reference.

        Raises:
            ParquetError: there is no material file, or it is malformed.
        """
        if self._entries is None:
            if self._file is None:
                raise SchemaError("the wrapped key is in a material file, which only a path leads to")
            self._entries = self._file.read()
        return self._entries

    def describe(self, key_metadata: bytes | None) -> KeyDescription:
        """Return what key metadata says about a key."""
        if key_metadata is None:
            return KeyDescription()
        if not key_metadata.lstrip().startswith(b"{"):      # not a key service's: an application's own way to name the key
            return KeyDescription(key_metadata=key_metadata)
        is_external = False
        try:
            material = parse_key_metadata(key_metadata)
            if isinstance(material, str):
                is_external = True
                material = self.material(material)
        except ParquetError as error:
            return KeyDescription(key_metadata=key_metadata, is_external=is_external, problem=error.message)
        return _description(material, key_metadata, is_external)

    def material(self, reference: str) -> KeyMaterial:
        """Return the material behind a reference."""
        if reference not in self.entries:
            raise SchemaError("the material file has no such entry")
        return parse_key_material(self.entries[reference])


def _description(material: KeyMaterial, key_metadata: bytes | None, is_external: bool) -> KeyDescription:
    return KeyDescription(
        master_key_id=material.master_key_id,
        wrapping="single" if material.kek_id is None else "double",
        kek_id=material.kek_id,
        kms_instance_id=material.kms_instance_id,
        kms_instance_url=material.kms_instance_url,
        is_external=is_external,
        key_metadata=key_metadata,
    )


def _encrypted_footer(source: Source, footer: StoredFooter, materials: _Materials) -> FileProtection:
    crypto, _ = fmt.decode(fmt.FileCryptoMetaData, footer.data)
    footer_key = materials.describe(crypto.key_metadata)
    columns = None
    if footer_key.is_external and footer_key.problem is None:
        columns = tuple(_columns_in_material(materials))
    return FileProtection(
        source.name,
        source.size,
        "encrypted",
        _footer_size(source, footer),
        *_algorithm(crypto.encryption_algorithm),
        footer_key,
        columns,
        materials.path,
    )


def _columns_in_material(materials: _Materials) -> Iterator[ColumnProtection]:
    """Yield the column keys in a material file. Their order in the file is that of the columns with a key."""
    for reference in materials.entries:
        try:
            material = materials.material(reference)
        except ParquetError as error:
            yield ColumnProtection(reference, "column", KeyDescription(is_external=True, problem=error.message))
            continue
        if not material.is_footer_key:
            yield ColumnProtection(reference, "column", _description(material, None, True))


def _open_footer(source: Source, metadata: FileMetaData, footer: StoredFooter, materials: _Materials) -> FileProtection:
    algorithm = metadata.encryption_algorithm
    footer_key = None if algorithm is None else materials.describe(metadata.footer_signing_key_metadata)
    columns = tuple(_columns(metadata, materials, footer_key))
    if algorithm is None:
        return FileProtection(source.name, source.size, "plaintext", _footer_size(source, footer), columns=columns)
    return FileProtection(
        source.name,
        source.size,
        "signed",
        _footer_size(source, footer),
        *_algorithm(algorithm),
        footer_key,
        columns,
        materials.path,
    )


def _columns(
    metadata: FileMetaData, materials: _Materials, footer_key: KeyDescription | None
) -> Iterator[ColumnProtection]:
    """Yield the columns of a readable footer. The first row group stands for all.

    Without a row group, an encrypted file does not say which columns are encrypted: there are none then.
    """
    if not metadata.num_row_groups:
        if footer_key is None:
            yield from (ColumnProtection(column.name, "none") for column in metadata.schema.columns)
        return
    group = metadata.row_group(0)
    for column in metadata.schema.columns:
        chunk = group.column(column.index)
        crypto = chunk.chunk.crypto_metadata
        if not chunk.is_encrypted:
            yield ColumnProtection(column.name, "none")
        elif crypto is None or crypto.ENCRYPTION_WITH_COLUMN_KEY is None:     # None: DuckDB's dialect has the footer key alone
            yield ColumnProtection(column.name, "footer", footer_key)
        else:
            yield ColumnProtection(column.name, "column", materials.describe(crypto.ENCRYPTION_WITH_COLUMN_KEY.key_metadata))


def _algorithm(algorithm: fmt.EncryptionAlgorithm) -> tuple[str | None, bytes | None, bool]:
    """Return the algorithm's name, the stored AAD prefix, and whether a reader has to supply it."""
    for name in ("AES_GCM_V1", "AES_GCM_CTR_V1"):
        fields = getattr(algorithm, name)
        if fields is not None:
            return name, fields.aad_prefix, bool(fields.supply_aad_prefix)
    return None, None, False


def _footer_size(source: Source, footer: StoredFooter) -> int:
    return source.size - TAIL_LENGTH - footer.start
