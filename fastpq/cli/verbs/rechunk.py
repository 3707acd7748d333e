"""Write row groups or pages of other sizes.

Section: Make files
"""

from __future__ import annotations

from functools import partial

import click

from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.rewriting_result import RewritingFacts, make_file
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import target_option

SIZE = click.IntRange(1)


@verb(
    examples=[
        ("fastpq rechunk items.parquet -o large.parquet --row-group-size 1000000", "Larger row groups."),
        ("fastpq rechunk items.parquet -o fine.parquet --data-page-rows 5000", "Smaller pages, for reads of few rows."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option("--row-group-size", type=SIZE, metavar="ROWS", help="Largest row group.")
@click.option("--row-group-bytes", type=SIZE, metavar="BYTES", help="Largest uncompressed row group.")
@click.option("--data-page-size", type=SIZE, metavar="BYTES", help="Target size of a page before compression.")
@click.option("--data-page-rows", type=SIZE, metavar="ROWS", help="Largest page.")
def command(
    session: Session,
    source: str,
    output: str,
    row_group_size: int | None,
    row_group_bytes: int | None,
    data_page_size: int | None,
    data_page_rows: int | None,
) -> None:
    """Write the same rows in row groups or pages of other sizes. The target may be the source.

    Row groups that have the right size are copied, and the others are decoded. An encrypted file keeps its keys.
    """
    from fastpq.rewriting.rechunking import rechunk_file

    if [row_group_size, row_group_bytes, data_page_size, data_page_rows].count(None) == 4:
        raise CommandFailure("a size of row groups or pages is needed", USAGE)
    work = partial(
        rechunk_file,
        row_group_size=row_group_size,
        row_group_bytes=row_group_bytes,
        data_page_size=data_page_size,
        data_page_rows=data_page_rows,
    )
    make_file(session, source, output, "rewriting", work)
