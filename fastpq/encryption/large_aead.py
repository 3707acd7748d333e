"""AES-GCM of the package cryptography, for large modules."""

from __future__ import annotations

import cryptography
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.backends.openssl.backend import backend as openssl
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# Versions of the package and of its OpenSSL.
PACKAGE_VERSIONS = f"{cryptography.__version__} with {openssl.openssl_version_text()}"


def can_encrypt_in_place() -> bool:
    """Whether this version of the package writes its results into buffers."""
    return hasattr(AESGCM, "encrypt_into") and hasattr(AESGCM, "decrypt_into")


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
