"""The table of all eight codecs (Compression.md).

A codec either is compiled and calls its C library or a kernel in fastpq, or it calls a Python package. setup.py compiles the
codecs whose libraries it finds. A codec's module is imported when a page needs it.
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
LOWEST_ZSTD_LEVEL = -(1 << 17)      # ZSTD_minCLevel in the Zstandard library
PACKAGES_ALONE = os.environ.get("FASTPQ_CODECS") == "packages"      # setup.py reads it too, and then compiles no codec


class _Kind(NamedTuple):
    """A row in the codec table. The module ``NAME.py`` calls the package.

    Attributes:
        number, name: the codec.
        most_expansion: greatest expansion, as (bytes produced, bytes consumed).
        library: module and class of the compiled codec, or None if it is never compiled.
        default_level: level if the caller names none.
        levels: lowest and highest level, or None if the codec has no levels.
    """

    number: CompressionCodec
    name: str
    most_expansion: tuple[int, int]
    library: tuple[str, str] | None = None
    default_level: int = 0
    levels: tuple[int, int] | None = None


# Each codec's greatest expansion follows from its format:
#   SNAPPY   The densest element is a copy: 64 bytes from three. (A copy of at most 11 bytes takes two.)
#   GZIP     A match has at most 258 bytes. It takes at least two bits: one for its length, one for its distance.
#   LZO, LZ4 Each further byte in a match's length makes it at most 255 bytes longer.
#   BROTLI   A meta-block has at most 2^24 bytes. It takes more than nine: at least 28 bits for its header, 13 for block types,
#            context modes and trees, and 36 for the three shortest prefix codes.
#   ZSTD     A block has at most 2^17 bytes. It takes at least four: three for its header, one for its content (an RLE block).
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
    """Return the codec for a number in the metadata.

    Args:
        codec: a value of ``CompressionCodec``.

    Raises:
        UnsupportedError: the number has no name in parquet.thrift.
    """
    return _make_codec(_kind(codec), None, PACKAGES_ALONE)


def codec_for_write(name: str | None, level: int | None = None, package: bool = PACKAGES_ALONE) -> Codec:
    """Return the codec for a name and a level.

    Args:
        name: ``uncompressed`` (also ``none`` and None), ``snappy``, ``gzip``, ``brotli``, ``zstd``, ``lz4_raw``, ``lz4_hadoop``
            or ``lzo``, in upper or lower case. ``lz4`` means LZ4_RAW, as in pyarrow. ``lz4_hadoop`` is the deprecated LZ4 codec
            in Hadoop's framing.
        level: a level that the codec has, or None for its default: zstd 1, gzip 6, brotli 8, lz4 1, lzo 1.
        package: use the package even if the codec is compiled.

    Raises:
        SchemaError: the name is unknown, the level is out of range, or the codec has no levels.
    """
    requested_name = "uncompressed" if name is None else name.lower()
    kind = _NAMED.get(_ALIASES.get(requested_name, requested_name))
    if kind is None:
        from difflib import get_close_matches

        all_names = [*_NAMED, *(alias for alias in _ALIASES if alias not in _NAMED)]
        near = get_close_matches(requested_name, all_names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(all_names)}"
        raise SchemaError(f"unknown compression {name!r}; {hint}")
    if level is None:
        return _make_codec(kind, None, package)
    if kind.levels is None:
        raise SchemaError(f"compression {kind.name!r} has no levels, so it cannot take level {level}")
    lowest, highest = kind.levels
    if isinstance(level, bool) or not lowest <= level <= highest:
        raise SchemaError(f"compression level {level} of {kind.name!r} is outside {lowest} to {highest}")
    return _make_codec(kind, level, package)


def check_claimed_size(codec: int, compressed_size: int, claimed_size: int) -> None:
    """Refuse an uncompressed size that the codec's greatest expansion cannot reach, before memory is allocated for the page.

    Args:
        codec: a value of ``CompressionCodec``.
        compressed_size: the stored page's size in bytes (decrypted, without its header).
        claimed_size: uncompressed size in bytes, according to the page header.

    Raises:
        FormatError: a size is negative, or an uncompressed page has two different sizes.
        LimitError: no stream of ``compressed_size`` bytes decompresses to ``claimed_size`` bytes.
        UnsupportedError: the codec is unknown.
    """
    kind = _kind(codec)
    most_produced, for_consumed = kind.most_expansion
    if compressed_size < 0 or claimed_size < 0:
        raise FormatError(f"negative page size: {compressed_size} compressed, {claimed_size} uncompressed")
    if codec == CompressionCodec.UNCOMPRESSED and compressed_size != claimed_size:
        raise FormatError(f"uncompressed page of {compressed_size} bytes claims {claimed_size}")
    if claimed_size * for_consumed > compressed_size * most_produced:
        raise LimitError(
            f"{compressed_size} bytes of {kind.name} cannot hold the {claimed_size} bytes that the page header claims "
            f"(at most {most_produced} bytes from {for_consumed})"
        )


def _kind(codec: int) -> _Kind:
    try:
        return _NUMBERED[codec]
    except KeyError:
        raise UnsupportedError(f"compression codec {int(codec)}") from None


@lru_cache(maxsize=64)
def _make_codec(kind: _Kind, level: int | None, package: bool) -> Codec:
    """Make the codec for a row in the table. ``level`` is None for the default level."""
    codec_level = kind.default_level if level is None else level
    if not package and is_compiled(kind.name):
        assert kind.library is not None
        module, name = kind.library
        codec: type[Codec] = getattr(import_module(f"fastpq.codecs.{module}"), name)
        return codec(kind.number, kind.name, kind.most_expansion, codec_level)
    functions = import_module(f"fastpq.codecs.{kind.name}")
    return PackageCodec(
        kind.number, kind.name, kind.most_expansion, functions.compressor(codec_level), functions.decompress_into
    )


@lru_cache(maxsize=64)
def is_compiled(name: str) -> bool:
    """Return whether setup.py compiled a codec. If a compiled codec cannot be imported, no package replaces it."""
    module = _NAMED[name].library
    return module is not None and find_spec(f"fastpq.codecs.{module[0]}") is not None
