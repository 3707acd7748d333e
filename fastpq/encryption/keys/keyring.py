"""Keyring: a key service in one local file, under a passphrase.

The file is a JSON object. ``kdf`` has the parameters of scrypt, or under a FIPS provider of PBKDF2, to derive the passphrase
key. ``keys`` has the versions of each master key by identifier, encrypted under the passphrase key by AES-GCM (base64 of nonce,
ciphertext and tag; AAD: identifier, ``:`` and version). ``seal`` is an AES-GCM nonce and tag under the passphrase key with all
other members as AAD, against removed or exchanged members.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from typing import Any, NoReturn, Self

from fastpq.encryption.evp import AesKey
from fastpq.encryption.keys.material import decode_base64, parse_object
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
from fastpq.errors import FormatError, KeyAccessError, LimitError, ParquetError, UnsupportedError
from fastpq.io.sink import FileSink

FORMAT = "fastpq-keyring-1"
WRAPPED_PREFIX = "keyring:v"
DEFAULT_MASTER_KEY_BITS = 256
LARGEST_KEYRING = 1 << 24       # bytes
LARGEST_PASSPHRASE = 1 << 16    # bytes

# scrypt with N = 2^17, r = 8, p = 1 takes 128 MiB and some tenths of a second (OWASP's first choice)
DEFAULT_SCRYPT_LOG_N = 17
SCRYPT_R = 8
SCRYPT_P = 1
SMALLEST_SCRYPT_LOG_N = 10
LARGEST_SCRYPT_LOG_N = 20
SALT_SIZE = 16      # bytes
# PBKDF2 with HMAC-SHA-256, which FIPS 140-3 approves (SP 800-132); iterations as OWASP advises
PBKDF2 = "pbkdf2-hmac-sha256"
PBKDF2_ITERATIONS = 600_000
LARGEST_ITERATIONS = 100_000_000

Keys = dict[str, list[AesKey]]


class Keyring:
    """A KmsClient with its master keys in a local file, encrypted under a passphrase.

    Master keys have versions: the newest wraps, all versions unwrap. Any number of threads and processes may share a keyring
    file; a key added by another process is found at its first use.

    Args:
        path: the keyring file.
        passphrase: the passphrase of the file, 1 to 65536 bytes; text counts in UTF-8.

    Raises:
        FileNotFoundError: there is no file; Keyring.create makes one.
        TypeError: a passphrase neither text nor bytes.
        ValueError: a passphrase of a wrong length.
        KeyAccessError: another passphrase, or the file was altered.
        FormatError, LimitError: the file is no keyring.
    """

    def __init__(self, path: str | os.PathLike[str], passphrase: str | bytes) -> None:
        self._path = os.fspath(path)
        self._using = threading.Lock()
        self._keys: Keys = {}
        self._state = _state(self._path)
        content = _load(self._path)
        self._kdf: dict[str, Any] = content["kdf"]
        self._passphrase_key = _derive(passphrase, self._kdf)
        self._keys = _opened(content, self._passphrase_key, self._path)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], passphrase: str | bytes, *, scrypt_log_n: int | None = None
    ) -> Self:
        """Make an empty keyring file, readable by its owner alone.

        Args:
            path: the new file.
            passphrase: passphrase to open the keyring with later.
            scrypt_log_n: cost of guessing the passphrase, 10 to 20; each step doubles time and memory. None stands for 17. Under
                a FIPS provider (``FASTPQ_AES=fips``) there is no scrypt: PBKDF2 takes its place, with 600,000 iterations.

        Raises:
            FileExistsError: the file exists already.
            UnsupportedError: scrypt_log_n under a FIPS provider, or no FIPS provider where one is wanted.
            OSError: the file cannot be written whole, and is not there; or the new file cannot be read.
        """
        if within_fips():
            if scrypt_log_n is not None:
                raise UnsupportedError("scrypt_log_n under a FIPS provider: there is no scrypt")
            return cls._made(path, passphrase, {"name": PBKDF2, "iterations": PBKDF2_ITERATIONS})
        if scrypt_log_n is None:
            scrypt_log_n = DEFAULT_SCRYPT_LOG_N
        if not SMALLEST_SCRYPT_LOG_N <= scrypt_log_n <= LARGEST_SCRYPT_LOG_N:
            raise ValueError(f"scrypt_log_n can be {SMALLEST_SCRYPT_LOG_N} to {LARGEST_SCRYPT_LOG_N}, not {scrypt_log_n!r}")
        return cls._made(path, passphrase, {"name": "scrypt", "log_n": scrypt_log_n, "r": SCRYPT_R, "p": SCRYPT_P})

    @classmethod
    def _made(cls, path: str | os.PathLike[str], passphrase: str | bytes, kdf: dict[str, Any]) -> Self:
        kdf["salt"] = base64.b64encode(random_bytes(SALT_SIZE)).decode()
        data = _sealed({}, kdf, _derive(passphrase, kdf))
        with FileSink(os.fspath(path), mode=0o600, replaces=False) as sink:
            sink.write(data)
        return cls(path, passphrase)

    @property
    def key_ids(self) -> list[str]:
        """The identifiers of the master keys in the current file."""
        return sorted(self._current())

    def create_key(self, master_key_identifier: str, bits: int = DEFAULT_MASTER_KEY_BITS) -> None:
        """Add a master key.

        Args:
            master_key_identifier: name of the new master key.
            bits: 128, 192 or 256.

        Raises:
            ValueError: the name is taken or empty.
        """
        with self._changing() as keys:
            if not master_key_identifier or master_key_identifier in keys:
                raise ValueError(f"there is a master key {master_key_identifier!r} already, or the name is empty")
            keys[master_key_identifier] = [random_key(bits)]

    def rotate_key(self, master_key_identifier: str) -> int:
        """Add a version to a master key; CryptoFactory.rotate_master_keys then moves files to the new version.

        Args:
            master_key_identifier: the master key.

        Returns:
            Number of the new version, from 1.
        """
        with self._changing() as keys:
            versions = _versions(keys, master_key_identifier)
            versions.append(random_key(versions[-1].bits))
            return len(versions)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap a key (see KmsClient).

        Args:
            key_bytes: 16, 24 or 32 bytes.
            master_key_identifier: the master key; its newest version wraps.
        """
        versions = self._known(master_key_identifier)
        sealed = seal_key(versions[-1], AesKey(key_bytes), _aad(master_key_identifier, len(versions)))
        return f"{WRAPPED_PREFIX}{len(versions)}:{base64.b64encode(sealed).decode()}"

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Unwrap a key (see KmsClient).

        Args:
            wrapped_key: text returned by ``wrap_key``.
            master_key_identifier: the master key of the wrapping.
        """
        version, colon, sealed = wrapped_key.removeprefix(WRAPPED_PREFIX).partition(":")
        if not wrapped_key.startswith(WRAPPED_PREFIX) or not colon or not version.isdecimal() or len(version) > 6:
            raise FormatError("a wrapped key that is not a keyring's")
        number = int(version)
        versions = self._known(master_key_identifier)
        if not 1 <= number <= len(versions):
            raise KeyAccessError(f"the master key {master_key_identifier!r} has no version {number}")
        key = open_key(versions[number - 1], decode_base64(sealed, "a wrapped key"), _aad(master_key_identifier, number))
        return lend_key(key, bytes)

    def _known(self, master_key_identifier: str) -> list[AesKey]:
        """The versions of a master key in the current file."""
        return list(_versions(self._current(), master_key_identifier))

    def _current(self) -> Keys:
        """The keys in the current file, read again if the file was replaced."""
        with self._using:
            state = _state(self._path)
            if state != self._state:
                self._keys = self._read()
                self._state = state
            return self._keys

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Keys]:
        """The keys in the current file, to be changed and then written back, with other processes locked out."""
        import fcntl  # imported late: only changes need fcntl, and Windows has none

        folder = os.open(os.path.dirname(os.path.realpath(self._path)), os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            with self._using:
                keys = self._read()
                yield keys
                with FileSink(self._path) as sink:
                    sink.write(_sealed(keys, self._kdf, self._passphrase_key))
                self._state = _state(self._path)
                self._keys = keys
        finally:
            with contextlib.suppress(OSError):      # the keys are in their place already, or another error is on its way
                os.close(folder)

    def _read(self) -> Keys:
        content = _load(self._path)
        if content["kdf"] != self._kdf:
            raise KeyAccessError("the keyring was replaced by another since it was opened", path=self._path)
        return _opened(content, self._passphrase_key, self._path)

    def __repr__(self) -> str:
        return f"<Keyring {self._path!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Keyring holds keys and cannot be copied or pickled")


def _derive(passphrase: str | bytes, kdf: dict[str, Any]) -> AesKey:
    if not isinstance(passphrase, str | bytes | bytearray):     # bytes(8) would be eight zeros
        raise TypeError(f"a passphrase is text or bytes, not {type(passphrase).__name__}")
    try:
        secret = passphrase.encode() if isinstance(passphrase, str) else bytes(passphrase)
    except UnicodeEncodeError:
        raise ValueError("a passphrase that is no text: half of a surrogate pair") from None    # the cause shows the passphrase
    if not 0 < len(secret) <= LARGEST_PASSPHRASE:
        raise ValueError(f"a keyring needs a passphrase of 1 to {LARGEST_PASSPHRASE} bytes, not {len(secret)}")
    if kdf["name"] == PBKDF2:
        return passphrase_key(secret, decode_base64(kdf["salt"], "salt"), kdf["iterations"])
    if within_fips():
        raise UnsupportedError("a keyring of scrypt, which no FIPS provider has; a keyring made under FASTPQ_AES=fips has none")
    # imported late: scrypt is slow to import, and only keyrings need scrypt
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    scrypt = Scrypt(decode_base64(kdf["salt"], "salt"), length=32, n=1 << kdf["log_n"], r=kdf["r"], p=kdf["p"])
    return take_key(lambda: scrypt.derive(secret))


def _load(path: str) -> dict[str, Any]:
    """The members of a keyring file, checked as far as possible without its key."""
    with open(path, "rb") as file:
        data = file.read(LARGEST_KEYRING + 1)
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
    """Refuse a key derivation of an unknown kind, or of a cost out of bounds."""
    if kdf.get("name") == PBKDF2:
        known, cost, least, most = True, kdf.get("iterations"), PBKDF2_ITERATIONS, LARGEST_ITERATIONS
    else:
        known = kdf.get("name") == "scrypt" and (kdf.get("r"), kdf.get("p")) == (SCRYPT_R, SCRYPT_P)
        cost, least, most = kdf.get("log_n"), SMALLEST_SCRYPT_LOG_N, LARGEST_SCRYPT_LOG_N
    if not known or not isinstance(kdf.get("salt"), str):
        raise FormatError("a keyring with another key derivation")
    if isinstance(cost, bool) or not isinstance(cost, int) or not least <= cost <= most:
        raise LimitError("a keyring whose key derivation is too cheap, or too expensive")


def _sealed(keys: Keys, kdf: dict[str, Any], passphrase_key: AesKey) -> bytes:
    """A keyring file."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "kdf": kdf,
        "keys": {
            identifier: [
                base64.b64encode(seal_key(passphrase_key, key, _aad(identifier, number))).decode()
                for number, key in enumerate(versions, 1)
            ]
            for identifier, versions in keys.items()
        },
    }
    content["seal"] = base64.b64encode(authenticate(passphrase_key, _canonical(content))).decode()
    return (json.dumps(content, indent=1) + "\n").encode()


