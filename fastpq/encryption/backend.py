"""Choice between two AES-GCM implementations for large modules: the linked OpenSSL, and the OpenSSL in the package cryptography.

cryptography's wheels contain their own OpenSSL, which is often newer, and is faster on some processors. Under a FIPS provider,
that provider seals and opens all modules.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastpq.encryption.provider import AES_VARIABLE, provider_name, within_fips
from fastpq.errors import UnsupportedError

REPEATS = 5             # number of measurements for one size. The shortest one counts
WORTHWHILE = 0.9        # largest ratio between cryptography's time and EVP's time, because cryptography's calls need the GIL
# These come from evp, which imports this module.
Seal = Callable[[Any, bytes, bytes, bytes, str], bytes]     # evp.seal_with_nonce
MakeKey = Callable[[bytes], Any]                            # evp.AesKey


@dataclass(frozen=True, slots=True)
class AesBackend:
    """Which AES-GCM implementation is used for which module size.

    Attributes:
        evp: version of the OpenSSL that fastpq links, and of a FIPS provider if one is used. It handles all modules that are
            smaller than crossover.
        cryptography: the package cryptography's version, and its OpenSSL's version. None under a FIPS provider.
        crossover: smallest plaintext size in bytes for which cryptography is used. None if it is never used.
        reason: why this implementation was chosen.
    """

    evp: str
    cryptography: str | None
    crossover: int | None
    reason: str


def choose(evp: str, seal: Seal, make_key: MakeKey, smallest: int) -> AesBackend:
    """Choose the implementation for large modules.

    Args:
        evp: the linked OpenSSL's version.
        seal: evp.seal_with_nonce.
        make_key: evp.AesKey.
        smallest: a module with at least this many plaintext bytes is large.

    Raises:
        UnsupportedError: the environment variable asks for an implementation that is unknown or does not work.
    """
    requested_backend = os.environ.get(AES_VARIABLE, "auto")
    if requested_backend not in ("auto", "evp", "cryptography", "fips"):
        raise UnsupportedError(f"{AES_VARIABLE}={requested_backend}: it can be evp, cryptography, fips or auto")
    if within_fips():
        return AesBackend(f"{provider_name()} in {evp}", None, None, f"{AES_VARIABLE}=fips")
    # imported late: cryptography is slow to import, and must not be called under a FIPS provider
    from fastpq.encryption.large_aead import PACKAGE_VERSIONS, can_encrypt_in_place

    if requested_backend == "evp":
        return AesBackend(evp, PACKAGE_VERSIONS, None, f"{AES_VARIABLE}=evp")
    if not can_encrypt_in_place() or not _gives_same_result(seal, make_key):
        if requested_backend == "cryptography":
            raise UnsupportedError(f"{AES_VARIABLE}=cryptography: {PACKAGE_VERSIONS} cannot encrypt in place")
        return AesBackend(evp, PACKAGE_VERSIONS, None, "this cryptography cannot encrypt in place")
    if requested_backend == "cryptography":
        return AesBackend(evp, PACKAGE_VERSIONS, smallest, f"{AES_VARIABLE}=cryptography")
    return AesBackend(evp, PACKAGE_VERSIONS, _crossover(seal, make_key, smallest), "measured")


def _gives_same_result(seal: Seal, make_key: MakeKey) -> bool:
    """Return whether cryptography gives the same result as EVP, although its caller has already wiped the key buffer."""
    key, nonce, plain = make_key(secrets.token_bytes(16)), secrets.token_bytes(12), bytes(64)
    return seal(key, nonce, b"aad", plain, "evp") == seal(key, nonce, b"aad", plain, "cryptography")


def _crossover(seal: Seal, make_key: MakeKey, smallest: int) -> int | None:
    """Return the smallest measured size for which cryptography is clearly faster on this machine, or None."""
    crossover = None
    for size in (16 * smallest, 4 * smallest, smallest):
        if _seconds(seal, make_key, size, "cryptography") >= WORTHWHILE * _seconds(seal, make_key, size, "evp"):
            break
        crossover = size
    return crossover


def _seconds(seal: Seal, make_key: MakeKey, size: int, backend: str) -> float:
    key, nonce, plain = make_key(secrets.token_bytes(16)), bytes(12), bytes(size)
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        seal(key, nonce, b"", plain, backend)
        best = min(best, time.perf_counter() - start)
    return best
