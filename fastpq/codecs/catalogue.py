"""All eight codecs (Compression.md) in one table.

A codec is compiled, over its C library or a kernel of fastpq, or else calls a package of Python. setup.py compiles the codecs
whose libraries it finds. File, library and package are imported when a page needs the codec.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from fastpq.codecs.codec import Codec, PackageCodec
from fastpq.errors import FormatError, LimitError, SchemaError, UnsupportedError
from fastpq.format.enums import CompressionCodec

HIGHEST_ZSTD_LEVEL = 22             # zstandard.MAX_COMPRESSION_LEVEL
LOWEST_ZSTD_LEVEL = -(1 << 17)      # ZSTD_minCLevel of the Zstandard library
PACKAGES_ALONE = os.environ.get("FASTPQ_CODECS") == "packages"      # also an option of setup.py, which then compiles none


class _Kind(NamedTuple):
    """A row of the table of codecs. ``NAME.py`` calls the package; compiled is module and class of the compiled codec."""

    number: CompressionCodec
    name: str
    most_expansion: tuple[int, int]
    compiled: tuple[str, str] | None = None
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
    _Kind(CompressionCodec.SNAPPY, "snappy", (64, 3), ("snappy_kernel", "SnappyKernel")),
    _Kind(CompressionCodec.GZIP, "gzip", (1032, 1), ("gzip_library", "GzipLibrary"), 6, (1, 12)),
    _Kind(CompressionCodec.LZO, "lzo", (255, 1), None, 1, (1, 9)),
    _Kind(CompressionCodec.BROTLI, "brotli", (1 << 24, 9), ("brotli_library", "BrotliLibrary"), 8, (0, 11)),
    _Kind(CompressionCodec.LZ4, "lz4_hadoop", (255, 1), ("lz4_library", "Lz4HadoopLibrary"), 1, (1, 12)),
    _Kind(CompressionCodec.ZSTD, "zstd", (1 << 17, 4), ("zstd_library", "ZstdLibrary"), 1,
          (LOWEST_ZSTD_LEVEL, HIGHEST_ZSTD_LEVEL)),
    _Kind(CompressionCodec.LZ4_RAW, "lz4_raw", (255, 1), ("lz4_library", "Lz4RawLibrary"), 1, (1, 12)),
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
    return _made(_kind(codec), None, PACKAGES_ALONE)


def codec_for_write(name: str | None, level: int | None = None, package: bool = PACKAGES_ALONE) -> Codec:
    """The codec of a name and a level.

    Args:
        name: one of ``uncompressed`` (also ``none`` and None), ``snappy``, ``gzip``, ``brotli``, ``zstd``, ``lz4_raw``,
            ``lz4_hadoop``, ``lzo``, in upper or lower case. ``lz4`` means LZ4_RAW, as in pyarrow; ``lz4_hadoop`` is
            the deprecated LZ4 codec in Hadoop's framing.
        level: a level of the codec; None for its default: zstd 1, gzip 6, brotli 8, lz4 1, lzo 1.
        package: take the package also where the codec is compiled.

    Raises:
        SchemaError: the name is unknown, the level is out of range, or the codec has no levels.
    """
    wanted = "uncompressed" if name is None else name.lower()
    kind = _NAMED.get(_ALIASES.get(wanted, wanted))
    if kind is None:
        from difflib import get_close_matches

        known = [*_NAMED, *(alias for alias in _ALIASES if alias not in _NAMED)]
        near = get_close_matches(wanted, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        raise SchemaError(f"unknown compression {name!r}; {hint}")
    if level is None:
        return _made(kind, None, package)
    if kind.levels is None:
        raise SchemaError(f"compression {kind.name!r} has no levels, {level} was asked for")
    lowest, highest = kind.levels
    if isinstance(level, bool) or not lowest <= level <= highest:
        raise SchemaError(f"compression level {level} of {kind.name!r} is outside {lowest} to {highest}")
    return _made(kind, level, package)


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
def _made(kind: _Kind, level: int | None, package: bool) -> Codec:
    """The codec of a row at a level; None for the default level."""
    chosen = kind.default_level if level is None else level
    if not package and is_compiled(kind.name):
        assert kind.compiled is not None
        module, name = kind.compiled
        codec: type[Codec] = getattr(import_module(f"fastpq.codecs.{module}"), name)
        return codec(kind.number, kind.name, kind.most_expansion, chosen)
    functions = import_module(f"fastpq.codecs.{kind.name}")
    return PackageCodec(
        kind.number, kind.name, kind.most_expansion, functions.compressor(chosen), functions.decompress_into
    )


@lru_cache(maxsize=64)
def is_compiled(name: str) -> bool:
    """Whether setup.py compiled the codec of a name; a compiled codec that cannot be imported is an error, not a fallback."""
    compiled = _NAMED[name].compiled
    return compiled is not None and find_spec(f"fastpq.codecs.{compiled[0]}") is not None
