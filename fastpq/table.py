"""Table and Column: named columns in memory, in Arrow's layout, held in NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np

from fastpq.errors import SchemaError
from fastpq.numpy_output import Nulls, Strings, to_numpy
from fastpq.strings import encode_views, offsets_from_views, views_from_offsets
from fastpq.types import ColumnType

Array: TypeAlias = np.ndarray[Any, Any]

VIEW_DTYPE = np.dtype("V16")


@dataclass(frozen=True, slots=True, eq=False)
class BinaryViews:
    """Variable-length values as Arrow string views.

    Attributes:
        views: shape (n,), dtype VIEW_DTYPE (16 bytes each: ``length`` int32, then 12 bytes inline or prefix, buffer, offset).
        buffers: uint8 arrays that the views of more than 12 bytes point into.
    """

    views: Array
    buffers: Sequence[Array] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.views)

    @property
    def nbytes(self) -> int:
        return int(self.views.nbytes + sum(buffer.nbytes for buffer in self.buffers))

    def slice(self, start: int, stop: int) -> BinaryViews:
        return BinaryViews(self.views[start:stop], self.buffers)


@dataclass(frozen=True, slots=True, eq=False)
class BinaryOffsets:
    """Variable-length values as offsets (int32 or int64, shape (n + 1,)) into data (uint8)."""

    offsets: Array
    data: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return int(self.offsets.nbytes + self.offsets[-1] - self.offsets[0])

    def slice(self, start: int, stop: int) -> BinaryOffsets:
        return BinaryOffsets(self.offsets[start : stop + 1], self.data)


@dataclass(frozen=True, slots=True, eq=False)
class DictionaryValues:
    """Values as codes (int32, shape (n,); 0 where null) into a dictionary column without nulls."""

    codes: Array
    dictionary: Column

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.dictionary.nbytes)

    def slice(self, start: int, stop: int) -> DictionaryValues:
        return DictionaryValues(self.codes[start:stop], self.dictionary)


Values: TypeAlias = Array | BinaryViews | BinaryOffsets | DictionaryValues


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Values of one type.

    Attributes:
        type: what they are.
        values: fixed-width: shape (n,), dtype type.dtype, zero where null; otherwise one of the binary layouts.
        validity: bitmap, uint8, LSB first, at least (n + 7) // 8 bytes, or None when no value is null.
        null_count: number of nulls.
        nullable: whether the schema allows nulls (OPTIONAL).
    """

    type: ColumnType
    values: Values
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, those shared with other columns included."""
        return int(self.values.nbytes) + (0 if self.validity is None else int(self.validity.nbytes))

    def validity_mask(self) -> Array:
        """Which values are not null: bool, shape (n,)."""
        if self.validity is None:
            return np.ones(len(self), dtype=bool)
        return np.unpackbits(self.validity, count=len(self), bitorder="little").view(bool)

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype") -> Array:
        """The values as a NumPy array; the dtype is that of ColumnType's table.

        A column without nulls whose memory NumPy understands is returned as a view of it.

        Args:
            nulls: what a column with nulls becomes: ``"masked"`` a MaskedArray; ``"nan"`` NaN or NaT (floats, dates and
                times only); ``"object"`` an object array with None. Object and StringDType results hold None anyway.
            strings: ``"stringdtype"`` or ``"object"`` (of str).

        Raises:
            SchemaError: nulls="nan" for a type that has no such value.
        """
        return to_numpy(self, nulls, strings)

    def to_pylist(self) -> list[Any]:
        """The values as Python objects; null is None."""
        return list(to_numpy(self, "object", "object").tolist())

    def slice(self, start: int, stop: int) -> Column:
        """Rows [start, stop) over the same memory (a validity bitmap is copied)."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        values = self.values[start:stop] if isinstance(self.values, np.ndarray) else self.values.slice(start, stop)
        if self.validity is None:
            return replace(self, values=values)
        return with_mask(replace(self, values=values), self.validity_mask()[start:stop])

    def as_views(self) -> Column:
        """The column with its values as BinaryViews."""
        values = self.values
        if isinstance(values, BinaryOffsets):
            return replace(self, values=BinaryViews(*views_from_offsets(values.offsets, values.data)))
        if isinstance(values, DictionaryValues):
            distinct = values.dictionary.as_views().values
            assert isinstance(distinct, BinaryViews)
            views = distinct.views[values.codes] if len(distinct) else np.zeros(len(values), dtype=VIEW_DTYPE)
            return replace(self, values=BinaryViews(views, distinct.buffers))
        return self._binary(values)

    def as_offsets(self, *, wide: bool | None = None) -> Column:
        """The column with its values as BinaryOffsets: int64 ones where wide is True, or None and they are needed."""
        if isinstance(self.values, BinaryOffsets) and wide is None:
            return self
        values = self.as_views().values
        assert isinstance(values, BinaryViews)
        return replace(self, values=BinaryOffsets(*offsets_from_views(values.views, values.buffers, wide)))

    def as_dictionary(self) -> Column:
        """The column with its values as DictionaryValues, distinct ones in order of first appearance."""
        if isinstance(self.values, DictionaryValues):
            return self
        values = self.as_views().values
        assert isinstance(values, BinaryViews)
        codes, views, buffers = encode_views(values.views, values.buffers, self.validity)
        distinct = Column(self.type, BinaryViews(views, buffers), nullable=False)
        return replace(self, values=DictionaryValues(codes, distinct))

    def _binary(self, values: Values) -> Column:
        if isinstance(values, np.ndarray):
            raise SchemaError(f"a column of {self.type} has no variable-length values")
        return self

    def equals(self, other: Column) -> bool:
        """Whether both have the same type and the same values, nulls included; NaN equals NaN."""
        if self.type != other.type or len(self) != len(other):
            return False
        if not np.array_equal(self.validity_mask(), other.validity_mask()):
            return False
        if self.type.dtype is not None:
            present = self.validity_mask()
            mine, theirs = np.asarray(self.values)[present], np.asarray(other.values)[present]
            return bool(np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"))
        return self.to_pylist() == other.to_pylist()

    def __arrow_c_schema__(self) -> Any:
        from fastpq.arrow import export_schema

        return export_schema(self)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        from fastpq.arrow import export_array

        return export_array(self, requested_schema)

    def __repr__(self) -> str:
        nulls = f", {self.null_count} nulls" if self.null_count else ""
        return f"<Column {self.type}: {len(self)} values{nulls}>"


def with_mask(column: Column, present: Array) -> Column:
    """The column with the nulls of a bool array, true where a value is."""
    null_count = int(len(present) - np.count_nonzero(present))
    validity = np.packbits(present, bitorder="little") if null_count else None
    return replace(column, validity=validity, null_count=null_count)


class Table(Mapping[str, Column]):
    """Columns of equal length by name.

    Args:
        columns: the columns, in order.
        num_rows: needed only where there are no columns.

    Raises:
        SchemaError: columns of different lengths.
    """

    def __init__(self, columns: Mapping[str, Column], *, num_rows: int | None = None) -> None:
        self._columns = dict(columns)
        lengths = {len(column) for column in self._columns.values()} | ({num_rows} if num_rows is not None else set())
        if len(lengths) > 1:
            raise SchemaError(f"columns of different lengths: {', '.join(map(str, sorted(lengths)))}")
        self._num_rows = lengths.pop() if lengths else 0

    @property
    def names(self) -> list[str]:
        return list(self._columns)

    @property
    def columns(self) -> list[Column]:
        return list(self._columns.values())

    @property
    def num_rows(self) -> int:
        return self._num_rows

    @property
    def num_columns(self) -> int:
        return len(self._columns)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns.values())

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def select(self, names: Sequence[str]) -> Table:
        """Some of the columns."""
        return Table({name: self._columns[name] for name in names}, num_rows=self._num_rows)

    def slice(self, start: int, stop: int) -> Table:
        """Rows [start, stop) over the same memory."""
        start, stop, _ = slice(start, stop).indices(self._num_rows)
        rows = max(0, stop - start)
        return Table({name: column.slice(start, stop) for name, column in self.items()}, num_rows=rows)

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype") -> dict[str, Array]:
        """Arrays by name; see Column.to_numpy."""
        return {name: column.to_numpy(nulls=nulls, strings=strings) for name, column in self.items()}

    def to_pylist(self) -> list[dict[str, Any]]:
        """Rows as dicts of Python objects."""
        columns = [column.to_pylist() for column in self._columns.values()]
        return [dict(zip(self._columns, row, strict=True)) for row in zip(*columns, strict=True)]

    def equals(self, other: Table) -> bool:
        """Whether both have the same columns in the same order; see Column.equals."""
        return self.names == other.names and all(self[name].equals(other[name]) for name in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.equals(other)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def concat(cls, tables: Sequence[Self]) -> Table:
        """The rows of tables of one schema, one after the other.

        Raises:
            SchemaError: they differ in names or types, or there is none.
        """
        if not tables:
            raise SchemaError("nothing to concatenate")
        for table in tables[1:]:
            if [(name, column.type) for name, column in table.items()] != [(n, c.type) for n, c in tables[0].items()]:
                raise SchemaError("tables of different schemas")
        if len(tables) == 1:
            return tables[0]
        rows = sum(table.num_rows for table in tables)
        return Table({name: _concat([table[name] for table in tables]) for name in tables[0]}, num_rows=rows)

    def __arrow_c_schema__(self) -> Any:
        from fastpq.arrow import export_schema

        return export_schema(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        from fastpq.arrow import export_stream

        return export_stream(self, requested_schema)

    def __repr__(self) -> str:
        lines = [f"<Table: {self.num_rows} rows, {self.num_columns} columns>"]
        lines += [f"  {name}: {column.type}" for name, column in list(self.items())[:50]]
        return "\n".join(lines)


def _concat(columns: list[Column]) -> Column:
    first = columns[0]
    nullable = any(column.nullable for column in columns)
    if first.type.dtype is not None:
        values: Values = np.concatenate([np.asarray(column.values) for column in columns])
    else:
        values = _concat_views([column.as_views().values for column in columns])
    joined = replace(first, values=values, validity=None, null_count=0, nullable=nullable)
    if all(column.validity is None for column in columns):
        return joined
    return with_mask(joined, np.concatenate([column.validity_mask() for column in columns]))


def _concat_views(parts: Sequence[Values]) -> BinaryViews:
    """Views one after the other; the buffers of later parts are numbered on."""
    buffers: list[Array] = []
    words = []
    for part in parts:
        assert isinstance(part, BinaryViews)
        four = np.ascontiguousarray(part.views).view(np.int32).reshape(-1, 4)
        if buffers and len(part.buffers):
            four = four.copy()
            four[four[:, 0] > 12, 2] += len(buffers)
        words.append(four)
        buffers += part.buffers
    return BinaryViews(np.concatenate(words).reshape(-1).view(VIEW_DTYPE), buffers)
