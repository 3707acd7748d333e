"""Survey of a damaged column chunk: which rows are still readable, and why the others are not.

Pages are located by the OffsetIndex. Without one, page headers are read one after another up to the first broken header. A run is
one or more consecutive pages, which are decoded on trial. If a page cannot be decoded, it is lost, and the next run begins after
it. A run gets row numbers only if its place is certain, because values in a wrong row are worse than lost values.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from fastpq.arrays.allowance import AllocationError
from fastpq.column.assembly import NestedOutput
from fastpq.column.column_output import ColumnOutput
from fastpq.errors import CryptoError, FormatError, ParquetError, SchemaError, TagVerificationError
from fastpq.index.page_index import OffsetIndex
from fastpq.index.ranges import Int64s, RowRanges
from fastpq.read.chunk_plan import ChunkPlan, PageSelection
from fastpq.read.costs import is_plausible
from fastpq.read.fetch import fetch_chunks
from fastpq.read.opener import ChunkOpener
from fastpq.read.scan import check_plausible
from fastpq.schema.shape import LeafShape

UNKNOWN = -1        # stands for a row count that a page header does not have
EVERY_ROW = int(np.iinfo(np.int64).max)     # greater than every row number


def is_damage(error: ParquetError) -> bool:
    """Return whether damaged bytes may have caused an error, and not a missing key, a policy, a request or a memory limit."""
    return isinstance(error, TagVerificationError) or not isinstance(error, AllocationError | CryptoError | SchemaError)


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSurvey:
    """A column chunk's readable rows.

    Attributes:
        intact: the rows of the row group that are readable in this chunk.
        plan: read plan for all readable pages and all their rows. None if no page is readable.
        errors: (first row, error) for each unreadable page, in ascending order. Errors whose row is unknown (None) come last.
    """

    intact: RowRanges
    plan: ChunkPlan | None
    errors: tuple[tuple[int | None, ParquetError], ...] = ()

    def plan_rows(self, rows: RowRanges) -> ChunkPlan:
        """Return a read plan for intact rows in the chunk."""
        assert self.plan is not None
        if self.plan.pages is None:
            selected_rows = None if rows.is_every else rows
        else:
            selected_rows = rows.within(self.plan.pages.rows)
        return self.plan.keeping(selected_rows, rows.count)

    def reason(self, start: int, stop: int) -> str:
        """Return the message of the error that explains why the rows ``start`` to ``stop - 1`` are lost."""

        def row_of(each: tuple[int | None, ParquetError]) -> int:
            return EVERY_ROW if each[0] is None else each[0]

        first = bisect_left(self.errors, start, key=row_of)
        if first == len(self.errors) or row_of(self.errors[first]) >= stop:
            first = bisect_left(self.errors, EVERY_ROW, key=row_of)
        return str(self.errors[first][1])


def survey_chunk(opener: ChunkOpener, chunk: ChunkPlan, leaf: LeafShape | None, offset_index: OffsetIndex | None) -> ChunkSurvey:
    """Find the readable rows in a chunk. First decode the whole chunk. If that fails, decode parts of it.

    Args:
        opener: opens the file's chunks.
        chunk: read plan for the whole chunk.
        leaf: the leaf's shape in its nested column. None for a flat column.
        offset_index: the chunk's OffsetIndex, already checked. None if there is none.
    """
    probe = Probe(opener, chunk, leaf)
    try:
        probe.check_chunk()
    except ParquetError as error:
        if not is_damage(error):
            raise
        return _Pages.locate(probe, offset_index, error).survey()
    return ChunkSurvey(RowRanges.every(chunk.num_rows), chunk)


class Probe:
    """Trial decoding of a chunk's pages. The decoded values are discarded."""

    def __init__(self, opener: ChunkOpener, chunk: ChunkPlan, leaf: LeafShape | None) -> None:
        self.opener = opener
        self.chunk = chunk
        self._leaf = leaf
        self._width = opener.layout(chunk.column).width

    def check_chunk(self) -> None:
        """Decode the whole chunk. Raise if decoding fails, or if the row count differs from the footer's."""
        check_plausible(self.opener, self.chunk, lambda: fetch_chunks(self.opener.source, [self.chunk])[0])
        num_rows = self._decode(self.chunk)[0]
        if num_rows != self.chunk.num_rows:
            raise FormatError(f"the chunk has {num_rows} rows, but the row group has {self.chunk.num_rows}")

    def count_rows(self, plan: ChunkPlan) -> int:
        """Decode the pages in a plan, and return how many rows they have.

        Raises:
            ParquetError: a page cannot be decoded, or the plan has more rows than the bytes can plausibly hold.
        """
        self._check_claim(plan)
        return self._decode(plan)[0]

    def _check_claim(self, plan: ChunkPlan) -> None:
        """Refuse a plan that has more rows than its bytes can plausibly hold, before memory is allocated.

        The rows of nested columns are not checked.

        Raises:
            FormatError: there are too many rows.
        """
        assert plan.pages is not None
        if self._leaf is None and not is_plausible(plan.num_rows * self._width, plan.pages.num_bytes):
            raise FormatError(f"{plan.num_rows} rows in {plan.pages.num_bytes} bytes of a damaged chunk")

    def count_rows_of_page(self, plan: ChunkPlan) -> int:
        """Decode one page as if it belonged to the plan's column, and return how many rows it has.

        Raises:
            FormatError: the page does not hold this column's values, or other bytes follow the values.
        """
        self._check_claim(plan)
        num_rows, unused_bytes = self._decode(plan)
        if unused_bytes:
            raise FormatError(f"{unused_bytes} bytes after the values of a page")
        return num_rows

    def _decode(self, plan: ChunkPlan) -> tuple[int, int]:
        """Decode the pages in a plan. Return how many rows they have, and how many bytes of the last page were not used."""
        [stored_chunk] = fetch_chunks(self.opener.source, [plan])
        if self._leaf is None:
            output = ColumnOutput(plan.num_rows, self._width, plan.column.nullable)
            flat = self.opener.flat(plan, stored_chunk)
            flat.read_ranges(output, 0, np.array([[0, plan.num_rows]], np.int64))
            return plan.num_rows, flat.left_over()
        nested = self.opener.nested(plan, stored_chunk)
        num_rows = nested.read_rows(NestedOutput(self._leaf, self._width), EVERY_ROW)
        return num_rows, nested.left_over()


