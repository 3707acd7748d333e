"""Keep some columns of a file, without reading the others.

Section: Make files
"""

from __future__ import annotations

from functools import partial

import click

from fastpq.cli.rewriting_result import RewritingFacts, make_file
from fastpq.cli.row_output import columns_option
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import target_option


@verb(
    examples=[
        ("fastpq project items.parquet -o few.parquet --columns price,id", "Two columns, in another order."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@columns_option
def command(session: Session, source: str, output: str, columns: list[str] | None) -> None:
    """Write some columns of a file, page by page, without decoding values. The target may be the source.

    An encrypted file keeps its keys.
    """
    from fastpq.rewriting.projecting import project_file

    work = partial(project_file, columns=columns or [])
    make_file(session, source, output, "copying", work)
