"""Options of encryption and decryption with keys in a key service: columns, master keys, lifetimes; names as in pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from fastpq.encryption.properties import DEFAULT_ALGORITHM, Algorithm, ColumnPath, check_algorithm, check_path
from fastpq.options import check_options

DEFAULT_CACHE_LIFETIME = timedelta(minutes=10)
DEFAULT_DATA_KEY_LENGTH_BITS = 128
KEY_LENGTHS = (128, 192, 256)


@dataclass(frozen=True)
class EncryptionConfiguration:
    """Columns to encrypt, their master keys, and the wrapping of data keys.

    Attributes:
        footer_key: identifier of the master key of the footer.
        column_keys: column paths by master key identifier; a path is a dotted string or a tuple of names. The path of a group
            covers all columns in the group.
        uniform_encryption: encrypt all columns with the footer's data key, instead of column_keys.
        complete_columns: encrypt columns outside of column_keys with the footer's data key; else they stay plaintext.
        encryption_algorithm: ``"AES_GCM_V1"`` or ``"AES_GCM_CTR_V1"``.
        plaintext_footer: leave the footer readable without a key, and sign the footer.
        double_wrapping: encrypt data keys with key encryption keys (KEKs), and only KEKs with master keys: many files then need
            one call of the key service. Else the service wraps each data key.
        cache_lifetime: lifetime of cached clients and KEKs.
        internal_key_material: keep wrapped keys in the file. Else they are in a material file beside, and master keys can be
            rotated without changing the file.
        data_key_length_bits: 128, 192 or 256.
        kek_length_bits: length of KEKs, 128, 192 or 256; None for the length of the data keys.

    Raises:
        ValueError: options out of range or in contradiction.
        TypeError: identifiers, paths or options of other types.
    """

    footer_key: str
    column_keys: Mapping[str, Sequence[ColumnPath]] = field(default_factory=dict, kw_only=True)
    uniform_encryption: bool = field(default=False, kw_only=True)
    complete_columns: bool = field(default=False, kw_only=True)
    encryption_algorithm: Algorithm = field(default=DEFAULT_ALGORITHM, kw_only=True)
    plaintext_footer: bool = field(default=False, kw_only=True)
    double_wrapping: bool = field(default=True, kw_only=True)
    cache_lifetime: timedelta = field(default=DEFAULT_CACHE_LIFETIME, kw_only=True)
    internal_key_material: bool = field(default=True, kw_only=True)
    data_key_length_bits: int = field(default=DEFAULT_DATA_KEY_LENGTH_BITS, kw_only=True)
    kek_length_bits: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        check_algorithm("encryption_algorithm", self.encryption_algorithm)
        _check_identifier(self.footer_key)
        if not isinstance(self.column_keys, Mapping):
            raise TypeError(f"column_keys maps master keys to columns; it is no {type(self.column_keys).__name__}")
        for identifier, columns in self.column_keys.items():
            _check_identifier(identifier)
            if isinstance(columns, str) or not columns:
                raise ValueError(f"column_keys[{identifier!r}] must be a sequence of column paths, and not empty")
            for path in columns:
                check_path(path)
        if bool(self.column_keys) == self.uniform_encryption:
            raise ValueError("either column_keys or uniform_encryption=True, and not both, must be given")
        if self.complete_columns and self.uniform_encryption:
            raise ValueError("complete_columns completes column_keys: uniform_encryption has all columns already")
        if self.data_key_length_bits not in KEY_LENGTHS or self.kek_length_bits not in (None, *KEY_LENGTHS):
            raise ValueError("data_key_length_bits and kek_length_bits are 128, 192 or 256")
        if self.kek_length_bits is not None and not self.double_wrapping:
            raise ValueError("kek_length_bits is of double_wrapping: single wrapping has no KEKs")
        check_lifetime(self.cache_lifetime)


@dataclass(frozen=True, kw_only=True)
class DecryptionConfiguration:
    """Caching and trust in reading files with keys in a key service.

    Attributes:
        cache_lifetime: lifetime of cached clients and KEKs.
        trust_kms_url_from_file: take the URL of the key service from the file, if the KmsConnectionConfig has none; else the
            file is refused. An attacker who can alter the file could then have the access token sent to a server of their
            choosing, unless the client refuses the URL.
    """

    cache_lifetime: timedelta = DEFAULT_CACHE_LIFETIME
    trust_kms_url_from_file: bool = False

    def __post_init__(self) -> None:
        check_options(self)
        check_lifetime(self.cache_lifetime)


def check_lifetime(lifetime: timedelta) -> None:
    if not isinstance(lifetime, timedelta):
        raise TypeError(f"cache_lifetime must be a timedelta, not {type(lifetime).__name__}")
    if lifetime < timedelta(0):
        raise ValueError("cache_lifetime cannot be negative")


def _check_identifier(identifier: str) -> None:
    if not isinstance(identifier, str):
        raise TypeError(f"the identifier of a master key is text, not {type(identifier).__name__}")
    if not identifier:
        raise ValueError("the identifier of a master key cannot be empty")
