"""Survey of a damaged column chunk: the rows still readable, and the errors of the others.

Pages are located by the OffsetIndex or, without one, by walking page headers up to the first broken header. Runs of pages are
decoded on trial. An undecodable page is lost, and the next run begins behind the page. A run gets row numbers only if its place
is certain: values in a wrong row are worse than lost values.
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
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import ALWAYS_PLAUSIBLE, PLAUSIBLE_EXPANSION
from fastpq.read.fetch import fetch_chunks
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import PageSelection
from fastpq.read.scan import check_plausible
from fastpq.schema.shape import LeafShape

UNKNOWN = -1        # a number of rows or values not given by a page header
EVERY_ROW = int(np.iinfo(np.int64).max)     # a bound above any row number


def is_damage(error: ParquetError) -> bool:
    """Whether an error may come from damaged bytes, not from a missing key, a policy, a wrong request or the bound of memory."""
    return isinstance(error, TagVerificationError) or not isinstance(error, AllocationError | CryptoError | SchemaError)


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSurvey:
    """Readable rows of a column chunk.

    Attributes:
        intact: readable rows of the row group.
        plan: read plan of all readable pages, without a choice of rows; None without a readable page.
        broken: errors of unreadable pages, each with the first row of its page in ascending order; errors of unknown row (None)
            come last.
    """

    intact: RowRanges
    plan: ChunkPlan | None
    broken: tuple[tuple[int | None, ParquetError], ...] = ()

    def rows(self, wanted: RowRanges) -> ChunkPlan:
        """A read plan for intact rows of the chunk."""
        assert self.plan is not None
        if self.plan.pages is None:
            kept = None if wanted.is_every else wanted
        else:
            kept = wanted.within(self.plan.pages.rows)
        return self.plan.keeping(kept, wanted.count)

    def reason(self, start: int, stop: int) -> str:
        """Error behind the loss of a range of rows."""

        def row_of(each: tuple[int | None, ParquetError]) -> int:
            return EVERY_ROW if each[0] is None else each[0]

        first = bisect_left(self.broken, start, key=row_of)
        if first == len(self.broken) or row_of(self.broken[first]) >= stop:
            first = bisect_left(self.broken, EVERY_ROW, key=row_of)
        return str(self.broken[first][1])


def survey_chunk(opener: ChunkOpener, chunk: ChunkPlan, leaf: LeafShape | None, offset_index: OffsetIndex | None) -> ChunkSurvey:
    """Find the readable rows of a chunk, by decoding the whole chunk, then parts of the chunk if the whole fails.

    Args:
        opener: opener of the file's chunks.
        chunk: read plan of the whole chunk.
        leaf: shape of the leaf within its nested column; None for a flat column.
        offset_index: checked OffsetIndex of the chunk; None if unknown.
    """
    probe = Probe(opener, chunk, leaf)
    try:
        probe.whole()
    except ParquetError as error:
        if not is_damage(error):
            raise
        return _Pages.of(probe, offset_index, error).survey()
    return ChunkSurvey(RowRanges.every(chunk.num_rows), chunk)


class Probe:
    """Trial decoding of a chunk's pages; decoded values are discarded."""

    def __init__(self, opener: ChunkOpener, chunk: ChunkPlan, leaf: LeafShape | None) -> None:
        self.opener = opener
        self.chunk = chunk
        self._leaf = leaf
        self._width = opener.layout(chunk.column).width

    def whole(self) -> None:
        """Decode the whole chunk; raises if decoding fails or finds another number of rows than the footer."""
        check_plausible(self.opener, self.chunk, lambda: fetch_chunks(self.opener.source, [self.chunk])[0])
        found = self.rows(self.chunk)
        if found != self.chunk.num_rows:
            raise FormatError(f"the chunk has {found} rows in a row group of {self.chunk.num_rows}")

    def part(self, plan: ChunkPlan) -> int:
        """Decode some pages; returns their number of rows. Refuses more values than the pages' bytes can plausibly hold."""
        self._check_claim(plan)
        return self.rows(plan)

    def _check_claim(self, plan: ChunkPlan) -> None:
        """Refuse rows too many for the bytes of their pages, before memory is allocated.

        Raises:
            FormatError: implausibly many rows.
        """
        assert plan.pages is not None
        if self._leaf is None and plan.num_rows * self._width > max(
            ALWAYS_PLAUSIBLE, plan.pages.num_bytes * PLAUSIBLE_EXPANSION
        ):
            raise FormatError(f"{plan.num_rows} rows in {plan.pages.num_bytes} bytes of a damaged chunk")

    def rows(self, plan: ChunkPlan) -> int:
        """Decode a plan; returns the number of rows."""
        return self._decode(plan)[0]

    def page(self, plan: ChunkPlan) -> int:
        """Decode one page as if it belonged to the column of the plan; returns the number of rows.

        Raises:
            FormatError: the page holds no values of the column, or further bytes behind the values.
        """
        self._check_claim(plan)
        num_rows, left_over = self._decode(plan)
        if left_over:
            raise FormatError(f"{left_over} bytes behind the values of a page")
        return num_rows

    def _decode(self, plan: ChunkPlan) -> tuple[int, int]:
        """Number of decoded rows of a plan, and number of unused bytes in the last page."""
        [stored] = fetch_chunks(self.opener.source, [plan])
        if self._leaf is None:
            output = ColumnOutput(plan.num_rows, self._width, plan.column.nullable)
            flat = self.opener.flat(plan, stored)
            flat.read_ranges(output, 0, np.array([[0, plan.num_rows]], np.int64))
            return plan.num_rows, flat.left_over()
        nested = self.opener.nested(plan, stored)
        num_rows = nested.read_rows(NestedOutput(self._leaf, self._width), EVERY_ROW)
        return num_rows, nested.left_over()


