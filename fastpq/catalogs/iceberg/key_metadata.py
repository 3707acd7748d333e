"""StandardKeyMetadata: the data key of one file in an Iceberg table, as bytes that the table's metadata store for the file.

The bytes are the version (0x01), and then an Avro datum without a header: ``encryption_key`` (bytes), ``aad_prefix`` (null or
bytes) and ``file_length`` (null or long). They hold the key in plaintext, and are protected by the encrypted file that stores
them: a manifest, a manifest list, or the table's list of encrypted keys.
"""

from __future__ import annotations

import secrets
from typing import Self

from fastpq.encryption.evp import AesKey
from fastpq.encryption.keys.secret import lend_key, random_key
from fastpq.encryption.properties import Key, as_key
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import CryptoError, FormatError, UnsupportedError
from fastpq.io.sink import BytesLike

VERSION = 1
AAD_PREFIX_SIZE = 16        # bytes in the random AAD prefix of a new file, as in Iceberg for Java
DEFAULT_KEY_BITS = 128
LARGEST_METADATA = 1 << 16  # in bytes
LARGEST_LONG = (1 << 63) - 1
KEY_SIZES = (16, 24, 32)    # in bytes
NULL, VALUE = 0, 1          # branches of Avro's unions


class StandardKeyMetadata(KeyHolder):
    """One file's data key, with its AAD prefix and its length. It cannot be copied or pickled, and does not show its key.

    Args:
        encryption_key: 16, 24 or 32 bytes, which are copied.
        aad_prefix: bytes that tie the file's encrypted parts to this file. None for a file without a prefix.
        file_length: how many bytes the encrypted file has. None if it is not known.

    Attributes:
        encryption_key: the key, as an AesKey.
        aad_prefix: the AAD prefix, or None.
        file_length: the encrypted file's length in bytes, or None.

    Raises:
        CryptoError: the key has another length.
        TypeError, ValueError: the prefix is not bytes, or the length is not a whole number from 0 to 2^63 - 1.
    """

    __slots__ = ("aad_prefix", "encryption_key", "file_length")

    @hides_arguments
    def __init__(self, encryption_key: Key, *, aad_prefix: bytes | None = None, file_length: int | None = None) -> None:
        if aad_prefix is not None and not isinstance(aad_prefix, bytes):
            raise TypeError(f"aad_prefix must be bytes, not {type(aad_prefix).__name__}")
        if file_length is not None and (isinstance(file_length, bool) or not isinstance(file_length, int)):
            raise TypeError(f"file_length must be a whole number, not {type(file_length).__name__}")
        if file_length is not None and not 0 <= file_length <= LARGEST_LONG:
            raise ValueError(f"file_length must be 0 to 2^63 - 1, not {file_length}")
        self.encryption_key: AesKey = as_key(encryption_key)
        self.aad_prefix = aad_prefix
        self.file_length = file_length

    @classmethod
    def generate(cls, *, key_bits: int = DEFAULT_KEY_BITS) -> Self:
        """Return key metadata for a new file: a new random key, and a random AAD prefix of 16 bytes.

        Args:
            key_bits: 128, 192 or 256. Iceberg's table property ``encryption.data-key-length`` has it in bytes. iceberg-rust
                cannot read files under keys of 192 bits.

        Raises:
            ValueError: key_bits is another number.
        """
        return cls(random_key(key_bits), aad_prefix=secrets.token_bytes(AAD_PREFIX_SIZE))

    @classmethod
    @hides_arguments
    def from_bytes(cls, data: BytesLike) -> Self:
        """Decode key metadata.

        Args:
            data: bytes or another contiguous buffer.

        Raises:
            FormatError: the bytes are malformed.
            UnsupportedError: the bytes have another version.
            CryptoError: the key does not have 16, 24 or 32 bytes.
        """
        with memoryview(data).cast("B") as view:
            if len(view) > LARGEST_METADATA:
                raise FormatError(f"key metadata have at most {LARGEST_METADATA} bytes, not {len(view)}")
            if not view:
                raise FormatError("key metadata are empty")
            if view[0] != VERSION:
                raise UnsupportedError(f"key metadata of version {view[0]}: only version {VERSION} is known")
            datum = _Datum(view)
            start, stop = datum.take_bytes("encryption_key")
            if stop - start not in KEY_SIZES:
                raise CryptoError(f"a data key has 16, 24 or 32 bytes, not {stop - start}")
            prefix = datum.take_bytes("aad_prefix") if datum.has_value("aad_prefix") else None
            length = datum.take_long("file_length") if datum.has_value("file_length") else None
            if length is not None and length < 0:
                raise FormatError("key metadata have a negative file_length")
            if datum.position != len(view):
                raise FormatError(f"{len(view) - datum.position} bytes follow the key metadata")
            aad_prefix = None if prefix is None else bytes(view[slice(*prefix)])
            return cls(AesKey(view[start:stop]), aad_prefix=aad_prefix, file_length=length)

    def to_bytes(self) -> bytes:
        """Return the encoded key metadata. They hold the key in plaintext: store them in encrypted files alone."""
        return bytes(self._serialized())

    def _serialized(self) -> bytearray:
        """Return the encoded key metadata in a buffer that the caller can overwrite."""
        return lend_key(self.encryption_key, self._serialized_with)

    def _serialized_with(self, secret: bytes) -> bytearray:
        prefix, length = self.aad_prefix, self.file_length
        data = bytearray([VERSION])
        data += encode_long(len(secret))
        data += secret
        data += encode_long(NULL) if prefix is None else encode_long(VALUE) + encode_long(len(prefix)) + prefix
        data += encode_long(NULL) if length is None else encode_long(VALUE) + encode_long(length)
        return data

    def with_file_length(self, file_length: int) -> StandardKeyMetadata:
        """Return key metadata with the same key and prefix, and with the written file's length.

        Args:
            file_length: how many bytes the encrypted file has.

        Raises:
            TypeError, ValueError: as for the class.
        """
        return StandardKeyMetadata(self.encryption_key, aad_prefix=self.aad_prefix, file_length=file_length)

    def __repr__(self) -> str:
        if not hasattr(self, "file_length"):        # __init__ failed, and a traceback shows the object
            return "<StandardKeyMetadata, unfinished>"
        length = "unknown length" if self.file_length is None else f"{self.file_length} bytes"
        return f"<StandardKeyMetadata: a key of {self.encryption_key.bits} bits for a file of {length}>"


