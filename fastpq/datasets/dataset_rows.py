"""DatasetRows: the first, the last and chosen rows of a dataset; tables joined to batches across files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastpq.api.file import DEFAULT_BATCH_SIZE
from fastpq.arrays.table import VIEW_DTYPE, AnyColumn, CodedViews, Column, ListColumn, Table
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Progress
from fastpq.datasets.dataset_answers import DatasetAnswers, Member, Units
from fastpq.datasets.opened_files import Taken
from fastpq.read import rows
from fastpq.read.int96 import units_of

if TYPE_CHECKING:
    import pandas

    from fastpq.datasets.common_metadata import CommonMetadata
    from fastpq.index.ranges import Int64s
    from fastpq.options import ReaderProperties
    from fastpq.read.opener import StringLayout
else:       # types of annotations, found by typing.get_type_hints
    pandas = LazyModule("pandas")

LEAST_BATCH = 4096      # rows read for a head or a tail, however few are wanted


class DatasetRows(DatasetAnswers):
    """The base class of ParquetDataset: some of its rows, and all as a DataFrame."""

    if TYPE_CHECKING:       # set by ParquetDataset
        _options: dict[str, Any]
        _strings: StringLayout
        _properties: ReaderProperties
        _common: CommonMetadata

        def read(self, columns: Any = None, *, filters: Any = None, progress: Progress | None = None) -> Table: ...
        def _completed(self, table: Table, names: list[str], number: int, units: Units) -> Table: ...
        def _nothing(self, names: list[str]) -> Table: ...
        def _units_of_batches(self, names: list[str], filters: Any) -> Units: ...

    def head(self, n: int, columns: Iterable[str] | None = None, *, filters: Any = None) -> Table:
        """The first rows; files behind these rows are not read.

        Args:
            n: number of rows; a dataset with fewer gives all.
            columns: as for ``read``.
            filters: as for ``read``; the first rows that match.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        return self._end(rows.number_of_rows("n", n), self._chosen(columns), filters, is_head=True)

    def tail(self, n: int, columns: Iterable[str] | None = None, *, filters: Any = None) -> Table:
        """The last rows; files before these rows are not read.

        Args:
            n: number of rows; a dataset with fewer gives all.
            columns: as for ``read``.
            filters: as for ``read``; the last rows that match.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        return self._end(rows.number_of_rows("n", n), self._chosen(columns), filters, is_head=False)

    def take(self, indices: Any, columns: Iterable[str] | None = None) -> Table:
        """Read rows by their numbers, in any order and with repetitions, as numpy.take; files without such a row are not read.

        Args:
            indices: whole numbers, shape (n,), counted through all files in reading order; negative ones count from the end.
            columns: as for ``read``.

        Returns:
            A Table of n rows, in the order of the indices.

        Raises:
            SchemaError: a row outside the dataset.
            TypeError: indices other than whole numbers.
            ParquetError: as ``read``.
        """
        names, num_rows = self._chosen(columns), self.num_rows
        chosen = rows.check_indices(indices, num_rows, "dataset")
        wanted = np.unique(chosen)
        parts, found = self._rows_of_files(wanted, names, {})
        if units := units_of(parts):
            del parts       # not both in memory
            parts, found = self._rows_of_files(wanted, names, units)
        table = of_files(parts or [self._nothing(names)], self._strings)
        if np.array_equal(found, chosen):
            return table
        places = np.searchsorted(found, chosen[np.isin(chosen, found)])
        return table._of((column.take(places) for column in table.columns), len(places))

    def sample(self, n: int, columns: Iterable[str] | None = None, *, seed: Any = None) -> Table:
        """n different rows chosen at random with equal chances, in the order of the files.

        Args:
            n: number of rows.
            columns: as for ``read``.
            seed: seed of numpy.random.default_rng; equal seeds give equal rows of the same files.

        Raises:
            SchemaError: the dataset has fewer rows.
            ParquetError: as ``read``.
        """
        return self.take(rows.sampled_rows(n, self.num_rows, seed, "dataset"), columns)

    def to_pandas(
        self,
        columns: Iterable[Any] | None = None,
        *,
        filters: Any = None,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        progress: Progress | None = None,
    ) -> pandas.DataFrame:
        """The rows as a pandas DataFrame, with the index, labels and dtypes of the metadata of the first file.

        Args:
            columns: as for ``read``; the index comes in any case. Of a DataFrame whose labels are not text, the labels; filters
                name the columns so too.
            filters: as for ``read``.
            dtype_backend: as for ``read_pandas``.
            progress: as for ``read``.

        Raises:
            UnsupportedError: pandas is not installed.
            ParquetError: as ``read``.
        """
        from fastpq.api.labelled_columns import frame_by
        from fastpq.convert.pandas_metadata import ATTRIBUTES_KEY, PANDAS_KEY, pandas_metadata

        with self._opened.opened(0, keep=True) as file:
            texts = self._common.added_to(file._texts)
        described = pandas_metadata(texts.get(PANDAS_KEY), texts.get(ATTRIBUTES_KEY))
        return frame_by(described, partial(self.read, progress=progress), list(self._fields), columns, filters, dtype_backend)

    def _end(self, n: int, names: list[str], filters: Any, is_head: bool) -> Table:
        """The first or the last rows that match."""
        self._check(filters)
        units = {} if filters is None else self._units_of_batches(names, filters)
        parts = self._parts_of_end(n, names, filters, units, is_head)
        if not units and (fitting := units_of(parts)):
            del parts       # not both in memory
            parts = self._parts_of_end(n, names, filters, fitting, is_head)
        return of_files(parts or [self._nothing(names)], self._strings)

    def _parts_of_end(self, missing: int, names: list[str], filters: Any, units: Units, is_head: bool) -> list[Table]:
        parts: list[Table] = []
        numbers, taken = range(len(self._files)), Taken(self._properties.allocation_limit)
        for number in numbers if is_head else reversed(numbers):
            if not missing or not self._has_rows:
                break
            with self._member(number, filters) as member:
                found = [] if member is None else self._end_of_file(member, missing, names, units, is_head)
            taken.add(sum(map(bytes_joined, found)))
            missing -= sum(table.num_rows for table in found)
            parts = [*parts, *found] if is_head else [*found, *parts]
        return parts

    def _end_of_file(self, member: Member, n: int, names: list[str], units: Units, is_head: bool) -> list[Table]:
        if member.filters is None and self._options.get("on_error") != "skip":      # which leaves out rows of a file's head
            file = member.file._in_units(units)
            paths = [(name,) for name in self._read_from(names, member.own)]
            table = file.head(n, paths) if is_head else file.tail(n, paths)
            return [self._completed(table, names, member.number, units)]
        kept: deque[Table] = deque()
        count = 0
        for table in self._tables(member, names, min(max(n, LEAST_BATCH), DEFAULT_BATCH_SIZE), units, None):
            kept.append(table)
            count += table.num_rows
            if is_head and count >= n:
                break
            while not is_head and count - kept[0].num_rows >= n:
                count -= kept.popleft().num_rows
        if count > n and is_head:
            kept[-1] = kept[-1].slice(0, kept[-1].num_rows - (count - n))
        elif count > n:
            kept[0] = kept[0].slice(count - n)
        return list(kept)

    def _rows_of_files(self, wanted: Int64s, names: list[str], units: Units) -> tuple[list[Table], Int64s]:
        """The rows of ascending, different numbers, a table for each file with some; and their numbers, without lost rows."""
        ends = np.cumsum(self._rows, dtype=np.int64)
        places = [0, *np.searchsorted(wanted, ends).tolist()]
        taken = Taken(self._properties.allocation_limit)

        def read(number: int) -> tuple[Table, Int64s]:
            start = ends[number] - self._rows[number]
            own_rows = wanted[places[number] : places[number + 1]] - start
            with self._opened.opened(number) as file:
                paths = [(name,) for name in self._read_from(names, self._look(number, file))]
                before = len(file._losses)
                table = self._completed(file._in_units(units).take(own_rows, paths), names, number, units)
                if table.num_rows < len(own_rows):      # on_error="skip"
                    for loss in file._losses[before:]:
                        own_rows = own_rows[(own_rows < loss.start) | (own_rows >= loss.stop)]
            taken.add(bytes_joined(table))
            return table, own_rows + start

        numbers = [number for number in range(len(self._files)) if places[number] < places[number + 1]]
        found = list(self._opened.each(numbers, read))
        return [table for table, _ in found], np.concatenate([wanted[:0], *(rows_ for _, rows_ in found)])


def bytes_joined(table: Table) -> int:
    """Bytes of a table whose columns are joined with others: views may have to be made of codes."""
    coded = (column for column in table.columns if isinstance(column, Column) and isinstance(column.values, CodedViews))
    return table.nbytes + sum(VIEW_DTYPE.itemsize * len(column) for column in coded)


def of_files(tables: Sequence[Table], strings: StringLayout) -> Table:
    """The rows of tables of several files, with text and bytes in one dictionary where dictionaries are wanted.

    Args:
        tables: at least one.
        strings: layout of variable-length values.
    """
    table = Table.concat(tables)
    if strings != "dictionary" or len(tables) == 1:
        return table
    return table._of(map(_in_one_dictionary, table.columns))


def _in_one_dictionary(column: AnyColumn) -> AnyColumn:
    if isinstance(column, Column):
        return column.as_dictionary() if column.type.is_variable else column
    if isinstance(column, ListColumn):
        return column._with(elements=_in_one_dictionary(column.elements))
    return column._with(children=tuple(map(_in_one_dictionary, column.children)))


def in_batches(tables: Iterable[Table], size: int, strings: StringLayout) -> Iterator[Table]:
    """The rows of tables as tables of one size, the last of fewer rows; a table of this size stays as it is.

    Args:
        tables: tables of the same columns.
        size: rows of a table.
        strings: layout of variable-length values.
    """
    waiting: list[Table] = []
    count = 0
    for table in tables:
        start = 0
        while count + table.num_rows - start >= size:
            stop = start + size - count
            whole = start == 0 and stop == table.num_rows
            yield of_files([*waiting, table if whole else table.slice(start, stop)], strings)
            waiting, count, start = [], 0, stop
        if start < table.num_rows:
            waiting.append(table.slice(start) if start else table)
            count += table.num_rows - start
    if waiting:
        yield of_files(waiting, strings)
