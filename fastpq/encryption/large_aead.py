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

    Attributes:
        seal_into: called with buffers (nonce, plaintext, AAD, out), writes ciphertext and tag to out, of 16 bytes more.
        open_into: called with buffers (nonce, ciphertext and tag, AAD, out), writes the plaintext to out, of 16 bytes less.
        refusal: class of the exception of open_into for a tag that is not authentic.
    """

    __slots__ = ("open_into", "refusal", "seal_into")

    def __init__(self, key: bytearray) -> None:
        aead = AESGCM(key)
        self.seal_into = aead.encrypt_into      # called for each large module, under the GIL: no function of ours between
        self.open_into = aead.decrypt_into
        self.refusal = InvalidTag
