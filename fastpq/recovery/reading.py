"""Reads of damaged files with a footer: unreadable values become null, or their rows are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fastpq.arrays.concat import concat_columns
from fastpq.arrays.table import AnyColumn, Table
from fastpq.column.layout import OutsideUnitError
from fastpq.common.progress import Meter, Progress
from fastpq.convert.nulls import null_column
from fastpq.errors import FormatError, ParquetError, SchemaError
from fastpq.filters.filtering import mask_of
from fastpq.filters.predicate import Predicate, leaves
from fastpq.index.page_index import ChunkIndexes, IndexRequest, OffsetIndex, read_page_indexes
from fastpq.index.ranges import Flags, Int64s, RowRanges
from fastpq.options import OnError
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import ALWAYS_PLAUSIBLE, PLAUSIBLE_EXPANSION
from fastpq.read.file_reader import FileReader, OpenFile, Wanted
from fastpq.read.plan import ColumnPlan, ReadPlan, plan_read
from fastpq.read.scan import Scan
from fastpq.read.selective import SelectiveScan
from fastpq.recovery.losses import Loss
from fastpq.recovery.survey import ChunkSurvey, is_damage, survey_chunk
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode
from fastpq.schema.shape import LeafShape, shape_of


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The intact rows of a column in one row group, and a column of the intact rows among the requested rows."""

    intact: RowRanges
    column: AnyColumn


