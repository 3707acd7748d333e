"""Which implementation of AES-GCM takes large modules: the linked OpenSSL, or that of the package cryptography.

The wheels of cryptography bring an OpenSSL of their own, often a newer one, with faster code for some processors.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

import cryptography
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.backends.openssl.backend import backend as openssl
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastpq.encryption.evp import AesKey
from fastpq.errors import UnsupportedError

VARIABLE = "FASTPQ_AES"
REPEATS = 5
WORTHWHILE = 0.9        # cryptography has to take less than this part of EVP's time, since a call of it needs the GIL
Seal = Callable[[AesKey, bytes, bytes, bytes, str], bytes]


@dataclass(frozen=True, slots=True)
class AesBackend:
    """Who encrypts what.

    Attributes:
        evp: version of the OpenSSL that fastpq is linked to; it takes every module smaller than crossover.
        cryptography: versions of the package cryptography and of its OpenSSL.
        crossover: plaintext bytes from which cryptography takes a module, or None if it takes none.
        reason: why.
    """

    evp: str
    cryptography: str
    crossover: int | None
    reason: str


class LargeAead:
    """AES-GCM of the package cryptography, under one key; it releases the GIL while it works.

    Args:
        key: the key; it may be wiped as soon as this returns.
    """

    __slots__ = ("_aead",)

    def __init__(self, key: bytearray) -> None:
        self._aead = AESGCM(key)

    def seal_into(self, nonce: memoryview, plain: memoryview, aad: memoryview, out: memoryview) -> None:
        """Ciphertext and tag into out, which is 16 bytes longer than plain."""
        self._aead.encrypt_into(nonce, plain, aad, out)

    def open_into(self, nonce: memoryview, sealed: memoryview, aad: memoryview, out: memoryview) -> bool:
        """The plaintext of ciphertext and tag into out, which is 16 bytes shorter; whether it is authentic."""
        try:
            self._aead.decrypt_into(nonce, sealed, aad, out)
        except InvalidTag:
            return False
        return True


def choose(evp: str, seal: Seal, smallest: int) -> AesBackend:
    """Decide who takes large modules.

    Args:
        evp: version of the linked OpenSSL.
        seal: evp.seal_with_nonce.
        smallest: plaintext bytes from which a module is large.

    Raises:
        UnsupportedError: the environment asks for what is not there.
    """
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in ("auto", "evp", "cryptography"):
        raise UnsupportedError(f"{VARIABLE}={wanted}: it can be evp, cryptography or auto")
    package = f"{cryptography.__version__} with {openssl.openssl_version_text()}"
    if wanted == "evp":
        return AesBackend(evp, package, None, f"{VARIABLE}=evp")
    if not _agrees(seal):
        if wanted == "cryptography":
            raise UnsupportedError(f"{VARIABLE}=cryptography: {cryptography.__version__} cannot encrypt in place")
        return AesBackend(evp, package, None, "this cryptography cannot encrypt in place")
    if wanted == "cryptography":
        return AesBackend(evp, package, smallest, f"{VARIABLE}=cryptography")
    return AesBackend(evp, package, _crossover(seal, smallest), "measured")


def _agrees(seal: Seal) -> bool:
    """Whether cryptography has the functions, and works on a copy of the key that outlives ours."""
    if not hasattr(AESGCM, "encrypt_into") or not hasattr(AESGCM, "decrypt_into"):
        return False
    key, nonce, plain = AesKey(secrets.token_bytes(16)), secrets.token_bytes(12), bytes(64)
    return seal(key, nonce, b"aad", plain, "evp") == seal(key, nonce, b"aad", plain, "cryptography")


def _crossover(seal: Seal, smallest: int) -> int | None:
    """The smallest size from which cryptography is clearly faster, on this machine."""
    crossover = None
    for size in (16 * smallest, 4 * smallest, smallest):
        if _seconds(seal, size, "cryptography") >= WORTHWHILE * _seconds(seal, size, "evp"):
            break
        crossover = size
    return crossover


def _seconds(seal: Seal, size: int, backend: str) -> float:
    key, nonce, plain = AesKey(secrets.token_bytes(16)), bytes(12), bytes(size)
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        seal(key, nonce, b"", plain, backend)
        best = min(best, time.perf_counter() - start)
    return best
