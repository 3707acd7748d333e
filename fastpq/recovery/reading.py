"""Reads from damaged files that have a footer: unreadable values become null, or their rows are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fastpq.arrays.concat import concat_columns
from fastpq.arrays.table import AnyColumn, Table
from fastpq.common.progress import Meter, Progress
from fastpq.convert.nulls import null_column
from fastpq.errors import FormatError, ParquetError, SchemaError
from fastpq.filters.filtering import mask_of
from fastpq.filters.predicate import Predicate, leaves
from fastpq.index.page_index import ChunkIndexes, IndexRequest, OffsetIndex, read_page_indexes
from fastpq.index.ranges import Flags, Int64s, RowRanges
from fastpq.metadata.file_metadata import decryptor_of
from fastpq.options import OnError
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import is_plausible
from fastpq.read.file_reader import FileReader
from fastpq.read.filtered.filtered_scan import FilteredScan
from fastpq.read.int96 import joined_tables, with_units
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.read.plan import ColumnPlan, ReadPlan, plan_read
from fastpq.read.scan import Scan
from fastpq.recovery.losses import Loss
from fastpq.recovery.survey import ChunkSurvey, is_damage, survey_chunk
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode
from fastpq.schema.shape import LeafShape, shape_of


@dataclass(frozen=True, slots=True, eq=False)
class _ReadableColumn:
    """A column's intact rows in one row group, and a column with the requested rows among them."""

    intact: RowRanges
    column: AnyColumn


