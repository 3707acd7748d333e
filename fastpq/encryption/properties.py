"""Encryption and decryption properties of a file: explicit keys by column path, algorithm, and policies of the reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Literal, NoReturn, TypeVar, get_args

from fastpq.encryption.evp import AesKey
from fastpq.errors import SchemaError
from fastpq.options import check_switch

KeyBytes = bytes | bytearray | memoryview
Key = AesKey | KeyBytes
ColumnPath = str | tuple[str, ...]
KeyRetriever = Callable[[bytes], Key | None]
Algorithm = Literal["AES_GCM_V1", "AES_GCM_CTR_V1"]
Unlisted = Literal["plaintext", "footer_key"]
V2Layout = Literal["arrow", "parquet-java"]

ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
DEFAULT_ALGORITHM: Algorithm = "AES_GCM_V1"
DEFAULT_ALLOWED_ALGORITHMS: tuple[Algorithm, ...] = ("AES_GCM_V1",)
DEFAULT_V2_LAYOUT: V2Layout = "arrow"

T = TypeVar("T")
# Mapping is invariant in its keys, so Mapping[ColumnPath, bytes] admits no dict[str, bytes]; Mapping[PathT, bytes] does.
PathT = TypeVar("PathT", bound=ColumnPath)


class _Secret:
    """Base class of key holders, which cannot be copied or pickled; subclasses show no key in their repr."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds keys and cannot be copied or pickled")


class PathMap(Generic[T]):
    """Values by column path; the path of a group covers all columns in the group.

    Args:
        entries: values by dotted string (``"a.b"`` is ``b`` in ``a``, or a column of this name) or by tuple of names.

    Attributes:
        is_given: whether there are any.

    Raises:
        SchemaError: a path is there as a string and as a tuple.
        TypeError: a path is neither string nor tuple.
    """

    __slots__ = ("_dotted", "_exact", "is_given")

    def __init__(self, entries: Mapping[PathT, T]) -> None:
        self._dotted: dict[str, T] = {}
        self._exact: dict[tuple[str, ...], T] = {}
        self.is_given = bool(entries)
        for path, value in entries.items():
            check_path(path)
            if isinstance(path, str):
                self._dotted[path] = value
            else:
                self._exact[path] = value
        for names in self._exact:
            if ".".join(names) in self._dotted:
                raise SchemaError(f"two keys for the column path {'.'.join(names)}")

    def __len__(self) -> int:
        return len(self._dotted) + len(self._exact)

    def find(self, path: tuple[str, ...]) -> T | None:
        """The value of the longest path that covers a column, or None."""
        if not self.is_given:
            return None
        for size in range(len(path), 0, -1):
            covering = path[:size]
            if covering in self._exact:
                return self._exact[covering]
            dotted = ".".join(covering)
            if dotted in self._dotted:
                return self._dotted[dotted]
        return None

    def paths(self) -> list[str]:
        """All paths, dotted."""
        return [*self._dotted, *map(".".join, self._exact)]

    def unknown(self, columns: Iterable[tuple[str, ...]]) -> list[str]:
        """Paths, dotted, that cover none of the columns."""
        covering = {path[:size] for path in columns for size in range(1, len(path) + 1)}
        dotted = {".".join(path) for path in covering}
        missing = [path for path in self._dotted if path not in dotted]
        return missing + [".".join(path) for path in self._exact if path not in covering]


class ColumnEncryptionProperties(_Secret):
    """How one column, or every column of a group, is encrypted.

    Args:
        key: 16, 24 or 32 bytes, copied; None for the footer key.
        key_metadata: stored in the clear; readers find the column key by these bytes.

    Raises:
        CryptoError: a key of another length.
        TypeError: key metadata of another type than bytes.
    """

    __slots__ = ("key", "key_metadata")

    def __init__(self, key: Key | None = None, *, key_metadata: bytes | None = None) -> None:
        if key is None and key_metadata is not None:
            raise ValueError("key_metadata belongs to a column key: that of the footer key is footer_key_metadata")
        self.key = None if key is None else as_key(key)
        self.key_metadata = _checked_bytes("key_metadata", key_metadata)

    def __repr__(self) -> str:
        key = "the footer key" if getattr(self, "key", None) is None else "a column key"
        return f"<ColumnEncryptionProperties with {key}>"


