"""Compression of pages: one table of all eight codecs (Compression.md); the only place that imports a codec package."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from fastpq.errors import FormatError, LimitError, SchemaError, UnsupportedError
from fastpq.lazy import LazyModule

if TYPE_CHECKING:
    import brotli
    import cramjam
    import deflate
    import zstandard
    from isal import isal_zlib
    from lz4 import block as lz4_block

    from fastpq import framing
else:       # a codec's package is imported when a page needs the codec
    brotli = LazyModule("brotli")
    cramjam = LazyModule("cramjam")
    deflate = LazyModule("deflate")
    zstandard = LazyModule("zstandard")
    isal_zlib = LazyModule("isal.isal_zlib")
    lz4_block = LazyModule("lz4.block")
    framing = LazyModule("fastpq.framing")

BytesLike: TypeAlias = bytes | bytearray | memoryview
Compress: TypeAlias = Callable[[BytesLike], BytesLike]
DecompressInto: TypeAlias = Callable[[BytesLike, BytesLike], None]

UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW = range(8)  # parquet.thrift, CompressionCodec

LZ4_FRAME_MAGIC = b"\x04\x22\x4d\x18"

# zstandard.MAX_COMPRESSION_LEVEL, and the lowest level of the Zstandard library (ZSTD_minCLevel).
HIGHEST_ZSTD_LEVEL = 22
LOWEST_ZSTD_LEVEL = -(1 << 17)


class Codec(NamedTuple):
    """One codec; stateless, and may be called from several threads at once.

    Attributes:
        number: its value in ``CompressionCodec`` (parquet.thrift).
        name: what ``codec_for_write`` calls it.
        most_expansion: (produced, consumed), the most bytes that any stream of it produces from so many.
        compress: a contiguous buffer of bytes -> the compressed page, bytes-like. Releases the GIL.
        decompress_into: ``(source, target)``, both contiguous buffers of bytes, one-dimensional. Fills target, whose
            size is the uncompressed size of the page header; FormatError when the stream is broken, longer or shorter
            (what target holds is then undefined). No bytes are accepted for no bytes. Releases the GIL.
    """

    number: int
    name: str
    most_expansion: tuple[int, int]
    compress: Compress
    decompress_into: DecompressInto


def codec_for_read(codec: int) -> Codec:
    """The codec of a number in the metadata.

    Args:
        codec: a value of ``CompressionCodec``.

    Raises:
        UnsupportedError: a number that parquet.thrift does not name.
    """
    try:
        return _DEFAULTS[codec]
    except KeyError:
        raise UnsupportedError(f"compression codec {int(codec)}") from None


def codec_for_write(name: str | None, level: int | None = None) -> Codec:
    """The codec of a name and a level.

    Args:
        name: one of ``uncompressed`` (also ``none`` and None), ``snappy``, ``gzip``, ``brotli``, ``zstd``, ``lz4_raw``,
            ``lz4_hadoop``, ``lzo``, in any case. ``lz4`` means LZ4_RAW, as it does in pyarrow; ``lz4_hadoop`` is the
            deprecated LZ4 codec in Hadoop's framing.
        level: a level of the codec; None for its default: zstd 1, gzip 6, brotli 8, lz4 1, lzo 1.

    Raises:
        SchemaError: no such name, a level out of range, or a level for a codec without levels.
    """
    wanted = "uncompressed" if name is None else name.lower()
    kind = _KINDS.get(_ALIASES.get(wanted, wanted))
    if kind is None:
        raise SchemaError(f"unknown compression {name!r}; known are {', '.join(_KINDS)}")
    if level is None:
        return _DEFAULTS[kind.number]
    if kind.levels is None:
        raise SchemaError(f"compression {kind.name!r} has no levels, {level} was asked for")
    lowest, highest = kind.levels
    if isinstance(level, bool) or not lowest <= level <= highest:
        raise SchemaError(f"compression level {level} of {kind.name!r} is outside {lowest} to {highest}")
    return kind.codec(level)


def check_claimed_size(codec: int, compressed_size: int, claimed_size: int) -> None:
    """Refuse an uncompressed size that the compressed bytes cannot give, before anything is allocated for it.

    Args:
        codec: a value of ``CompressionCodec``.
        compressed_size: bytes of the page as stored (plaintext, without page header).
        claimed_size: bytes that the page header promises.

    Raises:
        FormatError: a size is negative, or an uncompressed page has two sizes.
        LimitError: no stream of compressed_size bytes decompresses to claimed_size bytes.
        UnsupportedError: unknown codec.
    """
    name, (produced, consumed) = codec_for_read(codec).name, codec_for_read(codec).most_expansion
    if compressed_size < 0 or claimed_size < 0:
        raise FormatError(f"negative page size: {compressed_size} compressed, {claimed_size} uncompressed")
    if codec == UNCOMPRESSED and compressed_size != claimed_size:
        raise FormatError(f"uncompressed page of {compressed_size} bytes claims {claimed_size}")
    if claimed_size * consumed > compressed_size * produced:
        raise LimitError(
            f"{compressed_size} bytes of {name} cannot hold the {claimed_size} bytes that the page header claims "
            f"(at most {produced} bytes from {consumed})"
        )


def crc32(data: BytesLike) -> int:
    """CRC-32 of a page (README.md, "Checksumming"), as an unsigned integer.

    ISA-L's is three times as fast as zlib's; libdeflate's is twice as fast again, but holds the GIL, so that threads
    would queue for it. To measure: ``python -m timeit -s "from isal import isal_zlib as m; d = bytes(1 << 20)"
    "m.crc32(d)"``, and so with ``zlib`` and ``deflate``.
    """
    return int(isal_zlib.crc32(data))


# Most bytes produced by so many bytes consumed, from each format's description:
#   SNAPPY   the densest element is a copy of 64 bytes in three (one of at most 11 bytes takes two).
#   GZIP     a match of at most 258 bytes takes at least two bits: one of length, one of distance.
#   LZO, LZ4 a match grows by at most 255 for each byte that extends its length.
#   BROTLI   a meta-block is at most 2^24 bytes; its header takes at least 28 bits, block types, context modes and
#            trees 13, the three shortest prefix codes 36: more than nine bytes.
#   ZSTD     a block is at most 2^17 bytes and takes at least four: three of header, one of content (an RLE block).
_MOST_EXPANSION = {
    UNCOMPRESSED: (1, 1),
    SNAPPY: (64, 3),
    GZIP: (1032, 1),
    LZO: (255, 1),
    BROTLI: (1 << 24, 9),
    LZ4: (255, 1),
    ZSTD: (1 << 17, 4),
    LZ4_RAW: (255, 1),
}


def _mismatch(name: str, actual: int, target: BytesLike) -> FormatError:
    return FormatError(f"{name} stream of {actual} bytes, the page header claims {len(target)}")


def _broken(name: str, error: Exception) -> FormatError:
    return FormatError(f"broken {name} stream: {error}")


def _copy(source: BytesLike, target: BytesLike) -> None:
    # NumPy's assignment releases the GIL; a memoryview's does not.
    np.frombuffer(target, np.uint8)[:] = np.frombuffer(source, np.uint8)


# ---- UNCOMPRESSED


def _same(data: BytesLike) -> BytesLike:
    return data


def _uncompressed_into(source: BytesLike, target: BytesLike) -> None:
    if len(source) != len(target):
        raise _mismatch("uncompressed", len(source), target)
    _copy(source, target)


# ---- SNAPPY: the Rust implementation, which decompresses faster than the C++ one, and straight into the target


def _snappy_compress(data: BytesLike) -> BytesLike:
    return memoryview(cramjam.snappy.compress_raw(data))


def _snappy_into(source: BytesLike, target: BytesLike) -> None:
    try:
        size = cramjam.snappy.decompress_raw_into(source, target)
    except cramjam.DecompressionError as error:
        raise _broken("snappy", error) from error
    if size != len(target):
        raise _mismatch("snappy", size, target)


# ---- GZIP


def _gzip_compressor(level: int) -> Compress:
    def compress(data: BytesLike) -> BytesLike:
        return deflate.gzip_compress(data, level)

    return compress


def _gzip_into(source: BytesLike, target: BytesLike) -> None:
    plain = _gzip_single_member(source, len(target))
    if plain:
        _copy(plain, target)
    else:
        framing.inflate_members(memoryview(source), memoryview(target))


def _gzip_single_member(source: BytesLike, size: int) -> bytes | bytearray:
    """The content where source is one member of size bytes; otherwise nothing.

    libdeflate is the fastest, but stops after the first member without saying where. The length in the last
    trailer (ISIZE) tells whether the first is all; a second member of the same length goes unnoticed.
    """
    if bytes(source[:2]) != framing.GZIP_MAGIC or int.from_bytes(bytes(source[-4:]), "little") != size:
        return b""
    try:
        plain = deflate.gzip_decompress(source, size)
    except deflate.DeflateError:
        return b""  # zlib has the last word on it
    return plain if len(plain) == size else b""


# ---- BROTLI


def _brotli_compressor(level: int) -> Compress:
    def compress(data: BytesLike) -> BytesLike:
        return bytes(brotli.compress(data, quality=level))

    return compress


def _brotli_into(source: BytesLike, target: BytesLike) -> None:
    decompressor = brotli.Decompressor()
    try:
        plain = decompressor.process(source, output_buffer_limit=len(target) + 1)
    except brotli.error as error:
        raise _broken("brotli", error) from error
    if len(plain) > len(target):
        raise FormatError(f"brotli stream of more bytes than the {len(target)} that the page header claims")
    if not decompressor.is_finished():
        raise FormatError(f"brotli stream ends early, after {len(plain)} bytes")
    if len(plain) != len(target):
        raise _mismatch("brotli", len(plain), target)
    _copy(plain, target)


# ---- ZSTD: contexts are expensive to make and not thread-safe, hence one for each thread


class _ThreadContexts(threading.local):
    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}

    @cached_property
    def decompressor(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor()


_contexts = _ThreadContexts()


def _zstd_compressor(level: int) -> Compress:
    def compress(data: BytesLike) -> BytesLike:
        compressor = _contexts.compressors.get(level)
        if compressor is None:
            compressor = _contexts.compressors[level] = zstandard.ZstdCompressor(level=level)
        return compressor.compress(data)

    return compress


def _zstd_into(source: BytesLike, target: BytesLike) -> None:
    plain = _zstd_single_frame(source, len(target))
    if plain:
        _copy(plain, target)
        return
    # No context is kept here, which costs ten microseconds, but any number of frames is read, and no byte is left over.
    try:
        written = cramjam.zstd.decompress_into(source, target)
    except cramjam.DecompressionError as error:
        raise _broken("zstd", error) from error
    if written != len(target):
        raise _mismatch("zstd", written, target)


def _zstd_single_frame(source: BytesLike, size: int) -> bytes:
    """The content where source is one frame of size bytes, as nearly every writer makes it; otherwise nothing."""
    try:
        # zstandard allocates what a frame states, hence a look at it first; -1 is a frame that states nothing.
        if zstandard.frame_content_size(source) not in (size, -1):
            return b""
        plain = _contexts.decompressor.decompress(source, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError:
        return b""  # the streaming decoder has the last word on it
    return plain if len(plain) == size else b""


# ---- LZ4_RAW, and the deprecated LZ4 in its three dialects


def _lz4_compressor(level: int) -> Compress:
    # As in pyarrow: from level 3 the high-compression mode, which cramjam does not have.
    options: dict[str, Any] = {"mode": "default"}
    if level > 2:
        options = {"mode": "high_compression", "compression": level}

    def compress(data: BytesLike) -> BytesLike:
        return bytes(lz4_block.compress(data, store_size=False, **options))

    return compress


def _lz4_block_into(source: BytesLike, target: BytesLike) -> int:
    """One block into the front of target; the bytes written."""
    try:
        return int(cramjam.lz4.decompress_block_into(source, target, output_len=len(target)))
    except cramjam.DecompressionError as error:
        raise _broken("lz4", error) from error


def _lz4_raw_into(source: BytesLike, target: BytesLike) -> None:
    written = _lz4_block_into(source, target)
    if written != len(target):
        raise _mismatch("lz4", written, target)


def _lz4_frame_into(source: BytesLike, target: BytesLike) -> None:
    try:
        written = cramjam.lz4.decompress_into(source, target)
    except cramjam.DecompressionError as error:
        raise _broken("lz4", error) from error
    if written != len(target):
        raise _mismatch("lz4", written, target)


def _lz4_into(source: BytesLike, target: BytesLike) -> None:
    """Hadoop's framing (parquet-java), an LZ4 frame or a raw block (old parquet-cpp): the first that fits exactly.

    A dialect fits when its own lengths and the page's add up to the byte, so that none passes for another.
    """
    dialects = [_lz4_hadoop_into, _lz4_raw_into]
    if bytes(source[:4]) == LZ4_FRAME_MAGIC:
        dialects.insert(0, _lz4_frame_into)
    reasons = []
    for dialect in dialects:
        try:
            return dialect(source, target)
        except FormatError as error:
            reasons.append(error)
    raise reasons[0]


def _lz4_hadoop_into(source: BytesLike, target: BytesLike) -> None:
    framing.hadoop_decompress(memoryview(source), memoryview(target), _lz4_block_into)


def _lz4_hadoop_compressor(level: int) -> Compress:
    block = _lz4_compressor(level)

    def compress(data: BytesLike) -> BytesLike:
        return framing.hadoop_compress(memoryview(data), block)

    return compress


# ---- LZO, with python-lzo (the extra ``lzo``): LZO1X in Hadoop's framing, as hadoop-lzo writes it


def _lzo_package() -> Any:
    try:
        return importlib.import_module("lzo")
    except ImportError:
        raise UnsupportedError("the LZO codec needs the package python-lzo (pip install fastpq[lzo])") from None


def _lzo_compressor(level: int) -> Compress:
    def compress(data: BytesLike) -> BytesLike:
        package = _lzo_package()
        return framing.hadoop_compress(memoryview(data), lambda block: package.compress(bytes(block), level, False))

    return compress


def _lzo_into(source: BytesLike, target: BytesLike) -> None:
    package = _lzo_package()

    def decompress(chunk: memoryview, block: memoryview) -> int:
        try:
            plain = package.decompress(bytes(chunk), False, len(block))
        except package.error as error:
            raise _broken("lzo", error) from error
        block[: len(plain)] = plain
        return len(plain)

    framing.hadoop_decompress(memoryview(source), memoryview(target), decompress)


# ---- the table


class _Kind(NamedTuple):
    number: int
    name: str
    decompress_into: DecompressInto
    compressor: Callable[[int], Compress]
    default_level: int = 0
    levels: tuple[int, int] | None = None

    def codec(self, level: int) -> Codec:
        return Codec(
            self.number,
            self.name,
            _MOST_EXPANSION[self.number],
            self.compressor(level),
            _or_nothing(self.decompress_into),
        )


def _or_nothing(decompress_into: DecompressInto) -> DecompressInto:
    """Nothing decompresses to nothing, in every codec: so some writers store a page without values."""

    def decompress_or_nothing(source: BytesLike, target: BytesLike) -> None:
        if len(source) or len(target):
            decompress_into(source, target)

    return decompress_or_nothing


_TABLE = (
    _Kind(UNCOMPRESSED, "uncompressed", _uncompressed_into, lambda level: _same),
    _Kind(SNAPPY, "snappy", _snappy_into, lambda level: _snappy_compress),
    _Kind(GZIP, "gzip", _gzip_into, _gzip_compressor, 6, (1, 12)),
    _Kind(LZO, "lzo", _lzo_into, _lzo_compressor, 1, (1, 9)),
    _Kind(BROTLI, "brotli", _brotli_into, _brotli_compressor, 8, (0, 11)),
    _Kind(LZ4, "lz4_hadoop", _lz4_into, _lz4_hadoop_compressor, 1, (1, 12)),
    _Kind(ZSTD, "zstd", _zstd_into, _zstd_compressor, 1, (LOWEST_ZSTD_LEVEL, HIGHEST_ZSTD_LEVEL)),
    _Kind(LZ4_RAW, "lz4_raw", _lz4_raw_into, _lz4_compressor, 1, (1, 12)),
)
_KINDS = {kind.name: kind for kind in _TABLE}
_ALIASES = {"none": "uncompressed", "lz4": "lz4_raw"}
_DEFAULTS = {kind.number: kind.codec(kind.default_level) for kind in _TABLE}