class RecoveringReader:
    """Reads rows from a damaged file.

    A column chunk is read as a whole if possible. Otherwise it is surveyed for readable pages. A row in a nested column is lost
    if the row is lost in any requested leaf. Statistics and page indexes are ignored, except for page offsets.

    Args:
        file: the open file.
        on_error: ``"null"`` makes lost values null. ``"skip"`` leaves out rows with lost values.
        report_loss: called with each loss.
    """

    def __init__(self, file: OpenFile, on_error: OnError, report_loss: Callable[[Loss], None]) -> None:
        self._metadata = file.metadata
        self._threads = file.threads
        self.file = file
        self._on_error = on_error
        self._report_loss = report_loss

    def with_units(self, request: ReadRequest, columns: Iterable[ColumnDescriptor]) -> tuple[RecoveringReader, ReadRequest]:
        """Return the reader and the request with units for some INT96 columns, as ``read.int96.with_units`` finds them."""
        file, request = with_units(self.file, request, columns, self.pieces)
        return RecoveringReader(file, self._on_error, self._report_loss), request

    @cached_property
    def _scan(self) -> Scan:
        """The current read's scan."""
        return self._new_scan()

    def _new_scan(self) -> Scan:
        return Scan(self.file.opener(self._metadata.schema.columns))

    def read(self, request: ReadRequest, out: Mapping[str, Any] | None, progress: Progress | None) -> Table:
        """Return the requested rows that are readable and match the predicate. Rows that lost a value it needs do not match."""
        if out is not None:
            raise SchemaError("out cannot be used with on_error: the number of rows and nulls is unknown before they are read")
        tables = [table for table, _ in self._tables(request, progress)]
        return joined_tables(tables) if tables else self._empty(request)

    def take(self, request: ReadRequest, rows: Int64s) -> Table:
        """Return rows by number in the file, in this order. A row may be repeated. "skip" leaves out rows with lost values."""
        tables = [*self._tables(request)]
        if not tables:
            return self._empty(request)
        table, numbers = joined_tables([table for table, _ in tables]), np.concatenate([numbers for _, numbers in tables])
        places = np.searchsorted(numbers, rows[np.isin(rows, numbers)])
        return table._of((column.take(places) for column in table.columns), len(places))

    def batches(self, request: ReadRequest, batch_size: int, progress: Progress | None) -> Iterator[Table]:
        """Yield the same rows as ``read`` in Tables with batch_size rows. Only the last Table may be shorter."""
        reader, request = self.with_units(request, [*request.columns, *request.filtered_columns])
        return _rebatch(reader._tables(request, progress), batch_size)

    def pieces(self, request: ReadRequest) -> Iterator[Table]:
        """Return the same rows as ``read`` in Tables of any length. INT96 timestamps have the finest unit that fits the Table."""
        return (table for table, _ in self._tables(request))

    def count(self, request: ReadRequest) -> int:
        """Return how many rows ``read`` returns."""
        return self.read(request, None, None).num_rows

    def selective(self, request: ReadRequest) -> FilteredScan:
        """Return the scan that FileReader would use if the file were sound, for ``explain``."""
        reader, request = self.with_units(request, request.filtered_columns)
        return FileReader(reader.file).selective(request)

    def _empty(self, request: ReadRequest) -> Table:
        return self._scan.read(self._plan(request.columns, ()), self._threads)

    def _tables(self, request: ReadRequest, progress: Progress | None = None) -> Iterator[tuple[Table, Int64s]]:
        """Yield one Table for each row group that ``read`` reads, with its rows' numbers in the file.

        Raises:
            KeyAccessError: there is no key for a column.
            FormatError: a row group has a negative row count, or the lost rows are implausibly many for the file's size.
        """
        if any(map(self.file.awaits_unit, request.filtered_columns)):
            reader, request = self.with_units(request, request.filtered_columns)
            yield from reader._tables(request, progress)
            return
        self._scan = self._new_scan()       # each read has its own allowance
        columns, predicate = request.columns, request.predicate
        filter_columns = [] if predicate is None else [leaf.column for leaf in leaves(predicate)]
        all_columns = list({column.index: column for column in [*filter_columns, *columns]}.values())
        starts = self._metadata.first_rows
        nodes = [output.node for output in self._plan(columns, ()).columns]
        sizes = np.diff(starts).tolist()
        rows_of_groups = [(group, RowRanges.every(sizes[group]) if rows is None else rows) for group, rows in request.groups]
        meter = Meter(progress, sum(rows.count for _, rows in rows_of_groups))
        for group, requested_rows in rows_of_groups:
            if not requested_rows.count:
                continue
            parts = {
                output.node: self._read_column(output, group, requested_rows, int(starts[group]))
                for output in self._plan(all_columns, ()).columns
            }
            selected_rows = self._select(parts, requested_rows, predicate, filter_columns)
            columns_by_name = [
                (node.element.name, self._fill_lost(parts[node], selected_rows, requested_rows)) for node in nodes
            ]
            table = Table(columns_by_name, num_rows=selected_rows.count)
            meter.add(requested_rows.count)
            yield table, selected_rows.rows() + starts[group]
        meter.finish()

    def _plan(self, columns: Sequence[ColumnDescriptor], row_groups: Sequence[int]) -> ReadPlan:
        return plan_read(self._metadata, columns, row_groups, self.file.source.size)

    def _select(
        self,
        parts: dict[SchemaNode, _ReadableColumn],
        requested_rows: RowRanges,
        predicate: Predicate | None,
        filter_columns: Sequence[ColumnDescriptor],
    ) -> RowRanges:
        """Return a row group's rows that the result has."""
        selected_rows = requested_rows
        required_nodes = list(parts) if self._on_error == "skip" else [column.top for column in filter_columns]
        for node in required_nodes:
            selected_rows &= parts[node].intact
        if predicate is not None:
            columns = {
                column.index: self._fill_lost(parts[column.top], selected_rows, requested_rows).leaf(column.path[1:])
                for column in filter_columns
            }
            mask: Flags = mask_of(predicate, lambda leaf: columns[leaf.column.index])
            selected_rows = selected_rows.select(mask)
        return selected_rows

    def _fill_lost(self, part: _ReadableColumn, selected_rows: RowRanges, requested_rows: RowRanges) -> AnyColumn:
        """Return a column with the selected rows. Lost rows are null."""
        readable_rows = part.intact & requested_rows
        if readable_rows == selected_rows:
            return part.column
        is_readable = readable_rows.contain(selected_rows.rows())
        places = np.full(selected_rows.count, len(part.column), np.int64)
        places[is_readable] = np.searchsorted(readable_rows.rows(), selected_rows.rows()[is_readable])
        if is_readable.all():
            return part.column.take(places)
        return concat_columns([part.column, null_column(part.column.type, 1)], "").take(places)._with(nullable=True)

    # ---- one column in one row group

    def _read_column(self, output: ColumnPlan, group: int, requested_rows: RowRanges, start: int) -> _ReadableColumn:
        columns = [leaf for leaf, _ in output.leaves]
        try:
            plan = self._plan(columns, [group])
            (column,) = self._scan.columns(
                [(self._choose_rows(plan.columns[0], requested_rows), requested_rows.count)], self._threads
            )
            return _ReadableColumn(RowRanges.every(requested_rows.num_rows), column)
        except ParquetError as error:
            if not is_damage(error):
                raise
        surveys = [self._survey(output, leaf, group, requested_rows.num_rows) for leaf in columns]
        intact = RowRanges.every(requested_rows.num_rows)
        for survey in surveys:
            intact &= survey.intact
        for leaf, survey in zip(columns, surveys, strict=True):
            for first, stop in ~survey.intact & requested_rows:
                self._report_loss(Loss(group, leaf.name, start + first, start + stop, survey.reason(first, stop)))
        rows = intact & requested_rows
        if not rows.count:
            self._check_claim(output, group, requested_rows.count)
            return _ReadableColumn(RowRanges.none(requested_rows.num_rows), self._read_no_rows(columns))
        leaf_plans = [(leaf, [survey.plan_rows(rows)]) for leaf, survey in zip(columns, surveys, strict=True)]
        try:
            (column,) = self._scan.columns([(ColumnPlan(output.node, leaf_plans), rows.count)], self._threads)
        except FormatError as error:        # intact leaves disagree about the levels of the parents that they share
            for leaf in columns:
                for first, stop in rows:
                    self._report_loss(Loss(group, leaf.name, start + first, start + stop, str(error)))
            return _ReadableColumn(RowRanges.none(requested_rows.num_rows), self._read_no_rows(columns))
        return _ReadableColumn(intact, column)

    @staticmethod
    def _choose_rows(column: ColumnPlan, rows: RowRanges) -> ColumnPlan:
        """Return a column's read plan for some rows, over all pages."""
        if rows.is_every:
            return column
        leaf_plans = [
            (leaf, [chunk.keeping(rows, rows.count) for chunk in chunks]) for leaf, chunks in column.leaves
        ]
        return ColumnPlan(column.node, leaf_plans)

    def _read_no_rows(self, columns: Sequence[ColumnDescriptor]) -> AnyColumn:
        (column,) = self._scan.columns([(self._plan(columns, ()).columns[0], 0)], 1)
        return column

    def _survey(self, output: ColumnPlan, leaf: ColumnDescriptor, group: int, num_rows: int) -> ChunkSurvey:
        try:
            (chunk,) = self._plan([leaf], [group]).chunks
            leaf_shape = None if leaf.is_flat else self._leaf(output, leaf)
            return survey_chunk(self._scan.opener, chunk, leaf_shape, self._offset_index(chunk))
        except ParquetError as error:
            if not is_damage(error):
                raise
            return ChunkSurvey(RowRanges.none(num_rows), None, ((None, error),))

    def _leaf(self, output: ColumnPlan, leaf: ColumnDescriptor) -> LeafShape:
        shape = shape_of(output.node, [column.index for column, _ in output.leaves], self._scan.opener.types)
        return next(each for each in shape.leaves if each.column.index == leaf.index)

    def _offset_index(self, chunk: ChunkPlan) -> OffsetIndex | None:
        """Return a chunk's OffsetIndex, or None if it is missing or damaged."""
        metadata = chunk.metadata
        cipher = decryptor_of(self._metadata).chunk_cipher(metadata.chunk, metadata.row_group_ordinal, chunk.column.index)
        index_request = IndexRequest(chunk.column, metadata, chunk.num_rows, cipher, column_index=False)
        try:
            (indexes,) = read_page_indexes(self.file.source, [index_request])
        except ParquetError as error:
            if not is_damage(error):
                raise
            return None
        return indexes.offset_index if isinstance(indexes, ChunkIndexes) else None

    def _check_claim(self, output: ColumnPlan, group: int, num_rows: int) -> None:
        """Refuse implausibly many null rows. Their number comes only from a damaged file's footer."""
        width = sum(self._scan.opener.layout(leaf).width for leaf, _ in output.leaves)
        if self._on_error == "null" and not is_plausible(num_rows * width, self.file.source.size):
            raise FormatError(f"{num_rows} rows that are lost, or were never there", row_group=group, column=output.name)


def _rebatch(tables: Iterable[tuple[Table, Int64s]], batch_size: int) -> Iterator[Table]:
    """Regroup the Tables from ``RecoveringReader._tables`` to batch_size rows. Only the last Table may be shorter."""
    pending: list[Table] = []
    num_rows = 0
    for table, _ in tables:
        pending.append(table)
        num_rows += table.num_rows
        if num_rows < batch_size:
            continue
        joined_table = Table.concat(pending)
        stop = joined_table.num_rows - joined_table.num_rows % batch_size
        for start in range(0, stop, batch_size):
            yield joined_table.slice(start, start + batch_size)
        pending, num_rows = [joined_table.slice(stop)], num_rows - stop
    if num_rows:
        yield Table.concat(pending)
