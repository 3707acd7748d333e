"""New data keys for an encrypted file, under the master keys that it has, or under another one for some of its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fastpq.encryption.keys.configuration import EncryptionConfiguration
from fastpq.encryption.keys.factory import CryptoFactory
from fastpq.encryption.keys.kms import KmsConnectionConfig
from fastpq.encryption.keys.material import KeyMaterial, generation_of, parse_key_material, parse_key_metadata
from fastpq.encryption.keys.store import MaterialFile, MaterialPath
from fastpq.encryption.properties import ColumnEncryptionProperties, FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import CryptoError, KeyAccessError, ParquetError, UnsupportedError
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData, decryptor_of
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties
from fastpq.rewriting.chunk_copy import opened_source

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PresentKeys:
    """The keys that an encrypted file has. They come from its authenticated footer.

    Attributes:
        own: the file's own keys and settings.
        paths: leaf column paths.
        file_unique: the identifier in all AADs of the file.
        materials: the key material of each column with a key of its own, and of the footer under ``()``. Empty if the keys are
            not wrapped by a key service.
        generation: the end of the file's references to its material file, or None without a material file.
    """

    own: FileEncryptionProperties
    paths: tuple[Path, ...]
    file_unique: bytes
    materials: Mapping[Path, KeyMaterial]
    generation: str | None

    @classmethod
    def of(cls, where: Any, keys: FileDecryptionProperties | None, properties: ReaderProperties | None = None) -> PresentKeys:
        """Open a file's footer, and unwrap all its keys.

        Args:
            where: the file's path, or an object with ``fs`` and ``path``.
            keys: keys for all columns.
            properties: limits and checks for reading.

        Raises:
            KeyAccessError: a key is missing.
            UnsupportedError: row groups differ in how a column is encrypted.
            CryptoError, FormatError, LimitError: the file cannot be opened.
        """
        with opened_source(where) as source:
            try:
                metadata = read_finished(source, properties or ReaderProperties(), keys)
                own, file_unique = _own_keys(source, metadata)
                materials, generation = _materials(MaterialPath(where), own, metadata.schema.paths)
            except ParquetError as error:
                raise error.at(path=source.name) from None
            return cls(own, tuple(metadata.schema.paths), file_unique, materials, generation)

    def master_key_of(self, path: Path) -> str | None:
        """Return the master key of a column that has a key of its own. None for other columns."""
        material = self.materials.get(path)
        return None if material is None else material.master_key_id

    def covered_paths(self, columns: Collection[str | Path]) -> list[Path]:
        """Return the leaf columns that are among some columns, or in groups among them."""
        names = {column if isinstance(column, str) else ".".join(column) for column in columns}
        return [path for path in self.paths if any(".".join(path[:size]) in names for size in range(1, len(path) + 1))]

    def is_under(self, keys: FileEncryptionProperties, where: Any) -> bool:
        """Return whether the file has the keys that another file gets, or keys under the same master keys.

        Args:
            keys: the other file's keys.
            where: the other file, as for ``of``. Its key material is beside it.
        """
        own_columns = [self.own.column_keys.find(path) for path in self.paths]
        new_columns = [keys.column(path) for path in self.paths]
        if [*map(_kind, own_columns)] != [*map(_kind, new_columns)]:
            return False
        materials, _ = _materials(MaterialPath(where), keys, self.paths)
        if materials or self.materials:
            own_names = {path: material.master_key_id for path, material in self.materials.items()}
            return own_names == {path: material.master_key_id for path, material in materials.items()}
        return self.own.footer_key.matches(keys.footer_key) and all(map(_have_one_key, own_columns, new_columns))

    def renewed(
        self,
        where: Any,
        factory: CryptoFactory,
        connection: KmsConnectionConfig,
        new_master_keys: Mapping[Path, str] | None = None,
    ) -> FileEncryptionProperties:
        """Return properties for the file's next version: new data keys, under the same master keys.

        Algorithm, kind of footer, AAD prefix, wrapping and place of the key material stay as they are.

        Args:
            where: as for ``of``. External key material is added beside the file at once.
            factory, connection: the key service.
            new_master_keys: master keys by leaf path, for columns that get another one.

        Raises:
            KeyAccessError: the file's keys are not wrapped by a key service, or the service did not wrap a key.
        """
        footer = self.materials.get(())
        if footer is None:
            raise KeyAccessError("the file's keys are not wrapped by a key service: encryption_properties have to give new ones")
        master_keys = {path: material.master_key_id for path, material in self.materials.items() if path}
        master_keys |= new_master_keys or {}
        paths_of: dict[str, list[str | Path]] = {}
        for path, master_key in master_keys.items():
            paths_of.setdefault(master_key, []).append(path)
        configuration = EncryptionConfiguration(
            footer.master_key_id,
            paths_of,
            uniform_encryption=not paths_of,
            encryption_algorithm=self.own.algorithm,
            plaintext_footer=self.own.plaintext_footer,
            double_wrapping=footer.kek_id is not None,
            internal_key_material=self.generation is None,
            data_key_length_bits=self.own.footer_key.bits,
            unlisted="plaintext" if paths_of else None,
        )
        place = MaterialPath(where)
        new = factory.file_encryption_properties(connection, configuration, place.path, place.filesystem)
        column_keys: dict[Path, ColumnEncryptionProperties] = {}
        for path in self.paths:
            own_key = new.column_keys.find(path)
            if path in master_keys and own_key is not None:
                column_keys[path] = own_key
            elif self.own.column_keys.find(path) is not None:
                column_keys[path] = ColumnEncryptionProperties()
        return new.with_columns(
            column_keys, unlisted="plaintext", aad_prefix=self.own.aad_prefix, store_aad_prefix=self.own.store_aad_prefix)


def settle_material(where: Any, keys: FileEncryptionProperties, old_generation: str | None) -> None:
    """Drop the replaced file's keys from the material file, after the new file is in its place.

    Args:
        where: the file's path, or an object with ``fs`` and ``path``.
        keys: the keys of the new file.
        old_generation: as for ``MaterialFile.settle``.
    """
    reference = _reference_of(keys)
    if reference is not None:
        MaterialFile(MaterialPath(where)).settle(generation_of(reference), old_generation)


def _kind(column: ColumnEncryptionProperties | None) -> str:
    """Return what encrypts a column."""
    if column is None:
        return "nothing"
    return "the footer key" if column.key is None else "a column key"


def _have_one_key(one: ColumnEncryptionProperties | None, other: ColumnEncryptionProperties | None) -> bool:
    """Return whether two columns of one kind have the same key, if they have keys of their own."""
    return one is None or other is None or one.key is None or other.key is None or one.key.matches(other.key)


def is_external(keys: FileEncryptionProperties) -> bool:
    """Return whether the wrapped keys of a new file are in a material file beside it."""
    return _reference_of(keys) is not None


def _reference_of(keys: FileEncryptionProperties) -> str | None:
    metadata = keys.footer_key_metadata
    if metadata is None or not metadata.lstrip().startswith(b"{"):
        return None
    material = parse_key_metadata(metadata)
    return material if isinstance(material, str) else None


def _own_keys(source: Source, metadata: FileMetaData) -> tuple[FileEncryptionProperties, bytes]:
    tail = bytes(source.read(source.size - 4, 4)) if source.footer is None else b""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = {}
    for number, path in enumerate(metadata.schema.paths):
        column_chunks = [group.column(number).chunk for group in groups]
        if any(chunk.crypto_metadata != column_chunks[0].crypto_metadata for chunk in column_chunks):
            raise UnsupportedError("a column's row groups are encrypted with different keys", column=".".join(path))
        if column_chunks:
            chunks[path] = column_chunks[0]
    encryption = decryptor_of(metadata).own_encryption(chunks, plaintext_footer=tail != b"PARE")
    if encryption is None:
        raise CryptoError("the file is not encrypted, or was opened without keys")
    return encryption


def _materials(
    place: MaterialPath, own: FileEncryptionProperties, paths: Collection[Path]
) -> tuple[dict[Path, KeyMaterial], str | None]:
    """Return the key material of the footer and of each column with a key of its own, and the generation of references."""
    key_metadata: dict[Path, bytes | None] = {(): own.footer_key_metadata}
    for path in paths:
        column = own.column_keys.find(path)
        if column is not None and column.key is not None:
            key_metadata[path] = column.key_metadata
    materials: dict[Path, KeyMaterial] = {}
    entries: dict[str, str] | None = None
    generation = None
    for path, metadata in key_metadata.items():
        if metadata is None or not metadata.lstrip().startswith(b"{"):      # the caller's own name for the key
            return {}, None
        material = parse_key_metadata(metadata)
        if isinstance(material, str):
            entries = MaterialFile(place).read() if entries is None else entries
            if material not in entries:
                raise KeyAccessError("the key material file has no entry for a key of the file")
            generation = generation_of(material)
            material = parse_key_material(entries[material])
        materials[path] = material
    return materials, generation
