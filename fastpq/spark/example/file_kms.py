"""A key service for demonstrations, with its master keys in a file.

fastpq uses it as FileKms. Spark's own reader uses FileKms.java, which does the same.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastpq.encryption.keys import KmsClient, KmsConnectionConfig

VARIABLE = "FASTPQ_DEMO_KEYS"
NONCE_SIZE = 12


def create(path: Path, identifiers: Iterable[str]) -> None:
    """Write a file with new random master keys."""
    path.write_text("".join(f"{identifier}:{secrets.token_hex(16)}\n" for identifier in identifiers))
    path.chmod(0o600)


class FileKms(KmsClient):
    """Wraps keys with AES-GCM, like parquet-java's KeyToolkit. $FASTPQ_DEMO_KEYS names the file with the master keys."""

    def __init__(self, config: KmsConnectionConfig) -> None:
        entries = (line.split(":") for line in Path(os.environ[VARIABLE]).read_text().splitlines())
        self._keys = {identifier: bytes.fromhex(key) for identifier, key in entries}

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        nonce = secrets.token_bytes(NONCE_SIZE)
        ciphertext = AESGCM(self._keys[master_key_identifier]).encrypt(nonce, key_bytes, master_key_identifier.encode())
        return base64.b64encode(nonce + ciphertext).decode()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        wrapped_bytes = base64.b64decode(wrapped_key)
        key = AESGCM(self._keys[master_key_identifier])
        return key.decrypt(wrapped_bytes[:NONCE_SIZE], wrapped_bytes[NONCE_SIZE:], master_key_identifier.encode())
