"""AES GCM streams (AGS1): encrypted files of Iceberg that are not Parquet (format/gcm-stream-spec.md in apache/iceberg).

A stream begins with ``AGS1`` and the block length (4 bytes, little endian). Then come blocks: a nonce (12 bytes), the ciphertext
and the tag (16 bytes). Every block but the last has 1 MiB of plaintext. An empty file is one empty block. The AAD of a block is
the file's AAD prefix and the block's number (4 bytes, little endian), so that blocks cannot be moved. A stream that was cut off
after a block is only noticed by the file's length, which the key metadata have.
"""

from __future__ import annotations

import io
import os
import struct
from types import TracebackType
from typing import Any, cast

from fastpq.catalogs.iceberg.key_metadata import StandardKeyMetadata
from fastpq.catalogs.iceberg.parquet_properties import as_key_metadata
from fastpq.encryption.sealing import open_bytes, seal_bytes
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import CryptoError, FormatError, ParquetError, TagVerificationError, UnsupportedError
from fastpq.io.sink import BytesLike
from fastpq.io.sink_opening import open_sink
from fastpq.io.source_opening import open_source

MAGIC = b"AGS1"
HEADER_SIZE = 8             # in bytes: the magic, and the block length
BLOCK_SIZE = 1 << 20        # plaintext of a block, in bytes
OVERHEAD = 28               # nonce and tag of a block, in bytes
STORED_BLOCK_SIZE = BLOCK_SIZE + OVERHEAD
MOST_BLOCKS = (1 << 31) - 1     # a block's number is a positive int32 in Java


