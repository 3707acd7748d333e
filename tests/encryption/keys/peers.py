"""Key services in memory, the same for fastpq, pyarrow and parquet-java, and how to call the latter two."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet.encryption as pe
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastpq.encryption import CryptoFactory, KmsClient

if TYPE_CHECKING:       # Spark's workers load this module, and do without pytest
    from tests.interop.parquet_java import ParquetJava

Keys = Mapping[str, bytes]

MASTER_KEYS = {"kf": b"0123456789012345", "kc1": b"1234567890123450", "kc2": b"12345678901234511234567890123451"}
NEW_MASTER_KEYS = {name: key[::-1] for name, key in MASTER_KEYS.items()}


class InMemoryKms(KmsClient):
    """Wraps with one set of master keys and unwraps with another, as a service does between two versions."""

    def __init__(self, wrapping: Keys = MASTER_KEYS, unwrapping: Keys | None = None) -> None:
        self.wrapping, self.unwrapping = wrapping, unwrapping or wrapping
        self.wrapped: list[str] = []
        self.unwrapped: list[str] = []

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        self.wrapped.append(master_key_identifier)
        return wrap(self.wrapping, key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        self.unwrapped.append(master_key_identifier)
        return unwrap(self.unwrapping, wrapped_key, master_key_identifier)


def factory(wrapping: Keys = MASTER_KEYS, unwrapping: Keys | None = None) -> CryptoFactory:
    return CryptoFactory(lambda config: InMemoryKms(wrapping, unwrapping))


def wrap(keys: Keys, key: bytes, identifier: str) -> str:
    nonce = os.urandom(12)
    return base64.b64encode(nonce + AESGCM(keys[identifier]).encrypt(nonce, key, identifier.encode())).decode()


def unwrap(keys: Keys, wrapped: str, identifier: str) -> bytes:
    sealed = base64.b64decode(wrapped)
    return AESGCM(keys[identifier]).decrypt(sealed[:12], sealed[12:], identifier.encode())


def arrow_factory(wrapping: Keys = MASTER_KEYS, unwrapping: Keys | None = None) -> pe.CryptoFactory:
    class ArrowKms(pe.KmsClient):     # type: ignore[misc]
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            return wrap(wrapping, key_bytes, master_key_identifier)

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            return unwrap(unwrapping or wrapping, wrapped_key, master_key_identifier)

    return pe.CryptoFactory(lambda config: ArrowKms())


def key_list(keys: Keys) -> str:
    return ",".join(f"{name}:{key.hex()}" for name, key in keys.items())


def managed_keys(
    java: ParquetJava,
    command: str,
    *arguments: str | Path,
    options: str = "",
    wrapping: Keys = MASTER_KEYS,
    unwrapping: Keys | None = None,
) -> str:
    """Run ManagedKeys; returns the text that it prints."""
    keys = f"test.wrap={key_list(wrapping)} test.unwrap={key_list(unwrapping or wrapping)}"
    return java.run("ManagedKeys", command, f"{keys} {options}".strip(), *arguments)
