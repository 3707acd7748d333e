"""Keyring: a key service in one local file, under a passphrase.

The file is a JSON object. ``kdf`` has the parameters of scrypt, to derive the passphrase key. ``keys`` has the versions of each
master key by identifier, encrypted under the passphrase key by AES-GCM (base64 of nonce, ciphertext and tag; AAD: identifier,
``:`` and version). ``seal`` is an AES-GCM nonce and tag under the passphrase key with all other members as AAD, against removed
or exchanged members.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import threading
from collections.abc import Iterator
from typing import Any, NoReturn, Self

from fastpq.encryption.evp import AesKey
from fastpq.encryption.keys.material import decode_base64, parse_object
from fastpq.encryption.keys.secret import authenticate, is_authentic, lend_key, open_key, random_key, seal_key, take_key
from fastpq.errors import FormatError, KeyAccessError, LimitError, ParquetError
from fastpq.io.sink import FileSink

FORMAT = "fastpq-keyring-1"
WRAPPED_PREFIX = "keyring:v"
DEFAULT_MASTER_KEY_BITS = 256
LARGEST_KEYRING = 1 << 24       # bytes

# scrypt with N = 2^17, r = 8, p = 1 takes 128 MiB and some tenths of a second (OWASP's first choice)
DEFAULT_SCRYPT_LOG_N = 17
SCRYPT_R = 8
SCRYPT_P = 1
SMALLEST_SCRYPT_LOG_N = 10
LARGEST_SCRYPT_LOG_N = 20
SALT_SIZE = 16      # bytes

Keys = dict[str, list[AesKey]]


class Keyring:
    """A KmsClient with its master keys in a local file, encrypted under a passphrase.

    Master keys have versions: the newest wraps, all versions unwrap. Any number of threads and processes may share a keyring
    file; a key added by another process is found at its first use.

    Args:
        path: the keyring file.
        passphrase: the passphrase of the file.

    Raises:
        FileNotFoundError: there is no file; Keyring.create makes one.
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
        cls, path: str | os.PathLike[str], passphrase: str | bytes, *, scrypt_log_n: int = DEFAULT_SCRYPT_LOG_N
    ) -> Self:
        """Make an empty keyring file, readable by its owner alone.

        Args:
            path: the new file.
            passphrase: passphrase to open the keyring with later.
            scrypt_log_n: cost of guessing the passphrase, 10 to 20; each step doubles time and memory.

        Raises:
            FileExistsError: the file exists already.
            OSError: the file cannot be written whole, and is not there; or the new file cannot be read.
        """
        if not SMALLEST_SCRYPT_LOG_N <= scrypt_log_n <= LARGEST_SCRYPT_LOG_N:
            raise ValueError(f"scrypt_log_n can be {SMALLEST_SCRYPT_LOG_N} to {LARGEST_SCRYPT_LOG_N}, not {scrypt_log_n!r}")
        kdf = {
            "name": "scrypt",
            "log_n": scrypt_log_n,
            "r": SCRYPT_R,
            "p": SCRYPT_P,
            "salt": base64.b64encode(secrets.token_bytes(SALT_SIZE)).decode(),
        }
        data = _sealed({}, kdf, _derive(passphrase, kdf))
        with FileSink(os.fspath(path), mode=0o600, replaces=False) as sink:
            sink.write(data)
        return cls(path, passphrase)

    @property
    def key_ids(self) -> list[str]:
        """The identifiers of the master keys."""
        with self._using:
            return sorted(self._keys)

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
        with self._using:
            state = _state(self._path)
            if state != self._state:
                self._keys = self._read()
                self._state = state
            return list(_versions(self._keys, master_key_identifier))

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
        return f"<Keyring {self._path!r} with {len(self._keys)} master keys>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Keyring holds keys and cannot be copied or pickled")


def _derive(passphrase: str | bytes, kdf: dict[str, Any]) -> AesKey:
    # imported late: scrypt is slow to import, and only keyrings need scrypt
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    secret = passphrase.encode() if isinstance(passphrase, str) else bytes(passphrase)
    if not secret:
        raise ValueError("a keyring needs a passphrase")
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
        sizes = (kdf.get("r"), kdf.get("p"))
        log_n = kdf.get("log_n")
        if kdf.get("name") != "scrypt" or sizes != (SCRYPT_R, SCRYPT_P) or not isinstance(kdf.get("salt"), str):
            raise FormatError("a keyring with another key derivation")
        if not isinstance(log_n, int) or not SMALLEST_SCRYPT_LOG_N <= log_n <= LARGEST_SCRYPT_LOG_N:
            raise LimitError("a keyring whose key derivation is too cheap, or too expensive")
    except ParquetError as error:
        error.at(path=path)
        raise
    return content


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
