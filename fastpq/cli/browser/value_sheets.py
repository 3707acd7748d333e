"""Sheets of values: rows in a file, a row group or a page, the rows that match a condition, one value, and a dictionary.

Only the rows and columns in view are read, BLOCK_ROWS rows at a time. A column whose bytes are broken, or whose key is missing,
shows the error in its own cells. The other columns stay readable.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.cli.amounts import count_text, size_text
from fastpq.cli.browser.browsed_file import BrowsedFile
from fastpq.cli.browser.sheet import CellPlace, LoadedSheet, Sheet, SheetColumn, TextSheet
from fastpq.cli.cell_values import json_value, value_text
from fastpq.cli.failures import KEYS, Failure, failure_of
from fastpq.cli.terminal import Part, Styled
from fastpq.errors import ParquetError
from fastpq.schema.tree import ColumnDescriptor, GroupNode, SchemaNode

if TYPE_CHECKING:
    from fastpq.read.filtered.filtered_scan import FilteredScan

Int64s: TypeAlias = NDArray[np.int64]

BLOCK_ROWS = 100            # rows that are read together
MOST_KEPT_BLOCKS = 500      # a block has one column
LONGEST_CELL = 300          # characters that a cell keeps
MOST_ITEMS = 20             # items in a list, a struct or a map that a cell shows
HEX_BYTES = 16              # bytes in a line
LONGEST_DUMP = 1 << 16      # bytes in all lines
# Errors in one column, which leave the other columns readable.
COLUMN_ERRORS = (ParquetError, ValueError, OSError, NotImplementedError, ArithmeticError)


class RowSet(NamedTuple):
    """The rows that a sheet of values shows.

    Attributes:
        title: their name in the path above the sheet.
        start, stop: the first row, and the row behind the last one, counted through the whole file.
    """

    title: str
    start: int
    stop: int


class ValueSheet(Sheet):
    """Rows, with one column for each column under the schema's root.

    Args:
        viewed_file: the file.
        rows: the rows.
        nodes: the columns, or None for all.
    """

    has_cell_cursor = True
    can_filter = True
    can_go = True

    def __init__(self, viewed_file: BrowsedFile, rows: RowSet, nodes: Sequence[SchemaNode] | None = None) -> None:
        self.title = rows.title
        self._viewed_file, self._rows = viewed_file, rows
        self._nodes = list(viewed_file.file.schema.root.children) if nodes is None else list(nodes)
        self._blocks: OrderedDict[tuple[int, int], Sequence[Part] | Failure] = OrderedDict()

    def __len__(self) -> int:
        return self._rows.stop - self._rows.start

    @property
    def num_columns(self) -> int:
        """One for the row numbers, and one a column."""
        return len(self._nodes) + 1

    def column(self, place: int) -> SheetColumn:
        """Return the column's name."""
        if place == 0:
            return SheetColumn("row", True)
        node = self._nodes[place - 1]
        return SheetColumn(node.name, _is_number(node))

    def start(self) -> CellPlace:
        """Begin at the first value."""
        return CellPlace(0, min(1, self.num_columns - 1))

    def file_row(self, row: int) -> int:
        """Return a row's number in the file."""
        return self._rows.start + row

    def cell(self, row: int, column: int) -> Part:
        """Return a value in short, or why it cannot be read."""
        if column == 0:
            return Styled(f"{self.file_row(row):,}", "dim")
        block = self._blocks.get((row // BLOCK_ROWS, column))
        if block is None:
            return Styled("…", "dim")
        if isinstance(block, Failure):
            return Styled("no key" if block.code == KEYS else "error", "error")
        return block[row % BLOCK_ROWS]

    def message(self, row: int, column: int) -> str:
        """Return why a value cannot be read."""
        block = self._blocks.get((row // BLOCK_ROWS, column))
        return block.message if isinstance(block, Failure) else ""

    def is_missing(self, rows: range, columns: range) -> bool:
        """Return whether some values are not read yet."""
        return bool(self._missing(rows, columns))

    def _missing(self, rows: range, columns: range) -> list[tuple[range, list[int]]]:
        """Return the blocks that are not read yet, with their columns. Blocks that miss the same columns are read together."""
        parts: list[tuple[range, list[int]]] = []
        for block in range(rows.start // BLOCK_ROWS, (rows.stop - 1) // BLOCK_ROWS + 1 if rows else 0):
            places = [place for place in columns if place and (block, place) not in self._blocks]
            if parts and parts[-1] == (range(parts[-1][0].start, block), places):
                parts[-1] = range(parts[-1][0].start, block + 1), places
            elif places:
                parts.append((range(block, block + 1), places))
        return parts

    def load(self, rows: range, columns: range) -> None:
        """Read values. If a column cannot be read, the others are read without it."""
        for blocks, places in self._missing(rows, columns):
            try:
                self._read(blocks, places)
            except COLUMN_ERRORS:
                for block in blocks:
                    for place in places:
                        self._read_alone(block, place)
            while len(self._blocks) > max(MOST_KEPT_BLOCKS, 4 * len(columns)):
                self._blocks.popitem(last=False)

    def _read_alone(self, block: int, place: int) -> None:
        """Read one column in one block, or keep its error."""
        try:
            self._read(range(block, block + 1), [place])
        except COLUMN_ERRORS as error:
            self._blocks[block, place] = failure_of(error)

    def _read(self, blocks: range, places: Sequence[int]) -> None:
        """Read some columns in consecutive blocks."""
        rows = range(blocks.start * BLOCK_ROWS, min(len(self), blocks.stop * BLOCK_ROWS))
        table = self._table(rows, [self._nodes[place - 1] for place in places])
        for place, column in zip(places, table.columns, strict=True):
            cells = [cell_of(value) for value in column.to_pylist()]
            for number, block in enumerate(blocks):
                self._blocks[block, place] = cells[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]

    def _table(self, rows: range, nodes: Sequence[SchemaNode]) -> Any:
        """Read rows."""
        start = self.file_row(rows.start)
        return self._viewed_file.file.read(numbers_below(nodes), row_ranges=[(start, start + len(rows))])

    def opens(self, row: int, column: int) -> bool:
        """Return whether there is a value to show whole."""
        return column > 0 and row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return the whole value."""
        node = self._nodes[column - 1]
        (value,) = self._table(range(row, row + 1), [node]).columns[0].to_pylist()
        return value_sheet(f"{node.name} of row {self.file_row(row):,}", value)

    def filtered(self, text: str) -> Sheet:
        """Return the rows that match a condition."""
        if text:
            return FilteredSheet(self._viewed_file, self._rows, text, self._nodes)
        return ValueSheet(self._viewed_file, self._rows, self._nodes)


class FilteredSheet(ValueSheet):
    """Rows that match a condition. Row groups are searched one after another, when the end of the sheet comes into view.

    Args:
        viewed_file: the file.
        rows: the rows that the condition chooses from.
        condition: the condition, in the language of ``--where``.
        nodes: the columns.

    Raises:
        CommandFailure, SchemaError: the condition is not understood, or does not fit the columns.
    """

    def __init__(self, viewed_file: BrowsedFile, rows: RowSet, condition: str, nodes: Sequence[SchemaNode]) -> None:
        from fastpq.cli.where_parser import parse_where

        super().__init__(viewed_file, rows, nodes)
        self.condition = condition
        file = viewed_file.file
        request = file._request((), None, [(rows.start, rows.stop)], parse_where(condition))
        self._scan: FilteredScan = file._reader().selective(request)
        self._groups = list(request.groups)
        self._first_rows = file._first_rows()
        self._matches: Int64s = np.empty(0, np.int64)
        self._num_searched = 0
        self._search_until(1)

    def _search_until(self, count: int) -> None:
        """Search row groups until there are ``count`` matching rows, or no more row groups."""
        while len(self._matches) < count and self.has_more_rows:
            self._search_row_group()
        self._count()

    def _search_row_group(self) -> None:
        """Search the next row group."""
        group, rows = self._groups[self._num_searched]
        (selection,) = self._scan.select([(group, rows)])
        for number, matching_rows in self._scan.matching_rows([selection], self._viewed_file.file._file.threads).items():
            self._matches = np.concatenate([self._matches, self._first_rows[number] + matching_rows.rows()])
        self._num_searched += 1

    def _count(self) -> None:
        """Say how many rows match."""
        rest = len(self._groups) - self._num_searched
        count_words = count_text(len(self._matches), "row")
        matches = "matches" if len(self._matches) == 1 else "match"
        self.note = f"{count_words} so far, {count_text(rest, 'row group')} to search" if rest else f"{count_words} {matches}"

    @property
    def has_more_rows(self) -> bool:  # type: ignore[override]
        """Whether row groups are left."""
        return self._num_searched < len(self._groups)

    def find_more_rows(self) -> None:
        """Search the next row group."""
        self._forget_last_block()
        self._search_row_group()
        self._count()

    def _forget_last_block(self) -> None:
        """Read the last block again. It may get more rows."""
        last = len(self) // BLOCK_ROWS
        for place in [key for key in self._blocks if key[0] == last]:
            del self._blocks[place]

    def __len__(self) -> int:
        return len(self._matches)

    def file_row(self, row: int) -> int:
        """Return a row's number in the file."""
        return int(self._matches[row])

    def is_missing(self, rows: range, columns: range) -> bool:
        """Return whether more rows may follow, or some values are not read yet."""
        return (self.has_more_rows and rows.stop >= len(self)) or super().is_missing(rows, columns)

    def load(self, rows: range, columns: range) -> None:
        """Search and read. The last block is read again if it has more rows now."""
        if rows.stop >= len(self) and self.has_more_rows:
            self._forget_last_block()
            self._search_until(len(self) + BLOCK_ROWS)
        super().load(range(rows.start, min(rows.stop, len(self))), columns)

    def _table(self, rows: range, nodes: Sequence[SchemaNode]) -> Any:
        """Read rows."""
        return self._viewed_file.file.take(self._matches[rows.start : rows.stop], numbers_below(nodes))


class DictionarySheet(LoadedSheet):
    """The values in a column chunk's dictionary page.

    Args:
        viewed_file: the file.
        row_group: row group index.
        column: the column.

    Raises:
        ParquetError: the page cannot be read.
    """

    title = "dictionary"
    columns = (SheetColumn("entry", True), SheetColumn("value", widest=10_000))
    can_go = True

    def __init__(self, viewed_file: BrowsedFile, row_group: int, column: ColumnDescriptor) -> None:
        super().__init__()
        from fastpq.cli.column_facts import dictionary_use
        from fastpq.cli.stored_chunks import stored_dictionary

        self._values = stored_dictionary(viewed_file.file, row_group, column)
        use = dictionary_use(viewed_file.chunk(row_group, column.index))
        self.note = "given up: other pages store the values" if use == "given up" else f"{count_text(len(self), 'value')}"

    def __len__(self) -> int:
        return 0 if self._values is None else len(self._values)

    def make_row(self, row: int) -> Sequence[Part]:
        """Return the entry's number and its value."""
        (value,) = self._values[row : row + 1].to_pylist()
        return str(row), cell_of(value)

    def opens(self, row: int, column: int) -> bool:
        """Every value opens."""
        return row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return the whole value."""
        (value,) = self._values[row : row + 1].to_pylist()
        return value_sheet(f"entry {row:,}", value)


def numbers_below(nodes: Sequence[SchemaNode]) -> list[int]:
    """Return the numbers of the leaves below some nodes. Names may be ambiguous, but numbers never are."""
    numbers: list[int] = []
    for node in nodes:
        numbers += range(node.first, node.last) if isinstance(node, GroupNode) else [node.index]  # type: ignore[attr-defined]
    return numbers


def _is_number(node: SchemaNode) -> bool:
    """Return whether a column's values are numbers, which are aligned to the right."""
    if not isinstance(node, ColumnDescriptor) or not node.is_flat:
        return False
    try:
        dtype, logical = node.type.dtype, node.type.logical
    except ParquetError:
        return False
    return dtype is not None and dtype.kind in "iuf" and type(logical).__name__ not in ("Date", "Time", "Timestamp")


def cell_of(value: Any) -> Part:
    """Return a value in short. Large values are cut before they become text."""
    if value is None:
        return Styled("null", "dim")
    if value == "" and isinstance(value, str):
        return Styled("''", "dim")
    text = value_text(_first_items(value))
    return text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + "…"


def _first_items(value: Any) -> Any:
    if isinstance(value, str):
        return value[: LONGEST_CELL + 1]
    if isinstance(value, Mapping):
        return {name: _first_items(value[name]) for name in list(value)[:MOST_ITEMS]}
    if isinstance(value, list | tuple):
        rest = [] if len(value) <= MOST_ITEMS else [f"… {len(value):,} items"]
        return [*map(_first_items, value[:MOST_ITEMS]), *rest]
    return value


def value_sheet(title: str, value: Any) -> Sheet:
    """Return a sheet with a whole value: text as it is, bytes as a hexadecimal dump, and nested values as JSON."""
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        note = size_text(len(data)) if len(data) <= LONGEST_DUMP else f"the first {LONGEST_DUMP:,} of {len(data):,} bytes"
        return TextSheet(title, _dump(data[:LONGEST_DUMP]), note)
    if isinstance(value, Mapping | list | tuple):
        import json

        return TextSheet(title, json.dumps(json_value(value), ensure_ascii=False, indent=2))
    if isinstance(value, str):
        return TextSheet(title, value, count_text(len(value), "character"))
    return TextSheet(title, value_text(value))


def _dump(data: bytes) -> str:
    lines = []
    for start in range(0, len(data), HEX_BYTES):
        piece = data[start : start + HEX_BYTES]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
        lines.append(f"{start:08x}  {piece.hex(' '):<{3 * HEX_BYTES}} {text}")
    return "\n".join(lines) or "no bytes"
