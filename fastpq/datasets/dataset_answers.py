"""DatasetAnswers: what a dataset tells of its rows without giving them, and the files that a question is left for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from fastpq.api.file import DEFAULT_BATCH_SIZE, ParquetFile
from fastpq.datasets.partition_filters import filtered_columns, rest_for
from fastpq.filters.predicate import bind_filters, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastpq.arrays.table import Table
    from fastpq.common.progress import Span
    from fastpq.datasets.discovery import DataFile
    from fastpq.datasets.opened_files import OpenedFiles
    from fastpq.datasets.unify import DatasetField
    from fastpq.schema.parquet_schema import ParquetSchema
    from fastpq.schema.types import TimeUnitName


class Member(NamedTuple):
    """An open file of a dataset and the filters left for the file.

    Attributes:
        number: place of the file in the dataset.
        file: the file.
        own: its columns.
        filters: conditions on columns of the file; None for all rows.
        is_converted: whether the filters ask for values of columns that have another type in the dataset.
    """

    number: int
    file: ParquetFile
    own: Mapping[str, DatasetField]
    filters: Any
    is_converted: bool

    @property
    def pushed(self) -> Any:
        """The filters by which the file is read."""
        return None if self.is_converted else self.filters


class DatasetAnswers:
    """The base class of ParquetDataset: numbers of rows, bounds of columns and plans of reads."""

    if TYPE_CHECKING:       # set by ParquetDataset
        _files: list[DataFile]
        _values: list[dict[str, Any]]
        _own: list[dict[str, DatasetField] | None]
        _rows: list[int]
        _opened: OpenedFiles
        _fields: dict[str, DatasetField]
        _schema: ParquetSchema
        _has_rows: bool

        def _looks(self) -> list[dict[str, DatasetField]]: ...
        def _look(self, number: int, file: ParquetFile) -> dict[str, DatasetField]: ...
        def _refuse_conflicts(self, names: Iterable[str]) -> None: ...
        def _tables(
            self, member: Member, names: list[str], batch_size: int | None, units: dict[tuple[str, int], TimeUnitName],
            span: Span | None,
        ) -> Iterator[Table]: ...

    @property
    def num_rows(self) -> int:
        """Number of rows of all files; files not opened before are opened."""
        self._looks()
        return sum(self._rows)

    def count(self, filters: Any = None) -> int:
        """Number of rows matching filters.

        Args:
            filters: as for ``read``; None counts all rows.

        Raises:
            ParquetError: as ``read``.
        """
        if filters is None:
            return self.num_rows
        self._check(filters)

        def count(number: int) -> int:
            with self._member(number, filters) as member:
                if member is None:
                    return 0
                if member.is_converted:
                    return sum(table.num_rows for table in self._tables(member, [], DEFAULT_BATCH_SIZE, {}, None))
                return member.file.count(member.filters)

        return sum(self._opened.each(range(len(self._files)), count))

    def _check(self, filters: Any) -> None:
        """Refuse wrong filters before any file is read."""
        if filters is not None:
            self._refuse_conflicts(leaf.column.path[0] for leaf in leaves(bind_filters(filters, self._schema)))

    @contextmanager
    def _member(self, number: int, filters: Any) -> Iterator[Member | None]:
        """A file, open inside, with the filters left; None where no row can match by partition values and missing columns."""
        known, values = self._own[number], self._values[number]
        columns = self._fields if known is None else known
        rest = None if filters is None else rest_for(filters, self._schema, values, columns)
        if rest is False or not self._has_rows:
            yield None
            return
        with self._opened.opened(number) as file:
            own = self._look(number, file)
            if known is None and filters is not None:
                rest = rest_for(filters, self._schema, values, own)
            converted = any(not own[name].is_stored_as(self._fields[name]) for name in filtered_columns(rest))
            yield None if rest is False else Member(number, file, own, None if rest is True else rest, converted)
