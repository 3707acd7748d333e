"""Explanation, the result of ``ParquetFile.explain``: what a filtered read takes from the file, and the evidence for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastpq.common.display import Cell, Grid, Heading, Share, View, counted, more, of_bytes, to_html, to_text
from fastpq.filters.predicate import Outcome
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.filtered.filtered_scan import FilteredScan
from fastpq.read.filtered.row_evidence import Finding
from fastpq.read.filtered.row_selector import RowGroupSelection

# Number of row groups that an Explanation shows as text and as HTML.
TEXT_ROW_GROUPS, HTML_ROW_GROUPS = 8, 50


@dataclass(frozen=True, slots=True)
class ColumnExplanation:
    """Pages and bytes that a read takes from one column chunk.

    Attributes:
        column: dotted column name.
        pages: number of data pages to read, or None for all if their number is unknown.
        num_pages: number of data pages in the chunk, or None if unknown.
        bytes_read: stored bytes to read.
        num_bytes: stored bytes in all pages of the chunk.
    """

    column: str
    pages: int | None
    num_pages: int | None
    bytes_read: int
    num_bytes: int

    def __str__(self) -> str:
        pages = "all pages" if self.pages is None else f"{self.pages} of {self.num_pages} pages"
        return f"{self.column}: {pages}, {self.bytes_read} of {self.num_bytes} bytes"


@dataclass(frozen=True, slots=True)
class RowGroupExplanation:
    """Rows, pages and bytes that a read takes from one row group.

    Attributes:
        row_group: row group index.
        num_rows: number of rows in the row group.
        rows: number of candidates, which are the rows that evidence does not rule out.
        outcome: whether none, some or all requested rows match, as far as the evidence tells. SOME if this is unknown.
        evidence: what statistics, bloom filters, column indexes and dictionary pages say about each condition.
        columns: pages and bytes to read, for each column. A column without a condition may take less, because only its
            matching rows are read.
    """

    row_group: int
    num_rows: int
    rows: int
    outcome: Outcome
    evidence: Sequence[Finding]
    columns: Sequence[ColumnExplanation]

    def __str__(self) -> str:
        lines = [f"row group {self.row_group}: {self.rows} of {self.num_rows} rows"]
        lines += [f"  {evidence}" for evidence in self.evidence]
        lines += [f"  {column}" for column in self.columns if column.bytes_read]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Row groups, pages and bytes that a filtered read takes, with the evidence. ``str`` returns all of it as text.

    Attributes:
        row_groups: an explanation for each row group.
    """

    row_groups: Sequence[RowGroupExplanation]

    @property
    def bytes_read(self) -> int:
        """Largest number of stored bytes that the read may take."""
        return sum(column.bytes_read for group in self.row_groups for column in group.columns)

    @property
    def num_bytes(self) -> int:
        """Stored bytes of all chunks in these row groups, for the result columns and the columns in the filters."""
        return sum(column.num_bytes for group in self.row_groups for column in group.columns)

    def __str__(self) -> str:
        groups_to_read = sum(group.outcome is not Outcome.NONE for group in self.row_groups)
        total = f"{groups_to_read} of {len(self.row_groups)} row groups, {self.bytes_read} of {self.num_bytes} bytes"
        return "\n".join([total, *map(str, self.row_groups)])

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_ROW_GROUPS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_ROW_GROUPS))

    def _view(self, most: int) -> View:
        """Return what the repr shows: how many row groups and bytes are read, and the first ``most`` row groups."""
        groups_to_read = sum(group.outcome is not Outcome.NONE for group in self.row_groups)
        facts = [
            f"{groups_to_read:,} of {counted(len(self.row_groups), 'row group')}",
            f"{of_bytes(self.bytes_read)} of {of_bytes(self.num_bytes)}",
        ]
        headings = [Heading("row group", is_number=True), *map(Heading, ("rows", "pages", "bytes"))]
        headings.append(Heading("evidence", is_prose=True))
        rows = [_cells(group) for group in self.row_groups[:most]]
        note = more(len(self.row_groups), len(rows), "row group")
        return View("Explanation", facts, Grid(headings, rows, note) if rows else None)


def _cells(group: RowGroupExplanation) -> tuple[Cell, ...]:
    bytes_read, num_bytes = sum(part.bytes_read for part in group.columns), sum(part.num_bytes for part in group.columns)
    pages = [(part.pages, part.num_pages) for part in group.columns if part.pages is not None and part.num_pages is not None]
    pages_read, num_pages = sum(count for count, _ in pages), sum(count for _, count in pages)
    return (
        str(group.row_group),
        Share(f"{group.rows:,} of {group.num_rows:,}", group.rows / max(group.num_rows, 1)),
        "0" if not bytes_read else f"{pages_read:,} of {num_pages:,}" if len(pages) == len(group.columns) else "all",
        Share(f"{of_bytes(bytes_read)} of {of_bytes(num_bytes)}", bytes_read / max(num_bytes, 1)),
        "; ".join(map(str, group.evidence)) or "none is needed",
    )


def explain(scan: FilteredScan, selections: Sequence[RowGroupSelection]) -> Explanation:
    """Return the explanation of a read.

    Args:
        scan: the scan that would read.
        selections: results of the scan's ``select``.
    """
    return Explanation([_explain_group(scan, selection) for selection in selections])


def _explain_group(scan: FilteredScan, selection: RowGroupSelection) -> RowGroupExplanation:
    pruning = selection.pruning
    columns = []
    if pruning.num_rows:
        columns_to_read = {column.index for column in scan.columns_read(selection)}
        for whole in scan.plan(scan.every_column, [pruning.row_group]).chunks:
            part = whole if whole.column.index not in columns_to_read else scan.partial(whole, selection, pruning.rows)
            columns.append(_explain_chunk(whole, part, selection, whole.column.index in columns_to_read))
    return RowGroupExplanation(
        pruning.row_group, pruning.num_rows, pruning.rows.count, pruning.outcome, pruning.evidence, columns
    )


def _explain_chunk(whole: ChunkPlan, part: ChunkPlan, selection: RowGroupSelection, is_read: bool) -> ColumnExplanation:
    size = whole.metadata.total_compressed_size
    offset_index = selection.offset_indexes.get(whole.column.index)
    num_pages = None if offset_index is None else offset_index.num_pages
    if not is_read:
        return ColumnExplanation(whole.column.name, 0, num_pages, 0, size)
    if part.pages is None:
        return ColumnExplanation(whole.column.name, num_pages, num_pages, size, size)
    return ColumnExplanation(whole.column.name, len(part.pages.directory), num_pages, part.pages.num_bytes, size)