@dataclass(frozen=True, slots=True)
class _Run:
    """The pages from first to stop - 1, which can be decoded one after another, and their row count."""

    first: int
    stop: int
    num_rows: int


class _Pages:
    """A chunk's data pages, which are tried in runs.

    Args:
        probe: the chunk's trial decoder.
        locations: int64, shape (pages, 4): offset in the file, stored size, value count and row count (-1 if unknown).
        is_certain: whether page headers or the OffsetIndex reliably tell the row numbers in pages after a lost page.
        error: the error that decoding all pages raised.
    """

    def __init__(self, probe: Probe, locations: Int64s, is_certain: bool, error: ParquetError) -> None:
        self._probe = probe
        self._locations = locations
        # each page's first row, and the last page's end. They stop at the first page whose row count is unknown
        row_counts = locations[:, 3]
        if (row_counts < 0).any():
            row_counts = row_counts[: int(np.argmin(row_counts >= 0))]
        self._rows = np.concatenate([[0], np.cumsum(row_counts)]).tolist()
        self._is_certain = is_certain
        self._error = error

    @classmethod
    def locate(cls, probe: Probe, offset_index: OffsetIndex | None, error: ParquetError) -> _Pages:
        """Locate the pages by an OffsetIndex, or else by the page headers."""
        chunk = probe.chunk
        is_repeated = chunk.column.max_repetition_level > 0
        if offset_index is not None:
            counts = offset_index.row_counts
            values = np.full_like(counts, UNKNOWN) if is_repeated else counts
            locations = np.stack([offset_index.offsets, offset_index.sizes, values, counts], axis=1)
            return cls(probe, locations, True, error)
        [stored_chunk] = fetch_chunks(probe.opener.source, [chunk])
        locations, header_error = probe.opener.pages(chunk, stored_chunk).locate_pages(chunk.metadata.num_values)
        footer_count, size = chunk.metadata.num_values, chunk.metadata.total_compressed_size
        locations = locations[locations[:, 0] < size]   # pages after the chunk's end belong to the next chunk
        header_count = int(locations[:, 2].sum())
        is_complete = header_error is None or (len(locations) > 0 and int(locations[-1, 0] + locations[-1, 1]) >= size)
        # if the counts in headers contradict the footer, any of them may be wrong
        is_certain = header_count == footer_count if is_complete else header_count <= footer_count
        locations[:, 0] += chunk.start
        if not is_repeated:
            locations[:, 3] = locations[:, 2]
        return cls(probe, locations, is_certain, header_error or error)

    def survey(self) -> ChunkSurvey:
        chunk = self._probe.chunk
        first = int(self._locations[0, 0]) if len(self._locations) else chunk.start
        dictionary = [(chunk.start, first - chunk.start)] if first > chunk.start else []
        runs, page_errors = self._find_runs(dictionary)
        if dictionary and not runs:
            dictionary = []     # pages without dictionary encoding may be intact
            runs, _ = self._find_runs(dictionary)
        placed_runs, intact = self._place(runs)
        errors = [*((self._first_row(page), error) for page, error in page_errors), (None, self._error)]
        if not placed_runs:
            return ChunkSurvey(RowRanges.none(chunk.num_rows), None, tuple(errors))
        readable_rows = _ranges([(row, row + run.num_rows) for run, row in placed_runs], chunk.num_rows)
        pages = np.concatenate([np.arange(run.first, run.stop) for run, _ in placed_runs])
        plan = self._plan(pages, readable_rows, dictionary)
        return ChunkSurvey(intact, plan, tuple(errors))

    def _find_runs(self, dictionary: list[tuple[int, int]]) -> tuple[list[_Run], list[tuple[int, ParquetError]]]:
        """Split the pages into runs that can be decoded, each as long as possible, and broken pages.

        Returns:
            (runs, broken pages, each with its error).
        """
        runs: list[_Run] = []
        page_errors: list[tuple[int, ParquetError]] = []
        count, first = len(self._locations), 0
        while first < count:
            good, bad, num_rows, reason = first, count + 1, 0, None
            while bad - good > 1:       # double the run while decoding succeeds, then bisect
                stop = (good + bad) // 2 if reason else min(count, max(first + 1, 2 * good - first))
                result = self._try(first, stop, dictionary)
                if isinstance(result, int):
                    good, num_rows = stop, result
                else:
                    bad, reason = stop, result
            if good > first:
                runs.append(_Run(first, good, num_rows))
            if reason is not None:
                page_errors.append((good, reason))
            first = good + 1
        # if no page can be decoded, the dictionary may be the broken part, and the place of the data page would mislead
        has_place = not dictionary or bool(runs)
        for page, error in page_errors:
            if error.context.pop("offset", None) is not None and has_place:     # it counts from the first byte that was tried
                error.context["offset"] = int(self._locations[page, 0])
        return runs, page_errors

    def _try(self, first: int, stop: int, dictionary: list[tuple[int, int]]) -> int | ParquetError:
        """Decode the pages ``[first, stop)`` in order. Return their row count, or the error if they are damaged."""
        counts = self._locations[first:stop, 3]
        num_rows = int(counts.sum()) if (counts >= 0).all() else self._probe.chunk.num_rows
        if num_rows > self._probe.chunk.num_rows:
            return FormatError(f"the pages have {num_rows} rows, but the row group has {self._probe.chunk.num_rows}")
        try:
            return self._probe.count_rows(self._plan(np.arange(first, stop), RowRanges.every(num_rows), dictionary))
        except ParquetError as error:
            if not is_damage(error):
                raise
            return error

    def _plan(self, pages: Int64s, rows: RowRanges, dictionary: list[tuple[int, int]]) -> ChunkPlan:
        chunk = self._probe.chunk
        locations = self._locations[pages]
        directory = np.ascontiguousarray(np.concatenate([pages[:, None], locations[:, 1:]], axis=1), np.int64)
        ranges = dictionary + [(offset, size) for offset, size in locations[:, :2].tolist()]
        num_values = chunk.num_values if chunk.column.max_repetition_level else rows.count
        return chunk.of_rows(
            chunk.row_offset, rows.count, num_values, PageSelection(rows, ranges, directory, len(self._locations))
        )

    def _first_row(self, page: int) -> int | None:
        return self._rows[page] if page < len(self._rows) else None

    def _place(self, runs: list[_Run]) -> tuple[list[tuple[_Run, int]], RowRanges]:
        """Return the runs whose row numbers are certain, each with its first row, and the rows that are wholly in these runs."""
        num_rows = self._probe.chunk.num_rows
        has_row_counts = bool((self._locations[:, 3] >= 0).all())
        placed_runs: list[tuple[_Run, int]] = []
        intact: list[tuple[int, int]] = []
        for run in runs:
            row = self._row_of(run, has_row_counts, num_rows)
            end = placed_runs[-1][1] + placed_runs[-1][0].num_rows if placed_runs else 0
            if row is None or row < end or row + run.num_rows > num_rows:
                continue
            placed_runs.append((run, row))
            complete_rows = run.num_rows
            if not has_row_counts and row + complete_rows < num_rows:
                complete_rows -= 1      # the last row may continue in the lost page
            if complete_rows > 0:
                intact.append((row, row + complete_rows))
        return placed_runs, _ranges(intact, num_rows)

    def _row_of(self, run: _Run, has_row_counts: bool, num_rows: int) -> int | None:
        """Return a run's first row, or None if it is uncertain."""
        if run.first == 0:
            # if all pages decode, but their counts contradict the footer, no count is trusted
            return None if run.stop == len(self._locations) and not self._is_certain else 0
        if not self._is_certain:
            return None
        if has_row_counts:
            return self._first_row(run.first)
        # whether the last located page is the chunk's last page
        is_complete = int(self._locations[:, 2].sum()) == self._probe.chunk.metadata.num_values
        return num_rows - run.num_rows if run.stop == len(self._locations) and is_complete else None


def _ranges(parts: list[tuple[int, int]], num_rows: int) -> RowRanges:
    """Return RowRanges over num_rows rows from ascending parts. Parts may touch each other, or be empty."""
    bounds = np.array(parts, np.int64).reshape(-1, 2)
    return RowRanges(bounds[bounds[:, 0] < bounds[:, 1]], num_rows).merged(0)