class FileEncryptionProperties(_Secret):
    """How a file is encrypted (Encryption.md).

    Args:
        footer_key: 16, 24 or 32 bytes, copied.
        column_keys: keys or ColumnEncryptionProperties by column path. A path is a dotted string or a tuple of names. The path
            of a group covers every column in the group; the longest path to a column holds.
        footer_key_metadata: stored in the clear; readers find the footer key by these bytes.
        plaintext_footer: leave the footer readable without a key, and sign the footer (5.5). Everybody can read the schema, row
            counts and plaintext columns; of encrypted columns only path, type, encodings, codec and number of values, and place
            and size of the pages.
        algorithm: ``"AES_GCM_V1"``; or ``"AES_GCM_CTR_V1"``, with pages encrypted but not authenticated (4.2.2).
        aad_prefix: identifier of the file, verified by readers (4.4.1).
        store_aad_prefix: keep the prefix in the file; else readers have to supply the prefix.
        encrypt_unlisted: treatment of columns outside of column_keys: ``"plaintext"``, or ``"footer_key"`` to encrypt with the
            footer key. None stands for ``"plaintext"`` if there are column keys, else for ``"footer_key"``: the whole file under
            one key.
        v2_layout: layout of encrypted data pages V2, not the same in all implementations: ``"arrow"`` (Arrow, arrow-rs, Polars)
            encrypts the whole body; ``"parquet-java"`` (Spark) leaves levels, and so places of nulls and lists, in the clear.

    Raises:
        CryptoError: a key of another length.
        SchemaError: two spellings of one column path.
        ValueError, TypeError: options unknown, contradictory or of a wrong type; None as the key of a column.
    """

    __slots__ = (
        "aad_prefix",
        "algorithm",
        "column_keys",
        "encrypt_unlisted",
        "footer_key",
        "footer_key_metadata",
        "plaintext_footer",
        "store_aad_prefix",
        "v2_layout",
    )

    def __init__(
        self,
        footer_key: Key,
        column_keys: Mapping[PathT, Key | ColumnEncryptionProperties] | None = None,
        *,
        footer_key_metadata: bytes | None = None,
        plaintext_footer: bool = False,
        algorithm: Algorithm = DEFAULT_ALGORITHM,
        aad_prefix: bytes | None = None,
        store_aad_prefix: bool = True,
        encrypt_unlisted: Unlisted | None = None,
        v2_layout: V2Layout = DEFAULT_V2_LAYOUT,
    ) -> None:
        check_algorithm("algorithm", algorithm)
        _check_choice("encrypt_unlisted", encrypt_unlisted, (None, *get_args(Unlisted)))
        _check_choice("v2_layout", v2_layout, get_args(V2Layout))
        check_switch("plaintext_footer", plaintext_footer)
        check_switch("store_aad_prefix", store_aad_prefix)
        if not (store_aad_prefix or aad_prefix):
            raise ValueError("store_aad_prefix=False without an aad_prefix")
        self.footer_key = as_key(footer_key)
        self.footer_key_metadata = _checked_bytes("footer_key_metadata", footer_key_metadata)
        self.column_keys: PathMap[ColumnEncryptionProperties] = PathMap(
            {path: _as_column_properties(key) for path, key in _mapping(column_keys).items()}
        )
        self.plaintext_footer = plaintext_footer
        self.algorithm: Algorithm = algorithm
        self.v2_layout: V2Layout = v2_layout
        self.aad_prefix = _checked_bytes("aad_prefix", aad_prefix) or None
        self.store_aad_prefix = store_aad_prefix
        self.encrypt_unlisted: Unlisted = encrypt_unlisted or ("plaintext" if column_keys else "footer_key")

    def column(self, path: tuple[str, ...]) -> ColumnEncryptionProperties | None:
        """How a column is encrypted; None for a plaintext column.

        Args:
            path: names of the groups and of the leaf.
        """
        found = self.column_keys.find(path)
        if found is None and self.encrypt_unlisted == "footer_key":
            return ColumnEncryptionProperties()
        return found

    def __repr__(self) -> str:
        if not hasattr(self, "encrypt_unlisted"):       # in the traceback of an __init__ that failed
            return "<FileEncryptionProperties, unfinished>"
        listed = f"{len(self.column_keys)} column paths, others {self.encrypt_unlisted}"
        return f"<FileEncryptionProperties: footer key, {listed}>"


