"""Properties that encrypt or decrypt one file: explicit keys by column path, the algorithm and the reader's policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Literal, TypeVar, get_args

from fastpq.encryption.audit import AuditLog, KeyUse, check_audit
from fastpq.encryption.evp import AesKey
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import SchemaError
from fastpq.options import check_switch

KeyBytes = bytes | bytearray | memoryview
Key = AesKey | KeyBytes
ColumnPath = str | tuple[str, ...]
KeyRetriever = Callable[[bytes], Key | None]
Algorithm = Literal["AES_GCM_V1", "AES_GCM_CTR_V1"]
Unlisted = Literal["plaintext", "footer_key", "raise"]
V2Layout = Literal["arrow", "parquet-java"]
ForReader = Literal["duckdb"]

ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
DEFAULT_ALGORITHM: Algorithm = "AES_GCM_V1"
DEFAULT_ALLOWED_ALGORITHMS: tuple[Algorithm, ...] = ("AES_GCM_V1",)
DEFAULT_V2_LAYOUT: V2Layout = "arrow"
MOST_NAMES = 20     # largest number of column names in a message

T = TypeVar("T")
# Mapping is invariant in its keys: Mapping[ColumnPath, bytes] does not accept a dict[str, bytes], but Mapping[PathT, bytes] does.
PathT = TypeVar("PathT", bound=ColumnPath)


class PathMap(Generic[T]):
    """Values by column path. A group's path covers all columns in the group.

    Args:
        entries: values by path. A path is a dotted string (``"a.b"`` is ``b`` in ``a``, or a column with this name) or a tuple
            of names.

    Attributes:
        has_entries: whether there is any entry.

    Raises:
        SchemaError: the same path is spelled both as a string and as a tuple.
        TypeError: a path is neither a string nor a tuple.
    """

    __slots__ = ("_by_dotted_path", "_by_names", "has_entries")

    def __init__(self, entries: Mapping[PathT, T]) -> None:
        self._by_dotted_path: dict[str, T] = {}
        self._by_names: dict[tuple[str, ...], T] = {}
        self.has_entries = bool(entries)
        for path, value in entries.items():
            check_path(path)
            if isinstance(path, str):
                self._by_dotted_path[path] = value
            else:
                self._by_names[path] = value
        for names in self._by_names:
            if ".".join(names) in self._by_dotted_path:
                raise SchemaError(f"two keys for the column path {'.'.join(names)}")

    def __len__(self) -> int:
        return len(self._by_dotted_path) + len(self._by_names)

    def find(self, path: tuple[str, ...]) -> T | None:
        """Return the value for the longest path that covers a column, or None."""
        if not self.has_entries:
            return None
        for size in range(len(path), 0, -1):
            covering = path[:size]
            if covering in self._by_names:
                return self._by_names[covering]
            dotted_path = ".".join(covering)
            if dotted_path in self._by_dotted_path:
                return self._by_dotted_path[dotted_path]
        return None

    def merged(self, others: PathMap[None], value: T) -> PathMap[T]:
        """Return a map with the same entries, and with one value for each path of another map."""
        result: PathMap[T] = PathMap({})
        result._by_dotted_path = {**dict.fromkeys(others._by_dotted_path, value), **self._by_dotted_path}
        result._by_names = {**dict.fromkeys(others._by_names, value), **self._by_names}
        result.has_entries = self.has_entries or others.has_entries
        return result

    def paths(self) -> list[str]:
        """Return all paths as dotted strings."""
        return [*self._by_dotted_path, *map(".".join, self._by_names)]

    def unknown_paths(self, columns: Iterable[tuple[str, ...]]) -> list[str]:
        """Return the paths, as dotted strings, that cover none of the columns."""
        if not self.has_entries:
            return []
        covering_paths = {path[:size] for path in columns for size in range(1, len(path) + 1)}
        dotted_paths = {".".join(path) for path in covering_paths}
        unknown_paths = [path for path in self._by_dotted_path if path not in dotted_paths]
        return unknown_paths + [".".join(path) for path in self._by_names if path not in covering_paths]


class ColumnEncryptionProperties(KeyHolder):
    """How one column, or each column in a group, is encrypted.

    Args:
        key: 16, 24 or 32 bytes, which are copied. None means the footer key.
        key_metadata: bytes that are stored unencrypted. Readers find the column key by them.

    Raises:
        CryptoError: the key has another length.
        TypeError: key_metadata is not bytes.
    """

    __slots__ = ("key", "key_metadata", "use")

    @hides_arguments
    def __init__(self, key: Key | None = None, *, key_metadata: bytes | None = None) -> None:
        if key is None and key_metadata is not None:
            raise ValueError("key_metadata needs a column key: the key metadata of the footer key are footer_key_metadata")
        self.key = None if key is None else as_key(key)
        self.key_metadata = _checked_bytes("key_metadata", key_metadata)
        self.use: KeyUse | None = None      # how a CryptoFactory wrapped the key, for audits

    def __repr__(self) -> str:
        key = "the footer key" if getattr(self, "key", None) is None else "a column key"
        return f"<ColumnEncryptionProperties with {key}>"


class FileEncryptionProperties(KeyHolder):
    """How a file is encrypted (Encryption.md).

    Args:
        footer_key: 16, 24 or 32 bytes, which are copied.
        column_keys: keys or ColumnEncryptionProperties by column path. A path is a dotted string or a tuple of names. A group's
            path covers every column in the group. If several paths cover a column, the longest one decides.
        footer_key_metadata: bytes that are stored unencrypted. Readers find the footer key by them.
        plaintext_footer: leave the footer readable without a key, and sign it (5.5). Everybody can then read the schema, the
            row counts and the plaintext columns. They can also read an encrypted column's path, type, encodings, codec and value
            count, and where its pages are and how large they are.
        algorithm: ``"AES_GCM_V1"``, or ``"AES_GCM_CTR_V1"``, which encrypts pages but does not authenticate them (4.2.2).
        aad_prefix: the file's identifier, which readers verify (4.4.1).
        store_aad_prefix: store the prefix in the file. If False, readers have to supply it.
        unlisted: what happens to columns that column_keys does not name. ``"footer_key"`` encrypts them with the footer key,
            ``"plaintext"`` leaves them unencrypted, ``"raise"`` refuses to write a file that has such columns. None means
            ``"footer_key"``, unless there are column keys and a plaintext footer. Then nothing is assumed: a file that has
            such columns is refused with a SchemaError that names them.
        encrypt_unlisted: another name for ``unlisted``.
        plaintext_columns: paths of columns that stay unencrypted, whatever ``unlisted`` says. ``"raise"`` accepts them. A path is
            as in column_keys. If paths here and there cover a column, the longest one decides.
        v2_layout: layout for encrypted V2 data pages, which differs between implementations. ``"arrow"`` (Arrow, arrow-rs,
            Polars) encrypts the whole body. ``"parquet-java"`` (Spark) leaves the levels unencrypted, and with them the
            positions of nulls and lists.
        for_reader: ``"duckdb"`` writes DuckDB's dialect, the only one that DuckDB reads with filters. Its AADs are empty: modules
            can be moved from one place or file to another unnoticed, as in DuckDB's own files. Other readers refuse such a file,
            and fastpq needs ``allow_duckdb_dialect``. None writes the format's standard.
        audit: log that records which keys each new file gets.

    Raises:
        CryptoError: a key has another length.
        SchemaError: a column path is there in two spellings, or both in column_keys and in plaintext_columns.
        ValueError, TypeError: an option is unknown, contradicts another or has a wrong type, or a column's key is None.
    """

    __slots__ = (
        "_treatments",
        "aad_prefix",
        "algorithm",
        "audit",
        "audited_file",
        "column_keys",
        "footer_key",
        "footer_key_metadata",
        "footer_use",
        "for_reader",
        "plaintext_columns",
        "plaintext_footer",
        "store_aad_prefix",
        "unlisted",
        "v2_layout",
    )

    @hides_arguments
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
        unlisted: Unlisted | None = None,
        encrypt_unlisted: Unlisted | None = None,
        plaintext_columns: Iterable[ColumnPath] = (),
        v2_layout: V2Layout = DEFAULT_V2_LAYOUT,
        for_reader: ForReader | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        check_audit(audit)
        check_algorithm("algorithm", algorithm)
        check_unlisted("unlisted", unlisted)
        _check_choice("for_reader", for_reader, (None, *get_args(ForReader)))
        check_unlisted("encrypt_unlisted", encrypt_unlisted)
        if None not in (unlisted, encrypt_unlisted) and unlisted != encrypt_unlisted:
            raise ValueError("encrypt_unlisted is another name for unlisted: they cannot differ")
        _check_choice("v2_layout", v2_layout, get_args(V2Layout))
        check_switch("plaintext_footer", plaintext_footer)
        check_switch("store_aad_prefix", store_aad_prefix)
        if not (store_aad_prefix or aad_prefix):
            raise ValueError("store_aad_prefix=False needs an aad_prefix")
        self.footer_key = as_key(footer_key)
        self.footer_key_metadata = _checked_bytes("footer_key_metadata", footer_key_metadata)
        self.column_keys: PathMap[ColumnEncryptionProperties] = PathMap(
            {path: _as_column_properties(key) for path, key in _mapping(column_keys).items()}
        )
        self.plaintext_columns: PathMap[None] = PathMap(dict.fromkeys(as_paths("plaintext_columns", plaintext_columns)))
        self._treatments = _treatments(self.column_keys, self.plaintext_columns)
        self.plaintext_footer = plaintext_footer
        self.for_reader: ForReader | None = for_reader
        self.algorithm: Algorithm = algorithm
        self.v2_layout: V2Layout = v2_layout
        self.aad_prefix = _checked_bytes("aad_prefix", aad_prefix) or None
        self.store_aad_prefix = store_aad_prefix
        if for_reader == "duckdb":
            self._check_for_duckdb(unlisted or encrypt_unlisted)
        self.audit = audit
        # what a CryptoFactory has recorded: how it wrapped the footer key, and the file that the wrapped keys are for
        self.footer_use: KeyUse | None = None
        self.audited_file: str | None = None
        is_open_question = plaintext_footer and self.column_keys.has_entries
        self.unlisted: Unlisted | None = unlisted or encrypt_unlisted or (None if is_open_question else "footer_key")

    def _check_for_duckdb(self, unlisted: Unlisted | None) -> None:
        """Refuse what DuckDB's dialect does not have."""
        is_uniform = not (self.column_keys.has_entries or self.plaintext_columns.has_entries) and unlisted in (None, "footer_key")
        has_prefix = self.aad_prefix is not None or self.footer_key_metadata is not None
        if not is_uniform or self.plaintext_footer or has_prefix or self.algorithm != DEFAULT_ALGORITHM:
            raise ValueError(
                'for_reader="duckdb" takes a footer key alone: DuckDB\'s dialect has no column keys, plaintext columns, '
                "plaintext footers, AAD prefixes, key metadata or other algorithms"
            )

    @property
    def encrypt_unlisted(self) -> Unlisted | None:
        """Another name for ``unlisted``."""
        return self.unlisted

    def column(self, path: tuple[str, ...]) -> ColumnEncryptionProperties | None:
        """Return how a column is encrypted, or None for a plaintext column.

        Args:
            path: the names of the column's groups, and its own name.

        Raises:
            SchemaError: column_keys does not name the column, and ``unlisted`` refuses such columns.
        """
        treatment = self._treatments.find(path)
        if treatment is not None:
            return None if treatment is PLAINTEXT else treatment
        match self.unlisted:
            case "footer_key":
                return UNDER_FOOTER_KEY
            case "plaintext":
                return None
        self.check_listed([path])
        raise AssertionError("check_listed refuses a column that is not listed")

    def columns(self, paths: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], ColumnEncryptionProperties | None]:
        """Return how each column is encrypted, as ``column`` does.

        Args:
            paths: leaf column paths.

        Raises:
            SchemaError: as in ``column``.
        """
        if self.unlisted == "footer_key" and not self._treatments.has_entries:
            return dict.fromkeys(paths, UNDER_FOOTER_KEY)
        return {path: self.column(path) for path in paths}

    def check_listed(self, paths: Iterable[tuple[str, ...]]) -> None:
        """Refuse columns that column_keys does not name, unless ``unlisted`` says what happens to them.

        Args:
            paths: leaf column paths in the schema.

        Raises:
            SchemaError: there are such columns. The message names them.
        """
        if self.unlisted not in (None, "raise"):
            return
        names = [".".join(path) for path in paths if self._treatments.find(path) is None]
        if not names:
            return
        shown_names = ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
        if self.unlisted == "raise":
            raise SchemaError(
                f'columns without a key of their own: {shown_names} (unlisted="raise" refuses them. Give them a key in '
                "column_keys, or name them in plaintext_columns, if they may stay readable to everybody)"
            )
        raise SchemaError(
            f"columns without a key of their own: {shown_names}. With a plaintext footer say what happens to them: "
            'unlisted="footer_key" encrypts them with the footer key, unlisted="plaintext" leaves them readable to everybody'
        )

    def with_aad_prefix(self, aad_prefix: bytes, *, store_aad_prefix: bool = True) -> FileEncryptionProperties:
        """Return the same keys with another AAD prefix, for one file of a dataset.

        Args:
            aad_prefix, store_aad_prefix: as for the class.
        """
        duplicate = _duplicate(self)
        duplicate.aad_prefix, duplicate.store_aad_prefix = _checked_bytes("aad_prefix", aad_prefix), store_aad_prefix
        return duplicate

    def with_columns(
        self,
        column_keys: Mapping[PathT, ColumnEncryptionProperties],
        *,
        unlisted: Unlisted,
        aad_prefix: bytes | None,
        store_aad_prefix: bool,
    ) -> FileEncryptionProperties:
        """Return the same footer key and settings for other columns, and another AAD prefix.

        Args:
            column_keys, unlisted, aad_prefix, store_aad_prefix: as for the class.
        """
        duplicate = self.with_aad_prefix(b"", store_aad_prefix=store_aad_prefix)
        duplicate.column_keys, duplicate.unlisted, duplicate.aad_prefix = PathMap(column_keys), unlisted, aad_prefix
        duplicate.plaintext_columns, duplicate._treatments = PathMap({}), duplicate.column_keys
        return duplicate

    def __repr__(self) -> str:
        if not hasattr(self, "unlisted"):       # __init__ failed, and a traceback shows the object
            return "<FileEncryptionProperties, unfinished>"
        column_keys = f"{len(self.column_keys)} column paths, others {self.unlisted or 'refused'}"
        return f"<FileEncryptionProperties: footer key, {column_keys}>"


