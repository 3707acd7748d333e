"""Make columns of a file null.

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
        ("fastpq redact items.parquet -o public.parquet --columns name,user", "Two columns become null in every row."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option("--columns", required=True, metavar="NAMES", help="Columns, by dotted path. A group stands for all its columns.")
def command(session: Session, source: str, output: str, columns: str) -> None:
    """Copy a file page by page, with some columns null in every row. The target may be the source.

    Nothing is left of their values: neither in pages, nor in statistics, indexes and bloom filters, nor in metadata that are
    known to hold values. An encrypted file keeps its keys.
    """
    from fastpq.rewriting.redacting import redact_file

    work = partial(redact_file, columns=columns.split(","))
    make_file(session, source, output, "copying", work)
