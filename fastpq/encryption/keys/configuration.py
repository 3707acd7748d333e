"""Options for encryption and decryption with keys from a key service. They have the names that pyarrow gives them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from typing import SupportsFloat

from fastpq.encryption.properties import (
    DEFAULT_ALGORITHM,
    Algorithm,
    ColumnPath,
    Unlisted,
    as_paths,
    check_algorithm,
    check_path,
    check_unlisted,
)
from fastpq.options import check_options, check_switch

DEFAULT_CACHE_LIFETIME = timedelta(minutes=10)
DEFAULT_DATA_KEY_LENGTH_BITS = 128
KEY_LENGTHS = (128, 192, 256)

TrustedMasterKeys = Collection[str] | Callable[[str], bool]


@dataclass(frozen=True)
class EncryptionConfiguration:
    """Which columns are encrypted, under which master keys, and how their data keys are wrapped.

    Positional options have pyarrow's order. None means an option's default, as in pyarrow.

    Attributes:
        footer_key: the footer's master key identifier.
        column_keys: column paths by master key identifier. A path is a dotted string or a tuple of names. A group's path covers
            all columns in the group.
        uniform_encryption: encrypt all columns with the footer's data key, instead of using column_keys. It becomes True if the
            footer is encrypted and no option names columns or says what happens to them.
        encryption_algorithm: ``"AES_GCM_V1"`` or ``"AES_GCM_CTR_V1"``.
        plaintext_footer: leave the footer readable without a key, and sign it.
        double_wrapping: encrypt data keys with key encryption keys (KEKs), and only the KEKs with master keys. Many files then
            need only one key service call. If False, the service wraps each data key.
        cache_lifetime: how long clients and KEKs stay in the cache.
        internal_key_material: store the wrapped keys in the file. If False, they are stored in a material file next to it, and
            master keys can be rotated without changing the file.
        data_key_length_bits: 128, 192 or 256.
        unlisted: what happens to columns that column_keys does not name: ``"footer_key"`` encrypts them with the footer's data
            key, ``"plaintext"`` leaves them unencrypted, and ``"raise"`` refuses to write them. None means ``"footer_key"``.
            With a plaintext footer, None refuses such columns. pyarrow leaves them unencrypted.
        plaintext_columns: column paths that stay unencrypted, whatever ``unlisted`` says, as in FileEncryptionProperties.
        complete_columns: parquet-java's name for ``unlisted``: True means ``"footer_key"``, False means ``"plaintext"``.
        kek_length_bits: KEK length: 128, 192 or 256. None means the data keys' length.

    Raises:
        ValueError: an option is out of range, or contradicts another.
        TypeError: an identifier, a path or an option has a wrong type.
    """

    footer_key: str
    column_keys: Mapping[str, Sequence[ColumnPath]] = field(default_factory=dict)
    uniform_encryption: bool = False
    encryption_algorithm: Algorithm = DEFAULT_ALGORITHM
    plaintext_footer: bool = False
    double_wrapping: bool = True
    cache_lifetime: timedelta = DEFAULT_CACHE_LIFETIME
    internal_key_material: bool = True
    data_key_length_bits: int = DEFAULT_DATA_KEY_LENGTH_BITS
    unlisted: Unlisted | None = field(default=None, kw_only=True)
    plaintext_columns: Sequence[ColumnPath] = field(default=(), kw_only=True)
    complete_columns: bool | None = field(default=None, kw_only=True)
    kek_length_bits: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for option in fields(self):
            default = option.default if option.default_factory is MISSING else option.default_factory()
            if getattr(self, option.name) is None and default is not MISSING:
                object.__setattr__(self, option.name, default)
        check_options(self)
        check_algorithm("encryption_algorithm", self.encryption_algorithm)
        _check_identifier(self.footer_key)
        if not isinstance(self.column_keys, Mapping):
            raise TypeError(f"column_keys must map master keys to columns, and not be a {type(self.column_keys).__name__}")
        for identifier, columns in self.column_keys.items():
            _check_identifier(identifier)
            if isinstance(columns, str) or not columns:
                raise ValueError(f"column_keys[{identifier!r}] must be a sequence of column paths, and not empty")
            for path in columns:
                check_path(path)
        has_column_options = self.column_keys or self.plaintext_columns or self.unlisted or self.complete_columns is not None
        if not has_column_options and not self.plaintext_footer:
            object.__setattr__(self, "uniform_encryption", True)
        if bool(self.column_keys) == self.uniform_encryption:
            raise ValueError("set either column_keys or uniform_encryption=True, and not both")
        for path in as_paths("plaintext_columns", self.plaintext_columns):
            check_path(path)
        if self.plaintext_columns and self.uniform_encryption:
            raise ValueError("plaintext_columns needs column_keys: uniform_encryption encrypts all columns")
        check_unlisted("unlisted", self.unlisted)
        if self.complete_columns is not None:
            alias: Unlisted = "footer_key" if self.complete_columns else "plaintext"
            if self.unlisted not in (None, alias):
                raise ValueError(f"complete_columns={self.complete_columns} means unlisted={alias!r}: they cannot differ")
            object.__setattr__(self, "unlisted", alias)
        if self.uniform_encryption and self.unlisted is not None:
            name = "unlisted" if self.complete_columns is None else "complete_columns"
            raise ValueError(f"{name} needs column_keys: uniform_encryption encrypts all columns already")
        if self.data_key_length_bits not in KEY_LENGTHS or self.kek_length_bits not in (None, *KEY_LENGTHS):
            raise ValueError("data_key_length_bits and kek_length_bits can be 128, 192 or 256")
        if self.kek_length_bits is not None and not self.double_wrapping:
            raise ValueError("kek_length_bits needs double_wrapping: single wrapping has no KEKs")
        check_lifetime(self.cache_lifetime)


@dataclass(frozen=True, init=False)
class DecryptionConfiguration:
    """How long clients and keys are cached when files are read, and what is trusted.

    Args:
        cache_lifetime: how long clients and KEKs stay in the cache: a timedelta or a number of seconds.
        read_kms_url: pyarrow's name for trust_kms_url_from_file.
        trust_kms_url_from_file: take the key service's URL and instance from the file, if the KmsConnectionConfig has none. If
            False, a file that names others than ``"DEFAULT"`` is refused. If True, an attacker who can alter the file could have
            the access token sent to a server that they choose, unless the client refuses the URL.
        trusted_master_keys: identifiers of the master keys that a file may use, or a function that takes an identifier and
            returns True or False. None trusts every master key that the service unwraps with. A file names its master keys
            itself: whoever may use any trusted master key can write files that this reader believes to be genuine.

    Raises:
        ValueError: a lifetime is negative, or read_kms_url contradicts trust_kms_url_from_file.
        TypeError: an option has a wrong type, or trusted_master_keys is a string.
    """

    cache_lifetime: timedelta
    trust_kms_url_from_file: bool
    trusted_master_keys: frozenset[str] | Callable[[str], bool] | None

    def __init__(
        self,
        cache_lifetime: timedelta | float | None = None,
        read_kms_url: bool | None = None,
        *,
        trust_kms_url_from_file: bool = False,
        trusted_master_keys: TrustedMasterKeys | None = None,
    ) -> None:
        check_switch("trust_kms_url_from_file", trust_kms_url_from_file)
        if read_kms_url is not None:
            check_switch("read_kms_url", read_kms_url)
            if trust_kms_url_from_file and not read_kms_url:
                raise ValueError("read_kms_url=False contradicts trust_kms_url_from_file=True")
        object.__setattr__(self, "cache_lifetime", _as_timedelta(cache_lifetime))
        object.__setattr__(self, "trust_kms_url_from_file", trust_kms_url_from_file or bool(read_kms_url))
        object.__setattr__(self, "trusted_master_keys", _as_frozenset(trusted_master_keys))

    @property
    def read_kms_url(self) -> bool:
        """Whether URL and instance are taken from the file. This is pyarrow's name for trust_kms_url_from_file."""
        return self.trust_kms_url_from_file

    def trusts_master_key(self, identifier: str) -> bool:
        """Return whether the reader accepts files whose keys are wrapped by a master key.

        Args:
            identifier: the master key's identifier in the key service.

        Raises:
            TypeError: trusted_master_keys is a function that returned neither True nor False.
        """
        trusted_keys = self.trusted_master_keys
        if trusted_keys is None or isinstance(trusted_keys, frozenset):
            return trusted_keys is None or identifier in trusted_keys
        is_trusted = trusted_keys(identifier)
        check_switch("the result of trusted_master_keys", is_trusted)
        return is_trusted