class FileDecryptionProperties(KeyHolder):
    """How an encrypted file is read (Encryption.md).

    The last six options are policies. By default they are strict: an attacker without keys could exploit a looser one
    (SECURITY.md).

    Args:
        footer_key: 16, 24 or 32 bytes, which are copied.
        column_keys: keys by column path, as in FileEncryptionProperties. A column with a key here must be encrypted with its own
            key.
        key_retriever: a function that takes key metadata from the file and returns a key, or None if it has no key. It is called
            for keys that are not given explicitly, by one thread at a time for each file. Its exceptions reach the caller. A
            result that is not bytes is a CryptoError.
        aad_prefix: the file's AAD prefix. It is needed if the file does not store its prefix.
        allow_plaintext_files: read plaintext files too. An attacker could then replace an encrypted file by a forged plaintext
            file.
        allowed_algorithms: the algorithms that are accepted. The algorithm's name in a file is not authenticated: an attacker
            could present an AES_GCM_V1 file as an AES_GCM_CTR_V1 file, whose pages are not authenticated.
        verify_footer_signature: verify a plaintext footer's signature before the footer is parsed. False also accepts footers
            without a signature, which the specification's first draft allowed.
        allow_duckdb_dialect: read files that DuckDB encrypted. Their modules are not bound to a file or a position.
        allow_weaker_columns: also read columns that column_keys has a key for, although they are plaintext or encrypted with the
            footer key. Somebody who has the footer key, but not the column's key, could forge such columns.
        allow_missing_columns: accept keys for columns that the file does not have. By default such a key is an error, because a
            misspelt path would protect nothing. In a dataset it is enough that one file has the column.
        audit: log that records which keys open which files and columns.

    Raises:
        CryptoError: a key has another length.
        SchemaError: a column path is there in two spellings.
        ValueError: an algorithm is unknown, or no algorithm is allowed.
        TypeError: a policy is neither True nor False, or the key retriever is not callable.
    """

    __slots__ = (
        "aad_prefix",
        "allow_duckdb_dialect",
        "allow_missing_columns",
        "allow_plaintext_files",
        "allow_weaker_columns",
        "allowed_algorithms",
        "audit",
        "column_keys",
        "footer_key",
        "key_retriever",
        "verify_footer_signature",
    )

    @hides_arguments
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
        audit: AuditLog | None = None,
    ) -> None:
        check_audit(audit)
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
        self.audit = audit
        if not self.allowed_algorithms or not self.allowed_algorithms.issubset(ALGORITHMS):
            raise ValueError(f"allowed_algorithms must be some of {', '.join(ALGORITHMS)}, not {allowed_algorithms!r}")

    def retriever_of(self, footer_key_metadata: bytes | None) -> KeyRetriever | None:
        """Return the key retriever for one file, or None. A CryptoFactory's retriever makes a new one for each file.

        Args:
            footer_key_metadata: key metadata from the file's footer, or None if there is none.
        """
        make_retriever: Callable[[bytes | None], KeyRetriever] | None = getattr(self.key_retriever, "retriever_of_file", None)
        return self.key_retriever if make_retriever is None else make_retriever(footer_key_metadata)

    def check_paths(self, paths: Iterable[tuple[str, ...]]) -> None:
        """Refuse keys for columns that a file does not have, unless allow_missing_columns is set.

        Args:
            paths: the file's leaf column paths.

        Raises:
            SchemaError: there is such a key.
        """
        unknown_paths = [] if self.allow_missing_columns else self.column_keys.unknown_paths(paths)
        if unknown_paths:
            raise SchemaError(
                f"keys for columns that the file does not have: {', '.join(sorted(unknown_paths))} "
                "(allow_missing_columns=True reads it anyway)"
            )

    def with_missing_columns(self) -> FileDecryptionProperties:
        """Return the same keys and policies with allow_missing_columns set, for one file in a dataset."""
        duplicate = _duplicate(self)
        duplicate.allow_missing_columns = True
        return duplicate

    def with_aad_prefix(self, aad_prefix: bytes) -> FileDecryptionProperties:
        """Return the same keys and policies with another AAD prefix, for one file of a dataset.

        Args:
            aad_prefix: as for the class.
        """
        duplicate = _duplicate(self)
        duplicate.aad_prefix = _checked_bytes("aad_prefix", aad_prefix)
        return duplicate

    def for_journal(self, aad_prefix: bytes) -> FileDecryptionProperties:
        """Return the same keys with the strictest policies and another AAD prefix, for a file that a job has written.

        Args:
            aad_prefix: as for the class.
        """
        duplicate = self.with_aad_prefix(aad_prefix)
        duplicate.allow_missing_columns, duplicate.verify_footer_signature = True, True
        duplicate.allow_plaintext_files = duplicate.allow_duckdb_dialect = False
        duplicate.allowed_algorithms = frozenset(("AES_GCM_V1",))
        return duplicate

    def __repr__(self) -> str:
        if not hasattr(self, "key_retriever"):
            return "<FileDecryptionProperties, unfinished>"
        footer = "no footer key" if self.footer_key is None else "footer key"
        retriever = "no key retriever" if self.key_retriever is None else "key retriever"
        return f"<FileDecryptionProperties: {footer}, {len(self.column_keys)} column paths, {retriever}>"


