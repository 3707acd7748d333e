"""recompress_file: a file with another codec or level. Its pages are decompressed, but not decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from fastpq.codecs.catalogue import codec_for_write
from fastpq.codecs.codec import Codec
from fastpq.errors import SchemaError
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import takes_options
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.rewriting.chunk_edits import COPIED_AS_IT_IS, ChunkEdit, Recompression
from fastpq.rewriting.one_file import FilePlan, rewrite_file
from fastpq.rewriting.report import RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions


@takes_options(RewritingOptions)
def recompress_file(
    source: Any,
    target: Any,
    compression: str | Mapping[str, str] | None = None,
    *,
    compression_level: int | Mapping[str, int] | None = None,
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Compress a file's pages with another codec or level. Values and levels are not decoded.

    Everything else is kept, as in ``project_file``. Chunks that have the codec already are copied, unless a level is given.

    Args:
        source, target: as in ``project_file``.
        compression: the codec, as in ``write_table``, or codecs by column. A column without a codec is copied. None and
            ``"none"`` mean uncompressed.
        compression_level: the codec's level, or levels by column.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport. ``changed_pages`` counts pages that were compressed again.

    Raises:
        SchemaError: a codec, a level or a column is unknown.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    codec_for_write(compression if isinstance(compression, str) else None)

    def plan(file: Source, metadata: FileMetaData) -> FilePlan:
        for option in (compression, compression_level):
            unknown = set(option) - {column.name for column in metadata.schema.columns} if isinstance(option, Mapping) else set()
            if unknown:
                raise SchemaError(f"unknown columns: {', '.join(sorted(unknown))}")

        def edit_of(chunk: ChunkPlan) -> ChunkEdit:
            codec = _codec_of(chunk.column.name, compression, compression_level)
            level = compression_level.get(chunk.column.name) if isinstance(compression_level, Mapping) else compression_level
            if codec is None or (codec.number == chunk.codec and level is None):
                return COPIED_AS_IT_IS
            return Recompression(chunk.codec, chunk.v2_is_compressed, codec)

        return FilePlan(metadata.schema, range(metadata.num_columns), metadata.key_values or None, edit_of)

    return rewrite_file(source, target, plan, RewritingOptions.of(options))


def _codec_of(
    name: str, compression: str | Mapping[str, str] | None, level: int | Mapping[str, int] | None
) -> Codec | None:
    """Return a column's new codec, or None to keep the old one."""
    if isinstance(compression, Mapping) and name not in compression:
        return None
    codec_name = compression[name] if isinstance(compression, Mapping) else compression
    return codec_for_write(codec_name, level.get(name) if isinstance(level, Mapping) else level)
