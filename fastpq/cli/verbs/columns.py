"""Show what each column takes, and how it is stored and ordered.

Section: Look at a file
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypedDict

import click

from fastpq.cli.amounts import ratio_text, share_text, size_text
from fastpq.cli.cell_values import bound_cell
from fastpq.cli.column_facts import ColumnFacts, column_facts, encodings_text
from fastpq.cli.places import name_of_place
from fastpq.cli.terminal import Part, Styled
from fastpq.cli.verb import Session, verb
from fastpq.errors import ParquetError

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.schema.parquet_schema import ColumnDescriptor

ORDERS = {
    "file": lambda each: 0,
    "name": lambda each: each["column"],
    "stored": lambda each: -each["stored_bytes"],
    "decoded": lambda each: -each["decoded_bytes"],
    "ratio": lambda each: -each["decoded_bytes"] / max(each["stored_bytes"], 1),
    "nulls": lambda each: -(each["nulls"] or 0),
    "distinct": lambda each: -(each["distinct"] or 0),
}


class FileColumns(TypedDict):
    """The columns of a file.

    Attributes:
        file: the file.
        rows: row count.
        columns: the columns.
    """

    file: str
    rows: int
    columns: list[ColumnFacts]


@verb(
    examples=[
        ("fastpq columns items.parquet", "All columns."),
        ("fastpq columns items.parquet --sort stored", "The column that takes most space comes first."),
        (
            "fastpq columns items.parquet --columns price --distinct",
            "One column, with its distinct values from dictionary pages.",
        ),
    ],
    facts=FileColumns,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--columns", "-c", "names", metavar="NAMES", help="Only these columns, with commas between them.")
@click.option("--sort", type=click.Choice(list(ORDERS)), default="file", show_default=True, help="Order of the lines.")
@click.option("--distinct", is_flag=True, help="Read the dictionary pages for the number of distinct values.")
def command(session: Session, files: tuple[str, ...], names: str | None, sort: str, distinct: bool) -> None:
    """Show each column of a file: stored and decoded bytes, ratio, pages by encoding, dictionary, codec, nulls, bounds, order.

    "given up" means that the writer began with a dictionary and then stored plain values. "groups a value" is the mean number of
    row groups whose bounds hold a value: 1.0 means that a lookup reads one row group.
    """
    for number, place in enumerate(session.files(files)):
        with session.open(place) as file:
            columns = file.schema.select(names.split(",") if names else None)
            facts = [column_facts(file.metadata, each, _distinct(file, each) if distinct else None) for each in columns]
            facts.sort(key=ORDERS[sort])
            whole = FileColumns(file=name_of_place(place), rows=file.metadata.num_rows, columns=facts)
        session.emit(whole, partial(_show, session, whole, number))


def _distinct(file: ParquetFile, column: ColumnDescriptor) -> int | None:
    """Return the size of the largest dictionary, if all values are in dictionaries."""
    from fastpq.cli.column_facts import dictionary_use
    from fastpq.cli.stored_chunks import stored_pages

    sizes = []
    for group in range(file.num_row_groups):
        try:
            if dictionary_use(file.metadata.row_group(group).column(column.index)) != "all":
                return None
            first = next(stored_pages(file, group, column), None)
        except ParquetError:
            return None
        if first is not None and first.kind == "dictionary":
            sizes.append(first.num_values)
    return max(sizes, default=None)


def _show(session: Session, facts: FileColumns, number_of_file: int) -> None:
    from fastpq.cli.text_table import TableColumn, number, path, print_facts, text

    total = sum(each["stored_bytes"] for each in facts["columns"])
    session.headline(f"{facts['file']}: {facts['rows']:,} rows, {size_text(total)} stored", number_of_file)
    if_readable: list[tuple[TableColumn, Callable[[ColumnFacts], Part]]] = [
        (number("share", 8), lambda each: share_text(each["stored_bytes"], total)),
        (number("ratio", 8), lambda each: ratio_text(each["decoded_bytes"], each["stored_bytes"])),
        (TableColumn("codec", importance=5), lambda each: "+".join(each["codecs"])),
        (text("encoding", 6), encodings_text),
        (TableColumn("dictionary", importance=4), _dictionary),
        (number("nulls", 7), _nulls),
        (number("distinct", 7), lambda each: "" if each["distinct"] is None else f"{each['distinct']:,}"),
        (number("a row", 5), lambda each: _rounded(each["values_per_row"])),
        (text("min", 6), lambda each: bound_cell(each["min"])),
        (text("max", 6), lambda each: bound_cell(each["max"])),
        (TableColumn("order", importance=5), _order),
        (number("groups a value", 5), lambda each: _rounded(each["row_groups_per_value"])),
        (TableColumn("missing", importance=4), lambda each: _missing(each, facts["rows"])),
    ]
    print_facts(session.screen, facts["columns"], [
        (path("column"), lambda each: each["column"]),
        (text("type", 3), lambda each: each["type"]),
        (number("stored"), lambda each: size_text(each["stored_bytes"]) if each["readable"] else Styled("no key", "warning")),
        *((heading, partial(_if_readable, cell_of)) for heading, cell_of in if_readable),
    ])


def _if_readable(cell_of: Callable[[ColumnFacts], Part], each: ColumnFacts) -> Part:
    return cell_of(each) if each["readable"] else ""


def _dictionary(each: ColumnFacts) -> Part:
    use = each["dictionary"]
    return Styled(use, "warning") if use == "given up" else "" if use == "none" else use


def _nulls(each: ColumnFacts) -> Part:
    if each["nulls"] is None:
        return "?"
    return f"{each['nulls']:,}" if each["nulls"] else ""


def _rounded(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _order(each: ColumnFacts) -> str:
    """Return the order within row groups, as the file declares it, and across row groups, as bounds show it."""
    short = {"ascending": "asc", "descending": "desc"}
    parts = []
    if each["declared_sorting"] is not None:
        parts.append(f"{short[each['declared_sorting']]} within")
    if each["sorted_row_groups"] is not None:
        parts.append(f"{short[each['sorted_row_groups']]} across")
    return ", ".join(parts)


def _missing(each: ColumnFacts, rows: int) -> Part:
    """Return which helps for filters are missing in some chunks, if the column is large enough for them to matter."""
    if not rows:
        return ""
    parts = []
    if each["chunks_with_statistics"] < each["chunks"] and each["nulls"] != each["values"]:
        parts.append("statistics")
    if each["chunks_with_page_index"] < each["chunks"]:
        parts.append("page index")
    return Styled(", ".join(parts), "dim")
