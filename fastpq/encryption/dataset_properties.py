"""Keys for all files of a dataset: DatasetEncryptionProperties and DatasetDecryptionProperties bind each file to its own name.

An AAD prefix (Encryption.md, 4.4.1) of a table's identifier and a file's name lets readers notice if two files were exchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import SchemaError
from fastpq.options import check_switch

if TYPE_CHECKING:
    from fastpq.encryption.keys.store import MaterialPath

FileEncryptionOf = FileEncryptionProperties | Callable[[Any], FileEncryptionProperties]
FileDecryptionOf = FileDecryptionProperties | Callable[[Any], FileDecryptionProperties]


class TableBinding:
    """The rule by which files are bound to a table: it makes each file's AAD prefix.

    A prefix is printable text: the table's identifier, ``file`` or ``path``, and the file's name or path, each followed by ``|``.
    Other characters than letters, digits, ``_.-~`` (and ``/=`` in paths) are escaped as in URLs. So a prefix is never the
    beginning of another one, and two files never share one.

    Args:
        table_id: the table's identifier.
        root: the table's folder, or None.

    Raises:
        TypeError: the identifier is not text.
        ValueError: the identifier is empty.
    """

    def __init__(self, table_id: str, root: Any = None) -> None:
        if not isinstance(table_id, str):
            raise TypeError(f"table_id must be text, not {type(table_id).__name__}")
        if not table_id:
            raise ValueError("table_id cannot be empty")
        self.table_id = table_id
        self._root = None if root is None else _place(root)

    @property
    def is_by_path(self) -> bool:
        """Whether the prefix has the file's path below the table's folder, not just its name."""
        return self._root is not None

    def aad_prefix(self, place: MaterialPath) -> bytes:
        """Return a file's AAD prefix.

        Raises:
            SchemaError: the file is not below the table's folder.
        """
        name = place.name if self._root is None else _path_below(place, self._root)
        kind, safe = ("file", "") if self._root is None else ("path", "/=")
        return f"{_quoted(self.table_id, '')}|{kind}|{_quoted(_decoded(name, place), safe)}|".encode()


class _BoundKeys(KeyHolder):
    """Base class for the keys of a dataset, which may bind files to their table."""

    __slots__ = ("_binding",)
    _binding: TableBinding | None

    @property
    def is_bound_to_names(self) -> bool:
        """Whether files are bound to their names alone, so that all names in the table have to differ."""
        return self._binding is not None and not self._binding.is_by_path

    def aad_prefix(self, where: Any) -> bytes | None:
        """Return a file's AAD prefix. None if files are not bound.

        Args:
            where: as for a call.
        """
        return None if self._binding is None else self._binding.aad_prefix(_place(where))


class DatasetEncryptionProperties(_BoundKeys):
    """Keys for all new files of a dataset. ``write_dataset`` and all other functions of datasets take it.

    With ``table_id`` each file is bound to the table and to its own name, so that readers notice if files were exchanged. The
    name is known before the first byte is encrypted. A file may be moved to another folder as long as it keeps its name, for
    example when a partition is renamed. With ``root`` it is bound to its path below this folder, and cannot be moved within the
    table.

    Args:
        keys: keys for every file, or a function that takes a file's place (a path, or an object with ``fs`` and ``path``) and
            returns its keys. ``CryptoFactory.dataset_encryption_properties`` gives each file data keys of its own.
        table_id: identifier of the table, which its readers have to know. None binds no file.
        root: the table's folder. None binds files to their names.
        store_aad_prefix: store the prefix in each file. Other programs can then read the files without it, but do not notice an
            exchange. If False, all readers have to supply it.

    Raises:
        ValueError: ``root`` or ``store_aad_prefix`` is given without ``table_id``, or the keys have an AAD prefix already.
    """

    __slots__ = ("_keys", "_reader", "_store_aad_prefix")

    @hides_arguments
    def __init__(
        self,
        keys: FileEncryptionOf,
        *,
        table_id: str | None = None,
        root: Any = None,
        store_aad_prefix: bool = True,
    ) -> None:
        check_switch("store_aad_prefix", store_aad_prefix)
        self._binding = _binding(table_id, root, keys)
        if self._binding is None and not store_aad_prefix:
            raise ValueError("store_aad_prefix=False needs a table_id")
        if not (callable(keys) or isinstance(keys, FileEncryptionProperties)):
            raise TypeError(f"keys must be FileEncryptionProperties or a function, not a {type(keys).__name__}")
        self._keys = keys
        self._store_aad_prefix = store_aad_prefix
        self._reader: DatasetDecryptionProperties | None = None     # opens what a CryptoFactory's keys have encrypted

    def __call__(self, where: Any) -> FileEncryptionProperties:
        """Return the keys for one new file.

        Args:
            where: the file's final path or URL, or an object with ``fs`` and ``path``.

        Raises:
            SchemaError: the file is not below ``root``.
            KeyAccessError: the key service did not wrap a key.
        """
        prefix = self.aad_prefix(where)
        keys = self._keys if isinstance(self._keys, FileEncryptionProperties) else self._keys(where)
        if prefix is None:
            return keys
        _refuse_prefix(keys)
        return keys.with_aad_prefix(prefix, store_aad_prefix=self._store_aad_prefix)

    def __repr__(self) -> str:
        return f"<DatasetEncryptionProperties{_described(self)}>"


class DatasetDecryptionProperties(_BoundKeys):
    """Keys for reading all files of a dataset. ``ParquetDataset`` and all other functions of datasets take it.

    Args:
        keys: keys for every file, or a function that takes a file's place (a path, or an object with ``fs`` and ``path``) and
            returns its keys. ``CryptoFactory.dataset_decryption_properties`` finds external key material by the file's path.
        table_id, root: as for DatasetEncryptionProperties. With ``table_id``, a file that was exchanged with another one is an
            error, and so is a file that was written without ``table_id``.

    Raises:
        ValueError: ``root`` is given without ``table_id``, or the keys have an AAD prefix already.
    """

    __slots__ = ("_keys", "service")

    @hides_arguments
    def __init__(self, keys: FileDecryptionOf, *, table_id: str | None = None, root: Any = None) -> None:
        self._binding = _binding(table_id, root, keys)
        if not (callable(keys) or isinstance(keys, FileDecryptionProperties)):
            raise TypeError(f"keys must be FileDecryptionProperties or a function, not a {type(keys).__name__}")
        self._keys = keys
        self.service: object | None = None      # a DatasetService, if a CryptoFactory made the properties

    def without_prefix(self, where: Any) -> FileDecryptionProperties:
        """Return the keys for one file that is not bound to its name.

        Args:
            where: as for a call.
        """
        return self._keys if isinstance(self._keys, FileDecryptionProperties) else self._keys(where)

    def __call__(self, where: Any) -> FileDecryptionProperties:
        """Return the keys for one file.

        Args:
            where: the file's path or URL, or an object with ``fs`` and ``path``.

        Raises:
            SchemaError: the file is not below ``root``.
        """
        prefix, keys = self.aad_prefix(where), self.without_prefix(where)
        if prefix is None:
            return keys
        _refuse_prefix(keys)
        return keys.with_aad_prefix(prefix)

    def __repr__(self) -> str:
        return f"<DatasetDecryptionProperties{_described(self)}>"


def bound_prefix(where: Any, table_id: str, root: Any = None) -> bytes:
    """Return the AAD prefix of a file that is bound to a table.

    Args:
        where: the file's path or URL, or an object with ``fs`` and ``path``.
        table_id, root: as for DatasetEncryptionProperties.
    """
    return TableBinding(table_id, root).aad_prefix(_place(where))


def _place(where: Any) -> MaterialPath:
    from fastpq.encryption.keys.store import MaterialPath  # datasets without keys do not import it

    return MaterialPath(where)


def _binding(table_id: str | None, root: Any, keys: Any) -> TableBinding | None:
    if table_id is None:
        if root is not None:
            raise ValueError("root binds files to their paths in a table: give table_id too")
        return None
    if not callable(keys):
        _refuse_prefix(keys)
    return TableBinding(table_id, root)


def _refuse_prefix(keys: Any) -> None:
    if getattr(keys, "aad_prefix", None) is not None:
        raise ValueError("the keys have an AAD prefix already: with table_id each file gets its own")


def _described(properties: DatasetEncryptionProperties | DatasetDecryptionProperties) -> str:
    binding = getattr(properties, "_binding", None)     # None also in a traceback of a failed __init__
    if binding is None:
        return ""
    return f": files bound to their {'paths' if binding.is_by_path else 'names'} in the table {binding.table_id!r}"


def _path_below(place: MaterialPath, root: MaterialPath) -> str:
    """Return a file's path below a folder, with slashes.

    Raises:
        SchemaError: the file is not below the folder.
    """
    if (place.filesystem is None) == (root.filesystem is None):
        if place.filesystem is not None:
            start = root.path.rstrip("/") + "/"
            if place.path.startswith(start) and not {"", ".", ".."} & {*place.path.removeprefix(start).split("/")}:
                return place.path.removeprefix(start)
        else:
            folder, name = os.path.split(os.path.abspath(place.path))
            for resolve in (os.path.abspath, os.path.realpath):     # the folder may be a symbolic link
                relative = os.path.relpath(os.path.join(resolve(folder), name), resolve(root.path))
                if relative.split(os.sep)[0] not in ("..", "."):
                    return relative.replace(os.sep, "/")
    raise SchemaError("the file is not below the root of its table, to which its path is bound", path=place.path)


def _decoded(name: str, place: MaterialPath) -> str:
    """Return a name as it is on other filesystems. URLs of HTTP have quoted names."""
    protocol = getattr(place.filesystem, "protocol", ())
    is_quoted = {"http", "https"} & {*((protocol,) if isinstance(protocol, str) else protocol)}
    return unquote(name) if is_quoted else name


def _quoted(text: str, safe: str) -> str:
    return quote(text.encode("utf-8", "surrogateescape"), safe=safe)
