"""All eight codecs (Compression.md) in one table; a codec's file and package are imported when a page needs the codec."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

from fastpq.codecs.codec import Buffer, Codec, DecompressInto
from fastpq.errors import FormatError, LimitError, SchemaError, UnsupportedError
from fastpq.format.enums import CompressionCodec

HIGHEST_ZSTD_LEVEL = 22             # zstandard.MAX_COMPRESSION_LEVEL
LOWEST_ZSTD_LEVEL = -(1 << 17)      # ZSTD_minCLevel of the Zstandard library


class _Kind(NamedTuple):
    """A row of the table of codecs; the codec's file has the codec's name."""

    number: CompressionCodec
    name: str
    most_expansion: tuple[int, int]
    default_level: int = 0
    levels: tuple[int, int] | None = None


# Greatest expansion of each codec, (bytes produced, bytes consumed), derived from the description of the compressed format:
#   SNAPPY   the densest element is a copy of 64 bytes in three (one of at most 11 bytes takes two).
#   GZIP     a match of at most 258 bytes takes at least two bits: one of length, one of distance.
#   LZO, LZ4 a match grows by at most 255 bytes for each further byte of its length.
#   BROTLI   a meta-block is at most 2^24 bytes; its header takes at least 28 bits, block types, context modes and
#            trees 13, the three shortest prefix codes 36: more than nine bytes.
#   ZSTD     a block is at most 2^17 bytes and takes at least four: three of header, one of content (an RLE block).
_TABLE = (
    _Kind(CompressionCodec.UNCOMPRESSED, "uncompressed", (1, 1)),
    _Kind(CompressionCodec.SNAPPY, "snappy", (64, 3)),
    _Kind(CompressionCodec.GZIP, "gzip", (1032, 1), 6, (1, 12)),
    _Kind(CompressionCodec.LZO, "lzo", (255, 1), 1, (1, 9)),
    _Kind(CompressionCodec.BROTLI, "brotli", (1 << 24, 9), 8, (0, 11)),
    _Kind(CompressionCodec.LZ4, "lz4_hadoop", (255, 1), 1, (1, 12)),
    _Kind(CompressionCodec.ZSTD, "zstd", (1 << 17, 4), 1, (LOWEST_ZSTD_LEVEL, HIGHEST_ZSTD_LEVEL)),
    _Kind(CompressionCodec.LZ4_RAW, "lz4_raw", (255, 1), 1, (1, 12)),
)
_NAMED = {kind.name: kind for kind in _TABLE}
_NUMBERED: dict[int, _Kind] = {kind.number: kind for kind in _TABLE}
_ALIASES = {"none": "uncompressed", "lz4": "lz4_raw"}


@lru_cache(maxsize=64)
def codec_for_read(codec: int) -> Codec:
    """The codec of a number in the metadata.

    Args:
        codec: a value of ``CompressionCodec``.

    Raises:
        UnsupportedError: the number has no name in parquet.thrift.
    """
    return _made(_kind(codec), None)


def codec_for_write(name: str | None, level: int | None = None) -> Codec:
    """The codec of a name and a level.

    Args:
        name: one of ``uncompressed`` (also ``none`` and None), ``snappy``, ``gzip``, ``brotli``, ``zstd``, ``lz4_raw``,
            ``lz4_hadoop``, ``lzo``, in upper or lower case. ``lz4`` means LZ4_RAW, as in pyarrow; ``lz4_hadoop`` is
            the deprecated LZ4 codec in Hadoop's framing.
        level: a level of the codec; None for its default: zstd 1, gzip 6, brotli 8, lz4 1, lzo 1.

    Raises:
        SchemaError: the name is unknown, the level is out of range, or the codec has no levels.
    """
    wanted = "uncompressed" if name is None else name.lower()
    kind = _NAMED.get(_ALIASES.get(wanted, wanted))
    if kind is None:
        raise SchemaError(f"unknown compression {name!r}; known are {', '.join(_NAMED)}")
    if level is None:
        return _made(kind, None)
    if kind.levels is None:
        raise SchemaError(f"compression {kind.name!r} has no levels, {level} was asked for")
    lowest, highest = kind.levels
    if isinstance(level, bool) or not lowest <= level <= highest:
        raise SchemaError(f"compression level {level} of {kind.name!r} is outside {lowest} to {highest}")
    return _made(kind, level)


def check_claimed_size(codec: int, compressed_size: int, claimed_size: int) -> None:
    """Refuse an uncompressed size beyond the codec's greatest expansion; called before memory is allocated for the page.

    Args:
        codec: a value of ``CompressionCodec``.
        compressed_size: bytes of the page as stored (plaintext, without page header).
        claimed_size: uncompressed bytes of the page according to the page header.

    Raises:
        FormatError: a size is negative, or an uncompressed page has two different sizes.
        LimitError: no stream of compressed_size bytes decompresses to claimed_size bytes.
        UnsupportedError: unknown codec.
    """
    kind = _kind(codec)
    produced, consumed = kind.most_expansion
    if compressed_size < 0 or claimed_size < 0:
        raise FormatError(f"negative page size: {compressed_size} compressed, {claimed_size} uncompressed")
    if codec == CompressionCodec.UNCOMPRESSED and compressed_size != claimed_size:
        raise FormatError(f"uncompressed page of {compressed_size} bytes claims {claimed_size}")
    if claimed_size * consumed > compressed_size * produced:
        raise LimitError(
            f"{compressed_size} bytes of {kind.name} cannot hold the {claimed_size} bytes that the page header claims "
            f"(at most {produced} bytes from {consumed})"
        )


def _kind(codec: int) -> _Kind:
    try:
        return _NUMBERED[codec]
    except KeyError:
        raise UnsupportedError(f"compression codec {int(codec)}") from None


@lru_cache(maxsize=64)
def _made(kind: _Kind, level: int | None) -> Codec:
    """The codec of a row at a level; None for the default level."""
    module = import_module(f"fastpq.codecs.{kind.name}")
    compress = module.compressor(kind.default_level if level is None else level)
    return Codec(kind.number, kind.name, kind.most_expansion, compress, _or_nothing(module.decompress_into))


def _or_nothing(decompress_into: DecompressInto) -> DecompressInto:
    """The same function, but no bytes decompress to no bytes: some writers store a page without values as no bytes."""

    def decompress_or_nothing(source: Buffer, target: Buffer) -> None:
        if len(source) or len(target):
            decompress_into(source, target)

    return decompress_or_nothing
