"""Explanation: row groups, pages and bytes of a filtered read, with the evidence; the result of ``ParquetFile.explain``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastpq.common.display import Cell, Grid, Heading, Share, View, counted, more, of_bytes, to_html, to_text
from fastpq.filters.predicate import Outcome
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.pruning import Evidence
from fastpq.read.selection import GroupSelection
from fastpq.read.selective import SelectiveScan

# Row groups shown by an Explanation as text and as HTML.
TEXT_ROW_GROUPS, HTML_ROW_GROUPS = 8, 50


@dataclass(frozen=True, slots=True)
class ColumnExplanation:
    """Pages and bytes to read of a column chunk.

    Attributes:
        column: dotted name of the column.
        pages: data pages to read; None for all of an unknown number.
        num_pages: data pages of the chunk; None if unknown.
        bytes_read: stored bytes of the pages to read.
        num_bytes: stored bytes of all pages.
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
    """Rows, pages and bytes to read of a row group.

    Attributes:
        row_group: index of the row group.
        num_rows: number of rows of the row group.
        rows: number of candidates, rows not ruled out by evidence.
        outcome: whether none, some or all of the requested rows match, as far as evidence tells; SOME also if unknown.
        evidence: findings of statistics, bloom filters, column indexes and dictionary pages about each condition.
        columns: pages and bytes to read of each column. Columns without a condition may take less: they are read in matching
            rows alone.
    """

    row_group: int
    num_rows: int
    rows: int
    outcome: Outcome
    evidence: Sequence[Evidence]
    columns: Sequence[ColumnExplanation]

    def __str__(self) -> str:
        lines = [f"row group {self.row_group}: {self.rows} of {self.num_rows} rows"]
        lines += [f"  {evidence}" for evidence in self.evidence]
        lines += [f"  {column}" for column in self.columns if column.bytes_read]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Row groups, pages and bytes of a filtered read, with the evidence; ``str`` gives all as text.

    Attributes:
        row_groups: explanation of each row group.
    """

    row_groups: Sequence[RowGroupExplanation]

    @property
    def bytes_read(self) -> int:
        """Most stored bytes to read."""
        return sum(column.bytes_read for group in self.row_groups for column in group.columns)

    @property
    def num_bytes(self) -> int:
        """Stored bytes of all pages of the columns."""
        return sum(column.num_bytes for group in self.row_groups for column in group.columns)

    def __str__(self) -> str:
        kept = sum(group.outcome is not Outcome.NONE for group in self.row_groups)
        total = f"{kept} of {len(self.row_groups)} row groups, {self.bytes_read} of {self.num_bytes} bytes"
        return "\n".join([total, *map(str, self.row_groups)])

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_ROW_GROUPS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_ROW_GROUPS))

    def _view(self, most: int) -> View:
        """Display of the sums, and of the first row groups with their evidence."""
        kept = sum(group.outcome is not Outcome.NONE for group in self.row_groups)
        facts = [
            f"{kept:,} of {counted(len(self.row_groups), 'row group')}",
            f"{of_bytes(self.bytes_read)} of {of_bytes(self.num_bytes)}",
        ]
        headings = [Heading("row group", is_number=True), *map(Heading, ("rows", "pages", "bytes"))]
        headings.append(Heading("evidence", is_prose=True))
        rows = [_cells(group) for group in self.row_groups[:most]]
        note = more(len(self.row_groups), len(rows), "row group")
        return View("Explanation", facts, Grid(headings, rows, note) if rows else None)


def _cells(group: RowGroupExplanation) -> tuple[Cell, ...]:
    read, stored = sum(part.bytes_read for part in group.columns), sum(part.num_bytes for part in group.columns)
    known = [(part.pages, part.num_pages) for part in group.columns if part.pages is not None and part.num_pages is not None]
    pages, of_pages = sum(pages for pages, _ in known), sum(count for _, count in known)
    return (
        str(group.row_group),
        Share(f"{group.rows:,} of {group.num_rows:,}", group.rows / max(group.num_rows, 1)),
        "0" if not read else f"{pages:,} of {of_pages:,}" if len(known) == len(group.columns) else "all",
        Share(f"{of_bytes(read)} of {of_bytes(stored)}", read / max(stored, 1)),
        "; ".join(map(str, group.evidence)) or "none is needed",
    )


def explain(scan: SelectiveScan, selections: Sequence[GroupSelection]) -> Explanation:
    """Explain a read of selections.

    Args:
        scan: the scan of the read.
        selections: results of the scan's ``select``.
    """
    return Explanation([_explain_group(scan, selection) for selection in selections])


def _explain_group(scan: SelectiveScan, selection: GroupSelection) -> RowGroupExplanation:
    pruning = selection.pruning
    columns = []
    if pruning.num_rows:
        needed = {column.index for column in scan.columns_read(selection)}
        for whole in scan.plan(scan.every_column, [pruning.row_group]).chunks:
            planned = whole if whole.column.index not in needed else scan.partial(whole, selection, pruning.rows)
            columns.append(_explain_chunk(whole, planned, selection, whole.column.index in needed))
    return RowGroupExplanation(
        pruning.row_group, pruning.num_rows, pruning.rows.count, pruning.outcome, pruning.evidence, columns
    )


def _explain_chunk(
    whole: ChunkPlan, planned: ChunkPlan, selection: GroupSelection, is_read: bool
) -> ColumnExplanation:
    size = whole.metadata.total_compressed_size
    offset_index = selection.offset_indexes.get(whole.column.index)
    num_pages = None if offset_index is None else offset_index.num_pages
    if not is_read:
        return ColumnExplanation(whole.column.name, 0, num_pages, 0, size)
    if planned.pages is None:
        return ColumnExplanation(whole.column.name, num_pages, num_pages, size, size)
    return ColumnExplanation(
        whole.column.name, len(planned.pages.directory), num_pages, planned.pages.num_bytes, size
    )
