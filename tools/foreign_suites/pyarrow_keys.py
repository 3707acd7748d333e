"""pyarrow's functions and classes of encryption, over fastpq."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.parquet.encryption as pe

import fastpq
import fastpq.encryption


def encryption_properties(footer_key: Any, *, encryption_algorithm: Any = "AES_GCM_V1", data_key_length_bits: int = 128,
                          **options: Any) -> Any:
    if not isinstance(footer_key, bytes):
        raise TypeError("footer_key must be bytes")
    if (prefix := options.pop("aad_prefix", None)) is not None:
        if not isinstance(prefix, bytes):
            raise TypeError("aad_prefix must be bytes")
        options |= {"aad_prefix": prefix, "store_aad_prefix": options.get("store_aad_prefix", True)}
    return fastpq.FileEncryptionProperties(footer_key, algorithm=encryption_algorithm, **options)


def decryption_properties(footer_key: Any, *, aad_prefix: Any = None, allow_plaintext_files: bool = False, **options: Any) -> Any:
    if not isinstance(footer_key, bytes):
        raise TypeError("footer_key must be bytes")
    return fastpq.FileDecryptionProperties(footer_key, aad_prefix=aad_prefix, allow_plaintext_files=allow_plaintext_files,
                                           allowed_algorithms=("AES_GCM_V1", "AES_GCM_CTR_V1"))


class CryptoFactory(fastpq.encryption.CryptoFactory):
    """fastpq's, whose errors are those of the caller's key service."""

    def file_encryption_properties(self, *arguments: Any, **options: Any) -> Any:
        with as_of_service():
            return super().file_encryption_properties(*arguments, **options)

    def file_decryption_properties(self, *arguments: Any, **options: Any) -> Any:
        with as_of_service():
            return super().file_decryption_properties(*arguments, **options)


@contextmanager
def as_of_service() -> Iterator[None]:
    """Raise the error of a key service in place of ours, as pyarrow does."""
    try:
        yield
    except fastpq.CryptoError as error:
        if isinstance(error.__cause__, ValueError | KeyError):
            raise error.__cause__ from None
        raise


pe.CryptoFactory = CryptoFactory
for name in ("KmsClient", "EncryptionConfiguration", "DecryptionConfiguration", "KmsConnectionConfig"):
    setattr(pe, name, getattr(fastpq.encryption, name))
pe.create_encryption_properties = encryption_properties
pe.create_decryption_properties = decryption_properties
