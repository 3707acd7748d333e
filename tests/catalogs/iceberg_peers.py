"""What Iceberg writes, made again with the package cryptography and with PyIceberg's Avro writer, as referees of our code."""

from __future__ import annotations

import io
import os
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastpq.encryption.keys.material import decode_base64, encode_base64

BLOCK = 1 << 20


class RustMemoryKms:
    """The key service in memory of iceberg-rust's tests: nonce, ciphertext and tag without AAD."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        self.keys = keys
        self.calls = 0

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        self.calls += 1
        nonce = os.urandom(12)
        return encode_base64(nonce + AESGCM(self.keys[master_key_identifier]).encrypt(nonce, key_bytes, None))

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        self.calls += 1
        sealed = decode_base64(wrapped_key, "the wrapped key")
        return AESGCM(self.keys[master_key_identifier]).decrypt(sealed[:12], sealed[12:], None)


def datum_of_key_metadata(key: bytes, aad_prefix: bytes | None, file_length: int | None) -> bytes:
    """Return StandardKeyMetadata as PyIceberg's Avro writer writes this record."""
    from pyiceberg.avro.encoder import BinaryEncoder
    from pyiceberg.avro.resolver import construct_writer
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record
    from pyiceberg.types import BinaryType, LongType, NestedField

    schema = Schema(
        NestedField(0, "encryption_key", BinaryType(), required=True),
        NestedField(1, "aad_prefix", BinaryType(), required=False),
        NestedField(2, "file_length", LongType(), required=False),
    )
    out = io.BytesIO()
    construct_writer(schema).write(BinaryEncoder(out), Record(key, aad_prefix, file_length))
    return b"\x01" + out.getvalue()


def seal_stream(plain: bytes, key: bytes, aad_prefix: bytes) -> bytes:
    """Return an AGS1 stream, as the specification describes it."""
    out = [b"AGS1", struct.pack("<i", BLOCK)]
    for number in range(max(1, -(-len(plain) // BLOCK))):
        nonce = os.urandom(12)
        block = plain[number * BLOCK : (number + 1) * BLOCK]
        out += [nonce, AESGCM(key).encrypt(nonce, block, aad_prefix + struct.pack("<i", number))]
    return b"".join(out)


def open_stream(stored: bytes, key: bytes, aad_prefix: bytes) -> bytes:
    """Return the plaintext of an AGS1 stream."""
    assert stored[:8] == b"AGS1" + struct.pack("<i", BLOCK)
    plain, position, number = b"", 8, 0
    while position < len(stored):
        block = stored[position : position + BLOCK + 28]
        plain += AESGCM(key).decrypt(block[:12], block[12:], aad_prefix + struct.pack("<i", number))
        position, number = position + len(block), number + 1
    return plain
