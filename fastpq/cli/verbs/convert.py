"""Convert CSV, JSON lines, Arrow and npz to Parquet, and back.

Section: Make files
"""

from __future__ import annotations

from typing import Any

import click

from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.places import STANDARD_STREAM, source_of, target_of
from fastpq.cli.rewriting_result import RewritingFacts, any_encrypted, show_result
from fastpq.cli.row_output import RowTarget, with_empty_table, write_rows
from fastpq.cli.table_input import FORMATS, format_by_name, open_input
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import (
    encryption_options,
    naming_source,
    new_encryption,
    plaintext_option,
    property_options,
    refuse_plaintext_copy,
    target_option,
    writer_options,
)

BATCH_ROWS = 65_536


@verb(
    examples=[
        ("fastpq convert items.parquet -o items.csv", "Parquet to CSV."),
        (
            "fastpq convert items.csv -o again.parquet --compression zstd",
            "CSV to Parquet. Types are inferred from the first rows.",
        ),
        ("fastpq convert - --from jsonl -o rows.parquet < rows.jsonl", "JSON lines from a pipe."),
        ("fastpq convert items.parquet -o items.arrow", "Parquet to Arrow. npz is for numpy.load."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option(
    "--from", "source_format", type=click.Choice(FORMATS), default=None, help="Format of the source.  [default: by its ending]"
)
@click.option(
    "--to", "target_format", type=click.Choice(FORMATS), default=None, help="Format of the target.  [default: by its ending]"
)
@click.option(
    "--infer-rows",
    type=click.IntRange(1),
    default=BATCH_ROWS,
    show_default=True,
    metavar="N",
    help="Rows that decide names and types.",
)
@click.option("--null", default="", metavar="TEXT", help="Text of a null in CSV, without quotes.  [default: an empty field]")
@property_options
@encryption_options
@plaintext_option
def command(
    session: Session,
    source: str,
    output: str,
    source_format: str | None,
    target_format: str | None,
    infer_rows: int,
    null: str,
    plaintext: bool,
    **values: Any,
) -> None:
    """Convert a file to another format, in bounded memory except for npz. One side is Parquet.

    CSV has a heading. Its types are bool, int64, float64, date, timestamp or text. Whole numbers with zeros in front stay text.
    In a column of text, a field in quotes is never null.
    """
    from_format, to_format = format_by_name(source, source_format, "from"), format_by_name(output, target_format, "to")
    if to_format == "parquet" and from_format != "parquet":
        _to_parquet(session, source, output, from_format, infer_rows, null, values)
    elif from_format == "parquet" and to_format != "parquet":
        _from_parquet(session, source, output, to_format, null, plaintext)
    else:
        hint = "fastpq rewrite makes Parquet from Parquet" if to_format == "parquet" else "convert to Parquet first"
        raise CommandFailure(f"convert does not make {to_format} from {from_format}", USAGE, hint)
    show_result(session, output, [])


def _to_parquet(
    session: Session, source: str, output: str, from_format: str, infer_rows: int, null: str, values: dict[str, Any]
) -> None:
    from fastpq.api.writer import ParquetWriter

    encryption = new_encryption(values, session.keys, output)
    target = target_of(output)
    with (
        naming_source([source]),
        open_input(source, from_format, infer_rows, null) as rows,
        session.progress("writing") as bar,
    ):
        with ParquetWriter(
            target, rows.schema, encryption_properties=encryption, progress=bar, **writer_options(values)
        ) as writer:
            for batch in rows.batches:
                writer.write_table(batch)


def _from_parquet(session: Session, source: str, output: str, to_format: str, null: str, plaintext: bool) -> None:
    from fastpq.api.file import ParquetFile

    where = source_of(source)
    refuse_plaintext_copy(any_encrypted(session, [where]), None, plaintext)
    keys = session.keys.decryption_of(source if source != STANDARD_STREAM else None)
    with ParquetFile(where, decryption_properties=keys, **session.reader_options) as file, session.progress("writing") as bar:
        tables = with_empty_table(file.iter_batches(BATCH_ROWS, progress=bar), lambda: file.head(0))
        write_rows(session.screen, tables, RowTarget(to_format, output), null)