def _duplicate(properties: T) -> T:
    """Return an object with the same attributes. Keys are shared, so that each counts its operations once."""
    duplicate: T = object.__new__(type(properties))
    for name in type(properties).__slots__:     # type: ignore[attr-defined]
        setattr(duplicate, name, getattr(properties, name))
    return duplicate


def as_key(key: Key) -> AesKey:
    """Return an AesKey as it is, or a new AesKey with a copy of the bytes. No error shows the key."""
    if isinstance(key, str):
        raise TypeError(
            "a key is 16, 24 or 32 bytes, not text: secrets.token_bytes(16) makes one, and bytes.fromhex(text) or "
            "base64.b64decode(text) decode one from text"
        )
    try:
        return key if isinstance(key, AesKey) else AesKey(key)
    except TypeError:
        raise TypeError(f"a key is 16, 24 or 32 bytes, not a {type(key).__name__}") from None


def check_path(path: object) -> None:
    """Refuse an object that is not a column path."""
    if not isinstance(path, str) and not (isinstance(path, tuple) and all(isinstance(name, str) for name in path)):
        raise TypeError(f"a column path is a dotted string or a tuple of names, not {path!r}")


def check_algorithm(option: str, algorithm: object) -> None:
    """Refuse an object that is not an encryption algorithm in the specification."""
    _check_choice(option, algorithm, ALGORITHMS)


