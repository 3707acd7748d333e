"""Show on one screen what a file is, and what stands out.

Section: Look at a file
"""

from __future__ import annotations

from functools import partial

import click

from fastpq.cli.amounts import count_text, exact_size_text, ratio_text, share_text, size_text
from fastpq.cli.encryption_report import show_encryption
from fastpq.cli.file_facts import FileFacts, protection_of, sealed_facts
from fastpq.cli.file_notes import facts_with_notes
from fastpq.cli.places import name_of_place, source_of
from fastpq.cli.terminal import Screen, Styled
from fastpq.cli.verb import Session, verb
from fastpq.errors import KeyAccessError


@verb(
    examples=[
        ("fastpq inspect items.parquet", "The file on one screen."),
        ("fastpq inspect --json items.parquet", "The same facts for a program."),
        ("fastpq inspect secret.parquet", "An encrypted file without any key: who can open it."),
    ],
    facts=FileFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def command(session: Session, files: tuple[str, ...]) -> None:
    """Show what a file is: rows, size, writer, encryption, the largest columns, and what stands out.

    Only the footer is read. Of an encrypted file without a key it tells what can be told.
    """
    for number, place in enumerate(session.files(files)):
        facts = _facts(session, place)
        session.emit(facts, partial(_show, session.screen, facts, number))


def _facts(session: Session, place: str) -> FileFacts:
    source, name = source_of(place), name_of_place(place)
    from fastpq.api.file import ParquetFile

    try:
        file = ParquetFile(source, decryption_properties=session.keys.decryption_of(place), **session.reader_options)
    except KeyAccessError:
        if not session.keys.is_empty:
            raise
        return sealed_facts(name, protection_of(source))
    with file:
        return facts_with_notes(file, name, source, **session.reader_options)


def _show(screen: Screen, facts: FileFacts, number: int) -> None:
    if number:
        screen.blank()
    screen.line(Styled(facts["file"], "heading"))
    if "rows" in facts:
        _show_data(screen, facts)
    else:
        screen.facts([("size", exact_size_text(facts["size"] or 0))], indent=2)
    if facts["encryption"] is not None:
        screen.blank()
        show_encryption(screen, facts["encryption"], is_brief="rows" in facts)
    if facts["notes"]:
        screen.blank()
        for note in facts["notes"]:
            screen.note(Styled("! ", "warning"), note)


def _show_data(screen: Screen, facts: FileFacts) -> None:
    smallest, median, largest = facts["rows_per_row_group"] or (0, 0, 0)
    groups = count_text(facts["row_groups"], "row group")
    if facts["row_groups"] > 1:
        groups += f" of {smallest:,} to {largest:,} rows" if smallest != largest else f" of {median:,} rows"
    stored_size, decoded_size = facts["stored_bytes"], facts["decoded_bytes"]
    rows = [
        ("rows", f"{facts['rows']:,} in {groups}"),
        ("columns", f"{facts['columns']:,}"),
        ("size", exact_size_text(facts["size"] or 0)),
        (
            "data",
            f"{size_text(stored_size)} stored, {size_text(decoded_size)} decoded ({ratio_text(decoded_size, stored_size)})"
            if stored_size
            else "none",
        ),
        ("codec", ", ".join(facts["codecs"]) or "none"),
        ("footer", size_text(facts["footer_bytes"])),
        ("written by", facts["created_by"] or "not said"),
    ]
    if facts["sorted_by"]:
        rows.append(("sorted by", ", ".join(facts["sorted_by"])))
    rows.append(("indexes", _indexes(facts)))
    if facts["key_values"]:
        rows.append(("key-values", ", ".join(f"{key} ({size_text(size)})" for key, size in facts["key_values"].items())))
    screen.facts(rows, indent=2)
    _show_columns(screen, facts)


def _indexes(facts: FileFacts) -> str:
    """Return which share of the chunks has statistics, page indexes and bloom filters."""
    whole = facts["chunks"]
    parts = []
    for name, count in (
        ("statistics", facts["chunks_with_statistics"]),
        ("page indexes", facts["chunks_with_page_index"]),
        ("bloom filters", facts["chunks_with_bloom_filter"]),
    ):
        parts.append(
            name if count == whole and whole else f"no {name}" if not count else f"{name} in {count:,} of {whole:,} chunks"
        )
    return ", ".join(parts)


def _show_columns(screen: Screen, facts: FileFacts) -> None:
    if not facts["largest_columns"] or not facts["stored_bytes"]:
        return
    from fastpq.cli.text_table import TableColumn, number, path, print_facts, text

    columns = [each for each in facts["largest_columns"] if each["readable"]]
    if columns:
        screen.blank()
        print_facts(screen, columns, [
            (path("largest columns"), lambda each: each["column"]),
            (number("stored"), lambda each: size_text(each["stored_bytes"])),
            (number("share"), lambda each: share_text(each["stored_bytes"], facts["stored_bytes"])),
            (number("ratio", 4), lambda each: ratio_text(each["decoded_bytes"], each["stored_bytes"])),
            (TableColumn("codec", importance=3), lambda each: "+".join(each["codecs"])),
            (text("type", 2), lambda each: each["type"]),
        ], indent=2)