def check_lifetime(lifetime: timedelta) -> None:
    if not isinstance(lifetime, timedelta):
        raise TypeError(f"cache_lifetime must be a timedelta, not {type(lifetime).__name__}")
    if lifetime < timedelta(0):
        raise ValueError("cache_lifetime cannot be negative")


def _as_timedelta(lifetime: timedelta | float | None) -> timedelta:
    """Convert a lifetime that follows pyarrow: a number is in seconds, and None means the default."""
    if lifetime is None:
        return DEFAULT_CACHE_LIFETIME
    if isinstance(lifetime, bool | str) or not isinstance(lifetime, timedelta | SupportsFloat):
        raise TypeError(f"cache_lifetime must be a timedelta or a number of seconds, not {type(lifetime).__name__}")
    if not isinstance(lifetime, timedelta):
        if not 0 <= lifetime <= timedelta.max.total_seconds():
            raise ValueError(f"cache_lifetime cannot be negative, infinite or {lifetime} seconds")
        lifetime = timedelta(seconds=lifetime)
    check_lifetime(lifetime)
    return lifetime


def _as_frozenset(keys: TrustedMasterKeys | None) -> frozenset[str] | Callable[[str], bool] | None:
    if keys is None or callable(keys):
        return keys
    if isinstance(keys, str) or not isinstance(keys, Collection):
        raise TypeError("trusted_master_keys must be a list or set of identifiers, or a function of an identifier")
    for identifier in keys:
        _check_identifier(identifier)
    return frozenset(keys)


def _check_identifier(identifier: str) -> None:
    if not isinstance(identifier, str):
        raise TypeError(f"the identifier of a master key must be text, not {type(identifier).__name__}")
    if not identifier:
        raise ValueError("the identifier of a master key cannot be empty")
