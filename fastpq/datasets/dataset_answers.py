"""DatasetAnswers: what a dataset tells of its rows without giving them, and the files that a question is left for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fastpq.api.file import DEFAULT_BATCH_SIZE, ParquetFile
from fastpq.arrays.nodes import DURATION_UNITS
from fastpq.common.lazy import LazyModule
from fastpq.datasets.partition_filters import filtered_columns, rest_for
from fastpq.errors import UnsupportedError
from fastpq.filters.predicate import bind_filters, leaves
from fastpq.schema.types import ColumnType, TimeUnitName

if TYPE_CHECKING:
    from fastpq.arrays.table import Table
    from fastpq.common.progress import Span
    from fastpq.datasets import dataset_explanation
    from fastpq.datasets.discovery import DataFile
    from fastpq.datasets.opened_files import OpenedFiles
    from fastpq.datasets.unify import DatasetField
    from fastpq.read.explain import Explanation
    from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
else:       # types of annotations, found by typing.get_type_hints
    dataset_explanation = LazyModule("fastpq.datasets.dataset_explanation")

Units: TypeAlias = dict[tuple[str, ...], TimeUnitName]     # of INT96 columns, by place (read.int96.Place)


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
        _partitions: dict[str, Any]
        _has_rows: bool

        def _chosen(self, columns: Iterable[str] | None) -> list[str]: ...
        def _read_from(self, names: Iterable[str], own: Mapping[str, DatasetField]) -> list[str]: ...
        def _looks(self) -> list[dict[str, DatasetField]]: ...
        def _look(self, number: int, file: ParquetFile) -> dict[str, DatasetField]: ...
        def _refuse_conflicts(self, names: Iterable[str]) -> None: ...
        def _tables(
            self, member: Member, names: list[str], batch_size: int | None, units: Units, span: Span | None
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

    def explain(self, filters: Any, columns: Iterable[str] | None = None) -> dataset_explanation.DatasetExplanation:
        """Files, row groups, pages and bytes of a ``read`` with filters, with the evidence for each file.

        Files ruled out by partition values and missing columns are not opened; no data page is read.

        Args:
            filters: as for ``read``.
            columns: as for ``read``.

        Raises:
            ParquetError: as ``read``.
        """
        from fastpq.datasets.dataset_explanation import DatasetExplanation

        names = self._chosen(columns)
        self._check(filters)

        def explained(number: int) -> Explanation | None:
            with self._member(number, filters) as member:
                if member is None:
                    return None
                wanted = dict.fromkeys([*names, *(filtered_columns(member.filters) if member.is_converted else [])])
                return member.file.explain(member.pushed, [(name,) for name in self._read_from(wanted, member.own)])

        found = dict(zip((file.path for file in self._files), self._opened.each(range(len(self._files)), explained), strict=True))
        files = {path: file for path, file in found.items() if file is not None}
        return DatasetExplanation(files, [path for path, file in found.items() if file is None])

    def min_max(self, column: str) -> tuple[Any, Any]:
        """The smallest and the largest value of a column in all files; row groups without exact statistics are read.

        A partition column is answered from paths: only files with the smallest and the largest value are opened, for their rows.

        Args:
            column: name of a flat column, or of a partition column.

        Returns:
            Python objects, as in ``Column.to_pylist``; (None, None) for a column without values. NaNs take no part.

        Raises:
            SchemaError: an unknown column, a column without an order, or without a type for all files.
            UnsupportedError: a nested column.
        """
        from fastpq.datasets.extremes import column_extremes, partition_extremes

        (name,) = self._chosen([column])
        return partition_extremes(self, name) if name in self._partitions else column_extremes(self, name)

    def null_count(self, column: str) -> int:
        """The number of nulls of a column in all files; row groups without a null count in their statistics are read.

        All rows of a file without the column are nulls. Of a partition column, the rows of the files without a value count.

        Args:
            column: name of a flat column, or of a partition column.

        Raises:
            SchemaError: an unknown column, or a column without a type for all files.
            UnsupportedError: a nested column.
        """
        (name,) = self._chosen([column])
        if not isinstance(self._fields[name].field.type, ColumnType):
            raise UnsupportedError("statistics of a nested column", column=name)

        def nulls(number: int) -> int:
            if not self._has_rows or self._values[number].get(name) is not None:
                return 0
            with self._opened.opened(number) as file:
                if not self._read_from([name], self._look(number, file)):
                    return self._rows[number]
                return file.null_count(file.schema.select([(name,)])[0].index)

        return sum(self._opened.each(range(len(self._files)), nulls))

    def _check(self, filters: Any) -> None:
        """Refuse wrong filters before any file is read."""
        if filters is not None:
            predicate = bind_filters(filters, self._schema, unit_of=self._unit_of)
            self._refuse_conflicts(leaf.column.path[0] for leaf in leaves(predicate))

    def _unit_of(self, leaf: ColumnDescriptor) -> str | None:
        """Unit of the durations in a column; None for other columns, and for fields of structs."""
        field = self._fields.get(leaf.path[0]) if len(leaf.path) == 1 else None
        return None if field is None or field.duration is None else DURATION_UNITS[field.duration.format]

    @contextmanager
    def _member(self, number: int, filters: Any) -> Iterator[Member | None]:
        """A file, open inside, with the filters left; None where no row can match by partition values and missing columns."""
        known, values = self._own[number], self._values[number]
        columns = self._fields if known is None else known
        rest = None if filters is None else rest_for(filters, self._schema, values, columns, self._unit_of)
        if rest is False or not self._has_rows:
            yield None
            return
        with self._opened.opened(number) as file:
            own = self._look(number, file)
            if known is None and filters is not None:
                rest = rest_for(filters, self._schema, values, own, self._unit_of)
            converted = any(not own[name].is_stored_as(self._fields[name]) for name in filtered_columns(rest))
            yield None if rest is False else Member(number, file, own, None if rest is True else rest, converted)
