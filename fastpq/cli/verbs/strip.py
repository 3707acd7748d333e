"""Leave out statistics, indexes or metadata of a file.

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
        ("fastpq strip items.parquet -o bare.parquet", "Values and schema alone."),
        ("fastpq strip items.parquet -o anonymous.parquet --keep page-index --keep bloom-filters", "Some indexes stay."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option(
    "--keep",
    multiple=True,
    type=click.Choice(["statistics", "page-index", "bloom-filters", "key-values"]),
    help="What stays. May be repeated.",
)
def command(session: Session, source: str, output: str, keep: tuple[str, ...]) -> None:
    """Copy a file page by page without what it says about its values beside the values. The target may be the source.

    An encrypted file keeps its keys.
    """
    from fastpq.rewriting.stripping import strip_file

    work = partial(
        strip_file,
        statistics="statistics" not in keep,
        page_index="page-index" not in keep,
        bloom_filters="bloom-filters" not in keep,
        key_values="key-values" not in keep,
    )
    make_file(session, source, output, "copying", work)
