"""Choice of the AES-GCM implementation for large modules: the linked OpenSSL, or the OpenSSL inside the package cryptography.

The wheels of cryptography bring an OpenSSL of their own, often a newer version, with faster code for some processors.
Under a FIPS provider the provider alone takes all modules.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from fastpq.encryption.evp import AesKey
from fastpq.encryption.provider import AES_VARIABLE, provider_name, within_fips
from fastpq.errors import UnsupportedError

REPEATS = 5             # measurements of one size; the shortest counts
WORTHWHILE = 0.9        # greatest ratio of cryptography's time to EVP's: calls of cryptography need the GIL
Seal = Callable[[AesKey, bytes, bytes, bytes, str], bytes]


@dataclass(frozen=True, slots=True)
class AesBackend:
    """The AES-GCM implementation for modules of each size.

    Attributes:
        evp: version of the OpenSSL linked to fastpq, and of a FIPS provider in use; takes all modules smaller than crossover.
        cryptography: versions of the package cryptography and of its OpenSSL; None under a FIPS provider.
        crossover: least plaintext bytes of a module for cryptography; None if cryptography takes no module.
        reason: reason for the choice.
    """

    evp: str
    cryptography: str | None
    crossover: int | None
    reason: str


def choose(evp: str, seal: Seal, smallest: int) -> AesBackend:
    """Choose the implementation for large modules.

    Args:
        evp: version of the linked OpenSSL.
        seal: evp.seal_with_nonce.
        smallest: plaintext bytes from which a module is large.

    Raises:
        UnsupportedError: the environment variable asks for an unknown or unusable implementation.
    """
    wanted = os.environ.get(AES_VARIABLE, "auto")
    if wanted not in ("auto", "evp", "cryptography", "fips"):
        raise UnsupportedError(f"{AES_VARIABLE}={wanted}: it can be evp, cryptography, fips or auto")
    if within_fips():
        return AesBackend(f"{provider_name()} in {evp}", None, None, f"{AES_VARIABLE}=fips")
    # imported late: cryptography is slow to import, and must not be called under a FIPS provider
    from fastpq.encryption.large_aead import PACKAGE_VERSIONS, can_encrypt_in_place

    if wanted == "evp":
        return AesBackend(evp, PACKAGE_VERSIONS, None, f"{AES_VARIABLE}=evp")
    if not can_encrypt_in_place() or not _agrees(seal):
        if wanted == "cryptography":
            raise UnsupportedError(f"{AES_VARIABLE}=cryptography: {PACKAGE_VERSIONS} cannot encrypt in place")
        return AesBackend(evp, PACKAGE_VERSIONS, None, "this cryptography cannot encrypt in place")
    if wanted == "cryptography":
        return AesBackend(evp, PACKAGE_VERSIONS, smallest, f"{AES_VARIABLE}=cryptography")
    return AesBackend(evp, PACKAGE_VERSIONS, _crossover(seal, smallest), "measured")


def _agrees(seal: Seal) -> bool:
    """Whether cryptography has EVP's result, after the caller has wiped the key."""
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