@dataclass(frozen=True, slots=True)
class _Run:
    """Pages first to stop - 1, decodable in succession, and the number of rows starting in the run."""

    first: int
    stop: int
    num_rows: int


class _Pages:
    """The data pages of a chunk, tried in runs.

    Args:
        probe: trial decoder of the chunk.
        located: shape (pages, 4), int64: offset in the file, stored size, values and rows (-1 if unknown).
        is_certain: whether pages behind a lost page have certain row numbers, from the counts in page headers or OffsetIndex.
        error: error of decoding all pages.
    """

    def __init__(self, probe: Probe, located: Int64s, is_certain: bool, error: ParquetError) -> None:
        self._probe = probe
        self._located = located
        # first row of each page, and the end of the last page, up to the first page with an unknown number of rows
        known = located[:, 3] if (located[:, 3] >= 0).all() else located[: int(np.argmin(located[:, 3] >= 0)), 3]
        self._rows = np.concatenate([[0], np.cumsum(known)]).tolist()
        self._is_certain = is_certain
        self._error = error

    @classmethod
    def of(cls, probe: Probe, offset_index: OffsetIndex | None, error: ParquetError) -> _Pages:
        """Pages of an OffsetIndex, or else of a walk over the page headers."""
        chunk = probe.chunk
        repeated = chunk.column.max_repetition_level > 0
        if offset_index is not None:
            counts = offset_index.row_counts
            values = np.full_like(counts, UNKNOWN) if repeated else counts
            located = np.stack([offset_index.offsets, offset_index.sizes, values, counts], axis=1)
            return cls(probe, located, True, error)
        [stored] = fetch_chunks(probe.opener.source, [chunk])
        located, stopped = probe.opener.pages(chunk, stored).locate_pages(chunk.metadata.num_values)
        claimed, size = chunk.metadata.num_values, chunk.metadata.total_compressed_size
        located = located[located[:, 0] < size]     # pages behind the chunk's size belong to the next chunk
        found = int(located[:, 2].sum())
        is_complete = stopped is None or (len(located) > 0 and int(located[-1, 0] + located[-1, 1]) >= size)
        # if the headers' counts contradict the footer, any of the counts may be wrong
        is_certain = found == claimed if is_complete else found <= claimed
        located[:, 0] += chunk.start
        if not repeated:
            located[:, 3] = located[:, 2]
        return cls(probe, located, is_certain, stopped or error)

    def survey(self) -> ChunkSurvey:
        chunk = self._probe.chunk
        first = int(self._located[0, 0]) if len(self._located) else chunk.start
        dictionary = [(chunk.start, first - chunk.start)] if first > chunk.start else []
        runs, broken = self._runs(dictionary)
        if dictionary and not runs:
            dictionary = []     # pages without dictionary encoding may be intact
            runs, _ = self._runs(dictionary)
        placed, intact = self._placed(runs)
        known = [*((self._first_row(page), error) for page, error in broken), (None, self._error)]
        if not placed:
            return ChunkSurvey(RowRanges.none(chunk.num_rows), None, tuple(known))
        covered = _ranges([(row, row + run.num_rows) for run, row in placed], chunk.num_rows)
        pages = np.concatenate([np.arange(run.first, run.stop) for run, _ in placed])
        plan = self._plan(pages, covered, dictionary)
        return ChunkSurvey(intact, plan, tuple(known))

    def _runs(self, dictionary: list[tuple[int, int]]) -> tuple[list[_Run], list[tuple[int, ParquetError]]]:
        """The longest runs of decodable pages, and the broken pages between runs with their errors."""
        runs: list[_Run] = []
        broken: list[tuple[int, ParquetError]] = []
        count, first = len(self._located), 0
        while first < count:
            good, bad, num_rows, reason = first, count + 1, 0, None
            while bad - good > 1:       # double the run while decoding succeeds, then bisect
                stop = (good + bad) // 2 if reason else min(count, max(first + 1, 2 * good - first))
                found = self._try(first, stop, dictionary)
                if isinstance(found, int):
                    good, num_rows = stop, found
                else:
                    bad, reason = stop, found
            if good > first:
                runs.append(_Run(first, good, num_rows))
            if reason is not None:
                broken.append((good, reason))
            first = good + 1
        return runs, broken

    def _try(self, first: int, stop: int, dictionary: list[tuple[int, int]]) -> int | ParquetError:
        """Number of rows of pages first to stop - 1, or the error of decoding them in succession."""
        counts = self._located[first:stop, 3]
        num_rows = int(counts.sum()) if (counts >= 0).all() else self._probe.chunk.num_rows
        if num_rows > self._probe.chunk.num_rows:
            return FormatError(f"pages of {num_rows} rows in a row group of {self._probe.chunk.num_rows}")
        try:
            return self._probe.part(self._plan(np.arange(first, stop), RowRanges.every(num_rows), dictionary))
        except ParquetError as error:
            if not is_damage(error):
                raise
            return error

    def _plan(self, pages: Int64s, rows: RowRanges, dictionary: list[tuple[int, int]]) -> ChunkPlan:
        chunk = self._probe.chunk
        located = self._located[pages]
        directory = np.ascontiguousarray(np.concatenate([pages[:, None], located[:, 1:]], axis=1), np.int64)
        ranges = dictionary + [(offset, size) for offset, size in located[:, :2].tolist()]
        num_values = chunk.num_values if chunk.column.max_repetition_level else rows.count
        return chunk.of_rows(
            chunk.row_offset, rows.count, num_values, PageSelection(rows, ranges, directory, len(self._located))
        )

    def _first_row(self, page: int) -> int | None:
        return self._rows[page] if page < len(self._rows) else None

    def _placed(self, runs: list[_Run]) -> tuple[list[tuple[_Run, int]], RowRanges]:
        """Runs of certain place, each with its first row, and the complete rows of these runs."""
        num_rows = self._probe.chunk.num_rows
        rows_known = bool((self._located[:, 3] >= 0).all())
        placed: list[tuple[_Run, int]] = []
        intact: list[tuple[int, int]] = []
        for run in runs:
            row = self._row_of(run, rows_known, num_rows)
            end = placed[-1][1] + placed[-1][0].num_rows if placed else 0
            if row is None or row < end or row + run.num_rows > num_rows:
                continue
            placed.append((run, row))
            whole = run.num_rows
            if not rows_known and row + whole < num_rows:
                whole -= 1      # the last row may continue in the lost page
            if whole > 0:
                intact.append((row, row + whole))
        return placed, _ranges(intact, num_rows)

    def _row_of(self, run: _Run, rows_known: bool, num_rows: int) -> int | None:
        """First row of a run; None if uncertain."""
        if run.first == 0:
            # all pages decode, yet their counts contradict the footer: no count is trusted
            return None if run.stop == len(self._located) and not self._is_certain else 0
        if not self._is_certain:
            return None
        if rows_known:
            return self._first_row(run.first)
        return num_rows - run.num_rows if run.stop == len(self._located) and self._ends_chunk() else None

    def _ends_chunk(self) -> bool:
        """Whether the last located page is the last page of the chunk."""
        return int(self._located[:, 2].sum()) == self._probe.chunk.metadata.num_values


def _ranges(parts: list[tuple[int, int]], num_rows: int) -> RowRanges:
    """RowRanges of num_rows rows from ascending parts; parts may touch or be empty."""
    bounds = np.array(parts, np.int64).reshape(-1, 2)
    return RowRanges(bounds[bounds[:, 0] < bounds[:, 1]], num_rows).merged(0)
