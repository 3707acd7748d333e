"""Show page indexes and bloom filters, or probe them for a value.

Section: Look at a file
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

import click

from fastpq.cli.amounts import size_text
from fastpq.cli.failures import USAGE, CommandFailure, command_words
from fastpq.cli.places import name_of_place
from fastpq.cli.pruning_report import PruningFacts, pruning_facts
from fastpq.cli.terminal import Part, Styled
from fastpq.cli.verb import Session, verb
from fastpq.errors import ParquetError

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.schema.parquet_schema import ColumnDescriptor

MOST_CHUNKS = 200


class ChunkIndexFacts(TypedDict):
    """The indexes of one column chunk.

    Attributes:
        row_group: index of the row group.
        column: dotted path.
        pages: data pages, or null without an offset index.
        offset_index_bytes: size of the offset index, or null.
        column_index_bytes: size of the column index, or null.
        boundary_order: order of the pages' bounds that the writer claims, or null.
        bloom_filter_bytes: size of the bloom filter's bits, or null.
        false_positive_rate: expected share of absent values that the filter lets pass, or null.
        problem: why an index cannot be used, or null.
    """

    row_group: int
    column: str
    pages: int | None
    offset_index_bytes: int | None
    column_index_bytes: int | None
    boundary_order: str | None
    bloom_filter_bytes: int | None
    false_positive_rate: float | None
    problem: str | None


class IndexFacts(TypedDict):
    """The indexes of a file.

    Attributes:
        file: the file.
        chunks: the column chunks.
        probe: what a lookup of one value would read, with ``--probe``.
    """

    file: str
    chunks: list[ChunkIndexFacts]
    probe: NotRequired[PruningFacts]


@verb(
    examples=[
        ("fastpq index items.parquet", "Which chunks have page indexes and bloom filters."),
        (
            "fastpq index items.parquet --columns user --probe 1234",
            "Which row groups and pages a lookup of a value reads, and why.",
        ),
    ],
    facts=IndexFacts,
)
@click.argument("file", metavar="FILE")
@click.option("--columns", "-c", "names", metavar="NAMES", help="Only these columns, with commas between them.")
@click.option("--probe", metavar="VALUE", help="Tell what a lookup of a value in one column reads.")
def command(session: Session, file: str, names: str | None, probe: str | None) -> None:
    """Show the page indexes and bloom filters of a file, or what they say about one value."""

    with session.open(file) as open_file:
        columns = open_file.schema.select(names.split(",") if names else None)
        name = name_of_place(file)
        if probe is not None and len(columns) != 1:
            raise CommandFailure("--probe asks about one column", USAGE, "--columns NAME chooses it")
        chunks = [_facts(open_file, group, column) for group in range(open_file.num_row_groups) for column in columns]
        facts = IndexFacts(file=name, chunks=chunks)
        if probe is not None:
            from fastpq.cli.literals_of_columns import literal_for

            filters = [(columns[0].index, "==", literal_for(columns[0], probe))]
            facts["probe"] = pruning_facts(open_file, name, filters, None, counts=False)
    session.emit(facts, lambda: _show(session, facts))


def _facts(file: ParquetFile, group: int, column: ColumnDescriptor) -> ChunkIndexFacts:
    chunk = file.metadata.row_group(group).column(column.index).chunk
    facts = ChunkIndexFacts(
        row_group=group,
        column=column.name,
        pages=None,
        offset_index_bytes=chunk.offset_index_length,
        column_index_bytes=chunk.column_index_length,
        boundary_order=None,
        bloom_filter_bytes=None,
        false_positive_rate=None,
        problem=None,
    )
    try:
        offset_index = file.offset_index(group, column.index)
        facts["pages"] = None if offset_index is None else offset_index.num_pages
        column_index = file.column_index(group, column.index)
        facts["boundary_order"] = None if column_index is None else column_index.boundary_order.name.lower()
        bloom_filter = file.bloom_filter(group, column.index)
        if bloom_filter is not None:
            facts["bloom_filter_bytes"], facts["false_positive_rate"] = bloom_filter.num_bytes, bloom_filter.false_positive_rate
    except ParquetError as error:
        facts["problem"] = command_words(error.message)
    return facts


def _show(session: Session, facts: IndexFacts) -> None:
    if "probe" in facts:
        from fastpq.cli.pruning_table import show_pruning

        show_pruning(session, facts["probe"], 0, False)
        return
    from fastpq.cli.text_table import TableColumn, number, path, print_facts, text

    session.headline(facts["file"], 0)
    print_facts(session.screen, facts["chunks"][:MOST_CHUNKS], [
        (number("group"), lambda each: str(each["row_group"])),
        (path("column"), lambda each: each["column"]),
        (number("pages"), lambda each: "" if each["pages"] is None else f"{each['pages']:,}"),
        (number("offset index"), lambda each: _size(each["offset_index_bytes"])),
        (number("column index"), lambda each: _size(each["column_index_bytes"])),
        (TableColumn("order", importance=7), lambda each: each["boundary_order"] or ""),
        (number("bloom filter"), lambda each: _size(each["bloom_filter_bytes"])),
        (number("false positives", 6), _false_positives),
        (text("problem", 7), lambda each: Styled(each["problem"] or "", "warning")),
    ])
    more_chunks = len(facts["chunks"]) - MOST_CHUNKS
    if more_chunks > 0:
        session.screen.line(Styled(f"and {more_chunks:,} more chunks: --columns chooses some, --json has all", "dim"))


def _size(count: int | None) -> Part:
    return Styled("none", "dim") if count is None else size_text(count)


def _false_positives(each: ChunkIndexFacts) -> str:
    rate = each["false_positive_rate"]
    return "" if rate is None else f"{100 * rate:.2g} %"
