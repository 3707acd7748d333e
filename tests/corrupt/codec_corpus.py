"""Compressed pages, mutated: decompressed and compressed by the compiled codec and by the package, with equal answers."""

from __future__ import annotations

import ctypes
import ctypes.util
import zlib
from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pyarrow as pa

from fastpq.codecs.catalogue import PACKAGES_ALONE, check_claimed_size, codec_for_write, is_compiled
from fastpq.codecs.checksum import crc32
from fastpq.codecs.codec import Codec
from fastpq.errors import FormatError, LimitError, ParquetError
from tests.corrupt.mutate import MUTATIONS, Sample
from tests.varints import varint

CODECS = ("snappy", "zstd", "gzip", "lz4_raw", "lz4_hadoop", "brotli")
# Levels of a codec; None for its default.
LEVELS: dict[str, tuple[int | None, ...]] = {
    "snappy": (None,), "zstd": (None, -3, 7), "gzip": (None, 1, 9), "lz4_raw": (None, 5), "lz4_hadoop": (None, 5),
    "brotli": (None, 0, 5),
}
LARGEST_PAGE = 1 << 20
GUARD, GUARDED = 0x5A, 64       # bytes around a page that nobody may write
MOST_COMPRESSED = 1 << 14       # bytes of a page that is compressed again
ELEMENTS = 0.2      # share of Snappy streams made of elements: the kernel is fastpq's own
SIZE = 5        # bytes before the stream: the codec, and the size that the page header claims


LIBZSTD = ctypes.CDLL(ctypes.util.find_library("zstd"))
LIBZSTD.ZSTD_decompress.restype = ctypes.c_size_t


def page_contents() -> Iterator[bytes]:
    """Pages for every element of the formats: literals, copies of all lengths and distances, blocks without compression."""
    random = Random(5)
    yield b""
    yield b"a"
    yield bytes(300)
    yield b"".join(b"%d prefix of %d " % (i * i, i % 9) for i in range(60))
    yield np.arange(200, dtype="<i8").tobytes()
    yield random.randbytes(400)
    yield bytes(random.choice(b"ab") for _ in range(500)) + bytes(2000) + random.randbytes(70) * 3
    far = random.randbytes(90)
    yield far + b"0123456789" * 700 + far
    yield b"abcdefg" * 11_000       # more than a block of Snappy


def codec_samples() -> list[Sample]:
    """Streams of each codec and level, by both implementations, each behind the number of the codec and its page's size."""
    samples = []
    for place, name in enumerate(CODECS):
        for level, package in product(LEVELS[name], (False, True)):
            codec = codec_for_write(name, level, package=package or PACKAGES_ALONE)
            streams = [(page, bytes(codec.compress(page))) for page in page_contents()]
            if name in ("gzip", "zstd"):        # of several members
                streams.append((streams[2][0] + streams[3][0], streams[2][1] + streams[3][1]))
            if name == "gzip":      # RFC 1950
                streams.append((streams[3][0], zlib.compress(streams[3][0])))
            samples += [
                Sample(f"{name} {level} {number}", bytes([place]) + len(page).to_bytes(4, "little") + stream, ())
                for number, (page, stream) in enumerate(streams)
            ]
    return samples


def snappy_elements(random: Random) -> tuple[bytes, int]:
    """A Snappy stream of any elements, and the bytes that they make: literals and copies in all their spellings, few broken."""
    stream, made = bytearray(), 0
    for _ in range(random.randint(1, 40)):
        kind = random.randrange(4) if made else 0
        if kind == 0:
            size = random.choice((random.randint(1, 20), random.randint(1, 70), random.randint(1, 400)))
            spare = [width for width in (1, 2, 3, 4) if size <= 1 << 8 * width]
            width = 0 if size <= 60 and random.random() < 0.8 else random.choice(spare)
            length = (size - 1).to_bytes(4, "little")[:width]
            stream += bytes([(59 + width if width else size - 1) << 2]) + length + random.randbytes(size)
        else:
            near = random.choice((random.randint(1, 20), random.randint(1, made), made, made))
            offset = near if random.random() < 0.99 else random.choice((0, made + 1))
            if kind == 1:
                size, offset = random.randint(4, 11), min(offset, 2047)
                stream += bytes([offset >> 8 << 5 | size - 4 << 2 | 1, offset & 0xFF])
            else:
                size = random.randint(1, 64)
                stream += bytes([size - 1 << 2 | kind]) + offset.to_bytes(2 if kind == 2 else 4, "little")
        made += size
    return varint(made) + bytes(stream), made


