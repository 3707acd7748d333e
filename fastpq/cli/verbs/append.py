"""Append rows to a file, without decoding the rows that it has.

Section: Make files
"""

from __future__ import annotations

from typing import Any

import click

from fastpq.cli.failures import CommandFailure
from fastpq.cli.places import STANDARD_STREAM
from fastpq.cli.rewriting_result import RewritingFacts, any_encrypted, show_result
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import naming_source, property_options, refuse_plaintext_copy, writer_options

BATCH_ROWS = 1 << 20


@verb(
    examples=[
        ("fastpq append growing.parquet items.parquet", "The rows of items.parquet become the last rows of growing.parquet."),
        ("fastpq append growing.parquet items.parquet --in-place", "A very large file is extended without a copy."),
    ],
    facts=RewritingFacts,
)
@click.argument("target", metavar="FILE")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--in-place", is_flag=True, help="Extend the file itself. Nobody can read it until the append is complete.")
@click.option("--plaintext", is_flag=True, help="Append to a plaintext file although a source is encrypted.")
@property_options
def command(session: Session, target: str, files: tuple[str, ...], in_place: bool, plaintext: bool, **values: Any) -> None:
    """Append the rows of other files to a file. A reader sees the old or the new file.

    The columns must fit those of the first FILE. An encrypted one keeps its keys.
    """
    from fastpq.api.writer import ParquetWriter
    from fastpq.read.int96 import with_exact_int96

    if STANDARD_STREAM in (target, *files):
        raise CommandFailure("append takes files, not standard streams")
    places = session.files(files)
    is_encrypted = any_encrypted(session, [target])
    if not is_encrypted:
        refuse_plaintext_copy(any_encrypted(session, places), None, plaintext)
    rows = session.open_rows(files)
    keys = session.keys.decryption_of(target) if is_encrypted else None
    options = writer_options(values)
    with (
        session.progress("appending") as bar,
        naming_source(places),
        ParquetWriter(target, append=True, in_place=in_place, decryption_properties=keys, **options) as writer,
    ):
        for table in rows.iter_batches(min(BATCH_ROWS, options.get("row_group_size", BATCH_ROWS)), progress=bar):
            writer.write_batch(with_exact_int96(table))
    show_result(session, target, [])
