"""Sort all rows of a file.

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
        ("fastpq sort items.parquet -o sorted.parquet --by id", "By one column."),
        ("fastpq sort items.parquet -o sorted.parquet --by name,-price", "By name, then by price from high to low."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option("--by", required=True, metavar="NAMES", help="Columns, first column first. A minus before a name reverses it.")
@click.option("--row-group-size", type=click.IntRange(1), metavar="ROWS", help="Largest row group.")
def command(session: Session, source: str, output: str, by: str, row_group_size: int | None) -> None:
    """Sort all rows by some columns, through all row groups. The target may be the source.

    Memory holds a part of the rows, and a temporary folder holds the others. An encrypted file keeps its keys.
    """
    from fastpq.options import SortingColumn
    from fastpq.rewriting.sorting_rows import sort_file

    work = partial(
        sort_file,
        sort_by=[SortingColumn(name.removeprefix("-"), name.startswith("-")) for name in by.split(",")],
        row_group_size=row_group_size,
    )
    make_file(session, source, output, "sorting", work)
