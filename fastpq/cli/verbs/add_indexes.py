"""Add page indexes, statistics and bloom filters to a file.

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
        ("fastpq add-indexes items.parquet -o quick.parquet", "What the file lacks."),
        ("fastpq add-indexes items.parquet -o quick.parquet --bloom-filter name,user", "Bloom filters for two columns too."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option("--bloom-filter", metavar="NAMES", help="Columns that get a bloom filter.")
@click.option("--no-page-index", is_flag=True, help="Add no page index.")
@click.option("--no-statistics", is_flag=True, help="Add no statistics.")
def command(
    session: Session, source: str, output: str, bloom_filter: str | None, no_page_index: bool, no_statistics: bool
) -> None:
    """Copy a file page by page, and add the page indexes and statistics that it lacks. The target may be the source.

    Only column chunks that lack something are decoded. An encrypted file keeps its keys.
    """
    from fastpq.rewriting.adding_indexes import add_indexes

    work = partial(
        add_indexes,
        write_page_index=not no_page_index,
        write_statistics=not no_statistics,
        bloom_filter={} if bloom_filter is None else dict.fromkeys(bloom_filter.split(","), True),
    )
    make_file(session, source, output, "adding indexes", work)
