"""Table: columns in memory, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, overload

from fastpq.arrays.column_base import ColumnBase
from fastpq.arrays.flat_column import Column, DictionaryValues
from fastpq.arrays.layouts import VIEW_DTYPE, Array, BinaryOffsets, BinaryViews, CodedViews
from fastpq.arrays.nested_columns import AnyColumn, ListColumn, StructColumn
from fastpq.arrays.numpy_output import Nulls, Strings, structured_array
from fastpq.common.display import Grid, Heading, View, counted, more, of_bytes, to_html, to_text
from fastpq.common.extensions import export, registered
from fastpq.common.lazy import LazyModule, package
from fastpq.errors import LimitError, SchemaError
from fastpq.schema.parquet_schema import ParquetSchema

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
else:       # types that annotations name, for typing.get_type_hints
    pandas, polars, pyarrow = LazyModule("pandas"), LazyModule("polars"), LazyModule("pyarrow")

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

# Row and column counts that a table's text shows, and that a notebook shows.
TEXT_ROWS, TEXT_COLUMNS = 5, 12
HTML_ROWS, HTML_COLUMNS = 10, 20
NO_METADATA: Mapping[str, str] = MappingProxyType({})


class _Items(ItemsView[str, AnyColumn]):
    """Pairs of name and column, for each column in a table. Names may repeat."""

    _mapping: Table

    def __iter__(self) -> Iterator[tuple[str, AnyColumn]]:
        return iter(self._mapping._pairs)


class _Values(ValuesView[AnyColumn]):
    """A table's columns, whose names may repeat."""

    _mapping: Table

    def __iter__(self) -> Iterator[AnyColumn]:
        return iter(self._mapping.columns)