class FileDecryptionProperties(_Secret):
    """How an encrypted file is read (Encryption.md).

    The last six options are policies, closed by default: an attacker without keys could make use of open ones (SECURITY.md).

    Args:
        footer_key: 16, 24 or 32 bytes, copied.
        column_keys: keys by column path, as for FileEncryptionProperties. Each column with a key must be encrypted under a key of
            its own.
        key_retriever: function from key metadata of the file to a key, or to None if there is no key; called where no explicit
            key is given, by one thread at a time for a file. Its exceptions reach the caller; an answer of another type than
            bytes is a CryptoError.
        aad_prefix: AAD prefix of the file; needed for files without a stored prefix.
        allow_plaintext_files: read plaintext files too. An attacker could replace an encrypted file by a forged plaintext file.
        allowed_algorithms: algorithms accepted in a file. The file's own statement of its algorithm is not authenticated: an
            attacker could pass off a file in AES_GCM_V1 as one in AES_GCM_CTR_V1, without authentication of pages.
        verify_footer_signature: verify the signature of plaintext footers before parsing. False also admits footers without a
            signature, allowed by the first draft of the specification.
        allow_duckdb_dialect: read files encrypted by DuckDB. Their modules are not tied to file and place.
        allow_weaker_columns: read columns of column_keys in plaintext or under the footer key too. Whoever has the
            footer key, and not the column's key, could forge them.
        allow_missing_columns: accept keys for columns that the file does not have. A misspelt path would be a key that protects
            nothing. Of a dataset, columns of any file count.

    Raises:
        CryptoError: a key of another length.
        SchemaError: two spellings of one column path.
        ValueError: an unknown algorithm, or no algorithm.
        TypeError: a policy neither True nor False, or a key retriever not callable.
    """

    __slots__ = (
        "aad_prefix",
        "allow_duckdb_dialect",
        "allow_missing_columns",
        "allow_plaintext_files",
        "allow_weaker_columns",
        "allowed_algorithms",
        "column_keys",
        "footer_key",
        "key_retriever",
        "verify_footer_signature",
    )

    def __init__(
        self,
        footer_key: Key | None = None,
        column_keys: Mapping[PathT, Key] | None = None,
        *,
        key_retriever: KeyRetriever | None = None,
        aad_prefix: bytes | None = None,
        allow_plaintext_files: bool = False,
        allowed_algorithms: Iterable[Algorithm] = DEFAULT_ALLOWED_ALGORITHMS,
        verify_footer_signature: bool = True,
        allow_duckdb_dialect: bool = False,
        allow_weaker_columns: bool = False,
        allow_missing_columns: bool = False,
    ) -> None:
        check_switch("allow_plaintext_files", allow_plaintext_files)
        check_switch("verify_footer_signature", verify_footer_signature)
        check_switch("allow_duckdb_dialect", allow_duckdb_dialect)
        check_switch("allow_weaker_columns", allow_weaker_columns)
        check_switch("allow_missing_columns", allow_missing_columns)
        if key_retriever is not None and not callable(key_retriever):
            raise TypeError(f"key_retriever must be callable, not {type(key_retriever).__name__}")
        self.footer_key = None if footer_key is None else as_key(footer_key)
        self.column_keys: PathMap[AesKey] = PathMap({path: as_key(key) for path, key in _mapping(column_keys).items()})
        self.key_retriever = key_retriever
        self.aad_prefix = _checked_bytes("aad_prefix", aad_prefix) or None
        self.allow_plaintext_files = allow_plaintext_files
        self.allowed_algorithms = frozenset(allowed_algorithms)
        self.verify_footer_signature = verify_footer_signature
        self.allow_duckdb_dialect = allow_duckdb_dialect
        self.allow_weaker_columns = allow_weaker_columns
        self.allow_missing_columns = allow_missing_columns
        if not self.allowed_algorithms or not self.allowed_algorithms.issubset(ALGORITHMS):
            raise ValueError(f"allowed_algorithms must be some of {', '.join(ALGORITHMS)}, not {allowed_algorithms!r}")

    def retriever_of(self, footer_key_metadata: bytes | None) -> KeyRetriever | None:
        """The key retriever for one file, or None; the retriever of a CryptoFactory makes one for each file.

        Args:
            footer_key_metadata: key metadata of the file's footer; None if there are none.
        """
        of_file: Callable[[bytes | None], KeyRetriever] | None = getattr(self.key_retriever, "retriever_of_file", None)
        return self.key_retriever if of_file is None else of_file(footer_key_metadata)

    def check_paths(self, paths: Iterable[tuple[str, ...]]) -> None:
        """Refuse keys for columns that a file does not have, unless allow_missing_columns is set.

        Args:
            paths: paths of all leaves of the file.

        Raises:
            SchemaError: there are such keys.
        """
        unknown = [] if self.allow_missing_columns else self.column_keys.unknown(paths)
        if unknown:
            raise SchemaError(
                f"keys for columns that the file does not have: {', '.join(sorted(unknown))} "
                "(allow_missing_columns=True reads it all the same)"
            )

    def with_missing_columns(self) -> FileDecryptionProperties:
        """The same keys and policies, with allow_missing_columns: for one file of a dataset."""
        twin = object.__new__(FileDecryptionProperties)
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.allow_missing_columns = True
        return twin

    def __repr__(self) -> str:
        if not hasattr(self, "key_retriever"):
            return "<FileDecryptionProperties, unfinished>"
        footer = "no footer key" if self.footer_key is None else "footer key"
        retriever = "no key retriever" if self.key_retriever is None else "key retriever"
        return f"<FileDecryptionProperties: {footer}, {len(self.column_keys)} column paths, {retriever}>"


