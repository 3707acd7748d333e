"""Show why a filter reads what it reads, by row group or file.

Section: Check and compare
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from fastpq.cli.places import is_folder, is_glob, name_of_place
from fastpq.cli.pruning_report import PruningFacts, left_out_facts, pruning_facts, unfiltered_facts
from fastpq.cli.pruning_table import MOST_ROW_GROUPS, show_files, show_pruning
from fastpq.cli.row_output import columns_option, where_option_of
from fastpq.cli.verb import Session, verb


@verb(
    examples=[
        ('fastpq why items.parquet --where "id == 70000"', "Which row groups and pages a lookup reads."),
        ('fastpq why items.parquet -w "price < 2.5" --count', "The rows that match stand beside each row group that is read."),
        ('fastpq why items.parquet -w "user == 7" -c price', "The bytes of a read of one column."),
        ('fastpq why folder -w "id < 400"', "One line a file."),
    ],
    facts=PruningFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@where_option_of("The filter to explain.", is_required=True)
@columns_option
@click.option("--count", "counts", is_flag=True, help="Read what is kept, and count the rows that match.")
@click.option("--all", "is_whole", is_flag=True, help=f"Show more than {MOST_ROW_GROUPS} row groups or files.")
def command(
    session: Session, files: tuple[str, ...], filters: Any, columns: list[str] | None, counts: bool, is_whole: bool
) -> None:
    """Show for each row group whether a filter keeps or drops it, by what evidence, and what would have dropped it.

    No data page is read, except with --count. A row group that is read in vain has no matching row. Several files, or a folder,
    are a dataset, whose partition values leave out files too: then there is one line for each file.
    """
    if len(files) == 1 and not is_glob(files[0]) and not is_folder(files[0]):
        with session.open(files[0]) as file:
            facts = pruning_facts(file, name_of_place(files[0]), filters, columns, counts=counts)
        session.emit(facts, partial(show_pruning, session, facts, 0, is_whole))
        return
    all_facts = []
    for each in _facts_of_files(session, files, filters, columns, counts):
        all_facts.append(each)
        if session.as_json:
            session.screen.json(each)
    if not session.as_json:
        show_files(session, all_facts, is_whole)


def _facts_of_files(
    session: Session, files: tuple[str, ...], filters: Any, columns: list[str] | None, counts: bool
) -> Iterator[PruningFacts]:
    """Yield the facts about each file of a dataset."""
    from fastpq.datasets.dataset_layout import filtered_files

    dataset: Any = session.open_rows(files)
    for path, file, rest in filtered_files(dataset, filters):
        if file is None:
            yield left_out_facts(path)
        elif rest is None:
            yield unfiltered_facts(file, path)
        else:
            own = None if columns is None else [name for name in columns if name in file.schema.names]
            yield pruning_facts(file, path, rest, own, counts=counts)
