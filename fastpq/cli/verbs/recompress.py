"""Compress pages with another codec, without decoding them.

Section: Make files
"""

from __future__ import annotations

from functools import partial

import click

from fastpq.cli.rewriting_result import RewritingFacts, make_file
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import target_option


@verb(
    examples=[
        ("fastpq recompress items.parquet -o small.parquet --compression zstd --compression-level 9", "Smaller pages."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option("--compression", required=True, metavar="CODEC", help="zstd, snappy, gzip, brotli, lz4 or none.")
@click.option("--compression-level", type=int, metavar="N", help="Level of the codec.")
def command(session: Session, source: str, output: str, compression: str, compression_level: int | None) -> None:
    """Compress pages with another codec or level. Values are not decoded. The target may be the source.

    Chunks that have the codec already are copied, unless a level is given. An encrypted file keeps its keys.
    """
    from fastpq.rewriting.recompressing import recompress_file

    work = partial(recompress_file, compression=compression, compression_level=compression_level)
    make_file(session, source, output, "compressing", work)