def as_key(key: Key) -> AesKey:
    """The AesKey itself, or a new one with a copy of the bytes; no error shows the key."""
    if isinstance(key, str):
        raise TypeError(
            "a key is 16, 24 or 32 bytes, not text: secrets.token_bytes(16) makes one, and bytes.fromhex(text) or "
            "base64.b64decode(text) take one out of text"
        )
    try:
        return key if isinstance(key, AesKey) else AesKey(key)
    except TypeError:
        raise TypeError(f"a key is 16, 24 or 32 bytes, not a {type(key).__name__}") from None


def check_path(path: object) -> None:
    """Refuse anything but the path of a column."""
    if not isinstance(path, str) and not (isinstance(path, tuple) and all(isinstance(name, str) for name in path)):
        raise TypeError(f"a column path is a dotted text or a tuple of names, not {path!r}")


def check_algorithm(option: str, algorithm: object) -> None:
    """Refuse anything but an encryption algorithm of the specification."""
    _check_choice(option, algorithm, ALGORITHMS)


def _as_column_properties(key: Key | ColumnEncryptionProperties) -> ColumnEncryptionProperties:
    # None is refused too: a failed look-up of a key must not select the footer key
    return key if isinstance(key, ColumnEncryptionProperties) else ColumnEncryptionProperties(as_key(key))


def _mapping(column_keys: Mapping[PathT, T] | None) -> Mapping[PathT, T]:
    if column_keys is not None and not isinstance(column_keys, Mapping):
        raise TypeError(f"column_keys maps column paths to keys; it is no {type(column_keys).__name__}")
    return column_keys or {}


def _check_choice(option: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(map(repr, choices))}, not {value!r}")


def _checked_bytes(option: str, value: bytes | None) -> bytes | None:
    if value is not None and not isinstance(value, bytes):
        raise TypeError(f"{option} must be bytes, not {type(value).__name__}")
    return value
