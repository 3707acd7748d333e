"""List the pages of columns, with sizes, encodings and bounds.

Section: Look at a file
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import click

from fastpq.cli.amounts import count_text, ratio_text, size_text
from fastpq.cli.format_names import encoding_name
from fastpq.cli.page_bounds import bounds_by_page
from fastpq.cli.places import name_of_place
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session, verb

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.schema.parquet_schema import ColumnDescriptor

MOST_PAGES = 1000


class PageFacts(TypedDict):
    """One page.

    Attributes:
        row_group: index of the row group.
        column: dotted path.
        page: number of the data page in the chunk, or null for a dictionary page.
        kind: dictionary, data or data v2.
        offset: offset of the page header in the file.
        stored_bytes: bytes in the file, header included.
        decoded_bytes: bytes after decompression.
        encoding: encoding of the values.
        values: values, nulls included.
        rows: rows, or null if only the levels tell.
        nulls: null count from the column index, or null.
        min, max: bounds from the column index, or null.
        checksum: whether the page has a CRC-32.
    """

    row_group: int
    column: str
    page: int | None
    kind: str
    offset: int
    stored_bytes: int
    decoded_bytes: int
    encoding: str
    values: int
    rows: int | None
    nulls: int | None
    min: Any
    max: Any
    checksum: bool


class PageListing(TypedDict):
    """The pages of some chunks.

    Attributes:
        file: the file.
        pages: the pages.
        complete: whether these are all pages of the chunks, or ``--most`` cut the list.
    """

    file: str
    pages: list[PageFacts]
    complete: bool


@verb(
    examples=[
        ("fastpq pages items.parquet --columns price", "The pages of one column."),
        ("fastpq pages items.parquet --columns price --row-group 0 --json", "One chunk, for a program."),
    ],
    facts=PageListing,
)
@click.argument("file", metavar="FILE")
@click.option("--columns", "-c", "names", metavar="NAMES", help="Only these columns, with commas between them.")
@click.option("--row-group", "-g", "groups", type=int, multiple=True, metavar="N", help="Only this row group. May be repeated.")
@click.option("--most", type=int, default=MOST_PAGES, show_default=True, metavar="N", help="Stop after so many pages.")
def command(session: Session, file: str, names: str | None, groups: tuple[int, ...], most: int) -> None:
    """List pages in the order of the file. Page headers are read, and page bodies are passed over."""
    with session.open(file) as open_file:
        columns = open_file.schema.select(names.split(",") if names else None)
        pages: list[PageFacts] = []
        is_complete = True
        for group in groups or range(open_file.num_row_groups):
            for column in columns:
                if len(pages) >= most:
                    is_complete = False
                    break
                pages += _pages(open_file, group, column)
        facts = PageListing(file=name_of_place(file), pages=pages[:most], complete=is_complete and len(pages) <= most)
    session.emit(facts, lambda: _show(session, facts))


def _pages(file: ParquetFile, group: int, column: ColumnDescriptor) -> list[PageFacts]:
    from fastpq.cli.failures import USAGE, CommandFailure
    from fastpq.cli.stored_chunks import stored_pages

    if not 0 <= group < file.num_row_groups:
        raise CommandFailure(f"there is no row group {group}: the file has {count_text(file.num_row_groups, 'row group')}", USAGE)
    bounds = bounds_by_page(file, group, column)
    pages, ordinal = [], 0
    for page in stored_pages(file, group, column):
        is_data = page.kind.startswith("data")
        own = bounds.get(ordinal) if is_data else None
        pages.append(
            PageFacts(
                row_group=group,
                column=column.name,
                page=ordinal if is_data else None,
                kind=page.kind,
                offset=page.offset,
                stored_bytes=page.stored_size,
                decoded_bytes=page.decoded_size,
                encoding=encoding_name(page.encoding),
                values=page.num_values,
                rows=page.num_rows if page.num_rows is not None or own is None else own.rows,
                nulls=None if own is None else own.nulls,
                min=None if own is None else own.low,
                max=None if own is None else own.high,
                checksum=page.has_checksum,
            )
        )
        ordinal += is_data
    return pages


def _show(session: Session, facts: PageListing) -> None:
    from fastpq.cli.cell_values import bound_cell
    from fastpq.cli.text_table import TableColumn, number, path, print_facts, text

    session.headline(f"{facts['file']}: {count_text(len(facts['pages']), 'page')}", 0)
    print_facts(session.screen, facts["pages"], [
        (number("group"), lambda each: str(each["row_group"])),
        (path("column"), lambda each: each["column"]),
        (number("page"), lambda each: "" if each["page"] is None else str(each["page"])),
        (TableColumn("kind", importance=8), lambda each: each["kind"]),
        (number("offset", 7), lambda each: f"{each['offset']:,}"),
        (number("stored"), lambda each: size_text(each["stored_bytes"])),
        (number("ratio", 5), lambda each: ratio_text(each["decoded_bytes"], each["stored_bytes"])),
        (TableColumn("encoding", importance=8), lambda each: each["encoding"].lower()),
        (number("values"), lambda each: f"{each['values']:,}"),
        (number("rows", 6), lambda each: "" if each["rows"] is None else f"{each['rows']:,}"),
        (number("nulls", 6), lambda each: f"{each['nulls']:,}" if each["nulls"] else ""),
        (text("min", 7), lambda each: bound_cell(each["min"])),
        (text("max", 7), lambda each: bound_cell(each["max"])),
        (TableColumn("CRC", importance=3), lambda each: "" if each["checksum"] else Styled("none", "dim")),
    ])
    if not facts["complete"]:
        session.screen.line(Styled(f"the first {len(facts['pages']):,} pages: --most N shows more", "dim"))