class GcmStreamReader(io.BufferedIOBase):
    """The plaintext of an encrypted stream, as a binary file that can seek.

    A block is authenticated before any byte of it is used. Only one thread at a time may use the reader.

    Args:
        where: a path, bytes, an fsspec URL, or a seekable binary file object, such as PyIceberg's ``InputFile.open()``.
        key_metadata: the file's key metadata, or their bytes.
        require_length: whether key metadata without ``file_length`` are refused. Without the length nobody can tell whether the
            stream was cut off after a block.

    Attributes:
        size: the plaintext's length in bytes.

    Raises:
        CryptoError: the key metadata have no length, or are refused by ``StandardKeyMetadata.from_bytes``.
        TagVerificationError: the file has another length than the key metadata say. Reading raises it for an altered block.
        FormatError, UnsupportedError: this is not an AGS1 stream, or its blocks have another length.
    """

    @hides_arguments
    def __init__(self, where: Any, key_metadata: StandardKeyMetadata | BytesLike, *, require_length: bool = True) -> None:
        super().__init__()
        metadata = as_key_metadata(key_metadata)
        self._key, self._aad_prefix = metadata.encryption_key, metadata.aad_prefix or b""
        self._position = 0
        self._block, self._block_number = bytearray(), -1
        self._source = open_source(where)
        try:
            self.size = self._checked_size(metadata.file_length, require_length)
        except ParquetError as error:
            self._source.close()
            error.at(path=self._source.name)
            raise
        except BaseException:
            self._source.close()
            raise

    def _checked_size(self, file_length: int | None, require_length: bool) -> int:
        """Return the plaintext's length, after checks of the stored length and of the header."""
        stored_size = self._source.size
        if file_length is None and require_length:
            raise CryptoError(
                "the key metadata do not have the length of this stream, so that a stream that was cut off would not be noticed "
                "(require_length=False reads it anyway)"
            )
        if file_length is not None and file_length != stored_size:
            raise TagVerificationError(
                f"the stream has {stored_size} bytes, but its key metadata say {file_length}: it was cut off or replaced"
            )
        size = plain_size(stored_size)
        magic, block_size = struct.unpack("<4si", self._source.read(0, HEADER_SIZE).tobytes())
        if magic != MAGIC:
            raise FormatError("this is not an AGS1 stream, though the table has key metadata for it")
        if block_size != BLOCK_SIZE:
            raise UnsupportedError(f"an AGS1 stream with blocks of {block_size} bytes: Iceberg has blocks of {BLOCK_SIZE} alone")
        return size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in the plaintext."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position in the plaintext, and return it. Nothing is read.

        Args:
            offset: the distance from the place that ``whence`` names, in bytes.
            whence: 0 for the beginning, 1 for the current position, 2 for the end.

        Raises:
            ValueError: the position is before the beginning, or whence is another number.
        """
        self._check_open()
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"whence must be 0, 1 or 2, not {whence!r}")
        position = offset + (0, self._position, self.size)[whence]
        if position < 0:
            raise ValueError(f"position {position} is before the beginning")
        self._position = position
        return position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes: all of them, or as many as are asked for, or fewer at the end.

        Args:
            size: how many bytes. None or a negative number for all.

        Raises:
            TagVerificationError: a block is not authentic.
        """
        self._check_open()
        rest = max(self.size - self._position, 0)
        count = rest if size is None or size < 0 else min(size, rest)
        if count == 0:
            self._check_empty_stream()
            return b""
        parts = bytearray(count)
        self._fill(memoryview(parts))
        return bytes(parts)

    def read1(self, size: int = -1, /) -> bytes:
        """Return the next bytes from one block."""
        rest_of_block = BLOCK_SIZE - self._position % BLOCK_SIZE
        return self.read(rest_of_block if size < 0 else min(size, rest_of_block))

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer with the next bytes, and return how many there were."""
        self._check_open()
        with memoryview(buffer).cast("B") as view:
            count = min(len(view), max(self.size - self._position, 0))
            self._fill(view[:count])
            return count

    def close(self) -> None:
        """Close the file, and overwrite the block in memory."""
        if not self.closed:
            self._forget_block()
            if hasattr(self, "_source"):
                self._source.close()
        super().close()

    def _fill(self, out: memoryview) -> None:
        place = 0
        while place < len(out):
            number, start = divmod(self._position, BLOCK_SIZE)
            self._open_block(number)
            count = min(len(out) - place, len(self._block) - start)
            with memoryview(self._block) as block:
                out[place : place + count] = block[start : start + count]
            place += count
            self._position += count

    def _check_empty_stream(self) -> None:
        """Authenticate the only block of an empty stream."""
        if self.size == 0:
            self._open_block(0)

    @hides_arguments
    def _open_block(self, number: int) -> None:
        if number == self._block_number:
            return
        self._forget_block()
        offset = HEADER_SIZE + number * STORED_BLOCK_SIZE
        stored_block: Any = self._source.read(offset, min(STORED_BLOCK_SIZE, self._source.size - offset))
        try:
            self._block = open_bytes(self._key, stored_block, block_aad(self._aad_prefix, number))
        except TagVerificationError as error:
            error.message = f"block {number} of the stream is not authentic: wrong key, wrong AAD prefix or altered bytes"
            raise error.at(path=self._source.name, offset=offset) from None
        self._block_number = number

    def _forget_block(self) -> None:
        block = getattr(self, "_block", b"")
        if block:
            cast("bytearray", block)[:] = bytes(len(block))
        self._block, self._block_number = bytearray(), -1

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the stream is closed")


class GcmStreamWriter(io.BufferedIOBase):
    """A new encrypted stream, as a binary file for writing. It is complete when the writer is closed without an exception.

    At a path, the file appears when the writer is closed, and after an exception inside ``with`` it does not appear at all. A
    writer that is never closed leaves no file. A file object is written directly.

    Args:
        where: a path, an fsspec URL, or a writable binary file object.
        key_metadata: key metadata for this file alone, such as those of ``StandardKeyMetadata.generate()``.

    Attributes:
        key_metadata: the file's key metadata. After the writer is closed they have the file's length, and must be stored.

    Raises:
        ValueError: the key metadata have a length already: they belong to another file.
        SchemaError, OSError: the file cannot be made.
    """

    @hides_arguments
    def __init__(self, where: Any, key_metadata: StandardKeyMetadata) -> None:
        super().__init__()
        if not isinstance(key_metadata, StandardKeyMetadata):
            raise TypeError(f"key_metadata must be StandardKeyMetadata, not {type(key_metadata).__name__}")
        if key_metadata.file_length is not None:
            raise ValueError("these key metadata have a length, so that they belong to an older file: generate new ones")
        self.key_metadata = key_metadata
        self._block, self._blocks, self._size = bytearray(), 0, 0
        self._sink = open_sink(where)
        self._sink.write(struct.pack("<4si", MAGIC, BLOCK_SIZE))

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return how many bytes of plaintext were written."""
        self._check_open()
        return self._size

    def write(self, data: Any, /) -> int:
        """Append bytes, and return their number.

        Args:
            data: bytes or another contiguous buffer.

        Raises:
            OSError: the destination reported an error.
            ValueError: the writer is closed.
        """
        self._check_open()
        with memoryview(data).cast("B") as view:
            position = 0
            while position < len(view):
                if len(self._block) == BLOCK_SIZE:      # a full block is only written when more follows: it may be the last
                    self._write_block()
                count = min(len(view) - position, BLOCK_SIZE - len(self._block))
                self._block += view[position : position + count]
                position += count
            self._size += len(view)
            return len(view)

    def close(self) -> None:
        """Write the last block, and complete the file. Does nothing if the writer is closed already.

        Raises:
            OSError: the destination reported an error. A file at a path does not appear.
        """
        if self.closed:
            return
        try:
            if self._block or not self._blocks:
                self._write_block()
            self._sink.commit()
            self.key_metadata = self.key_metadata.with_file_length(self._sink.size)
        except BaseException:
            self.abort()
            raise
        super().close()

    def abort(self) -> None:
        """Close the writer without a file."""
        if hasattr(self, "_sink"):
            self._sink.abort()
        self._wipe_block()
        io.BufferedIOBase.close(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        else:
            self.close()

    def __del__(self) -> None:      # io's own would complete a file that nobody has completed
        if not self.closed:
            self.abort()

    def flush(self) -> None:
        """Do nothing: a block is written when it is full."""

    @hides_arguments
    def _write_block(self) -> None:
        if self._blocks >= MOST_BLOCKS:
            raise CryptoError("an AGS1 stream has at most 2^31 - 1 blocks")
        self._sink.write(seal_bytes(self.key_metadata.encryption_key, self._block, self._aad()))
        self._blocks += 1
        self._wipe_block()

    def _aad(self) -> bytes:
        return block_aad(self.key_metadata.aad_prefix or b"", self._blocks)

    def _wipe_block(self) -> None:
        block = getattr(self, "_block", bytearray())
        block[:] = bytes(len(block))
        self._block = bytearray()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the stream is closed")


def block_aad(aad_prefix: bytes, number: int) -> bytes:
    """Return a block's AAD."""
    return aad_prefix + number.to_bytes(4, "little")


def plain_size(stored_size: int) -> int:
    """Return how many bytes of plaintext a stream has.

    Args:
        stored_size: the encrypted file's length in bytes.

    Raises:
        FormatError: no AGS1 stream has this length.
    """
    blocks, rest = divmod(stored_size - HEADER_SIZE, STORED_BLOCK_SIZE)
    if stored_size < HEADER_SIZE + OVERHEAD or 0 < rest < OVERHEAD:
        raise FormatError(f"an AGS1 stream cannot have {stored_size} bytes: it was cut off, or is not a stream")
    return blocks * BLOCK_SIZE + (rest - OVERHEAD if rest else 0)
