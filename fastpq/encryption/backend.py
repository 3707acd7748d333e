"""Choice of the AES-GCM implementation for large modules: the linked OpenSSL, or the OpenSSL inside the package cryptography.

The wheels of cryptography bring an OpenSSL of their own, often a newer version, with faster code for some processors.
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

VARIABLE = "FASTPQ_AES"     # environment variable: auto, evp or cryptography
REPEATS = 5             # measurements of one size; the shortest counts
WORTHWHILE = 0.9        # greatest ratio of cryptography's time to EVP's: calls of cryptography need the GIL
Seal = Callable[[AesKey, bytes, bytes, bytes, str], bytes]


@dataclass(frozen=True, slots=True)
class AesBackend:
    """The AES-GCM implementation for modules of each size.

    Attributes:
        evp: version of the OpenSSL linked to fastpq; takes all modules smaller than crossover.
        cryptography: versions of the package cryptography and of its OpenSSL.
        crossover: least plaintext bytes of a module for cryptography; None if cryptography takes no module.
        reason: reason for the choice.
    """

    evp: str
    cryptography: str
    crossover: int | None
    reason: str


class LargeAead:
    """AES-GCM of the package cryptography, under one key; works without the GIL.

    Args:
        key: the key; the caller may wipe the buffer as soon as the constructor returns.
    """

    __slots__ = ("_aead",)

    def __init__(self, key: bytearray) -> None:
        self._aead = AESGCM(key)

    def seal_into(self, nonce: memoryview, plain: memoryview, aad: memoryview, out: memoryview) -> None:
        """Write ciphertext and tag to out, a buffer 16 bytes longer than plain."""
        self._aead.encrypt_into(nonce, plain, aad, out)

    def open_into(self, nonce: memoryview, sealed: memoryview, aad: memoryview, out: memoryview) -> bool:
        """Write the plaintext of ciphertext and tag to out, a buffer 16 bytes shorter; returns whether the tag is authentic."""
        try:
            self._aead.decrypt_into(nonce, sealed, aad, out)
        except InvalidTag:
            return False
        return True


def choose(evp: str, seal: Seal, smallest: int) -> AesBackend:
    """Choose the implementation for large modules.

    Args:
        evp: version of the linked OpenSSL.
        seal: evp.seal_with_nonce.
        smallest: plaintext bytes from which a module is large.

    Raises:
        UnsupportedError: the environment variable asks for an unknown or unusable implementation.
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
    """Whether cryptography can encrypt in place, with EVP's result, after the caller has wiped the key."""
    if not hasattr(AESGCM, "encrypt_into") or not hasattr(AESGCM, "decrypt_into"):
        return False
    key, nonce, plain = AesKey(secrets.token_bytes(16)), secrets.token_bytes(12), bytes(64)
    return seal(key, nonce, b"aad", plain, "evp") == seal(key, nonce, b"aad", plain, "cryptography")


def _crossover(seal: Seal, smallest: int) -> int | None:
    """The least measured size from which cryptography is clearly faster on this machine; None if there is none."""
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
