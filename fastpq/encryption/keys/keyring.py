"""Keyring: a key service in one local file, which a passphrase protects.

The file is a JSON object. ``kdf`` has the parameters that derive the passphrase key from the passphrase. They are for scrypt, or
for PBKDF2 under a FIPS provider. ``keys`` has each master key's versions by identifier. Each version is encrypted with the
passphrase key by AES-GCM, and stored as nonce, ciphertext and tag in base64. The AAD is identifier, ``:`` and version. A
destroyed version is null. ``disabled``, if it is there, has the disabled versions' numbers by identifier. ``seal``
protects against members that are removed or exchanged: it is an AES-GCM nonce and tag with the passphrase key, whose AAD is all
other members.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Self

from fastpq.encryption.evp import AesKey
from fastpq.encryption.keys.material import decode_base64, encode_base64, parse_object
from fastpq.encryption.keys.secret import (
    authenticate,
    is_authentic,
    lend_key,
    open_key,
    passphrase_key,
    random_key,
    seal_key,
    take_key,
)
from fastpq.encryption.provider import random_bytes, within_fips
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import FormatError, KeyAccessError, LimitError, ParquetError, UnsupportedError
from fastpq.io.origin import read_small_file
from fastpq.io.sink import FileSink

FORMAT = "fastpq-keyring-1"
WRAPPED_PREFIX = "keyring:v"
DEFAULT_MASTER_KEY_BITS = 256
LARGEST_KEYRING = 1 << 24       # in bytes
LARGEST_PASSPHRASE = 1 << 16    # in bytes

# scrypt with N = 2^17, r = 8, p = 1 takes 128 MiB and a few tenths of a second. This is OWASP's first choice.
DEFAULT_SCRYPT_LOG_N = 17
SCRYPT_R = 8
SCRYPT_P = 1
SMALLEST_SCRYPT_LOG_N = 10
LARGEST_SCRYPT_LOG_N = 20
SALT_SIZE = 16      # in bytes
# PBKDF2 with HMAC-SHA-256 is approved by FIPS 140-3 (SP 800-132). The iteration count follows OWASP's advice.
PBKDF2 = "pbkdf2-hmac-sha256"
PBKDF2_ITERATIONS = 600_000
LARGEST_ITERATIONS = 100_000_000

READABLE_BY_OTHERS = 0o044      # bits of a file mode


class Version(NamedTuple):
    """One version of a master key.

    Attributes:
        key: the key, or None for a version that was destroyed.
        is_disabled: whether the version neither wraps nor unwraps for now.
    """

    key: AesKey | None
    is_disabled: bool = False


Keys = dict[str, list[Version]]


class Keyring(KeyHolder):
    """A KmsClient whose master keys are in a local file, encrypted with a passphrase.

    Master keys have versions: the newest one wraps, and all versions unwrap. Any number of threads and processes may share a
    keyring file. A key that another process adds is found when it is first used.

    Args:
        path: the keyring file.
        passphrase: the file's passphrase, 1 to 65536 bytes. Text is encoded in UTF-8.

    Raises:
        FileNotFoundError: there is no file. Keyring.create makes one.
        OSError: the file cannot be read, or is a pipe.
        TypeError: the passphrase is neither text nor bytes.
        ValueError: the passphrase has a wrong length.
        KeyAccessError: the passphrase is wrong, or the file was altered.
        FormatError, LimitError: the file is not a keyring.

    Warns:
        UserWarning: others can read the file, so that they can guess the passphrase.
    """

    is_local = True     # calls need no time limit

    @hides_arguments
    def __init__(self, path: str | os.PathLike[str], passphrase: str | bytes) -> None:
        self._path = os.fspath(path)
        self._lock = threading.Lock()
        self._keys: Keys = {}
        self._file_version = _file_version(self._path)
        _warn_of_mode(self._path)
        content = _load(self._path)
        self._kdf: dict[str, Any] = content["kdf"]
        self._passphrase_key = _derive_key(passphrase, self._kdf)
        self._keys = _decrypt_keys(content, self._passphrase_key, self._path)

    @classmethod
    @hides_arguments
    def create(
        cls, path: str | os.PathLike[str], passphrase: str | bytes, *, scrypt_log_n: int | None = None
    ) -> Self:
        """Make an empty keyring file, which only its owner can read.

        Args:
            path: the new file.
            passphrase: the passphrase that will open the keyring.
            scrypt_log_n: how much it costs to guess the passphrase, 10 to 20. Each step doubles time and memory. None means 17. A
                FIPS provider (``FASTPQ_AES=fips``) has no scrypt: PBKDF2 takes its place, with 600,000 iterations.

        Raises:
            FileExistsError: the file exists already.
            UnsupportedError: scrypt_log_n is given under a FIPS provider, or a required FIPS provider is missing.
            OSError: the file could not be written completely, and does not exist. Or the new file could not be read.
        """
        if within_fips():
            if scrypt_log_n is not None:
                raise UnsupportedError("scrypt_log_n cannot be used under a FIPS provider, which has no scrypt")
            return cls._create(path, passphrase, {"name": PBKDF2, "iterations": PBKDF2_ITERATIONS})
        if scrypt_log_n is None:
            scrypt_log_n = DEFAULT_SCRYPT_LOG_N
        if not SMALLEST_SCRYPT_LOG_N <= scrypt_log_n <= LARGEST_SCRYPT_LOG_N:
            raise ValueError(f"scrypt_log_n can be {SMALLEST_SCRYPT_LOG_N} to {LARGEST_SCRYPT_LOG_N}, not {scrypt_log_n!r}")
        return cls._create(path, passphrase, {"name": "scrypt", "log_n": scrypt_log_n, "r": SCRYPT_R, "p": SCRYPT_P})

    @classmethod
    def _create(cls, path: str | os.PathLike[str], passphrase: str | bytes, kdf: dict[str, Any]) -> Self:
        kdf["salt"] = encode_base64(random_bytes(SALT_SIZE))
        data = _serialize({}, kdf, _derive_key(passphrase, kdf))
        with FileSink(os.fspath(path), mode=0o600, replaces=False) as sink:
            sink.write(data)
        return cls(path, passphrase)

    @property
    def key_ids(self) -> list[str]:
        """The identifiers that the current file's master keys have."""
        return sorted(self._current())

    def versions(self, master_key_identifier: str) -> dict[int, Literal["enabled", "disabled", "destroyed"]]:
        """Return the state of each version of a master key, by its number. The last one wraps new keys, if it is enabled.

        Args:
            master_key_identifier: the master key.

        Raises:
            KeyAccessError: there is no such master key.
        """
        return {
            number: "destroyed" if version.key is None else "disabled" if version.is_disabled else "enabled"
            for number, version in enumerate(self._current_versions(master_key_identifier), 1)
        }

    def create_key(self, master_key_identifier: str, bits: int = DEFAULT_MASTER_KEY_BITS) -> None:
        """Add a master key.

        Args:
            master_key_identifier: the new master key's name.
            bits: 128, 192 or 256.

        Raises:
            ValueError: the name is empty, or another master key has it.
        """
        with self._editing() as keys:
            if not master_key_identifier or master_key_identifier in keys:
                raise ValueError(f"there is a master key {master_key_identifier!r} already, or the name is empty")
            keys[master_key_identifier] = [Version(random_key(bits))]

    def rotate_key(self, master_key_identifier: str) -> int:
        """Add a version to a master key. CryptoFactory.rotate_master_keys then moves files to the new version.

        Args:
            master_key_identifier: the master key.

        Returns:
            The new version's number. The first version is 1.
        """
        with self._editing() as keys:
            versions = _versions(keys, master_key_identifier)
            bits = next((version.key.bits for version in reversed(versions) if version.key is not None), DEFAULT_MASTER_KEY_BITS)
            versions.append(Version(random_key(bits)))
            return len(versions)

    def disable_version(self, master_key_identifier: str, version: int) -> None:
        """Refuse a master key's version until ``enable_version`` allows it again. Files under it cannot be opened meanwhile.

        Programs that have such a file's key in their cache still open it, by default for 10 minutes. A CryptoFactory's
        ``remove_cache_entries_for_all_tokens`` empties the cache.

        Args:
            master_key_identifier: the master key.
            version: the version's number.

        Raises:
            KeyAccessError: there is no such version, or it was destroyed.
        """
        self._replace_version(master_key_identifier, version, lambda old, _: old._replace(is_disabled=True))

    def enable_version(self, master_key_identifier: str, version: int) -> None:
        """Allow a version again that was disabled.

        Args:
            master_key_identifier: the master key.
            version: the version's number.

        Raises:
            KeyAccessError: there is no such version, or it was destroyed.
        """
        self._replace_version(master_key_identifier, version, lambda old, _: old._replace(is_disabled=False))

    def destroy_version(self, master_key_identifier: str, version: int) -> None:
        """Remove a master key's version for ever. Nobody can open files under it any more, except with a copy of the keyring.

        Programs with a key in their cache still open files for a time, as after ``disable_version``. A keyring does not know the
        files. Before you destroy a version, disable it, empty the caches, and read all files.

        Args:
            master_key_identifier: the master key.
            version: the version's number. It has to be disabled, because a mistake cannot be undone, and it cannot be the newest:
                call ``rotate_key`` first.

        Raises:
            KeyAccessError: there is no such version, or it was destroyed.
            ValueError: the version is not disabled, or is the newest.
        """

        def destroyed_version(old: Version, is_newest: bool) -> Version:
            if is_newest:
                raise ValueError(f"version {version} of {master_key_identifier!r} is the newest one: rotate the key first")
            if not old.is_disabled:
                raise ValueError(f"disable version {version} of {master_key_identifier!r} first: it cannot come back")
            return Version(None, is_disabled=True)

        self._replace_version(master_key_identifier, version, destroyed_version)

    def _replace_version(self, identifier: str, number: int, change: Callable[[Version, bool], Version]) -> None:
        """Replace a version by what ``change`` makes of it. ``change`` also takes whether the version is the newest."""
        with self._editing() as keys:
            versions = _versions(keys, identifier)
            versions[number - 1] = change(_version(versions, identifier, number), number == len(versions))

    @hides_arguments
    def change_passphrase(self, passphrase: str | bytes) -> None:
        """Protect the keyring file with another passphrase. Programs that have it open have to open it again.

        Copies of the old file still open with the old passphrase: destroy them, or rotate the master keys.

        Args:
            passphrase: the new passphrase, as for the class.

        Raises:
            TypeError, ValueError: the passphrase is neither text nor bytes, or has a wrong length.
        """
        kdf = {**self._kdf, "salt": encode_base64(random_bytes(SALT_SIZE))}
        new_key = _derive_key(passphrase, kdf)
        old = self._kdf, self._passphrase_key
        try:
            with self._editing():
                self._kdf, self._passphrase_key = kdf, new_key
        except BaseException:       # the file is the old one
            self._kdf, self._passphrase_key = old
            raise

    @hides_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient).

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key. Its newest version wraps.
        """
        versions = self._current_versions(master_key_identifier)
        master_key = _usable_key(versions, master_key_identifier, len(versions))
        sealed_key = seal_key(master_key, AesKey(key_bytes), _aad(master_key_identifier, len(versions)))
        return f"{WRAPPED_PREFIX}{len(versions)}:{encode_base64(sealed_key)}"

    @hides_arguments
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient).

        Args:
            wrapped_key: text that ``wrap_key`` returned.
            master_key_identifier: the master key that wrapped it.
        """
        version, colon, sealed_key = wrapped_key.removeprefix(WRAPPED_PREFIX).partition(":")
        if not wrapped_key.startswith(WRAPPED_PREFIX) or not colon or not version.isdecimal() or len(version) > 6:
            raise FormatError("this key was not wrapped by a keyring")
        number = int(version)
        versions = self._current_versions(master_key_identifier)
        master_key = _usable_key(versions, master_key_identifier, number)
        key = open_key(master_key, decode_base64(sealed_key, "a wrapped key"), _aad(master_key_identifier, number))
        return lend_key(key, bytes)

    def _current_versions(self, master_key_identifier: str) -> list[Version]:
        """Return a master key's versions in the current file."""
        return list(_versions(self._current(), master_key_identifier))

    def _current(self) -> Keys:
        """Return the keys in the current file. It is read again if it was replaced."""
        with self._lock:
            file_version = _file_version(self._path)
            if file_version != self._file_version:
                self._keys = self._read()
                self._file_version = file_version
            return self._keys

    @contextlib.contextmanager
    def _editing(self) -> Iterator[Keys]:
        """Yield the keys in the current file to a caller who changes them, and write them back. Other processes have to wait."""
        import fcntl  # imported late: only changes need fcntl, and Windows has none

        folder = os.open(os.path.dirname(os.path.realpath(self._path)), os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            with self._lock:
                keys = self._read()
                yield keys
                with FileSink(self._path) as sink:
                    sink.write(_serialize(keys, self._kdf, self._passphrase_key))
                self._file_version = _file_version(self._path)
                self._keys = keys
        finally:
            with contextlib.suppress(OSError):      # the keys are already in their place, or another error is raised
                os.close(folder)

    def _read(self) -> Keys:
        content = _load(self._path)
        if content["kdf"] != self._kdf:
            raise KeyAccessError(
                "another keyring replaced this one after it was opened, or its passphrase was changed: open it again",
                path=self._path,
            )
        return _decrypt_keys(content, self._passphrase_key, self._path)

    def __repr__(self) -> str:
        return f"<Keyring {self._path!r}>"


def _derive_key(passphrase: str | bytes, kdf: dict[str, Any]) -> AesKey:
    if not isinstance(passphrase, str | bytes | bytearray):     # bytes(8) would be eight zeros
        raise TypeError(f"a passphrase is text or bytes, not {type(passphrase).__name__}")
    try:
        secret = passphrase.encode() if isinstance(passphrase, str) else bytes(passphrase)
    except UnicodeEncodeError:
        secret = None       # no error is raised here, because its context would show the passphrase
    if secret is None:
        raise ValueError("the passphrase is not text: half of a surrogate pair")
    if not 0 < len(secret) <= LARGEST_PASSPHRASE:
        raise ValueError(f"the passphrase of a keyring must have 1 to {LARGEST_PASSPHRASE} bytes, not {len(secret)}")
    if kdf["name"] == PBKDF2:
        return passphrase_key(secret, decode_base64(kdf["salt"], "salt"), kdf["iterations"])
    if within_fips():
        raise UnsupportedError("the keyring uses scrypt, which no FIPS provider has: make a keyring under FASTPQ_AES=fips")
    # imported late: scrypt is slow to import, and only keyrings need it
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    scrypt = Scrypt(decode_base64(kdf["salt"], "salt"), length=32, n=1 << kdf["log_n"], r=kdf["r"], p=kdf["p"])
    return take_key(lambda: scrypt.derive(secret))


def _load(path: str) -> dict[str, Any]:
    """Read a keyring file and return its members. They are checked as far as possible without the passphrase key."""
    data = read_small_file(path, LARGEST_KEYRING + 1)
    try:
        content = parse_object(data, LARGEST_KEYRING, "a keyring")
        if content.get("format") != FORMAT:
            raise FormatError(f"not a keyring of the format {FORMAT}")
        kdf, keys = content.get("kdf"), content.get("keys")
        if not isinstance(kdf, dict) or not isinstance(keys, dict) or not isinstance(content.get("seal"), str):
            raise FormatError("a keyring without kdf, keys or seal")
        _check_derivation(kdf)
    except ParquetError as error:
        error.at(path=path)
        raise
    return content


def _check_derivation(kdf: dict[str, Any]) -> None:
    """Refuse a key derivation that is unknown, too cheap or too expensive."""
    if kdf.get("name") == PBKDF2:
        is_known, cost, least, most = True, kdf.get("iterations"), PBKDF2_ITERATIONS, LARGEST_ITERATIONS
    else:
        is_known = kdf.get("name") == "scrypt" and (kdf.get("r"), kdf.get("p")) == (SCRYPT_R, SCRYPT_P)
        cost, least, most = kdf.get("log_n"), SMALLEST_SCRYPT_LOG_N, LARGEST_SCRYPT_LOG_N
    if not is_known or not isinstance(kdf.get("salt"), str):
        raise FormatError("a keyring with another key derivation")
    if isinstance(cost, bool) or not isinstance(cost, int) or not least <= cost <= most:
        raise LimitError("a keyring whose key derivation is too cheap, or too expensive")


def _serialize(keys: Keys, kdf: dict[str, Any], passphrase_key: AesKey) -> bytes:
    """Return a keyring file's content."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "kdf": kdf,
        "keys": {
            identifier: [
                None if key is None else encode_base64(seal_key(passphrase_key, key, _aad(identifier, number)))
                for number, (key, _) in enumerate(versions, 1)
            ]
            for identifier, versions in keys.items()
        },
    }
    disabled_versions = {
        identifier: [number for number, version in enumerate(versions, 1) if version.is_disabled]
        for identifier, versions in keys.items()
    }
    if any(disabled_versions.values()):     # other keyrings stay readable by earlier versions of fastpq
        content["disabled"] = disabled_versions
    content["seal"] = encode_base64(authenticate(passphrase_key, _canonical(content)))
    return (json.dumps(content, indent=1) + "\n").encode()


def _decrypt_keys(content: dict[str, Any], passphrase_key: AesKey, path: str) -> Keys:
    """Verify a keyring file's seal, and return its master keys."""
    seal = decode_base64(content["seal"], "seal")
    if not is_authentic(passphrase_key, _canonical(content), seal):
        raise KeyAccessError("the keyring does not open: the passphrase is wrong, or the file was altered", path=path)
    disabled_versions = content.get("disabled", {})
    return {
        identifier: [
            Version(
                None
                if sealed_key is None
                else open_key(passphrase_key, decode_base64(sealed_key, "a master key"), _aad(identifier, number)),
                number in disabled_versions.get(identifier, ()),
            )
            for number, sealed_key in enumerate(versions, 1)
        ]
        for identifier, versions in content["keys"].items()
    }


def _canonical(content: dict[str, Any]) -> bytes:
    """Return the bytes that the seal authenticates: all other members."""
    other_members = {name: member for name, member in content.items() if name != "seal"}
    return json.dumps(other_members, separators=(",", ":"), sort_keys=True).encode()


def _aad(identifier: str, version: int) -> bytes:
    return f"{identifier}:{version}".encode()


def _version(versions: list[Version], identifier: str, number: int) -> Version:
    """Return a version that was not destroyed."""
    if not 1 <= number <= len(versions):
        raise KeyAccessError.denied(f"the master key {identifier!r} has no version {number}")
    if versions[number - 1].key is None:
        raise KeyAccessError.denied(f"version {number} of the master key {identifier!r} was destroyed")
    return versions[number - 1]


def _usable_key(versions: list[Version], identifier: str, number: int) -> AesKey:
    """Return a version's key if the version is neither destroyed nor disabled."""
    version = _version(versions, identifier, number)
    if version.is_disabled:
        raise KeyAccessError.denied(f"version {number} of the master key {identifier!r} is disabled")
    assert version.key is not None
    return version.key


def _warn_of_mode(path: str) -> None:
    mode = os.stat(path).st_mode
    if os.name == "posix" and mode & READABLE_BY_OTHERS:
        warnings.warn(
            f"others can read the keyring {path} (mode {mode & 0o777:o}), and try passphrases: chmod 600",
            UserWarning,
            stacklevel=4,
        )


def _versions(keys: Keys, identifier: str) -> list[Version]:
    if identifier not in keys:
        raise KeyAccessError.denied(f"the keyring has no master key {identifier!r}")
    return keys[identifier]


def _file_version(path: str) -> tuple[int, int, int]:
    """Return a file's inode, modification time and size. They change if the file is replaced."""
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns, status.st_size
