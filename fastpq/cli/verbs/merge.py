"""Put the row groups of several files into one file.

Section: Make files
"""

from __future__ import annotations

from typing import Any

import click

from fastpq.cli.places import STANDARD_STREAM, target_of
from fastpq.cli.rewriting_result import RewritingFacts, any_encrypted, show_report
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import encryption_options, new_encryption, plaintext_option, refuse_plaintext_copy, target_option


@verb(
    examples=[
        ("fastpq merge 'folder/*.parquet' -o merged.parquet", "Files of one schema and one writer become one file."),
    ],
    facts=RewritingFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@target_option
@encryption_options
@plaintext_option
def command(session: Session, files: tuple[str, ...], output: str, plaintext: bool, **values: Any) -> None:
    """Write the row groups of several files to one file, page by page, without decoding values."""
    from fastpq.cli.failures import CommandFailure
    from fastpq.rewriting.files import merge_files

    places = session.files(files)
    if STANDARD_STREAM in places:
        raise CommandFailure("merge reads its files twice, and standard input only once")
    encryption = new_encryption(values, session.keys, output)
    refuse_plaintext_copy(any_encrypted(session, places), encryption, plaintext)
    with session.progress("merging") as bar:
        report = merge_files(
            places,
            target_of(output),
            encryption_properties=encryption,
            decryption_properties=session.keys.decryption_of,
            progress=bar,
            **session.reader_options,
        )
    show_report(session, report, output)