def _opened(content: dict[str, Any], passphrase_key: AesKey, path: str) -> Keys:
    """The master keys of a keyring file, after verification of its seal."""
    seal = decode_base64(content["seal"], "seal")
    if not is_authentic(passphrase_key, _canonical(content), seal):
        raise KeyAccessError("the keyring does not open: another passphrase, or it was altered", path=path)
    return {
        identifier: [
            open_key(passphrase_key, decode_base64(sealed, "a master key"), _aad(identifier, number))
            for number, sealed in enumerate(versions, 1)
        ]
        for identifier, versions in content["keys"].items()
    }


def _canonical(content: dict[str, Any]) -> bytes:
    """The bytes under the seal: all other members."""
    covered = {name: member for name, member in content.items() if name != "seal"}
    return json.dumps(covered, separators=(",", ":"), sort_keys=True).encode()


def _aad(identifier: str, version: int) -> bytes:
    return f"{identifier}:{version}".encode()


def _versions(keys: Keys, identifier: str) -> list[AesKey]:
    if identifier not in keys:
        raise KeyAccessError(f"the keyring has no master key {identifier!r}")
    return keys[identifier]


def _state(path: str) -> tuple[int, int, int]:
    """Inode, time of change and size of a file: different for a file replaced meanwhile."""
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns, status.st_size
