"""Deletion vectors: positions of deleted rows as roaring bitmaps in Puffin files (format/puffin-spec.md in apache/iceberg).

A Puffin file has a list of blobs in its footer, as JSON. A blob of the type ``deletion-vector-v1`` has the length of what follows
without the checksum (4 bytes, big endian), a magic, the bitmap and a CRC-32 of magic and bitmap (4 bytes, big endian). The bitmap
is the portable format of 64-bit roaring bitmaps: for each upper half of positions a 32-bit roaring bitmap.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq.encryption.keys.material import abbreviate
from fastpq.errors import FormatError, LimitError, UnsupportedError

PUFFIN_MAGIC = b"PFA1"
TAIL_SIZE = 12                          # in bytes: payload size, flags, magic
VECTOR_TYPE = "deletion-vector-v1"
VECTOR_MAGIC = b"\xd1\xd3\x39\x64"
LARGEST_FOOTER = 1 << 26                # in bytes
LARGEST_VECTOR = 1 << 31                # in bytes
MOST_POSITIONS = 1 << 28                # in a vector. A few bytes stand for 65,536 positions, and each takes 8 bytes of memory
MOST_KEYS = (1 << 31) - 1               # upper halves of positions are below
ARRAY_SIZE = 4096                       # most values in a container that is an array
BITSET_SIZE = 8192                      # bytes in a container that is a bitset
COOKIE, RUN_COOKIE = 12346, 12347       # of bitmaps without and with run containers
FEWEST_WITH_OFFSETS = 4                 # containers from which on a bitmap with runs has a list of offsets

Positions = NDArray[np.int64]


class VectorBlob(NamedTuple):
    """A deletion vector's place in a Puffin file.

    Attributes:
        data_file: path to the data file whose rows are deleted.
        offset: the blob's place in bytes.
        length: the blob's length in bytes.
        cardinality: number of deleted rows, or None if the footer does not say it.
    """

    data_file: str
    offset: int
    length: int
    cardinality: int | None


def positions_in_puffin(file: BinaryIO, data_file: str) -> Positions:
    """Return the positions of the rows that a Puffin file deletes from a data file, in ascending order.

    Args:
        file: the Puffin file, decrypted and seekable.
        data_file: path to the data file, as the table's metadata spell it.

    Raises:
        FormatError: the file is malformed, its checksum is wrong, or it has no vector or several ones for the data file.
        UnsupportedError: the footer or the vector is compressed.
        LimitError: the footer or the vector is too large.
    """
    blobs = [blob for blob in vector_blobs(file) if blob.data_file == data_file]
    if len(blobs) != 1:
        raise FormatError(f"the Puffin file has {len(blobs)} deletion vectors for a data file that has one there")
    blob = blobs[0]
    file.seek(blob.offset)
    payload = file.read(blob.length)
    if len(payload) != blob.length:
        raise FormatError("a deletion vector ends outside of its Puffin file")
    positions = decode_vector(payload)
    if blob.cardinality not in (None, len(positions)):
        raise FormatError(f"a deletion vector has {len(positions)} positions, but the Puffin file says {blob.cardinality}")
    return positions


def vector_blobs(file: BinaryIO) -> list[VectorBlob]:
    """Return the deletion vectors that the footer of a Puffin file lists. Errors are those of ``positions_in_puffin``."""
    size = file.seek(0, 2)
    if size < 2 * len(PUFFIN_MAGIC) + TAIL_SIZE:
        raise FormatError(f"a Puffin file cannot have {size} bytes")
    file.seek(size - TAIL_SIZE)
    tail = file.read(TAIL_SIZE)
    file.seek(0)
    if tail[8:] != PUFFIN_MAGIC or file.read(len(PUFFIN_MAGIC)) != PUFFIN_MAGIC:
        raise FormatError("this is not a Puffin file: PFA1 is missing at its beginning or its end")
    payload_size, flags = int.from_bytes(tail[:4], "little"), int.from_bytes(tail[4:8], "little")
    if flags:
        raise UnsupportedError("a Puffin file with a compressed footer")
    start = size - TAIL_SIZE - payload_size
    if payload_size > LARGEST_FOOTER:
        raise LimitError(f"the footer of a Puffin file has {payload_size} bytes, more than {LARGEST_FOOTER}")
    if start < 2 * len(PUFFIN_MAGIC):
        raise FormatError("the footer of a Puffin file begins before the file")
    file.seek(start - len(PUFFIN_MAGIC))
    footer = file.read(len(PUFFIN_MAGIC) + payload_size)
    if footer[: len(PUFFIN_MAGIC)] != PUFFIN_MAGIC:
        raise FormatError("the footer of a Puffin file does not begin with PFA1")
    return _blobs(footer[len(PUFFIN_MAGIC) :], start - len(PUFFIN_MAGIC))


def _blobs(payload: bytes, end: int) -> list[VectorBlob]:
    """Return the deletion vectors in a footer's JSON. Blobs end before ``end``."""
    try:
        footer = json.loads(payload)
        entries = [blob for blob in footer["blobs"] if blob["type"] == VECTOR_TYPE]
        blobs = [_blob(entry) for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise FormatError("the footer of a Puffin file is not the JSON that the specification describes") from None
    for blob in blobs:
        if not 0 <= blob.offset <= blob.offset + blob.length <= end:
            raise FormatError("a deletion vector ends outside of its Puffin file")
        if blob.length > LARGEST_VECTOR:
            raise LimitError(f"a deletion vector has {blob.length} bytes, more than {LARGEST_VECTOR}")
    return blobs


def _blob(entry: dict[str, Any]) -> VectorBlob:
    if entry.get("compression-codec") is not None:
        raise UnsupportedError(f"a deletion vector compressed with {abbreviate(str(entry['compression-codec']))}")
    properties = entry["properties"]
    cardinality = properties.get("cardinality")
    return VectorBlob(
        str(properties["referenced-data-file"]),
        int(entry["offset"]),
        int(entry["length"]),
        None if cardinality is None else int(cardinality),
    )


def decode_vector(payload: bytes) -> Positions:
    """Return the positions in a ``deletion-vector-v1`` blob, in ascending order.

    Raises:
        FormatError: the blob is malformed, or its checksum is wrong.
        LimitError: it has more than MOST_POSITIONS positions.
    """
    size = int.from_bytes(payload[:4], "big")
    if len(payload) < 20 or size != len(payload) - 8 or payload[4:8] != VECTOR_MAGIC:
        raise FormatError("a deletion vector has another length or another magic than the specification says")
    if zlib.crc32(payload[4:-4]) != int.from_bytes(payload[-4:], "big"):
        raise FormatError("the checksum of a deletion vector is wrong")
    return _Bitmap(payload[8:-4]).positions()


class _Bitmap:
    """Cursor over a serialized 64-bit roaring bitmap.

    Args:
        data: the serialized bitmap.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0
        self._count = 0     # positions up to here

    def positions(self) -> Positions:
        """Return all positions, in ascending order."""
        count = int(self._take(1, "<i8")[0])
        if not 0 <= count <= len(self._data) // 8:
            raise FormatError(f"a roaring bitmap cannot have {count} parts")
        parts, last_key = [np.empty(0, np.int64)], -1
        for _ in range(count):
            key = int(self._take(1, "<u4")[0])
            if not last_key < key <= MOST_KEYS:
                raise FormatError("the parts of a roaring bitmap are not in ascending order")
            parts.append(self._lower_halves() + (key << 32))
            last_key = key
        if self._place != len(self._data):
            raise FormatError("bytes follow a roaring bitmap")
        return np.concatenate(parts)

    def _take(self, count: int, dtype: str) -> NDArray[Any]:
        end = self._place + count * np.dtype(dtype).itemsize
        if end > len(self._data):
            raise FormatError("a roaring bitmap ends too early")
        values = np.frombuffer(self._data, dtype, count, self._place)
        self._place = end
        return values

    def _lower_halves(self) -> Positions:
        """Return the values of the next 32-bit bitmap."""
        cookie = int(self._take(1, "<u4")[0])
        if cookie & 0xFFFF == RUN_COOKIE:
            count = (cookie >> 16) + 1
            is_run = np.unpackbits(self._take((count + 7) // 8, "<u1"), bitorder="little")[:count].astype(bool)
            has_offsets = count >= FEWEST_WITH_OFFSETS
        elif cookie == COOKIE:
            count = int(self._take(1, "<u4")[0])
            if count > 1 << 16:
                raise FormatError(f"a roaring bitmap cannot have {count} containers")
            is_run, has_offsets = np.zeros(count, bool), True
        else:
            raise FormatError("a roaring bitmap begins with an unknown cookie")
        heads = self._take(2 * count, "<u2").astype(np.int64).reshape(count, 2)
        if count and (np.diff(heads[:, 0]) <= 0).any():
            raise FormatError("the containers of a roaring bitmap are not in ascending order")
        self._count += int(heads[:, 1].sum()) + count
        if self._count > MOST_POSITIONS:
            raise LimitError(f"a deletion vector has more than {MOST_POSITIONS} positions")
        if has_offsets:
            self._take(count, "<u4")
        parts = [np.empty(0, np.int64)]
        for (key, size_less_one), run in zip(heads.tolist(), is_run.tolist(), strict=True):
            parts.append(self._container(size_less_one + 1, is_run=run) + (key << 16))
        return np.concatenate(parts)

    def _container(self, size: int, *, is_run: bool) -> Positions:
        """Return the values of the next container.

        Args:
            size: how many values it has.
            is_run: whether they are stored as runs.
        """
        if is_run:
            runs = self._take(2 * int(self._take(1, "<u2")[0]), "<u2").astype(np.int64).reshape(-1, 2)
            lengths = runs[:, 1] + 1
            if lengths.sum() > 1 << 16:
                raise FormatError("a container of a roaring bitmap is too large")
            before = np.cumsum(lengths) - lengths
            values = np.repeat(runs[:, 0] - before, lengths) + np.arange(lengths.sum())
        elif size <= ARRAY_SIZE:
            values = self._take(size, "<u2").astype(np.int64)
        else:
            values = np.flatnonzero(np.unpackbits(self._take(BITSET_SIZE, "<u1"), bitorder="little"))
        if len(values) != size or (np.diff(values) <= 0).any() or values[-1] > 0xFFFF:
            raise FormatError("a container of a roaring bitmap does not have the values that its head says")
        return values