def check_unlisted(option: str, unlisted: object) -> None:
    """Refuse an object that does not say what happens to columns without a key. None is accepted."""
    _check_choice(option, unlisted, (None, *get_args(Unlisted)))


def as_paths(option: str, paths: Iterable[ColumnPath]) -> list[ColumnPath]:
    """Return column paths as a list. A single text is refused, because its letters would be taken for paths."""
    if isinstance(paths, str | bytes) or not isinstance(paths, Iterable):
        raise TypeError(f"{option} must be a sequence of column paths, not a {type(paths).__name__}")
    return list(paths)


def _treatments(
    column_keys: PathMap[ColumnEncryptionProperties], plaintext_columns: PathMap[None]
) -> PathMap[ColumnEncryptionProperties]:
    """Return what happens to each listed path: its key, or PLAINTEXT."""
    twice = sorted(set(column_keys.paths()) & set(plaintext_columns.paths()))
    if twice:
        raise SchemaError(f"columns are both in column_keys and in plaintext_columns: {', '.join(twice)}")
    return column_keys.merged(plaintext_columns, PLAINTEXT) if plaintext_columns.has_entries else column_keys


def _as_column_properties(key: Key | ColumnEncryptionProperties) -> ColumnEncryptionProperties:
    # None is refused too: a failed look-up of a column's key must not fall back to the footer key
    return key if isinstance(key, ColumnEncryptionProperties) else ColumnEncryptionProperties(as_key(key))


def _mapping(column_keys: Mapping[PathT, T] | None) -> Mapping[PathT, T]:
    if column_keys is not None and not isinstance(column_keys, Mapping):
        raise TypeError(f"column_keys must map column paths to keys, and not be a {type(column_keys).__name__}")
    return column_keys or {}


def _check_choice(option: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(map(repr, choices))}, not {value!r}")


def _checked_bytes(option: str, value: bytes | None) -> bytes | None:
    if value is not None and not isinstance(value, bytes):
        raise TypeError(f"{option} must be bytes, not {type(value).__name__}")
    return value


PLAINTEXT = ColumnEncryptionProperties()            # stands for a column that stays unencrypted
UNDER_FOOTER_KEY = ColumnEncryptionProperties()     # a column that has no entry of its own
