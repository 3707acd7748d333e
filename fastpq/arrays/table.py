"""Table: named columns in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, overload

from fastpq.arrays.column_base import ColumnBase
from fastpq.arrays.flat_column import Column
from fastpq.arrays.layouts import VIEW_DTYPE, BinaryOffsets, BinaryViews, CodedViews, DictionaryValues
from fastpq.arrays.nested_columns import AnyColumn, ListColumn, StructColumn
from fastpq.arrays.numpy_output import Nulls, Strings, structured_array, structured_values
from fastpq.arrays.table_exports import TableExports
from fastpq.common.display import Grid, Heading, View, counted, more, of_bytes, to_html, to_text
from fastpq.common.extensions import registered
from fastpq.errors import SchemaError
from fastpq.schema.parquet_schema import ParquetSchema

__all__ = [
    "VIEW_DTYPE",
    "AnyColumn",
    "BinaryOffsets",
    "BinaryViews",
    "CodedViews",
    "Column",
    "DictionaryValues",
    "ListColumn",
    "StructColumn",
    "Table",
]

# Rows and columns of a table in text and in a notebook.
TEXT_ROWS, TEXT_COLUMNS = 5, 12
HTML_ROWS, HTML_COLUMNS = 10, 20
NO_METADATA: Mapping[str, str] = MappingProxyType({})


class _Items(ItemsView[str, AnyColumn]):
    """Name and column of each column of a table, also of columns of one name."""

    _mapping: Table

    def __iter__(self) -> Iterator[tuple[str, AnyColumn]]:
        return iter(self._mapping._pairs)


class _Values(ValuesView[AnyColumn]):
    """Each column of a table, also of columns of one name."""

    _mapping: Table

    def __iter__(self) -> Iterator[AnyColumn]:
        return iter(self._mapping.columns)


class Table(TableExports, Mapping[str, AnyColumn]):
    """Columns of equal length by name, in order.

    A file may repeat names, and so may a table: iteration, ``names``, ``columns`` and ``items`` have every column, and a
    repeated name in ``[]`` is an error.

    Args:
        columns: columns by name, or pairs of name and column. Arrays, lists and Arrow arrays become columns as for
            ``write_table``.
        num_rows: number of rows, needed without columns; must agree with the columns otherwise.
        metadata: texts by key, of the file or of Arrow's schema from which the columns came: kept by writers and by Arrow.

    Raises:
        SchemaError: names of another type than str, or columns of different lengths.
    """

    __slots__ = ("_by_name", "_pairs", "metadata", "num_rows")

    num_rows: int
    metadata: Mapping[str, str]

    def __init__(
        self,
        columns: Mapping[str, Any] | Iterable[tuple[str, Any]],
        *,
        num_rows: int | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self.metadata = NO_METADATA if metadata is None else metadata
        if not isinstance(columns, Mapping) and hasattr(columns, "__arrow_c_stream__"):
            raise SchemaError(f"a {type(columns).__name__} is no mapping of names to columns; write_table takes the table itself")
        self._pairs: list[tuple[str, AnyColumn]] = []
        for name, values in columns.items() if isinstance(columns, Mapping) else columns:
            if not isinstance(name, str):
                raise SchemaError(f"the name of a column is a str, not {name!r}")
            column: Any = values if isinstance(values, ColumnBase) else _column_of(values, name)
            num_rows = len(column) if num_rows is None else num_rows
            if len(column) != num_rows:
                raise SchemaError(f"{len(column)} values in a table of {num_rows} rows", column=name)
            self._pairs.append((name, column))
        self._by_name: dict[str, AnyColumn] = dict(self._pairs)
        self.num_rows = num_rows or 0

    @classmethod
    def _made(cls, pairs: list[tuple[str, AnyColumn]], num_rows: int) -> Table:
        """A table of names and columns of this length from a reader: nothing is checked."""
        table = object.__new__(cls)
        table._pairs, table._by_name, table.num_rows = pairs, dict(pairs), num_rows
        table.metadata = NO_METADATA
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Table, num_rows=self.num_rows, metadata=dict(self.metadata)), (self._pairs,)

    def _of(self, columns: Iterable[AnyColumn], num_rows: int | None = None) -> Table:
        """A table of the same names.

        Args:
            columns: the columns, in order.
            num_rows: number of rows; None for as many as before.
        """
        num_rows = self.num_rows if num_rows is None else num_rows
        return Table(zip(self.names, columns, strict=True), num_rows=num_rows, metadata=self.metadata)

    def with_metadata(self, metadata: Mapping[str, str]) -> Table:
        """The same columns with other metadata.

        Args:
            metadata: texts by key.
        """
        return Table(self._pairs, num_rows=self.num_rows, metadata=metadata)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _ in self._pairs]

    @property
    def columns(self) -> list[AnyColumn]:
        """The columns."""
        return [column for _, column in self._pairs]

    @property
    def _is_plain(self) -> bool:
        """Whether all columns are flat, and none has an Arrow field."""
        return not any(column.is_nested or column.arrow is not None for column in self.columns)

    @property
    def num_columns(self) -> int:
        """How many columns there are; ``len`` is the same."""
        return len(self._pairs)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns; see Column.nbytes."""
        return sum(column.nbytes for column in self.columns)

    @property
    def schema(self) -> ParquetSchema:
        """The schema of a file of the table."""
        return ParquetSchema.of([(name, column.type, column.nullable) for name, column in self._pairs])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return self.num_rows, len(self._pairs)

    @overload
    def __getitem__(self, name: str) -> AnyColumn: ...
    @overload
    def __getitem__(self, name: slice) -> Table: ...
    def __getitem__(self, name: Any) -> AnyColumn | Table:
        """The column of a name, or the table of a slice of the rows.

        Args:
            name: name of the column, or a slice.

        Raises:
            SchemaError: there is no column of the name, or there are several.
        """
        if isinstance(name, slice):
            return self._of((column[name] for column in self.columns), len(range(self.num_rows)[name]))
        if isinstance(name, list):
            raise SchemaError(f"one column has one name; select({name!r}) is a table of several columns")
        try:
            found = self._by_name[name]
        except KeyError:
            more = "" if len(self) <= 10 else f" and {len(self) - 10} more"
            raise SchemaError(f"there is no column {name!r}; the table has {self.names[:10]}{more}") from None
        if len(self._by_name) < len(self._pairs):
            self._check_unique([name])
        return found

    def _check_unique(self, names: Iterable[str]) -> None:
        """Refuse names of several columns."""
        counts = Counter(self.names)
        for name in names:
            if counts[name] > 1:
                raise SchemaError(f"there are {counts[name]} columns {name!r}: take one of table.columns by its number")

    def flat(self, name: str) -> Column:
        """The flat column of a name.

        Args:
            name: name of the column.

        Raises:
            SchemaError: there is no column of the name, or the column is nested.
        """
        column = self[name]
        if column.is_nested:
            raise SchemaError(f"a column of type {column.type} is nested", column=name)
        return column

    def get(self, name: str, default: Any = None) -> Any:
        """The column of a name, or the default where there is none.

        Args:
            name: name of the column.
            default: returned where there is none.
        """
        if name not in self._by_name:
            return default
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self._pairs)

    def items(self) -> ItemsView[str, AnyColumn]:
        """Name and column of each column."""
        return _Items(self)

    def values(self) -> ValuesView[AnyColumn]:
        """Each column."""
        return _Values(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.equals(other)

    __hash__ = None  # type: ignore[assignment]  # tables compare by their values

    def __repr__(self) -> str:
        return to_text(self._view(0, TEXT_COLUMNS))         # logs and crash reports take the repr: no values

    def __str__(self) -> str:
        return to_text(self._view(TEXT_ROWS, TEXT_COLUMNS))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython, where a person asks to see the table: with values."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_ROWS, HTML_COLUMNS))

    def _view(self, most_rows: int, most_columns: int) -> View:
        """Shape, names, types and the first values; no values where ``most_rows`` is 0."""
        from fastpq.arrays.preview import is_number, type_text, value_texts

        shown = min(self.num_rows, most_rows)
        some = list(islice(self._pairs, most_columns))
        headings = [Heading(name, type_text(column.type), is_number(column)) for name, column in some]
        columns = [value_texts(column, 0, shown) for _, column in some]
        notes = [more(self.num_rows, shown, "row") if most_rows else "", more(len(self), len(some), "column")]
        facts = [counted(self.num_rows, "row"), counted(len(self), "column"), of_bytes(self.nbytes)]
        grid = Grid(headings, list(zip(*columns, strict=True)), "; ".join(filter(None, notes)))
        return View("Table", facts, grid if some else None)

    def equals(self, other: Table) -> bool:
        """Whether names, their order, rows and all columns are equal (``Column.equals``).

        Args:
            other: another table.
        """
        if self.names != other.names or self.num_rows != other.num_rows:
            return False
        return all(mine.equals(theirs) for mine, theirs in zip(self.columns, other.columns, strict=True))

    def select(self, names: Iterable[str]) -> Table:
        """The table of some columns, in the order asked.

        Args:
            names: names of columns.

        Raises:
            SchemaError: there is no column of a name, or there are several.
        """
        return Table({name: self[name] for name in _names(names)}, num_rows=self.num_rows, metadata=self.metadata)

    def drop(self, names: Iterable[str]) -> Table:
        """The table without some columns.

        Args:
            names: names of columns.

        Raises:
            SchemaError: there is no column of a name.
        """
        names = _names(names)
        for name in names:
            if name not in self._by_name:
                self[name]      # raises the error with the names there are
        kept = [(name, column) for name, column in self._pairs if name not in names]
        return Table(kept, num_rows=self.num_rows, metadata=self.metadata)

    def rename(self, names: Mapping[str, str]) -> Table:
        """The table with other names of some columns.

        Args:
            names: new names by present names.

        Raises:
            SchemaError: there is no column of a name, there are several, or a new name is another column's.
        """
        for name in names:
            self[name]
        pairs = [(names.get(name, name), column) for name, column in self._pairs]
        for name in names.values():
            if sum(name == other for other, _ in pairs) > 1:
                raise SchemaError("there is another column of the name", column=name)
        return Table(pairs, num_rows=self.num_rows, metadata=self.metadata)

    def add(self, name: str, values: Any) -> Table:
        """The table with one more column at the end.

        Args:
            name: name of the column.
            values: a column, an array, a list or an Arrow array of ``num_rows`` values.

        Raises:
            SchemaError: there is a column of the name, or values of another number or of no type.
        """
        if name in self._by_name:
            raise SchemaError("there is a column of the name; drop(...) first to replace the column", column=name)
        num_rows = self.num_rows if self._pairs or self.num_rows else None
        return Table([*self._pairs, (name, values)], num_rows=num_rows, metadata=self.metadata)

    def slice(self, start: int = 0, stop: int | None = None) -> Table:
        """Rows ``start`` to ``stop - 1``; memory is shared as in ``Column.slice``.

        Args:
            start: first row.
            stop: row behind the last; None for all rows from start on.
        """
        start, stop, _ = slice(start, stop).indices(self.num_rows)
        return self._of((column.slice(start, stop) for column in self.columns), max(stop - start, 0))

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Any:
        """Every column as a NumPy array (``Column.to_numpy``), by name; or all columns as one structured array.

        Args:
            nulls: as for ``Column.to_numpy``.
            strings: as for ``Column.to_numpy``; fields of a structured array hold text as ``"object"``.
            structured: whether to return one array of shape (num_rows,) with a field for each column, masked if a column is;
                structs are structured fields, or complex numbers (``StructColumn.to_numpy``).

        Raises:
            SchemaError: also, two columns of one name.
        """
        self._check_unique(self.names)
        if structured:
            return structured_array({name: structured_values(column, nulls) for name, column in self._pairs}, self.num_rows)
        return {name: column.to_numpy(nulls=nulls, strings=strings) for name, column in self._pairs}

    def to_pylist(self) -> list[dict[str, Any]]:
        """A dict for each row (values as in ``Column.to_pylist``).

        Raises:
            SchemaError: two columns of one name.
        """
        return list(self.rows())

    def rows(self) -> Iterator[dict[str, Any]]:
        """A dict for each row (values as in ``Column.to_pylist``), some thousand rows made at a time.

        Raises:
            SchemaError: two columns of one name.
        """
        self._check_unique(self.names)
        names = self.names
        if not names:
            return iter([{} for _ in range(self.num_rows)])
        return (dict(zip(names, row, strict=True)) for row in zip(*self.columns, strict=True))

    @staticmethod
    def concat(tables: Sequence[Table]) -> Table:
        """The rows of tables of the same columns, one after another.

        Strings keep their layout: the bytes of views are shared, the bytes of offsets copied, dictionaries stay if all
        parts have equal ones, and different layouts become views. A column is nullable if one of its parts is.

        Args:
            tables: at least one table.

        Raises:
            SchemaError: no table, or tables whose names or types differ, or whose durations have different units.
        """
        if not tables:
            raise SchemaError("there is no table to concatenate")
        first = tables[0]
        for number, table in enumerate(tables):
            if table.names != first.names:
                raise SchemaError(f"table {number} has the columns {table.names}, table 0 has {first.names}")
        from fastpq.arrays.concat import concat_columns

        parts = zip(*(table.columns for table in tables), strict=True)
        columns = [concat_columns(list(columns), name) for name, columns in zip(first.names, parts, strict=True)]
        return first._of(columns, sum(table.num_rows for table in tables))


def _column_of(values: Any, name: str) -> AnyColumn:
    """The column of an array, a list or an Arrow array."""
    function = registered("column_of")
    assert function is not None, "fastpq registers the functions of fastpq.convert"
    column: AnyColumn = function(values, name=name)
    return column


def _names(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise SchemaError(f"a list of names is needed, not the one name {names!r}")
    return list(names)
