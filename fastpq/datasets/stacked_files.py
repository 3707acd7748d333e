"""StackedFiles: consecutive small files with one schema, whose columns are read together (``fastpq.read.stacked_columns``).

A stack is read whole, or not at all. If a file has changed, if a chunk needs another way of reading, or if bytes are damaged, the
files are read one after another. That read also raises the error for damaged bytes, with the file and the column.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastpq.api.file import ParquetFile
from fastpq.arrays.concat import concat_columns
from fastpq.arrays.table import AnyColumn, Table
from fastpq.common.progress import Meter
from fastpq.datasets.common_metadata import CommonMetadata
from fastpq.datasets.discovery import DataFile
from fastpq.datasets.joined_files import joined_bytes
from fastpq.datasets.opened_files import AllocationCounter, OpenedFiles
from fastpq.datasets.requested_columns import RequestedColumn
from fastpq.datasets.unify import DatasetField
from fastpq.errors import ParquetError
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import are_described_alike
from fastpq.read.costs import FEWEST_STACKED, ROWS_WORTH_CODES, is_plausible
from fastpq.read.opener import StringLayout
from fastpq.read.plan import planner_of
from fastpq.schema.parquet_schema import ColumnKey

if TYPE_CHECKING:
    from fastpq.read.stacked_columns import StackedColumns

KeysOf = Callable[[ParquetFile, Mapping[str, DatasetField], Mapping[str, RequestedColumn]], list[ColumnKey] | None]


@dataclass(frozen=True, slots=True)
class StackedFiles:
    """The stacks of small files in one read of a dataset.

    Attributes:
        open_files: the dataset's files.
        files: the same files, as they were listed.
        result_columns: the requested columns by name.
        keys_of: returns the keys by which the requested columns are read from a file.
        values: each file's partition values by column name.
        partition_names: names of the partition columns, which are not read from the files.
        strings: layout for variable-length values.
        common: the metadata that all files have in common.
    """

    open_files: OpenedFiles
    files: Sequence[DataFile]
    result_columns: Mapping[str, RequestedColumn]
    keys_of: KeysOf
    values: Sequence[Mapping[str, Any]]
    partition_names: Collection[str]
    strings: StringLayout
    common: CommonMetadata

    def tables(
        self,
        read_file: Callable[[int], list[Table]],
        rest_of: Callable[[Mapping[str, Any], Mapping[str, DatasetField]], Any],
        counter: AllocationCounter,
        meter: Meter,
    ) -> Iterator[list[Table]]:
        """Yield the requested rows of all files, in order.

        Args:
            read_file: returns the rows of one file, by its number, and counts them.
            rest_of: returns what a file's partition values and columns leave of the filters. True takes all rows.
            counter, meter: count the bytes and the rows of stacks.
        """
        rests: dict[tuple[int, int], Any] = {}      # by the ids of values and columns, which files share

        def takes_all_rows(number: int, own: Mapping[str, DatasetField]) -> bool:
            place = id(self.values[number]), id(own)
            if place not in rests:
                rests[place] = rest_of(self.values[number], own)
            return rests[place] is True

        for numbers, may_be_stack in self.parts(takes_all_rows):
            table = self.read(numbers) if may_be_stack else None
            if table is None:
                yield from self.open_files.each(read_file, numbers)
                continue
            counter.add(joined_bytes(table), len(numbers))
            meter.add(table.num_rows)
            yield [table]

    def parts(self, takes_all_rows: Callable[[int, Mapping[str, DatasetField]], bool]) -> Iterator[tuple[range, bool]]:
        """Yield ranges of file numbers, in order, and whether the files of a range may be a stack.

        Args:
            takes_all_rows: returns whether all rows of a file are requested, from its number and its columns.
        """
        start = stop = 0        # files that wait to be yielded, because they are read one after another
        while stop < len(self.files):
            end = self._end_of_stack(stop, takes_all_rows)
            if end - stop >= FEWEST_STACKED:
                if start < stop:
                    yield range(start, stop), False
                yield range(stop, end), True
                start = end
            stop = max(end, stop + 1)
        if start < stop:
            yield range(start, stop), False

    def _end_of_stack(self, start: int, takes_all_rows: Callable[[int, Mapping[str, DatasetField]], bool]) -> int:
        """Return the number behind the last file of the stack that begins with a file. This is ``start`` if there is none."""
        own, rows, stop = self.open_files.columns[start], self.open_files.rows, start
        if own is None or self.open_files.kept_footer(start) is None or not self._is_stored_as_requested(own):
            return start
        while stop < len(self.files) and self.open_files.columns[stop] is own and 0 < rows[stop] < ROWS_WORTH_CODES:
            if self.open_files.kept_footer(stop) is None or not takes_all_rows(stop, own):
                break
            stop += 1
        return stop

    def _is_stored_as_requested(self, own: Mapping[str, DatasetField]) -> bool:
        """Return whether the requested columns have the types of a file's columns, so that no value is converted."""
        requested = ((name, column) for name, column in self.result_columns.items() if name in own)
        return all(column.places is None and column.field == own[name] for name, column in requested)

    def read(self, numbers: range) -> Table | None:
        """Return the rows of a stack with all result columns, and with the first file's metadata and Arrow fields.

        Return None if the files have to be read one after another.

        Args:
            numbers: numbers of the files.
        """
        rows = sum(self.open_files.rows[number] for number in numbers)
        with self.open_files.with_columns(numbers[0]) as (first, own):
            try:
                table = self._read(first, self.keys_of(first, own, self.result_columns), numbers, rows)
            except ParquetError:
                return None
            if table is None:
                return None
            is_stored = {name: name in own and name not in self.partition_names for name in self.result_columns}
        pairs = [
            (name, table[name] if is_stored[name] else self._in_all_files(name, numbers)) for name in self.result_columns
        ]
        whole = Table._made(pairs, rows)
        whole.metadata = self.common.added_to(table.metadata)
        return whole

    def _read(self, first: ParquetFile, keys: list[ColumnKey] | None, numbers: range, rows: int) -> Table | None:
        """Return the stored columns of a stack, or None if they cannot be read together."""
        from fastpq.read.stacked_columns import StackedColumns

        leaves = list(first.schema.columns) if keys is None else first.schema.select(keys)
        opener = first._file.opener(leaves)
        columns = StackedColumns(opener, leaves, rows)
        if not leaves or not columns.is_possible or not is_plausible(columns.size, first._file.source.size * len(numbers)):
            return None
        with opener.allowance.reserved(columns.size):
            columns.allocate()
            if not self._read_files(columns, numbers, first, rows):
                return None
        pairs = [(leaf.top.element.name, column) for leaf, column in zip(leaves, columns.finish(), strict=True)]
        return first._stored_fields.restored(Table._made([*pairs], rows), leaves, first._file)

    def _read_files(self, columns: StackedColumns, numbers: range, first: ParquetFile, rows: int) -> bool:
        """Decode all files. Return False if a file has changed, has to be read in another way, or has other rows than noted."""
        row, properties = 0, first._file.properties
        for number in numbers:
            metadata = self.open_files.kept_footer(number)
            with open_source(self.files[number].where, properties=properties) as source:
                if metadata is None or not self.open_files.is_unchanged(number, source):
                    return False
                if not are_described_alike(metadata, first.metadata):
                    return False
                groups = []
                for index, count in enumerate(metadata.row_counts):
                    if count > 0:
                        groups.append((index, count, row))
                        row += count
                if row > rows or not columns.read(planner_of(metadata, groups, source.size), source):
                    return False
        return row == rows

    def _in_all_files(self, name: str, numbers: range) -> AnyColumn:
        """Return a column that has one value in each file: a partition column, or one that the files lack."""
        field = self.result_columns[name].field
        parts = [
            field.of_value(value, sum(self.open_files.rows[number] for number in same), self.strings)
            for value, same in itertools.groupby(numbers, lambda number: self.values[number].get(name))
        ]
        return concat_columns(parts, name)