class RecoveringReader:
    """Reads rows of a damaged file.

    A column chunk is read whole if possible; otherwise the chunk is surveyed for readable pages. A row of a nested column is lost
    if any requested leaf of the row is lost. Statistics and page indexes are ignored, except for the offsets of pages.

    Args:
        file: the open file.
        on_error: ``"null"`` makes lost values null; ``"skip"`` leaves out rows with lost values.
        lost: called with each loss.
    """

    def __init__(self, file: OpenFile, on_error: OnError, lost: Callable[[Loss], None]) -> None:
        self._metadata = file.metadata
        self._threads = file.threads
        self._file = file
        self._on_error = on_error
        self._lost = lost

    @cached_property
    def _scan(self) -> Scan:
        """The scan of the present read."""
        return self._new_scan()

    def _new_scan(self) -> Scan:
        return Scan(self._file.opener(self._metadata.schema.columns))

    def read(self, wanted: Wanted, out: Mapping[str, Any] | None, progress: Progress | None) -> Table:
        """Readable rows among the wanted rows, filtered by the predicate; rows with lost values in the predicate are left out."""
        if out is not None:
            raise SchemaError("out with on_error: the number of rows and nulls is not known before they are read")
        tables = [table for table, _ in self._tables(wanted, progress)]
        return Table.concat(tables) if tables else self._empty(wanted)

    def take(self, wanted: Wanted, rows: Int64s) -> Table:
        """Rows by number in the file, in the given order and multiplicity; with "skip", rows with lost values are left out."""
        found = [*self._tables(wanted)]
        if not found:
            return self._empty(wanted)
        table, numbers = Table.concat([table for table, _ in found]), np.concatenate([kept for _, kept in found])
        places = np.searchsorted(numbers, rows[np.isin(rows, numbers)])
        return table._of((column.take(places) for column in table.columns), len(places))

    def batches(self, wanted: Wanted, batch_size: int, progress: Progress | None) -> Iterator[Table]:
        """Rows of ``read`` in Tables of batch_size rows; only the last Table may be shorter."""
        return _rebatched(self._tables(wanted, progress), batch_size)

    def count(self, wanted: Wanted) -> int:
        """Number of rows in the result of ``read``."""
        return self.read(wanted, None, None).num_rows

    def selective(self, wanted: Wanted) -> SelectiveScan:
        """The scan of FileReader, as if the file were sound, for ``explain``."""
        return FileReader(self._file).selective(wanted)

    def _empty(self, wanted: Wanted) -> Table:
        return self._scan.read(self._plan(wanted.columns, ()), self._threads)

    def _tables(self, wanted: Wanted, progress: Progress | None = None) -> Iterator[tuple[Table, Int64s]]:
        """Tables of ``read``, one for each row group, each with the numbers of its rows in the file.

        Raises:
            KeyAccessError: no key for a column.
            FormatError: a row group with a negative number of rows, or lost rows in a number implausible for the file's size.
        """
        self._scan = self._new_scan()       # each read has an allowance of its own
        columns, predicate = wanted.columns, wanted.predicate
        filtered = [] if predicate is None else [leaf.column for leaf in leaves(predicate)]
        every = list({column.index: column for column in [*filtered, *columns]}.values())
        starts = self._metadata.first_rows
        nodes = [output.node for output in self._plan(columns, ()).columns]
        sizes = np.diff(starts).tolist()
        chosen = [(group, RowRanges.every(sizes[group]) if rows is None else rows) for group, rows in wanted.groups]
        meter = Meter(progress, sum(asked.count for _, asked in chosen))
        for group, asked in chosen:
            if not asked.count:
                continue
            parts = {
                output.node: self._part(output, group, asked, int(starts[group]))
                for output in self._plan(every, ()).columns
            }
            kept = self._kept(parts, asked, predicate, filtered)
            found = [(node.element.name, self._fitted(parts[node], kept, asked)) for node in nodes]
            table = Table(found, num_rows=kept.count)
            meter.add(asked.count)
            yield table, kept.rows() + starts[group]
        meter.finish()

    def _plan(self, columns: Sequence[ColumnDescriptor], row_groups: Sequence[int]) -> ReadPlan:
        return plan_read(self._metadata, columns, row_groups, self._file.source.size)

    def _kept(
        self,
        parts: dict[SchemaNode, _Part],
        asked: RowRanges,
        predicate: Predicate | None,
        filtered: Sequence[ColumnDescriptor],
    ) -> RowRanges:
        """Rows of a row group in the result."""
        kept = asked
        needed = list(parts) if self._on_error == "skip" else [column.top for column in filtered]
        for node in needed:
            kept &= parts[node].intact
        if predicate is not None:
            columns = {
                column.index: self._fitted(parts[column.top], kept, asked).leaf(column.path[1:]) for column in filtered
            }
            mask: Flags = mask_of(predicate, lambda leaf: columns[leaf.column.index])
            kept = kept.select(mask)
        return kept

    def _fitted(self, part: _Part, kept: RowRanges, asked: RowRanges) -> AnyColumn:
        """A column of the kept rows; null in lost rows."""
        held = part.intact & asked
        if held == kept:
            return part.column
        there = held.contain(kept.rows())
        places = np.full(kept.count, len(part.column), np.int64)
        places[there] = np.searchsorted(held.rows(), kept.rows()[there])
        if there.all():
            return part.column.take(places)
        return concat_columns([part.column, null_column(part.column.type, 1)], "").take(places)._with(nullable=True)

    # ---- one column of one row group

    def _part(self, output: ColumnPlan, group: int, asked: RowRanges, start: int) -> _Part:
        columns = [leaf for leaf, _ in output.leaves]
        try:
            whole = self._plan(columns, [group])
            (column,) = self._scan.columns([(self._chosen(whole.columns[0], asked), asked.count)], self._threads)
            return _Part(RowRanges.every(asked.num_rows), column)
        except ParquetError as error:
            if not is_damage(error):
                raise
            self._check_unit(error)
        surveys = [self._survey(output, leaf, group, asked.num_rows) for leaf in columns]
        intact = RowRanges.every(asked.num_rows)
        for survey in surveys:
            intact &= survey.intact
            for _, reason in survey.broken:
                self._check_unit(reason)
        for leaf, survey in zip(columns, surveys, strict=True):
            for first, stop in ~survey.intact & asked:
                self._lost(Loss(group, leaf.name, start + first, start + stop, survey.reason(first, stop)))
        rows = intact & asked
        if not rows.count:
            self._check_claim(output, group, asked.count)
            return _Part(RowRanges.none(asked.num_rows), self._nothing(columns))
        leaves_ = [(leaf, [survey.rows(rows)]) for leaf, survey in zip(columns, surveys, strict=True)]
        try:
            (column,) = self._scan.columns([(ColumnPlan(output.node, leaves_), rows.count)], self._threads)
        except FormatError as error:        # intact leaves disagree about the levels of their common parents
            for leaf in columns:
                for first, stop in rows:
                    self._lost(Loss(group, leaf.name, start + first, start + stop, str(error)))
            return _Part(RowRanges.none(asked.num_rows), self._nothing(columns))
        return _Part(intact, column)

    def _check_unit(self, error: ParquetError) -> None:
        """Raise the error of an INT96 value out of range where the unit follows the values: the value is not lost."""
        if isinstance(error, OutsideUnitError) and self._file.int96_unit == "auto":
            raise error

    @staticmethod
    def _chosen(column: ColumnPlan, rows: RowRanges) -> ColumnPlan:
        """A plan for chosen rows of a column, over all pages."""
        if rows.is_every:
            return column
        leaves_ = [
            (leaf, [chunk.keeping(rows, rows.count) for chunk in chunks]) for leaf, chunks in column.leaves
        ]
        return ColumnPlan(column.node, leaves_)

    def _nothing(self, columns: Sequence[ColumnDescriptor]) -> AnyColumn:
        (column,) = self._scan.columns([(self._plan(columns, ()).columns[0], 0)], 1)
        return column

    def _survey(self, output: ColumnPlan, leaf: ColumnDescriptor, group: int, num_rows: int) -> ChunkSurvey:
        try:
            (chunk,) = self._plan([leaf], [group]).chunks
            in_shape = None if leaf.is_flat else self._leaf(output, leaf)
            return survey_chunk(self._scan.opener, chunk, in_shape, self._offset_index(chunk))
        except ParquetError as error:
            if not is_damage(error):
                raise
            return ChunkSurvey(RowRanges.none(num_rows), None, ((None, error),))

    def _leaf(self, output: ColumnPlan, leaf: ColumnDescriptor) -> LeafShape:
        shape = shape_of(output.node, [column.index for column, _ in output.leaves], self._scan.opener.types)
        return next(each for each in shape.leaves if each.column.index == leaf.index)

    def _offset_index(self, chunk: ChunkPlan) -> OffsetIndex | None:
        """The OffsetIndex of a chunk; None if missing or damaged."""
        metadata = chunk.metadata
        cipher = self._metadata.decryptor.chunk_cipher(metadata.chunk, metadata.row_group_ordinal, chunk.column.index)
        request = IndexRequest(chunk.column, metadata, chunk.num_rows, cipher, column_index=False)
        try:
            (found,) = read_page_indexes(self._file.source, [request])
        except ParquetError as error:
            if not is_damage(error):
                raise
            return None
        return found.offset_index if isinstance(found, ChunkIndexes) else None

    def _check_claim(self, output: ColumnPlan, group: int, num_rows: int) -> None:
        """Refuse to return null rows in an implausible number: the number comes from the footer of a damaged file alone."""
        width = sum(self._scan.opener.layout(leaf).width for leaf, _ in output.leaves)
        if self._on_error == "null" and num_rows * width > max(
            ALWAYS_PLAUSIBLE, self._file.source.size * PLAUSIBLE_EXPANSION
        ):
            raise FormatError(f"{num_rows} rows that are lost, or were never there", row_group=group, column=output.name)


def _rebatched(tables: Iterable[tuple[Table, Int64s]], batch_size: int) -> Iterator[Table]:
    """Tables of ``RecoveringReader._tables`` regrouped to batch_size rows; only the last Table may be shorter."""
    waiting: list[Table] = []
    num_rows = 0
    for table, _ in tables:
        waiting.append(table)
        num_rows += table.num_rows
        if num_rows < batch_size:
            continue
        whole = Table.concat(waiting)
        full = whole.num_rows - whole.num_rows % batch_size
        for start in range(0, full, batch_size):
            yield whole.slice(start, start + batch_size)
        waiting, num_rows = [whole.slice(full)], num_rows - full
    if num_rows:
        yield Table.concat(waiting)
