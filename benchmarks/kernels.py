"""The kernel grid: encodings by type, as GB/s of decoded values; the harness measures memcpy beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastpq._kernel_calls import (
    check_utf8,
    decode_byte_arrays,
    decode_flat_levels,
    decode_hybrid,
    decode_numbers,
    encode_flat_levels,
    encode_numbers,
    min_max,
    pick,
    spread,
)
from fastpq.encodings import dictionary, rle
from fastpq.encryption import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.variants import CtrModuleCipher
from fastpq.format import Encoding
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.stats.statistics import Order

Kernel = tuple[str, int, Callable[[], Any]]
COUNT = 1 << 20
MODULE_SIZES = (64, 8 << 10, 64 << 10, 1 << 20)


def indices(width: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(width).integers(0, 1 << width, COUNT, dtype=np.uint64).astype(np.uint32)


def hybrid() -> Iterator[Kernel]:
    """Bit-packed runs to uint32 and back."""
    for width in (1, 2, 4, 8, 12, 16, 20, 32):
        values = indices(width)
        stream = rle.encode(values, width)
        yield f"RLE decode, {width} bits", values.nbytes, partial(decode_hybrid, stream, width, COUNT)
        yield f"RLE encode, {width} bits", values.nbytes, partial(rle.encode, values, width)


def deltas() -> Iterator[Kernel]:
    """Sums of bit-packed differences, and back."""
    for dtype in ("<i4", "<i8"):
        for width in (1, 4, 8, 16, 24):
            values = np.cumsum(indices(width).astype(np.int64)).astype(dtype)
            stream, name = encode_numbers(Encoding.DELTA_BINARY_PACKED, values), f"{values.dtype}, {width} bits"
            yield f"DELTA_BINARY_PACKED decode, {name}", values.nbytes, partial(
                decode_numbers, Encoding.DELTA_BINARY_PACKED, stream, dtype, 0, COUNT)
            yield f"DELTA_BINARY_PACKED encode, {name}", values.nbytes, partial(
                encode_numbers, Encoding.DELTA_BINARY_PACKED, values)


def streams() -> Iterator[Kernel]:
    """Bytes of values gathered into streams by position in the value, and back."""
    for dtype in ("<f2", "<f4", "<f8", "V16"):
        values = np.frombuffer(np.random.default_rng(0).bytes(COUNT * np.dtype(dtype).itemsize), dtype)
        stream, name = encode_numbers(Encoding.BYTE_STREAM_SPLIT, values), f"{values.itemsize} bytes"
        yield (
            f"BYTE_STREAM_SPLIT decode, {name}",
            values.nbytes,
            partial(decode_numbers, Encoding.BYTE_STREAM_SPLIT, stream, values.dtype, 0, COUNT),
        )
        yield (
            f"BYTE_STREAM_SPLIT encode, {name}",
            values.nbytes,
            partial(encode_numbers, Encoding.BYTE_STREAM_SPLIT, values),
        )


def decimal_floats() -> Iterator[Kernel]:
    """Prices of two decimal places."""
    for dtype in ("<f4", "<f8"):
        values = (indices(16) / 100).astype(dtype)
        page = encode_numbers(Encoding.ALP, values)
        yield f"ALP decode, {values.dtype}", values.nbytes, partial(decode_numbers, Encoding.ALP, page, dtype, 0, COUNT)
        yield f"ALP encode, {values.dtype}", values.nbytes, partial(encode_numbers, Encoding.ALP, values)


def dictionaries() -> Iterator[Kernel]:
    """Dictionary indices to values, and values to indices."""
    for dtype, width in (("<i4", 8), ("<i8", 8), ("<i8", 14), ("V16", 8), ("V16", 14)):
        size = np.dtype(dtype).itemsize
        distinct = np.arange((1 << width) * size // 4, dtype=np.uint32).view(dtype)
        values = distinct[indices(width)]
        stream = bytes([width]) + rle.encode(indices(width), width)
        name = f"{size} bytes, {1 << width} values"
        yield (
            f"RLE_DICTIONARY decode, {name}",
            values.nbytes,
            partial(decode_numbers, Encoding.RLE_DICTIONARY, stream, distinct.dtype, 0, COUNT, entries=distinct),
        )
        yield f"dictionary encode, {name}", values.nbytes, partial(dictionary_codes, values, size)


def dictionary_codes(values: np.ndarray, size: int) -> object:
    """Codes of values of a size in bytes, by a dictionary made anew."""
    return dictionary.DictionaryEncoder(size).encode(values)


def optional_values() -> Iterator[Kernel]:
    """Definition levels to validity bitmaps, and values to and from positions among nulls."""
    flags = np.random.default_rng(0).random(COUNT) < 0.9
    bitmap = np.packbits(flags, bitorder="little")
    stream = encode_flat_levels(bitmap, 0, COUNT)
    yield "levels decode", bitmap.nbytes, lambda: decode_flat_levels(stream, COUNT)
    values = np.arange(COUNT)
    dense = values[flags]
    yield "spread 8 bytes, 10 % null", values.nbytes, lambda: spread(bitmap, COUNT, dense)
    yield "pick 8 bytes, 10 % null", values.nbytes, lambda: pick(bitmap, 0, values)


def strings() -> Iterator[Kernel]:
    """PLAIN BYTE_ARRAY to views."""
    for length in (4, 12, 40):
        data = np.frombuffer((length.to_bytes(4, "little") + b"x" * length) * (COUNT // 8), np.uint8)
        yield f"PLAIN decode, strings of {length}", data.nbytes, partial(decode_byte_arrays, Encoding.PLAIN, data, COUNT // 8)
        yield f"UTF-8 check, strings of {length}", data.nbytes, partial(check_utf8, data)


def bounds() -> Iterator[Kernel]:
    """Minimum and maximum."""
    for order, dtype in ((Order.ORDER_INT32, "<i4"), (Order.ORDER_INT64, "<i8"), (Order.ORDER_DOUBLE, "<f8")):
        values = np.random.default_rng(0).integers(0, 1 << 30, COUNT).astype(dtype)
        yield f"min and max, {values.dtype}", values.nbytes, partial(min_max, order, values.view(np.uint8), values.itemsize)


def aes() -> Iterator[Kernel]:
    """Sealing and opening of modules with AES-128, beside the package cryptography; the harness adds ``openssl speed``."""
    key = AesKey(bytes(16))
    ours = {"GCM": GcmModuleCipher(key, b"file"), "CTR": CtrModuleCipher(key, b"file")}
    theirs, nonce = AESGCM(bytes(16)), bytes(12)
    for size in MODULE_SIZES:
        plain, out = bytes(size), bytearray(size + 64)
        for name, cipher in ours.items():
            stored = cipher.seal(ModuleType.DATA_PAGE, 0, plain)
            yield f"AES-{name} seal, {size} bytes", size, partial(cipher.seal, ModuleType.DATA_PAGE, 0, plain)
            yield (
                f"AES-{name} open, {size} bytes",
                size,
                partial(cipher.open_to, ModuleType.DATA_PAGE, 0, stored, out),
            )
        yield f"AES-GCM seal of cryptography, {size} bytes", size, partial(theirs.encrypt, nonce, plain, b"file")


def bloom_filters() -> Iterator[Kernel]:
    """Inserting and probing, hashing included; the smaller filters fit the second-level cache."""
    values = np.arange(COUNT).view(np.uint8)
    for size in (256 << 10, 16 << 20):
        name = f"filter of {size >> 10} KiB, 8-byte values"
        made = SplitBlockBloomFilter(size)
        yield f"bloom filter insert, {name}", values.nbytes, partial(made.insert, values, 8)
        yield f"bloom filter probe, {name}", values.nbytes, partial(made.probe, values, 8)