def mutate_stream(samples: list[Sample], seed: int, number: int) -> tuple[str, bytes]:
    """The mutation with this number: of the stream, with or without another size of its page."""
    random = Random(f"{seed}:{number}")
    if random.random() < ELEMENTS:
        stream, size = snappy_elements(random)
        cut = len(stream) if random.random() < 0.95 else random.randrange(len(stream))
        size += 0 if random.random() < 0.9 else random.randint(-3, 3)
        return "snappy elements", bytes([CODECS.index("snappy")]) + max(0, size).to_bytes(4, "little") + stream[:cut]
    sample = random.choice(samples)
    codec, size, stream = sample.data[:1], int.from_bytes(sample.data[1:SIZE], "little"), sample.data[SIZE:]
    done = []
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        if len(stream) <= 8:
            stream = random.randbytes(random.randint(1, 12))
        else:
            mutation = random.choice(MUTATIONS)
            stream = mutation(Sample("", stream, ()), random)
            done.append(mutation.__name__)
    if random.random() < 0.3 or not done:
        size = random.choice((max(0, size + random.randint(-70, 70)), size * 2, random.randrange(LARGEST_PAGE), size // 2, 0))
        done.append("page size")
    return f"{sample.name}: {', '.join(done)}", codec + size.to_bytes(4, "little") + stream


def codecs(data: bytes, index: int) -> None:
    """Decompress a page in both implementations, and compress what is there in both; checksums in both.

    Raises:
        ParquetError: both refuse the stream.
        AssertionError: the implementations differ, or one writes outside of its page.
    """
    if len(data) < SIZE:
        raise FormatError("no stream")
    name, size, stream = CODECS[data[0] % len(CODECS)], int.from_bytes(data[1:SIZE], "little"), data[SIZE:]
    skipped = index % 16
    if crc32(data[skipped:]) != zlib.crc32(data[skipped:]):
        raise AssertionError(f"another CRC-32 of {len(data)} bytes from byte {skipped}")
    if size > LARGEST_PAGE:
        raise LimitError(f"a page of {size} bytes")
    level = LEVELS[name][index % len(LEVELS[name])]
    ours, theirs = implementations(name, level)
    if index % 3 == 0:
        compressed_alike(ours, theirs, stream[:MOST_COMPRESSED])
    page, other = (outcome(codec, stream, size, index % 2 == 0) for codec in (ours, theirs))
    if name == "zstd" and ours is not theirs and described(page) != described(other):
        other = of_libzstd(stream, size)       # versions differ about broken streams: ours must be as its own library
    if name == "snappy" and isinstance(page, bytes) and isinstance(other, ParquetError):
        other = of_snappy(stream, size)         # cramjam refuses a last literal of few bytes with a length in bytes of its own
    if described(page) != described(other):
        raise AssertionError(f"{name}, {size} bytes: {described(page)} here, {described(other)} in the package")
    if isinstance(page, ParquetError):
        raise page
    try:
        if stream or size:
            check_claimed_size(ours.number, len(stream), size)
    except ParquetError as error:
        raise AssertionError(f"{name}: {len(stream)} bytes hold {size}: {error}") from error
    assert isinstance(page, bytes)
    compressed_alike(ours, theirs, page[:MOST_COMPRESSED])


def implementations(name: str, level: int | None) -> tuple[Codec, Codec]:
    """The compiled codec, or else the package, and the package."""
    package = PACKAGES_ALONE or not is_compiled(name)
    return codec_for_write(name, level, package=package), codec_for_write(name, level, package=True)


def outcome(codec: Codec, stream: bytes, size: int, guarded: bool) -> bytes | ParquetError:
    """The page, or the error.

    Args:
        codec: an implementation.
        stream: the compressed bytes; copied to memory of their very size, behind which a sanitizer looks.
        size: of the page.
        guarded: whether bytes around the page are checked here; else the memory ends with the page.
    """
    around = GUARDED if guarded else 0
    out = np.full(size + 2 * around, GUARD, np.uint8)
    try:
        codec.decompress_into(np.frombuffer(stream, np.uint8).copy().data, out[around : around + size].data)
    except ParquetError as error:
        return error
    finally:
        if guarded and ((out[:around] != GUARD).any() or (out[around + size :] != GUARD).any()):
            raise AssertionError(f"{codec.name} writes outside of its page")
    return out[around : around + size].tobytes()


def of_libzstd(stream: bytes, size: int) -> bytes | ParquetError:
    """The page by the library of the compiled codec, called directly."""
    out = ctypes.create_string_buffer(max(size, 1))
    written = LIBZSTD.ZSTD_decompress(out, ctypes.c_size_t(size), stream, ctypes.c_size_t(len(stream)))
    return out.raw[:size] if written == size else FormatError("broken")


def of_snappy(stream: bytes, size: int) -> bytes | ParquetError:
    """The page by Google's library, of pyarrow."""
    try:
        return bytes(pa.Codec("snappy").decompress(stream, decompressed_size=size).to_pybytes())
    except OSError as error:
        return FormatError(str(error))


def described(found: bytes | ParquetError) -> str:
    """Size and checksum of a page, or a refusal."""
    return f"{len(found)} bytes of CRC-32 {zlib.crc32(found)}" if isinstance(found, bytes) else "refused"


def compressed_alike(ours: Codec, theirs: Codec, page: bytes) -> None:
    """Compress a page here and in the package; each decompresses the other's stream."""
    for one, other in ((ours, theirs), (theirs, ours)):
        stream = bytes(one.compress(np.frombuffer(page, np.uint8).copy().data))
        if (found := outcome(other, stream, len(page), False)) != page:
            raise AssertionError(f"{one.name}: {len(page)} bytes compressed are {found!r}"[:1000])
