"""Split a file by rows, bytes or the values of a column.

Section: Make files
"""

from __future__ import annotations

import click

from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.rewriting_result import RewritingFacts, keys_if_encrypted, show_report
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import target_option


@verb(
    examples=[
        ("fastpq split items.parquet -o 'part-{number}.parquet' --rows 40000", "Files of 40,000 rows."),
        ("fastpq split items.parquet -o 'name-{value}.parquet' --by name", "A file for each name."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option("--rows", type=click.IntRange(1), metavar="N", help="Rows of each file but the last.")
@click.option("--bytes", "num_bytes", type=click.IntRange(1), metavar="N", help="Most bytes of a file, in whole row groups.")
@click.option("--by", metavar="NAME", help="A column, each of whose values gets a file.")
def command(
    session: Session, source: str, output: str, rows: int | None, num_bytes: int | None, by: str | None
) -> None:
    """Write the rows to several files, page by page. The output has {number} or {value} in its name.

    Only pages that are cut are decoded. An encrypted file keeps its keys.
    """
    from fastpq.rewriting.splitting import split_file

    if [rows, num_bytes, by].count(None) != 2:
        raise CommandFailure("one of --rows, --bytes and --by says how the file is split", USAGE)
    keys = keys_if_encrypted(session, source)
    with session.progress("splitting") as bar:
        reports = split_file(
            source,
            output,
            rows=rows,
            num_bytes=num_bytes,
            by=by,
            decryption_properties=keys,
            progress=bar,
            **session.reader_options,
        )
    for path, report in reports.items():
        show_report(session, report, path)
