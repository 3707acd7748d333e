"""Print the values in the dictionary pages of a column.

Section: Look at values
"""

from __future__ import annotations

from typing import Any, TypedDict

import click

from fastpq.cli.amounts import count_text
from fastpq.cli.cell_values import json_value, value_text
from fastpq.cli.places import name_of_place
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session, verb

MOST_ENTRIES = 50


class DictionaryFacts(TypedDict):
    """The dictionary page of one column chunk.

    Attributes:
        row_group: index of the row group.
        entries: number of entries.
        used_by: ``"all"`` if every data page uses the dictionary, ``"given up"`` if the writer stopped using it within the
            chunk, or ``"unknown"``.
        values: the first entries.
    """

    row_group: int
    entries: int
    used_by: str
    values: list[Any]


class ColumnDictionaries(TypedDict):
    """The dictionaries of a column.

    Attributes:
        file: the file.
        column: dotted path.
        dictionaries: one for each chunk that has a dictionary page.
    """

    file: str
    column: str
    dictionaries: list[DictionaryFacts]


@verb(
    examples=[
        ("fastpq dict items.parquet name", "The values in the dictionaries of a column."),
        ("fastpq dict items.parquet name --row-group 0 --most 1000", "The first 1,000 entries of one."),
    ],
    facts=ColumnDictionaries,
)
@click.argument("file", metavar="FILE")
@click.argument("column", metavar="COLUMN")
@click.option("--row-group", "-g", "groups", type=int, multiple=True, metavar="N", help="Only this row group. May be repeated.")
@click.option(
    "--most", type=click.IntRange(0), default=MOST_ENTRIES, show_default=True, metavar="N", help="Entries that are shown."
)
def command(session: Session, file: str, column: str, groups: tuple[int, ...], most: int) -> None:
    """Print the dictionary pages of a column, in the order in which they are stored."""
    from fastpq.cli.column_facts import dictionary_use
    from fastpq.cli.failures import USAGE, CommandFailure
    from fastpq.cli.stored_chunks import stored_dictionary

    with session.open(file) as open_file:
        leaf = open_file.schema.column(column)
        dictionaries = []
        for group in groups or range(open_file.num_row_groups):
            if not 0 <= group < open_file.num_row_groups:
                raise CommandFailure(
                    f"there is no row group {group}: the file has {count_text(open_file.num_row_groups, 'row group')}", USAGE
                )
            values = stored_dictionary(open_file, group, leaf)
            if values is not None:
                use = dictionary_use(open_file.metadata.row_group(group).column(leaf.index))
                first = [json_value(each) for each in values[:most].to_pylist()]
                dictionaries.append(DictionaryFacts(row_group=group, entries=len(values), used_by=use, values=first))
        facts = ColumnDictionaries(file=name_of_place(file), column=leaf.name, dictionaries=dictionaries)
    session.emit(facts, lambda: _show(session, facts))


def _show(session: Session, facts: ColumnDictionaries) -> None:
    if not facts["dictionaries"]:
        session.screen.line(f"{facts['column']} has no dictionary")
    for number, each in enumerate(facts["dictionaries"]):
        use = (
            "all pages use it"
            if each["used_by"] == "all"
            else "given up: other pages store the values"
            if each["used_by"] == "given up"
            else ""
        )
        session.headline(f"row group {each['row_group']}: {count_text(each['entries'], 'entry', 'entries')}", number)
        if use:
            session.screen.line("  ", Styled(use, "dim" if each["used_by"] == "all" else "warning"))
        for value in each["values"]:
            session.screen.line("  ", value_text(value))
        if len(each["values"]) < each["entries"]:
            session.screen.line("  ", Styled(f"and {each['entries'] - len(each['values']):,} more: --most N shows them", "dim"))