class Table(Mapping[str, AnyColumn]):
    """Equally long columns, by name and in order.

    A file may repeat names, and so may a table. Iteration, ``names``, ``columns`` and ``items`` give every column. A repeated
    name in ``[]`` is an error.

    Args:
        columns: columns by name, or pairs of name and column. Arrays, lists and Arrow arrays become columns as in
            ``write_table``.
        num_rows: row count. It is only needed if there are no columns, and must agree with them otherwise.
        metadata: texts by key, from the file or the Arrow schema that the columns came from. Writers and Arrow exports keep them.

    Raises:
        SchemaError: a name is not a str, or the columns have different lengths.
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
            raise SchemaError(f"a {type(columns).__name__} is not a mapping of column names: write_table takes the table itself")
        self._pairs: list[tuple[str, AnyColumn]] = []
        for name, values in columns.items() if isinstance(columns, Mapping) else columns:
            if not isinstance(name, str):
                raise SchemaError(f"a column name must be a str, not {name!r}")
            column: Any = values if isinstance(values, ColumnBase) else _column_of(values, name)
            num_rows = len(column) if num_rows is None else num_rows
            if len(column) != num_rows:
                raise SchemaError(f"{len(column)} values in a table of {num_rows} rows", column=name)
            self._pairs.append((name, column))
        self._by_name: dict[str, AnyColumn] = dict(self._pairs)
        self.num_rows = num_rows or 0

    @classmethod
    def _made(cls, pairs: list[tuple[str, AnyColumn]], num_rows: int) -> Table:
        """Return a table with a reader's names and columns, without any check."""
        table = object.__new__(cls)
        table._pairs, table._by_name, table.num_rows = pairs, dict(pairs), num_rows
        table.metadata = NO_METADATA
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Table, num_rows=self.num_rows, metadata=dict(self.metadata)), (self._pairs,)

    def _of(self, columns: Iterable[AnyColumn], num_rows: int | None = None) -> Table:
        """Return a table with the same names, without any check.

        Args:
            columns: the columns, in order.
            num_rows: row count, or None for the present row count.
        """
        pairs = [*zip([name for name, _ in self._pairs], columns, strict=True)]
        table = Table._made(pairs, self.num_rows if num_rows is None else num_rows)
        table.metadata = self.metadata
        return table

    def with_metadata(self, metadata: Mapping[str, str]) -> Table:
        """Return the same columns with other metadata.

        Args:
            metadata: texts by key.
        """
        table = Table._made(self._pairs, self.num_rows)
        table.metadata = metadata
        return table

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [name for name, _ in self._pairs]

    @property
    def columns(self) -> list[AnyColumn]:
        """The columns."""
        return [column for _, column in self._pairs]

    @property
    def _is_plain(self) -> bool:
        """Whether all columns are flat and none has an Arrow field."""
        return not any(column.is_nested or column.arrow is not None for column in self.columns)

    @property
    def num_columns(self) -> int:
        """Column count, like ``len``."""
        return len(self._pairs)

    @property
    def nbytes(self) -> int:
        """Total size of the columns in bytes, as Column.nbytes counts it."""
        return sum(column.nbytes for column in self.columns)

    @property
    def schema(self) -> ParquetSchema:
        """Schema that a file with this table has."""
        return ParquetSchema.of([(name, column.type, column.nullable) for name, column in self._pairs])

    @property
    def shape(self) -> tuple[int, int]:
        """Row count and column count."""
        return self.num_rows, len(self._pairs)

    @overload
    def __getitem__(self, name: str) -> AnyColumn: ...
    @overload
    def __getitem__(self, name: slice) -> Table: ...
    def __getitem__(self, name: Any) -> AnyColumn | Table:
        """Return the column with a name, or a slice of the rows as a table.

        Args:
            name: column name, or a slice.

        Raises:
            SchemaError: there is no column with the name, or there are several.
        """
        if isinstance(name, slice):
            return self._of((column[name] for column in self.columns), len(range(self.num_rows)[name]))
        if isinstance(name, list):
            raise SchemaError(f"a list is not a column name: select({name!r}) gives a table of several columns")
        try:
            column = self._by_name[name]
        except KeyError:
            more = "" if len(self) <= 10 else f" and {len(self) - 10} more"
            raise SchemaError(f"there is no column {name!r}: the table has {self.names[:10]}{more}") from None
        if len(self._by_name) < len(self._pairs):
            self._check_unique([name])
        return column

    def _check_unique(self, names: Iterable[str]) -> None:
        """Raise SchemaError if several columns have one of the names."""
        counts = Counter(self.names)
        for name in names:
            if counts[name] > 1:
                raise SchemaError(f"there are {counts[name]} columns {name!r}: take one from table.columns by its number")

    def flat(self, name: str) -> Column:
        """Return the flat column with a name.

        Args:
            name: column name.

        Raises:
            SchemaError: there is no column with the name, or it is nested.
        """
        column = self[name]
        if column.is_nested:
            raise SchemaError(f"a column of type {column.type} is nested", column=name)
        return column

    def get(self, name: str, default: Any = None) -> Any:
        """Return the column with a name, or the default.

        Args:
            name: column name.
            default: the result if there is no such column.
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
        """Return pairs of name and column, for each column."""
        return _Items(self)

    def values(self) -> ValuesView[AnyColumn]:
        """Return the columns."""
        return _Values(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.equals(other)

    __hash__ = None  # type: ignore[assignment]  # tables are compared by their values

    def __repr__(self) -> str:
        return to_text(self._view(0, TEXT_COLUMNS))         # no values: logs and crash reports use the repr

    def __str__(self) -> str:
        return to_text(self._view(TEXT_ROWS, TEXT_COLUMNS))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the table with values: IPython calls this when a person wants to see it."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_ROWS, HTML_COLUMNS))

    def _view(self, most_rows: int, most_columns: int) -> View:
        """Return a display that has the shape, names, types and first values. If ``most_rows`` is 0, it has no values."""
        from fastpq.arrays.preview import is_number, type_text

        visible_rows = min(self.num_rows, most_rows)
        some = list(islice(self._pairs, most_columns))
        headings = [Heading(name, type_text(column.type), is_number(column.type)) for name, column in some]
        columns = [column._value_texts(0, visible_rows) for _, column in some]
        notes = [more(self.num_rows, visible_rows, "row") if most_rows else "", more(len(self), len(some), "column")]
        facts = [counted(self.num_rows, "row"), counted(len(self), "column")]
        with suppress(LimitError):      # a type may be nested too deep for the stack
            facts.append(of_bytes(self.nbytes))
        grid = Grid(headings, list(zip(*columns, strict=True)), "; ".join(filter(None, notes)))
        return View("Table", facts, grid if some else None)

    def equals(self, other: Table) -> bool:
        """Return whether the names, their order, the row counts and all columns are equal (``Column.equals``).

        Args:
            other: another table.
        """
        if self.names != other.names or self.num_rows != other.num_rows:
            return False
        return all(mine.equals(theirs) for mine, theirs in zip(self.columns, other.columns, strict=True))

    def select(self, names: Iterable[str]) -> Table:
        """Return a table with some columns, in the given order.

        Args:
            names: column names.

        Raises:
            SchemaError: there is no column with one of the names, or there are several.
        """
        return Table({name: self[name] for name in _names(names)}, num_rows=self.num_rows, metadata=self.metadata)

    def drop(self, names: Iterable[str]) -> Table:
        """Return the table without some columns.

        Args:
            names: column names.

        Raises:
            SchemaError: there is no column with one of the names.
        """
        names = _names(names)
        for name in names:
            if name not in self._by_name:
                self[name]      # raises the error that lists the names
        remaining = [(name, column) for name, column in self._pairs if name not in names]
        return Table(remaining, num_rows=self.num_rows, metadata=self.metadata)

    def rename(self, names: Mapping[str, str]) -> Table:
        """Return the table with new names for some columns.

        Args:
            names: new names by old names.

        Raises:
            SchemaError: there is no column with an old name, there are several, or another column has a new name already.
        """
        for name in names:
            self[name]
        pairs = [(names.get(name, name), column) for name, column in self._pairs]
        for name in names.values():
            if sum(name == other for other, _ in pairs) > 1:
                raise SchemaError(f"two columns would have the name {name!r}", column=name)
        return Table(pairs, num_rows=self.num_rows, metadata=self.metadata)

    def add(self, name: str, values: Any) -> Table:
        """Return the table with one more column at the end.

        Args:
            name: column name.
            values: a column, an array, a list or an Arrow array with ``num_rows`` values.

        Raises:
            SchemaError: a column has the name already, or the values have another length or no known type.
        """
        if name in self._by_name:
            raise SchemaError("the table has a column with this name: call drop(...) first to replace it", column=name)
        num_rows = self.num_rows if self._pairs or self.num_rows else None
        return Table([*self._pairs, (name, values)], num_rows=num_rows, metadata=self.metadata)

    def slice(self, start: int = 0, stop: int | None = None) -> Table:
        """Return rows ``start`` to ``stop - 1``. Memory is shared as in ``Column.slice``.

        Args:
            start: first row.
            stop: one after the last row, or None for all rows from start on.
        """
        start, stop, _ = slice(start, stop).indices(self.num_rows)
        return self._of((column.slice(start, stop) for column in self.columns), max(stop - start, 0))

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Any:
        """Return a dict of NumPy arrays by column name (``Column.to_numpy``), or one structured array.

        Args:
            nulls: as for ``Column.to_numpy``.
            strings: as for ``Column.to_numpy``. A structured array always holds text as ``"object"``.
            structured: whether to return one array with shape (num_rows,) and a field for each column. It is masked if a column
                is masked. Structs are structured fields or complex numbers (``StructColumn.to_numpy``).

        Raises:
            SchemaError: two columns have the same name, or a column cannot show its nulls in this way.
        """
        self._check_unique(self.names)
        if structured:
            arrays = {name: column.to_numpy(nulls=nulls, strings="object", structured=True) for name, column in self._pairs}
            return structured_array(arrays, self.num_rows)
        return {name: column.to_numpy(nulls=nulls, strings=strings) for name, column in self._pairs}

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return a dict for each row, with values as in ``Column.to_pylist``.

        Raises:
            SchemaError: two columns have the same name.
        """
        return list(self.rows())

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return an iterator over the rows as dicts, with values as in ``Column.to_pylist``.

        It converts a few thousand rows at a time.

        Raises:
            SchemaError: two columns have the same name.
        """
        self._check_unique(self.names)
        names = self.names
        if not names:
            return iter([{} for _ in range(self.num_rows)])
        return (dict(zip(names, row, strict=True)) for row in zip(*self.columns, strict=True))

    def to_pandas(self, dtype_backend: Any = None) -> pandas.DataFrame:
        """Return the table as a DataFrame. The index, labels and dtypes follow pandas' metadata (``read_pandas``).

        Args:
            dtype_backend: as for ``read_pandas``.

        Raises:
            UnsupportedError: pandas is not installed.
            SchemaError: dtype_backend has an unknown value.
        """
        function = registered("to_pandas")
        assert function is not None, "fastpq registers the functions of fastpq.convert"
        return cast("pandas.DataFrame", function(self, dtype_backend))

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as a pyarrow.Table. Memory is shared where layouts agree. Unions and decimals follow the Arrow fields.

        Raises:
            UnsupportedError: pyarrow is not installed.
        """
        return package("pyarrow", "Table.to_arrow").table(_RequestedTable(self, "pyarrow_request"))

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a polars.DataFrame.

        Text and bytes are not copied. ``polars.DataFrame(table)`` copies text whose Arrow field has offsets, as pyarrow's has.

        Raises:
            UnsupportedError: Polars is not installed.
        """
        frame = package("polars", "Table.to_polars").DataFrame(_RequestedTable(self, "polars_request"))
        return cast("polars.DataFrame", frame)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Raise an error, because NumPy and pandas would otherwise use the column names as values.

        Raises:
            SchemaError: always.
        """
        raise SchemaError(
            "a Table is not an array: use Table.to_numpy() for one array per column, Table.to_numpy(structured=True) for one "
            "structured array, or Table.to_pandas() for a DataFrame"
        )

    def __arrow_c_schema__(self) -> object:
        """Return the column types as the Arrow PyCapsule "arrow_schema" for a struct."""
        return export("schema", self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as the Arrow PyCapsule "arrow_array_stream", which has one record batch."""
        return export("stream", self, requested_schema)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Return a table with a row for each dict. The columns are the keys, in the order in which they first appear.

        Args:
            rows: dicts from names to values, as ``to_rows`` returns them. A name that a dict lacks is null in its row.

        Raises:
            TypeError: a row is not a mapping.
            SchemaError: the values of a column have no common type.
        """
        all_rows = list(rows)
        for number, row in enumerate(all_rows):
            if not isinstance(row, Mapping):
                raise TypeError(f"row {number} must be a dict, not a {type(row).__name__}")
        names = dict.fromkeys(name for row in all_rows for name in row)
        return cls({name: [row.get(name) for row in all_rows] for name in names}, num_rows=len(all_rows))

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict for each row, as ``to_pylist`` does."""
        return self.to_pylist()

    @staticmethod
    def concat(tables: Sequence[Table]) -> Table:
        """Return one table with all rows from several tables that have the same columns.

        Strings keep their layout. Bytes in views are shared, and bytes in offsets are copied. Dictionaries stay if they are equal
        in all parts. Different layouts become views. A column is nullable if one of its parts is nullable.

        Args:
            tables: at least one table.

        Raises:
            SchemaError: there is no table, or the tables differ in names, types or duration units.
        """
        if not tables:
            raise SchemaError("at least one table is needed")
        first = tables[0]
        for number, table in enumerate(tables):
            if table.names != first.names:
                raise SchemaError(f"table {number} has the columns {table.names}, but table 0 has {first.names}")
        from fastpq.arrays.concat import concat_columns

        parts = zip(*(table.columns for table in tables), strict=True)
        columns = [concat_columns(list(columns), name) for name, columns in zip(first.names, parts, strict=True)]
        return first._of(columns, sum(table.num_rows for table in tables))


class _RequestedTable:
    """A table that is exported in the types and layouts that suit one consumer.

    Args:
        table: the table.
        request: ``"pyarrow_request"`` (fastpq.arrow.original_types) or ``"polars_request"`` (fastpq.arrow.view_request).
    """

    def __init__(self, table: Table, request: str) -> None:
        self._table, self._request = table, request

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return export("stream", self._table, export(self._request, self._table) or requested_schema)


def _column_of(values: Any, name: str) -> AnyColumn:
    """Return an array, a list or an Arrow array as a column."""
    function = registered("column_of")
    assert function is not None, "fastpq registers the functions of fastpq.convert"
    column: AnyColumn = function(values, name=name)
    return column


def _names(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise SchemaError(f"a list of names is needed, not the single name {names!r}")
    return list(names)