class _Datum:
    """Cursor over an Avro datum.

    Args:
        view: the version, and then the datum.

    Attributes:
        position: index of the next byte.
    """

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self.position = 1

    def take_long(self, name: str) -> int:
        """Return the next long: a varint of at most 10 bytes, zigzag encoded."""
        number = 0
        for shift in range(0, 70, 7):
            if self.position >= len(self._view):
                raise FormatError(f"key metadata end inside {name}")
            byte = self._view[self.position]
            self.position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise FormatError(f"key metadata: {name} has more bytes than it needs")
                break
        else:
            raise FormatError(f"key metadata: {name} is longer than 10 bytes")
        if number >> 64:
            raise FormatError(f"key metadata: {name} does not fit into 64 bits")
        return (number >> 1) ^ -(number & 1)

    def take_bytes(self, name: str) -> tuple[int, int]:
        """Return where the next bytes begin and end."""
        size = self.take_long(name)
        if not 0 <= size <= len(self._view) - self.position:
            raise FormatError(f"key metadata: {name} ends outside of them")
        self.position += size
        return self.position - size, self.position

    def has_value(self, name: str) -> bool:
        """Return whether the next union has a value. Its first branch is null."""
        branch = self.take_long(name)
        if branch not in (NULL, VALUE):
            raise FormatError(f"key metadata: {name} is branch {branch} of a union of two")
        return branch == VALUE


def encode_long(number: int) -> bytes:
    """Return a number from 0 to 2^63 - 1 as an Avro long."""
    rest, varint = number << 1, bytearray()
    while rest >= 0x80:
        varint.append(rest & 0x7F | 0x80)
        rest >>= 7
    varint.append(rest)
    return bytes(varint)
