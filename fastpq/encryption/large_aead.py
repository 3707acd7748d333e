"""AES-GCM from the package cryptography, for large modules."""

from __future__ import annotations

import cryptography
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.backends.openssl.backend import backend as openssl
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# The package's version, and its OpenSSL's version.
PACKAGE_VERSIONS = f"{cryptography.__version__} with {openssl.openssl_version_text()}"


def can_encrypt_in_place() -> bool:
    """Return whether this version of the package can write its results into buffers."""
    return hasattr(AESGCM, "encrypt_into") and hasattr(AESGCM, "decrypt_into")


class LargeAead:
    """AES-GCM from the package cryptography, under one key. It does not hold the GIL while it works.

    Args:
        key: the key. The caller may wipe the buffer as soon as the constructor returns.

    Attributes:
        seal_into: function that takes the buffers (nonce, plaintext, AAD, out). It writes ciphertext and tag to out, which is
            16 bytes longer than the plaintext.
        open_into: function that takes the buffers (nonce, ciphertext and tag, AAD, out). It writes the plaintext to out, which is
            16 bytes shorter than ciphertext and tag.
        refusal: exception class that open_into raises if a tag is not authentic.
    """

    __slots__ = ("open_into", "refusal", "seal_into")

    def __init__(self, key: bytearray) -> None:
        aead = AESGCM(key)
        self.seal_into = aead.encrypt_into      # called directly for each large module, because each call needs the GIL
        self.open_into = aead.decrypt_into
        self.refusal = InvalidTag
