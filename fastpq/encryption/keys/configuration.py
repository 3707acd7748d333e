"""Options of encryption and decryption with keys in a key service: columns, master keys, lifetimes; names as in pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from typing import SupportsFloat

from fastpq.encryption.properties import DEFAULT_ALGORITHM, Algorithm, ColumnPath, check_algorithm, check_path
from fastpq.options import check_options, check_switch

DEFAULT_CACHE_LIFETIME = timedelta(minutes=10)
DEFAULT_DATA_KEY_LENGTH_BITS = 128
KEY_LENGTHS = (128, 192, 256)

TrustedMasterKeys = Collection[str] | Callable[[str], bool]


@dataclass(frozen=True)
class EncryptionConfiguration:
    """Columns to encrypt, their master keys, and the wrapping of data keys.

    Options stand in pyarrow's order, and None stands for the default of an option, as in pyarrow.

    Attributes:
        footer_key: identifier of the master key of the footer.
        column_keys: column paths by master key identifier; a path is a dotted string or a tuple of names. The path of a group
            covers all columns in the group.
        uniform_encryption: encrypt all columns with the footer's data key, instead of column_keys.
        encryption_algorithm: ``"AES_GCM_V1"`` or ``"AES_GCM_CTR_V1"``.
        plaintext_footer: leave the footer readable without a key, and sign the footer.
        double_wrapping: encrypt data keys with key encryption keys (KEKs), and only KEKs with master keys: many files then need
            one call of the key service. Else the service wraps each data key.
        cache_lifetime: lifetime of cached clients and KEKs.
        internal_key_material: keep wrapped keys in the file. Else they are in a material file beside, and master keys can be
            rotated without changing the file.
        data_key_length_bits: 128, 192 or 256.
        complete_columns: encrypt columns outside of column_keys with the footer's data key; else they stay plaintext.
        kek_length_bits: length of KEKs, 128, 192 or 256; None for the length of the data keys.

    Raises:
        ValueError: options out of range or in contradiction.
        TypeError: identifiers, paths or options of other types.
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
    complete_columns: bool = field(default=False, kw_only=True)
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


@dataclass(frozen=True, init=False)
class DecryptionConfiguration:
    """Caching and trust in reading files with keys in a key service.

    Args:
        cache_lifetime: lifetime of cached clients and KEKs, a timedelta or a number of seconds.
        read_kms_url: pyarrow's name of trust_kms_url_from_file.
        trust_kms_url_from_file: take URL and instance of the key service from the file, if the KmsConnectionConfig has none; else
            a file that names others than ``"DEFAULT"`` is refused. An attacker who can alter the file could then have the access
            token sent to a server of their choosing, unless the client refuses the URL.
        trusted_master_keys: identifiers of the master keys that files may be under, or a function from an identifier to True or
            False; None trusts every master key that the service unwraps with. A file names its master keys itself: whoever may
            use any of the trusted master keys can write files that this reader takes for genuine.

    Raises:
        ValueError: a negative lifetime, or read_kms_url against trust_kms_url_from_file.
        TypeError: options of other types; one text for trusted_master_keys.
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
                raise ValueError("read_kms_url=False says the contrary of trust_kms_url_from_file=True")
        object.__setattr__(self, "cache_lifetime", _lifetime(cache_lifetime))
        object.__setattr__(self, "trust_kms_url_from_file", trust_kms_url_from_file or bool(read_kms_url))
        object.__setattr__(self, "trusted_master_keys", _trusted(trusted_master_keys))

    @property
    def read_kms_url(self) -> bool:
        """Whether URL and instance are taken from the file, under pyarrow's name."""
        return self.trust_kms_url_from_file

    def trusts_master_key(self, identifier: str) -> bool:
        """Whether the reader accepts files with keys wrapped by a master key.

        Args:
            identifier: identifier of the master key in the key service.

        Raises:
            TypeError: the function for trusted_master_keys returned neither True nor False.
        """
        trusted = self.trusted_master_keys
        if trusted is None or isinstance(trusted, frozenset):
            return trusted is None or identifier in trusted
        answer = trusted(identifier)
        check_switch("the answer of trusted_master_keys", answer)
        return answer


def check_lifetime(lifetime: timedelta) -> None:
    if not isinstance(lifetime, timedelta):
        raise TypeError(f"cache_lifetime must be a timedelta, not {type(lifetime).__name__}")
    if lifetime < timedelta(0):
        raise ValueError("cache_lifetime cannot be negative")


def _lifetime(lifetime: timedelta | float | None) -> timedelta:
    """A lifetime given as pyarrow takes lifetimes: also in seconds, and None for the default."""
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


def _trusted(keys: TrustedMasterKeys | None) -> frozenset[str] | Callable[[str], bool] | None:
    if keys is None or callable(keys):
        return keys
    if isinstance(keys, str) or not isinstance(keys, Collection):
        raise TypeError("trusted_master_keys are identifiers in a list or set, or a function of an identifier")
    for identifier in keys:
        _check_identifier(identifier)
    return frozenset(keys)


def _check_identifier(identifier: str) -> None:
    if not isinstance(identifier, str):
        raise TypeError(f"the identifier of a master key is text, not {type(identifier).__name__}")
    if not identifier:
        raise ValueError("the identifier of a master key cannot be empty")
