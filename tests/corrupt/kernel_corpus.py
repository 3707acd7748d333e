"""Streams of each encoding and each codec, to be mutated by themselves: decoded, encoded again and decoded again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastpq._kernel_calls import (
    decode_byte_arrays,
    decode_flat_levels,
    decode_hybrid,
    decode_numbers,
    encode_byte_arrays,
    encode_flat_levels,
    encode_numbers,
)
from fastpq.codecs.catalogue import PACKAGES_ALONE, codec_for_write, is_compiled
from fastpq.encodings import rle
from fastpq.errors import LimitError
from fastpq.format import Encoding
from tests.corrupt.mutate import Sample

COUNT = 300
CODECS = ("snappy", "zstd", "gzip", "lz4_raw", "lz4_hadoop", "brotli")
LARGEST_PAGE = 1 << 20
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Kernel:
    """An encoding of values of one type.

    Attributes:
        values: some to begin with.
        decode: a stream of COUNT values to these, as tuples of arrays and numbers.
        encode: these to a stream.
    """

    values: Values
    decode: Callable[[bytes], Values]
    encode: Callable[[Values], bytes]


def numbers(dtype: str, bits: int) -> Any:
    return np.random.default_rng(bits).integers(0, 1 << bits, COUNT).astype(dtype)


def deltas(dtype: str, bits: int) -> Kernel:
    return Kernel(
        (np.cumsum(numbers(dtype, bits), dtype=dtype),),
        lambda data: (decode_numbers(Encoding.DELTA_BINARY_PACKED, data, dtype, 0, COUNT),),
        lambda values: encode_numbers(Encoding.DELTA_BINARY_PACKED, values[0].view(dtype)),
    )


def split(dtype: str) -> Kernel:
    values = np.frombuffer(np.random.default_rng(1).bytes(COUNT * np.dtype(dtype).itemsize), dtype)
    return Kernel(
        (values,),
        lambda data: (decode_numbers(Encoding.BYTE_STREAM_SPLIT, data, dtype, 0, COUNT),),
        lambda found: encode_numbers(Encoding.BYTE_STREAM_SPLIT, found[0]),
    )


def floats(dtype: str) -> Kernel:
    values = (numbers("<i4", 20) / 100).astype(dtype)
    values[::37] = np.nan
    values[5::41] = -0.0
    return Kernel(
        (values,),
        lambda data: (decode_numbers(Encoding.ALP, data, dtype, 0, COUNT),),
        lambda found: encode_numbers(Encoding.ALP, found[0]),
    )


def hybrid(width: int) -> Kernel:
    values = numbers("<u4", width)
    values[50:200] = values[50]
    return Kernel(
        (values,), lambda data: (decode_hybrid(data, width, COUNT),), lambda found: rle.encode(found[0].astype(np.uint32), width)
    )


def lookups(width: int) -> Kernel:
    entries = np.arange(1 << width, dtype=np.int64) * 3

    def decode(data: bytes) -> Values:
        page = bytes([width]) + data
        return (decode_numbers(Encoding.RLE_DICTIONARY, page, entries.dtype, 0, COUNT, entries=entries),)

    return Kernel((entries[numbers("<u4", width)],), decode, lambda found: rle.encode((found[0] // 3).astype(np.uint32), width))


def definition_levels() -> Kernel:
    bits = (np.random.default_rng(2).random(COUNT) < 0.7).astype(np.uint8)

    def decode(data: bytes) -> Values:
        bitmap, present = decode_flat_levels(data, COUNT)
        found = np.unpackbits(bitmap, count=COUNT, bitorder="little")
        if present != int(found.sum()):
            raise AssertionError(f"{present} values where {int(found.sum())} levels are 1")
        return (found,)

    return Kernel((bits,), decode, lambda values: encode_flat_levels(np.packbits(values[0], bitorder="little"), 0, COUNT))


def strings(prefixes: bool) -> Kernel:
    words = [b"prefix %d " % (i // 7) * (i % 5) for i in range(COUNT)]
    encoding = Encoding.DELTA_BYTE_ARRAY if prefixes else Encoding.DELTA_LENGTH_BYTE_ARRAY

    def decode(data: bytes) -> Values:
        views, memory, _ = decode_byte_arrays(encoding, data, COUNT)
        return tuple(texts(views, memory))

    def encode(values: Values) -> bytes:
        ends = np.cumsum([0, *map(len, values)]).astype(np.int64)
        return encode_byte_arrays(encoding, np.frombuffer(b"".join(values), np.uint8), ends)

    return Kernel(tuple(words), decode, encode)


def plain_strings() -> Kernel:
    words = tuple(b"word" * (i % 6) for i in range(COUNT))
    return Kernel(
        words,
        lambda data: tuple(texts(decode_byte_arrays(Encoding.PLAIN, data, COUNT)[0], np.frombuffer(data, np.uint8))),
        lambda values: b"".join(len(word).to_bytes(4, "little") + word for word in values),
    )


def texts(views: Any, data: Any) -> list[bytes]:
    """The strings of views, checked against the buffer that they point into."""
    out = []
    for view in views.view(np.uint8).reshape(-1, 16):
        length, offset = int(view[:4].view(np.uint32)[0]), int(view[12:].view(np.uint32)[0])
        if length > 12 and offset + length > len(data):
            raise AssertionError(f"a view of {length} bytes at {offset} in {len(data)}")
        out.append(view[4 : 4 + length].tobytes() if length <= 12 else data[offset : offset + length].tobytes())
    return out


def pages(name: str, package: bool) -> Kernel:
    """Pages of a codec, each with the uncompressed size of its header in front."""
    codec = codec_for_write(name, package=package)
    page = b"".join(b"%d prefix of %d " % (i * i, i % 9) for i in range(COUNT)) + bytes(1000)

    def decode(data: bytes) -> Values:
        size = int.from_bytes(data[:4], "little")
        if size > LARGEST_PAGE:
            raise LimitError(f"a page of {size} bytes")
        out = np.full(size + 64, 0x5A, np.uint8)
        codec.decompress_into(data[4:], out[:size].data)
        if (out[size:] != 0x5A).any():
            raise AssertionError(f"{name} writes behind its page")
        return (out[:size].tobytes(),)

    return Kernel((page,), decode, lambda values: len(values[0]).to_bytes(4, "little") + bytes(codec.compress(values[0])))


KERNELS: tuple[Kernel, ...] = (
    *(deltas(dtype, bits) for dtype in ("<i4", "<i8") for bits in (0, 3, 20)),
    *(split(dtype) for dtype in ("<f2", "<f4", "<f8", "V5", "V16")),
    floats("<f4"),
    floats("<f8"),
    *(hybrid(width) for width in (1, 3, 8, 17, 32)),
    lookups(3),
    lookups(9),
    definition_levels(),
    strings(prefixes=False),
    strings(prefixes=True),
    plain_strings(),
    *(pages(name, package=PACKAGES_ALONE) for name in CODECS),
    *(pages(name, package=True) for name in CODECS if is_compiled(name) and not PACKAGES_ALONE),
)


def kernels() -> list[Sample]:
    """A stream of each kernel, after a byte that says which."""
    return [Sample(f"kernel {i}", bytes([i]) + kernel.encode(kernel.values), ()) for i, kernel in enumerate(KERNELS)]


def same(left: Values, right: Values) -> bool:
    """Equality bit by bit."""
    if len(left) != len(right):
        return False
    pairs = zip(left, right, strict=True)
    return all(a.tobytes() == b.tobytes() if isinstance(a, np.ndarray) else a == b for a, b in pairs)
