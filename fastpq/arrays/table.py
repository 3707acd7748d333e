"""Table and Column: named columns in memory, in Arrow's layout, held in NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays import binary
from fastpq.arrays.bitmap import bitmap_size, count_zeros, slice_bitmap, unpack_bitmap
from fastpq.arrays.extensions import export
from fastpq.arrays.layouts import (
    MAX_INT32,
    VIEW_DTYPE,
    Array,
    BinaryOffsets,
    BinaryViews,
    DictionaryValues,
    Values,
)
from fastpq.arrays.nested_columns import ListColumn, StructColumn, nested_field, taken_validity
from fastpq.arrays.numpy_output import Nulls, Strings, fixed_values, to_numpy, to_pylist
from fastpq.arrays.slices import SliceReader
from fastpq.common.display import Grid, Heading, View, counted, more, of_bytes, to_html, to_text
from fastpq.common.lazy import LazyModule
from fastpq.errors import SchemaError
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType

if TYPE_CHECKING:
    from fastpq.arrays import nodes
else:
    nodes = LazyModule("fastpq.arrays.nodes")

__all__ = [
    "VIEW_DTYPE",
    "AnyColumn",
    "BinaryOffsets",
    "BinaryViews",
    "Column",
    "DictionaryValues",
    "ListColumn",
    "StructColumn",
    "Table",
]


# Rows and columns that are shown, in text and in a notebook.
TEXT_ROWS, TEXT_COLUMNS = 5, 12
HTML_ROWS, HTML_COLUMNS = 10, 20


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column:
    """Values of one type; the memory may be shared with other objects and is never written to.

    Attributes:
        type: what they are.
        values: fixed-width: shape (n,), dtype type.dtype, zero where null; otherwise one of the binary layouts.
        validity: bitmap, uint8, LSB first, at least (n + 7) // 8 bytes, or None when no value is null.
        null_count: number of nulls.
        nullable: whether the schema allows nulls (OPTIONAL).
        arrow: the Arrow field that it came from, or that the file says it came from; exported as that again (fastpq.arrow.hints).

    Raises:
        SchemaError: values of another dtype than the type's, or sizes that do not agree.
    """

    type: ColumnType
    values: Values
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True
    arrow: nodes.FieldNode | None = None

    def __post_init__(self) -> None:
        values, dtype = self.values, self.type.dtype
        if isinstance(values, np.ndarray):
            if values.ndim != 1 or values.dtype != dtype:
                found = f"values of shape {values.shape} and dtype {values.dtype}"
                raise SchemaError(f"{found} where its type asks for {dtype or 'a variable-length layout'}")
        elif dtype is not None and not isinstance(values, DictionaryValues):
            raise SchemaError(f"{type(values).__name__} in a {self.type} column, which is of fixed width")
        if not 0 <= self.null_count <= len(self):
            raise SchemaError(f"{self.null_count} nulls among {len(self)} values")
        bits = self.validity
        if self.null_count if bits is None else bits.dtype != np.uint8 or len(bits) < bitmap_size(len(self)):
            raise SchemaError(f"{self.null_count} nulls and no validity bitmap of {len(self)} bits")

    def __len__(self) -> int:
        match self.values:
            case BinaryViews(views=array) | DictionaryValues(codes=array):
                return len(array)
            case BinaryOffsets(offsets=array):
                return max(len(array) - 1, 0)
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, memory shared with other columns included."""
        return self.values.nbytes + (0 if self.validity is None else self.validity.nbytes)

    def __repr__(self) -> str:
        from fastpq.arrays.preview import headline

        return headline(self, "Column", "value")

    def __str__(self) -> str:
        from fastpq.arrays.preview import with_values

        return with_values(self, "Column", "value")

    def _repr_html_(self) -> str:
        from fastpq.arrays.preview import column_view

        return to_html(column_view(self, "Column", "value", HTML_ROWS))

    def validity_mask(self) -> NDArray[np.bool_]:
        """True where there is a value, False where null; shape (n,), new memory."""
        if self.validity is None or not self.null_count:
            return np.ones(len(self), np.bool_)
        return unpack_bitmap(self.validity, 0, len(self))

    def slice(self, start: int = 0, stop: int | None = None) -> Column:
        """Values ``start`` to ``stop - 1``, with Python's rules for what lies outside.

        Values are shared; of the validity bits a copy is made where start is not a multiple of 8.

        Args:
            start: first value.
            stop: value behind the last; None for all that follow.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        values: Values
        match self.values:
            case BinaryViews(views, buffers):
                values = BinaryViews(views[start:stop], buffers)
            case BinaryOffsets(offsets, data):
                values = BinaryOffsets(offsets[start : stop + 1], data)
            case DictionaryValues(codes, dictionary):
                values = DictionaryValues(codes[start:stop], dictionary)
            case array:
                values = array[start:stop]
        if self.validity is None or not self.null_count:
            return self._with(values, None, 0)
        validity = slice_bitmap(self.validity, start, stop - start)
        null_count = count_zeros(validity, stop - start)
        return self._with(values, validity if null_count else None, null_count)

    def take(self, indices: Array) -> Column:
        """The values at some places.

        Args:
            indices: int64, each from 0 to ``len(self) - 1``.
        """
        values: Values
        match self.values:
            case BinaryViews(views, buffers):
                values = BinaryViews(views[indices], buffers)
            case BinaryOffsets():
                return self.as_views().take(indices)
            case DictionaryValues(codes, dictionary):
                values = DictionaryValues(codes[indices], dictionary)
            case array:
                values = array[indices]
        validity, null_count = taken_validity(self, indices)
        return self._with(values, validity, null_count)

    def with_arrow(self, field: nodes.FieldNode | None) -> Column:
        """The same values, with the field that they were in Arrow.

        Args:
            field: the field; None for none.
        """
        return Column(self.type, self.values, self.validity, self.null_count, self.nullable, field)

    def _with(self, values: Values, validity: Array | None, null_count: int) -> Column:
        """Other values of the same column."""
        return Column(self.type, values, validity, null_count, self.nullable, self.arrow)

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype") -> Array:
        """The values as a NumPy array of ``type.numpy_dtype``, sharing the column's memory where layouts agree.

        Shared are booleans, integers, floats, timestamps, INT96, fixed-length bytes and intervals.
        Decimals, UUIDs and bytes become objects (``decimal.Decimal``, ``uuid.UUID``, ``bytes``), exactly.

        Args:
            nulls: how a nullable column shows its nulls: ``"masked"``: numpy.ma.MaskedArray, whether or not there are
                any; ``"nan"``: NaN in floats, NaT in dates and times, a missing value (NaN) in StringDType, None in
                objects, SchemaError for nulls of other types; ``"object"``: an object array of what ``to_pylist``
                gives. Columns that are not nullable are plain arrays.
            strings: text as ``"stringdtype"`` or as ``"object"``: str.

        Raises:
            SchemaError: nulls that cannot be shown as asked.
            FormatError: text that is not UTF-8, or values that point outside their memory.
        """
        return to_numpy(self, nulls, strings)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """For numpy.asarray: ``to_numpy(nulls="nan")``, for an array cannot mask its nulls."""
        values = self.to_numpy(nulls="nan")
        return np.array(values, dtype) if copy else np.asarray(values, dtype)

    def to_pylist(self) -> list[Any]:
        """The values as Python objects, None where null.

        bool, int, float, str, bytes, decimal.Decimal, uuid.UUID, datetime.date, datetime.time; datetime.datetime for
        timestamps in ms and us (aware when utc); an interval is (months, days, milliseconds). What Python's types do
        not hold, nanoseconds and years beyond 1 to 9999, is numpy.datetime64 or numpy.timedelta64.
        """
        return to_pylist(self)

    def equals(self, other: object) -> bool:
        """Whether type, nulls and values are equal; NaN equals NaN; layout and ``nullable`` do not count.

        Args:
            other: another column; any other object is unequal.
        """
        if not isinstance(other, Column) or self.type != other.type:
            return False
        if len(self) != len(other) or self.null_count != other.null_count:
            return False
        if self.type.is_variable:
            ours = SliceReader(self.values, self._nulls())
            theirs = SliceReader(other.values, other._nulls())
            return binary.first_difference(ours, theirs) < 0
        mask = self.validity_mask()
        if self.null_count and not np.array_equal(mask, other.validity_mask()):
            return False
        left, right = fixed_values(self), fixed_values(other)
        same: Array = left == right
        if left.dtype.kind == "f":
            same |= np.isnan(left) & np.isnan(right)
        return bool((same | ~mask).all())

    def _nulls(self) -> Array | None:
        return self.validity if self.null_count else None

    def as_views(self) -> Column:
        """The same values as BinaryViews; bytes are shared, only views are made.

        Raises:
            SchemaError: the column is of fixed width.
            LimitError: a value of 2^31 bytes or more.
            FormatError: values that point outside their memory.
        """
        match self._variable():
            case BinaryOffsets(offsets, data):
                return replace(self, values=BinaryViews(*binary.views_of_offsets(offsets, data, self._nulls())))
            case DictionaryValues(codes, dictionary):
                inner = dictionary.as_views().values
                assert isinstance(inner, BinaryViews)
                views = binary.gather_views(inner.views, codes, self._nulls())
                return replace(self, values=BinaryViews(views, inner.buffers))
        return self

    def as_offsets(self, wide: bool | None = None) -> Column:
        """The same values as BinaryOffsets, bytes copied into one run unless they are so already.

        Args:
            wide: int64 offsets (True) or int32 (False); None for int32 unless the bytes are 2^31 or more.

        Raises:
            SchemaError: the column is of fixed width.
            LimitError: more bytes than int32 offsets reach, with ``wide=False``.
            FormatError: values that point outside their memory.
        """
        values = self._variable()
        if isinstance(values, BinaryOffsets) and (wide is None or wide == (values.offsets.dtype == np.int64)):
            return self
        reader = SliceReader(values, self._nulls())
        size = binary.total_size(reader)
        wide = size > MAX_INT32 if wide is None else wide
        return replace(self, values=BinaryOffsets(*binary.to_offsets(reader, wide, size)))

    def as_dictionary(self) -> Column:
        """The same values as DictionaryValues, the dictionary in order of first appearance.

        Raises:
            SchemaError: the column is of fixed width.
            FormatError: values that point outside their memory.
        """
        if isinstance(self._variable(), DictionaryValues):
            return self
        source = self.as_views()
        views = source.values
        assert isinstance(views, BinaryViews)
        codes, rows = binary.encode_dictionary(SliceReader(views, self._nulls()))
        dictionary = Column(self.type, BinaryViews(views.views[rows], views.buffers), nullable=False)
        return replace(self, values=DictionaryValues(codes, dictionary))

    def _variable(self) -> BinaryViews | BinaryOffsets | DictionaryValues:
        if isinstance(self.values, np.ndarray) or not self.type.is_variable:
            raise SchemaError(f"the values of a {self.type} column are not of variable length")
        return self.values

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: the type, nameless."""
        return export("schema", self)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Arrow PyCapsule interface: the type and the values."""
        capsules: tuple[object, object] = export("array", self, requested_schema)
        return capsules


AnyColumn: TypeAlias = Column | ListColumn | StructColumn


class Table(Mapping[str, AnyColumn]):
    """Columns of equal length by name, in order.

    Args:
        columns: the columns.
        num_rows: rows of a table without columns; otherwise it must agree with the columns.

    Raises:
        SchemaError: names that are not str, or columns of different lengths.
    """

    __slots__ = ("_columns", "num_rows")

    num_rows: int

    def __init__(self, columns: Mapping[str, AnyColumn], *, num_rows: int | None = None) -> None:
        self._columns = dict(columns)
        for name, column in self._columns.items():
            if not isinstance(name, str):
                raise SchemaError(f"the name of a column is a str, not {name!r}")
            if not isinstance(column, Column | ListColumn | StructColumn):
                raise SchemaError(f"a {type(column).__name__} is no Column: see table_from", column=name)
            num_rows = len(column) if num_rows is None else num_rows
            if len(column) != num_rows:
                raise SchemaError(f"{len(column)} values in a table of {num_rows} rows", column=name)
        self.num_rows = num_rows or 0

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def columns(self) -> list[AnyColumn]:
        """The columns."""
        return list(self._columns.values())

    @property
    def num_columns(self) -> int:
        """How many columns there are; ``len`` is the same."""
        return len(self._columns)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns; see Column.nbytes."""
        return sum(column.nbytes for column in self._columns.values())

    @property
    def schema(self) -> ParquetSchema:
        """The schema under which the table is written."""
        return ParquetSchema.of(nested_field(name, column) for name, column in self._columns.items())

    def __getitem__(self, name: str) -> AnyColumn:
        try:
            return self._columns[name]
        except KeyError:
            more = "" if len(self) <= 10 else f" and {len(self) - 10} more"
            raise SchemaError(f"there is no column {name!r}; the table has {self.names[:10]}{more}") from None

    def flat(self, name: str) -> Column:
        """The column of a name, which is not nested.

        Args:
            name: name of the column.

        Raises:
            SchemaError: there is none, or it is nested.
        """
        column = self[name]
        if not isinstance(column, Column):
            raise SchemaError(f"a column of type {column.type} is nested", column=name)
        return column

    def get(self, name: str, default: Any = None) -> Any:
        """The column of a name, or the default where there is none.

        Args:
            name: name of the column.
            default: returned where there is none.
        """
        return self._columns.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.equals(other)

    __hash__ = None  # type: ignore[assignment]  # tables compare by their values

    def __repr__(self) -> str:
        return to_text(self._view(0, TEXT_COLUMNS))         # logs and crash reports take the repr: no values

    def __str__(self) -> str:
        return to_text(self._view(TEXT_ROWS, TEXT_COLUMNS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_ROWS, HTML_COLUMNS))

    def _view(self, most_rows: int, most_columns: int) -> View:
        """Shape, names, types and the first values; no values where ``most_rows`` is 0."""
        from fastpq.arrays.preview import is_number, type_text, value_texts

        shown = min(self.num_rows, most_rows)
        some = list(islice(self._columns.items(), most_columns))
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
        """
        return Table({name: self[name] for name in names}, num_rows=self.num_rows)

    def slice(self, start: int = 0, stop: int | None = None) -> Table:
        """Rows ``start`` to ``stop - 1``; memory is shared as in ``Column.slice``.

        Args:
            start: first row.
            stop: row behind the last; None for all that follow.
        """
        start, stop, _ = slice(start, stop).indices(self.num_rows)
        sliced = {name: column.slice(start, stop) for name, column in self._columns.items()}
        return Table(sliced, num_rows=max(stop - start, 0))

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype") -> dict[str, Array]:
        """Every column as a NumPy array (``Column.to_numpy``).

        Args:
            nulls: as for ``Column.to_numpy``.
            strings: as for ``Column.to_numpy``.
        """
        return {name: column.to_numpy(nulls=nulls, strings=strings) for name, column in self._columns.items()}

    def to_pylist(self) -> list[dict[str, Any]]:
        """A dict for each row (values as in ``Column.to_pylist``)."""
        names, lists = self.names, [column.to_pylist() for column in self.columns]
        if not names:
            return [{} for _ in range(self.num_rows)]
        return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]

    @staticmethod
    def concat(tables: Sequence[Table]) -> Table:
        """The rows of tables of the same columns, one after another.

        Strings keep their layout: the bytes of views are shared, those of offsets are copied, dictionaries stay if all
        parts have the same one, and different layouts become views. A column is nullable if one of its parts is.

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
        from fastpq.arrays.nested_concat import concat_columns

        columns = {name: concat_columns([table[name] for table in tables], name) for name in first.names}
        return Table(columns, num_rows=sum(table.num_rows for table in tables))

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: a struct of the columns' types."""
        return export("schema", self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow PyCapsule interface: the rows as a stream of one record batch."""
        return export("stream", self, requested_schema)
