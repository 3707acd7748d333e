"""Join the small files of a folder.

Section: Make files
"""

from __future__ import annotations

from typing import Any, TypedDict

import click

from fastpq.cli.amounts import count_text
from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.places import is_folder, is_glob
from fastpq.cli.rewriting_result import any_encrypted
from fastpq.cli.verb import Session, verb

MIB = 1 << 20
TARGET_SIZE = 128 * MIB     # as for fastpq.compact


class CompactionFacts(TypedDict):
    """Files that were joined.

    Attributes:
        folder: the folder.
        replaced_files: files that are gone.
        new_files: files that have their rows.
        rows: rows in the new files.
        copied_row_groups: row groups that were copied byte for byte.
        rewritten_row_groups: small row groups that were decoded and joined.
    """

    folder: str
    replaced_files: list[str]
    new_files: list[str]
    rows: int
    copied_row_groups: int
    rewritten_row_groups: int


@verb(
    examples=[("fastpq compact folder", "The files of each folder become files of about 128 MiB.")],
    facts=CompactionFacts,
)
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--target-size", type=click.IntRange(1), default=TARGET_SIZE, show_default=True, metavar="BYTES", help="Size of new files."
)
@click.option("--compression", metavar="CODEC", help="Codec of row groups that are joined.  [default: that of the first file]")
@click.option("--row-group-size", type=click.IntRange(1), metavar="ROWS", help="Largest row group.")
def command(
    session: Session, folder: str, target_size: int, compression: str | None, row_group_size: int | None
) -> None:
    """Join the small files of a folder to larger ones, and small row groups to larger ones. Large row groups are copied.

    Files are joined if they are in the same folder and have the same schema. Readers see the old or the new files of a folder,
    even if the process is killed. Encrypted files are refused: fastpq.compact joins them.
    """
    from fastpq.datasets.small_files import compact

    if is_glob(folder) or not is_folder(folder):
        raise CommandFailure(f"{folder!r} is not a folder, and compact joins the files of one", USAGE, "fastpq merge takes files")
    if any_encrypted(session, session.files([folder])):
        raise CommandFailure("a file of the folder is encrypted", USAGE, "fastpq.compact in Python takes keys for the new files")
    options: dict[str, Any] = {"compression": compression, "row_group_size": row_group_size}
    with session.progress("joining") as bar:
        report = compact(
            folder, target_size=target_size, progress=bar,
            **{name: value for name, value in options.items() if value is not None},
        )
    facts = CompactionFacts(
        folder=folder,
        replaced_files=list(report.replaced_files),
        new_files=list(report.new_files),
        rows=report.num_rows,
        copied_row_groups=report.copied_row_groups,
        rewritten_row_groups=report.rewritten_row_groups,
    )
    session.emit(facts, lambda: _show(session, facts))


def _show(session: Session, facts: CompactionFacts) -> None:
    if not facts["replaced_files"]:
        session.note(f"{facts['folder']}: there is nothing to join")
        return
    session.note(
        f"{facts['folder']}: {count_text(len(facts['replaced_files']), 'file')} became {len(facts['new_files']):,}, "
        f"{count_text(facts['rows'], 'row')}; {count_text(facts['copied_row_groups'], 'row group')} copied, "
        f"{facts['rewritten_row_groups']:,} joined"
    )
