"""Sheets for the pages in one column chunk: their headers, and what the page index says about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastpq.cli.amounts import count_text, ratio_text, size_text
from fastpq.cli.browser.browsed_file import BrowsedFile
from fastpq.cli.browser.pruning_sheets import probe_sheet
from fastpq.cli.browser.sheet import RowSheet, Sheet, SheetColumn
from fastpq.cli.browser.value_sheets import DictionarySheet, RowSet, ValueSheet
from fastpq.cli.cell_values import value_text
from fastpq.cli.failures import Failure, failure_of
from fastpq.cli.format_names import encoding_name
from fastpq.cli.page_bounds import PageBounds, bounds_by_page
from fastpq.cli.stored_chunks import StoredPage, stored_pages
from fastpq.cli.terminal import Part, Styled
from fastpq.errors import ParquetError

if TYPE_CHECKING:
    from typing import Any

    from fastpq.schema.parquet_schema import ColumnDescriptor


class PageSheet(RowSheet):
    """The pages in a column chunk, in file order. Page headers are read, and page bodies are passed over.

    If a header is broken, the pages before it are listed, and the error is the last row.

    Args:
        viewed_file: the file.
        row_group: row group index.
        column: the column.
    """

    title = "pages"
    can_go = True
    columns = (
        SheetColumn("page", True),
        SheetColumn("kind"),
        SheetColumn("encoding"),
        SheetColumn("stored", True),
        SheetColumn("ratio", True),
        SheetColumn("values", True),
        SheetColumn("rows", True),
        SheetColumn("nulls", True),
        SheetColumn("min", widest=30),
        SheetColumn("max", widest=30),
        SheetColumn("offset", True),
        SheetColumn("CRC"),
    )

    def __init__(self, viewed_file: BrowsedFile, row_group: int, column: ColumnDescriptor) -> None:
        super().__init__()
        self._viewed_file, self._row_group, self._column = viewed_file, row_group, column
        self._failure: Failure | None = None
        self._pages: list[StoredPage] = []
        try:
            self._pages += stored_pages(viewed_file.file, row_group, column)
        except ParquetError as error:
            self._failure = failure_of(error)
        self._bounds = bounds_by_page(viewed_file.file, row_group, column)
        is_dictionary = [not page.kind.startswith("data") for page in self._pages]
        self._num_dictionaries = sum(is_dictionary)
        self._first_rows = self._rows_before()
        self.note = count_text(len(self._pages), "page")

    def _rows_before(self) -> list[int | None]:
        """Return how many of the row group's rows come before each page. None where neither headers nor the page index tell."""
        counts: list[int | None] = []
        total: int | None = 0
        for number, page in enumerate(self._pages):
            counts.append(total)
            rows = self._rows_of(number, page)
            total = None if total is None or rows is None else total + rows
        return counts

    def _own_bounds(self, number: int, page: StoredPage) -> PageBounds | None:
        return self._bounds.get(number - self._num_dictionaries) if page.kind.startswith("data") else None

    def _rows_of(self, number: int, page: StoredPage) -> int | None:
        """Return the rows in a page, or None if only the levels tell."""
        if not page.kind.startswith("data"):
            return 0
        bounds = self._own_bounds(number, page)
        if bounds is not None and bounds.rows is not None:
            return bounds.rows
        return page.num_values if self._column.max_repetition_level == 0 else page.num_rows

    def __len__(self) -> int:
        return len(self._pages) + (self._failure is not None)

    def make_row(self, row: int) -> Sequence[Part]:
        """Return the facts about a page."""
        if row == len(self._pages):
            assert self._failure is not None
            return ("", Styled("broken", "error"), *[""] * 10)
        page = self._pages[row]
        bounds = self._own_bounds(row, page)
        rows = self._rows_of(row, page)
        is_data = page.kind.startswith("data")
        return (
            str(row - self._num_dictionaries) if is_data else "",
            page.kind,
            encoding_name(page.encoding).lower(),
            size_text(page.stored_size),
            ratio_text(page.decoded_size, page.stored_size),
            f"{page.num_values:,}",
            "" if rows is None or not is_data else f"{rows:,}",
            "" if bounds is None or not bounds.nulls else f"{bounds.nulls:,}",
            *(_bound(bounds, name) for name in ("low", "high")),
            f"{page.offset:,}",
            "yes" if page.has_checksum else Styled("none", "dim"),
        )

    def message(self, row: int, column: int) -> str:
        """Return why the list ends."""
        return self._failure.message if self._failure is not None and row == len(self._pages) else ""

    def opens(self, row: int, column: int) -> bool:
        """A dictionary page opens, and a data page whose rows are known."""
        if not 0 <= row < len(self._pages):
            return False
        page = self._pages[row]
        return page.kind == "dictionary" or (self._rows_of(row, page) is not None and self._first_rows[row] is not None)

    def open(self, row: int, column: int) -> Sheet:
        """Return the values in a page."""
        page = self._pages[row]
        if page.kind == "dictionary":
            return DictionarySheet(self._viewed_file, self._row_group, self._column)
        first, rows = self._first_rows[row], self._rows_of(row, page)
        assert first is not None
        assert rows is not None
        start = int(self._viewed_file.file._first_rows()[self._row_group]) + first
        return ValueSheet(
            self._viewed_file, RowSet(f"page {row - self._num_dictionaries}", start, start + rows), [self._column]
        )


class PageIndexSheet(RowSheet):
    """What a column chunk's page index says about each page.

    Args:
        viewed_file: the file.
        row_group: row group index.
        column: the column.

    Raises:
        ParquetError: the index cannot be read.
    """

    title = "page index"
    can_go = True
    can_probe = True
    columns = (
        SheetColumn("page", True),
        SheetColumn("first row", True),
        SheetColumn("rows", True),
        SheetColumn("nulls", True),
        SheetColumn("min", widest=60),
        SheetColumn("max", widest=60),
    )

    def __init__(self, viewed_file: BrowsedFile, row_group: int, column: ColumnDescriptor) -> None:
        super().__init__()
        self._viewed_file, self._column = viewed_file, column
        index = viewed_file.file.column_index(row_group, column.index)
        viewed_file.file.offset_index(row_group, column.index)      # raises if it is broken
        self._bounds = bounds_by_page(viewed_file.file, row_group, column)
        order = "no column index" if index is None else f"bounds are {index.boundary_order.name.lower()}"
        self.note = f"{count_text(len(self), 'page')}, {order}"

    def __len__(self) -> int:
        return len(self._bounds)

    def make_row(self, row: int) -> Sequence[Part]:
        """Return what the index says about a page."""
        each = self._bounds[row]
        numbers = ("" if number is None else f"{number:,}" for number in (each.first_row, each.rows, each.nulls))
        return str(row), *numbers, _bound(each, "low"), _bound(each, "high")

    def probed(self, text: str, row: int) -> Sheet:
        """Return which row groups and pages a lookup of a value reads."""
        return probe_sheet(self._viewed_file, self._column.index, text)


def _bound(bounds: PageBounds | None, name: str) -> Part:
    value: Any = None if bounds is None else getattr(bounds, name)
    if bounds is not None and bounds.is_null:
        return Styled("all null", "dim")
    return "" if value is None else value_text(value)
