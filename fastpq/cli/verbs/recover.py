"""Write what is left of a damaged or unfinished file to a new file.

Section: Make files
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

import click

from fastpq.cli.amounts import count_text, size_text
from fastpq.cli.failures import DIFFERENT, CommandFailure, failure_of
from fastpq.cli.places import STANDARD_STREAM, name_of_place, source_of, target_of
from fastpq.cli.rewriting_result import show_result
from fastpq.cli.row_output import columns_option
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import encryption_options, force_option, new_encryption, plaintext_option, refuse_plaintext_copy
from fastpq.errors import FormatError

MOST_LOSSES = 20


class LossFacts(TypedDict):
    """Rows of one column that are lost.

    Attributes:
        row_group: index of the row group.
        column: dotted path.
        first_row: first lost row, counted through all row groups.
        rows: number of lost rows.
        reason: the error that reading them raised.
    """

    row_group: int
    column: str
    first_row: int
    rows: int
    reason: str


class RecoveryFacts(TypedDict):
    """What is left of a file.

    Attributes:
        file: the damaged file.
        rows: rows that were read.
        found_by: footer, checkpoint, or pages.
        whole: whether nothing is lost.
        reason: why the file's own footer cannot be read, or null.
        unread_bytes: bytes outside all row groups that are known.
        losses: what is lost.
        output: the new file, or null.
    """

    file: str
    rows: int
    found_by: str
    whole: bool
    reason: str | None
    unread_bytes: int
    losses: list[LossFacts]
    output: str | None


@verb(
    examples=[
        ("fastpq recover damaged.parquet", "What is lost, without writing anything. Exit code 1 if something is lost."),
        ("fastpq recover damaged.parquet -o rest.parquet", "Lost values become null."),
        (
            "fastpq recover cut.parquet -o rest.parquet --sibling items.parquet",
            "A file without a footer, with the schema of another.",
        ),
    ],
    facts=RecoveryFacts,
)
@click.argument("file", metavar="FILE")
@click.option("--output", "-o", metavar="FILE", default=None, help="Write the rest to a new Parquet file.")
@force_option
@columns_option
@click.option(
    "--on-error",
    type=click.Choice(["null", "skip"]),
    default="null",
    show_default=True,
    help="Lost values become null, or their rows are left out.",
)
@click.option("--sibling", metavar="FILE", default=None, help="A sound file of the same writer, for a file without a footer.")
@click.option(
    "--row-group-rows", type=int, metavar="ROWS", default=None, help="Rows of each row group except the last, if you know it."
)
@encryption_options
@plaintext_option
def command(
    session: Session,
    file: str,
    output: str | None,
    columns: list[str] | None,
    on_error: Any,
    sibling: str | None,
    row_group_rows: int | None,
    plaintext: bool,
    **values: Any,
) -> None:
    """Read all that can be read of a damaged, cut or unfinished file, and report every lost value."""
    from fastpq.api.functions import write_table
    from fastpq.recovery.recover import recover_table

    keys = session.keys.decryption_of(file)
    encryption = None if output is None else new_encryption(values, session.keys, output)
    if output is not None:
        refuse_plaintext_copy(keys is not None, encryption, plaintext)
    with session.progress("reading") as bar, _without_own_advice():
        result = recover_table(
            source_of(file),
            columns,
            on_error=on_error,
            sibling=sibling,
            row_group_rows=row_group_rows,
            decryption_properties=keys,
            progress=bar,
            **session.reader_options,
        )
    report = result.report
    losses = [
        LossFacts(row_group=each.row_group, column=each.column, first_row=each.start, rows=each.num_rows, reason=each.reason)
        for each in report.losses
    ]
    facts = RecoveryFacts(
        file=name_of_place(file),
        rows=result.table.num_rows,
        found_by=report.found_by,
        whole=report.is_whole,
        reason=report.reason,
        unread_bytes=sum(length for _, length in report.unread),
        losses=losses,
        output=output,
    )
    if output is not None:
        write_table(result.table, target_of(output), encryption_properties=encryption)
    session.exit_code = 0 if facts["whole"] else DIFFERENT
    if output == STANDARD_STREAM:
        return
    session.emit(facts, lambda: _show(session, facts))
    if output is not None:
        show_result(session, output, [], says_json=False)


@contextmanager
def _without_own_advice() -> Iterator[None]:
    """Report a file that cannot be recovered without the hint to recover it."""
    try:
        yield
    except FormatError as error:
        failure = failure_of(error)
        hint = "" if " recover " in failure.hint else failure.hint
        raise CommandFailure(failure.message, failure.code, hint) from error


def _show(session: Session, facts: RecoveryFacts) -> None:
    screen = session.screen
    screen.facts([("rows", f"{facts['rows']:,}"), ("found by", facts["found_by"])])
    if facts["reason"]:
        screen.facts([("reason", facts["reason"])])
    if facts["unread_bytes"]:
        screen.line(Styled("! ", "warning"), f"{size_text(facts['unread_bytes'])} hold no row group that can be read")
    if facts["whole"]:
        screen.line(Styled("nothing is lost", "good"))
    elif facts["losses"]:
        screen.line(Styled("! ", "warning"), f"{count_text(len(facts['losses']), 'loss', 'losses')}")
        for each in facts["losses"][:MOST_LOSSES]:
            last_row = each["first_row"] + each["rows"] - 1
            place = f"  row group {each['row_group']}, rows {each['first_row']:,} to {last_row:,}: {each['rows']:,}"
            screen.line("  ", Styled(each["column"], "strong"), place)
            screen.paragraph(each["reason"], indent=4)
        if len(facts["losses"]) > MOST_LOSSES:
            screen.line("  ", Styled(f"and {len(facts['losses']) - MOST_LOSSES:,} more: --json has all", "dim"))
