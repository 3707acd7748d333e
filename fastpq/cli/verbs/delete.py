"""Write a file, or a folder, without some of its rows.

Section: Make files
"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from fastpq.cli.amounts import count_text
from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.places import is_folder, is_glob
from fastpq.cli.rewriting_result import RewritingFacts, make_file
from fastpq.cli.row_output import where_option_of
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import force_option


@verb(
    examples=[
        ('fastpq delete items.parquet -o rest.parquet --where "user == 123456789"', "All rows of one user."),
        ("fastpq delete items.parquet -o rest.parquet --rows 5,7", "The sixth and the eighth row."),
        ('fastpq delete folder --where "id < 10"', "In each file of a folder, which keeps its path."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@click.option(
    "--output", "-o", metavar="FILE", help="The new file. It appears whole or not at all. A folder is changed itself."
)
@force_option
@where_option_of("Which rows are deleted: \"user == 5 or day < '2024-01-02'\".")
@click.option("--rows", metavar="NUMBERS", help="Numbers of the rows that are deleted, counted from 0.")
def command(session: Session, source: str, output: str | None, filters: Any, rows: str | None) -> None:
    """Write the rows that stay. The target may be the source. In a folder, each file with such rows is replaced in one step.

    Nothing is left of values that only deleted rows had: neither in pages and dictionaries, nor in statistics, indexes and bloom
    filters. Older copies of the file still have them. An encrypted file keeps its keys.
    """
    from fastpq.rewriting.deleting import delete_rows

    if (filters is None) == (rows is None):
        raise CommandFailure("--where or --rows says which rows are deleted", USAGE)
    if is_folder(source) or is_glob(source):
        _delete_in_folder(session, source, output, filters)
        return
    if output is None:
        raise CommandFailure("a file needs --output", USAGE, "-o FILE names the new file, which may be the old one")
    numbers = None if rows is None else rows.split(",")
    if numbers is not None and not all(number.strip().isdecimal() for number in numbers):
        raise CommandFailure("--rows are not numbers with commas between them", USAGE)
    work = partial(delete_rows, filters=filters, rows=None if numbers is None else map(int, numbers))
    make_file(session, source, output, "deleting", work, deletes=True)


def _delete_in_folder(session: Session, folder: str, output: str | None, filters: Any) -> None:
    """Delete rows in the files of a folder."""
    from fastpq.datasets.row_deletion import delete_dataset_rows

    if filters is None:
        raise CommandFailure("--rows are rows of one file", USAGE, "--where says which rows of a folder are deleted")
    if output is not None:
        raise CommandFailure("a folder is changed itself, and takes no --output", USAGE, "copy the folder first to keep it")
    keys: Any = session.keys.decryption_of if session.keys.is_per_file else session.keys.decryption_of(None)
    with session.progress("deleting", "files") as bar:
        report = delete_dataset_rows(folder, filters, decryption_properties=keys, progress=bar, **session.reader_options)
    parts = report.rewritten_files
    left_out = [f"{path}: {part}" for path, each in parts.items() for part in (*each.dropped_indexes, *each.dropped_metadata)]
    if session.as_json:
        facts = RewritingFacts(
            file=folder, size=None, left_out=left_out, copied_pages=sum(each.copied_pages for each in parts.values()),
            decoded_pages=sum(each.decoded_pages for each in parts.values()), deleted_rows=report.deleted_rows)
        session.screen.json(facts)
        return
    session.note(
        f"{folder}: {count_text(report.deleted_rows, 'row')} deleted; {count_text(len(parts), 'file')} rewritten, "
        f"{len(report.removed_files):,} removed, {report.unchanged_files:,} unchanged"
    )
    for text in left_out:
        session.note("  ", Styled("! ", "warning"), f"left out: {text}")
