"""Column: flat values in NumPy arrays, in Arrow's layout. DictionaryValues: values as codes into a dictionary column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fastpq.arrays import binary
from fastpq.arrays.column_base import BROKEN, ColumnBase
from fastpq.arrays.layouts import INLINE_SIZE, MAX_INT32, VIEW_DTYPE, Array, BinaryOffsets, BinaryViews, CodedViews
from fastpq.arrays.nodes import DURATION_UNITS, FieldNode
from fastpq.arrays.numpy_output import (
    Nulls,
    Strings,
    check_output_options,
    numpy_values,
    python_objects,
    variable_values,
    with_nan,
)
from fastpq.arrays.slices import SliceReader
from fastpq.common.display import NULL
from fastpq.errors import FormatError, SchemaError
from fastpq.schema.types import ColumnType, Type


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DictionaryValues:
    """Values as codes (int32, shape (n,), 0 where null) into a dictionary column without nulls.

    Attributes:
        codes: the codes.
        dictionary: the distinct values.
        is_ordered: whether the dictionary's order has a meaning, as in an ordered Arrow dictionary or pandas categorical.
    """

    codes: Array
    dictionary: Column
    is_ordered: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def entries(self) -> Values:
        """The dictionary column's values."""
        return self.dictionary.values

    @property
    def nbytes(self) -> int:
        """Size of the codes and the dictionary in bytes."""
        return self.codes.nbytes + self.dictionary.nbytes


Values = Array | BinaryViews | BinaryOffsets | DictionaryValues


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column(ColumnBase):
    """Values that have the same type. Other objects may share the memory, which is never written to.

    Attributes:
        type: value type.
        values: fixed-width values: shape (n,), dtype type.dtype, zero where null. Other values: a layout for binary values.
        validity: bitmap, uint8, LSB first, at least (n + 7) // 8 bytes, or None if no value is null.
        null_count: null count.
        nullable: whether the schema allows nulls (OPTIONAL).
        arrow: the Arrow field that the values came from, or that a file names. Exports follow it (fastpq.arrow.hints).

    Raises:
        SchemaError: the values have another dtype than the type, or the sizes do not agree.
    """

    NOUN: ClassVar[str] = "value"
    is_nested: ClassVar[Literal[False]] = False

    type: ColumnType
    values: Values
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True
    arrow: FieldNode | None = None

    def __post_init__(self) -> None:
        values, dtype = self.values, self.type.dtype
        if isinstance(values, np.ndarray):
            if values.ndim != 1 or values.dtype != dtype:
                expected_dtype = dtype or "a variable-length layout"
                actual = f"values of shape {values.shape} and dtype {values.dtype}"
                raise SchemaError(f"a {self.type} column needs {expected_dtype}, not {actual}")
        elif dtype is not None and not isinstance(values, DictionaryValues):
            raise SchemaError(f"a {self.type} column has a fixed width and cannot hold {type(values).__name__}")
        self._check_validity()

    def __len__(self) -> int:
        return len(self.values)

    def _with(self, **changes: Any) -> Column:
        """Return the same column with some fields changed, without any check.

        If the validity changes, the codes under nulls must not become values. The views are then made, and are empty where null.
        """
        values = self.values
        if self.null_count and "validity" in changes and "values" not in changes and isinstance(values, CodedViews):
            changes["values"] = BinaryViews(values.views, values.buffers)
        return ColumnBase._with(self, **changes)

    def _array_bytes(self) -> int:
        return self.values.nbytes

    def used_bytes(self) -> int:
        bits = 0 if self.validity is None else self.validity.nbytes
        if type(self.values) is np.ndarray:
            return bits + self.values.nbytes
        match self.values:
            case CodedViews(codes, entries) if not self.null_count:
                sizes = np.ascontiguousarray(entries.views).view(np.int32)[::4].copy()      # the lengths
                return bits + VIEW_DTYPE.itemsize * len(self) + binary.size_of_codes(codes, sizes)
            case CodedViews():
                return bits + VIEW_DTYPE.itemsize * len(self) + int(binary.total_size(self._reader()))
            case BinaryViews(views):
                return bits + views.nbytes + binary.size_of_views(np.ascontiguousarray(views).view(np.int32))
        return bits + self.values.nbytes

    @property
    def _duration_unit(self) -> str | None:
        """Duration unit in the column, ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``. None if the values are not durations."""
        if self.arrow is None or self.type.physical is not Type.INT64 or self.type.logical is not None:
            return None
        return DURATION_UNITS.get(self.arrow.format)

    # ---- parts

    def _sliced(self, start: int, stop: int, **nulls: Any) -> Column:
        values: Values
        match self.values:
            case CodedViews(codes, entries):
                values = _some_codes(codes[start:stop], entries, nulls["validity"])
            case BinaryViews(views, buffers):
                values = BinaryViews(views[start:stop], buffers)
            case BinaryOffsets(offsets, data):
                values = BinaryOffsets(offsets[start : stop + 1], data)
            case DictionaryValues(codes, dictionary, is_ordered):
                values = DictionaryValues(codes[start:stop], dictionary, is_ordered)
            case array:
                values = array[start:stop]
        return self._with(values=values, **nulls)

    def _taken(self, indices: Array, **nulls: Any) -> Column:
        values: Values
        match self.values:
            case CodedViews(codes, entries):
                values = _some_codes(codes[indices], entries, nulls["validity"])
            case BinaryViews(views, buffers):
                values = BinaryViews(views[indices], buffers)
            case BinaryOffsets():
                return self.as_views()._taken(indices, **nulls)
            case DictionaryValues(codes, dictionary, is_ordered):
                values = DictionaryValues(codes[indices], dictionary, is_ordered)
            case array:
                values = array[indices]
        return self._with(values=values, **nulls)

    def leaves(self) -> Iterator[tuple[tuple[ColumnBase, ...], Column]]:
        """Yield the column itself, with no nested column around it."""
        yield (), self

    def leaf(self, path: Sequence[str]) -> Column:
        """Return the column itself.

        Args:
            path: field names. A flat column has none.

        Raises:
            SchemaError: the path has a name.
        """
        if path:
            raise SchemaError(f"a {self.type} column has no field {path[0]!r}")
        return self

    # ---- values

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Array:
        """Return the values as a NumPy array with ``type.numpy_dtype``. It shares the column's memory where the layouts agree.

        Booleans, integers, floats, timestamps, durations (timedelta64), INT96, fixed-length bytes and intervals share memory.
        Decimals, UUIDs and bytes become objects (``decimal.Decimal``, ``uuid.UUID``, ``bytes``) without loss.

        Args:
            nulls: how a nullable column shows its nulls. ``"masked"`` gives a numpy.ma.MaskedArray, even if no value is null.
                ``"nan"`` gives NaN in floats, NaT in dates and times, a missing value (NaN) in StringDType, None in objects, and
                a SchemaError for nulls in other types. ``"object"`` gives an object array with the values that ``to_pylist``
                returns. A column that is not nullable is always a plain array.
            strings: text as ``"stringdtype"``, or as ``"object"``: str.
            structured: has no effect. It is for structs (``StructColumn.to_numpy``).

        Raises:
            SchemaError: the type cannot show nulls in this way.
            FormatError: text is not valid UTF-8, or a value is outside its memory.
        """
        check_output_options(nulls, strings)
        if nulls == "object" and self.nullable:
            return np.fromiter(self.to_pylist(), dtype=object, count=len(self))
        if self.type.is_variable:
            missing = np.nan if nulls == "nan" and self.null_count else None
            values = variable_values(self._reader(), self.type.is_text, strings, missing)
        else:
            values = numpy_values(fixed_values(self), self.type, self._duration_unit)
        if not self.nullable:
            return values
        if nulls == "masked":
            mask: Any = ~self.validity_mask() if self.null_count else np.ma.nomask
            masked: Array = np.ma.MaskedArray(values, mask=mask)
            return masked
        return with_nan(values, ~self.validity_mask(), self.type) if self.null_count else values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return ``to_numpy(nulls="nan")``. numpy.asarray calls this, and its result cannot be a masked array."""
        values = self.to_numpy(nulls="nan")
        return np.array(values, dtype) if copy else np.asarray(values, dtype)

    def to_pylist(self) -> list[Any]:
        """Return the values as Python objects, None where null.

        The types are bool, int, float, str, bytes, decimal.Decimal, uuid.UUID, datetime.date, datetime.time, datetime.timedelta,
        and datetime.datetime for timestamps in ms and us (with a time zone if utc). An interval is (months, days, milliseconds).
        Nanoseconds, and years that are not 1 to 9999, are numpy.datetime64 or numpy.timedelta64, because Python's types cannot
        hold them.
        """
        if self.type.is_variable:
            texts: list[Any] = variable_values(self._reader(), self.type.is_text, "object", None).tolist()
            return texts
        objects = python_objects(fixed_values(self), self.type, self._duration_unit)
        if self.null_count:
            for i in np.flatnonzero(~self.validity_mask()).tolist():
                objects[i] = None
        return objects

    def _equal_values(self, other: Column) -> bool:
        if self.type.is_variable:
            return binary.first_difference(self._reader(), other._reader()) < 0
        mine, theirs = fixed_values(self), fixed_values(other)
        is_equal: Array = mine == theirs
        if mine.dtype.kind == "f":
            is_equal |= np.isnan(mine) & np.isnan(theirs)
        return bool((is_equal | ~self.validity_mask()).all())

    def _texts(self, levels: int) -> list[str]:
        from fastpq.arrays.preview import object_text

        if self.type.is_variable:
            return [self._variable_text(number) for number in range(len(self))]
        return [object_text(value) for value in self.to_pylist()]

    def _variable_text(self, number: int) -> str:
        from fastpq.arrays.preview import MOST_BYTES, bytes_text

        if self.null_count and not self.slice(number, number + 1).validity_mask()[0]:
            return NULL
        try:
            first_bytes, length = _first_bytes(self.values, number, MOST_BYTES)
        except IndexError:
            return BROKEN
        return bytes_text(first_bytes, length, self.type.is_text)

    # ---- layouts

    def as_views(self) -> Column:
        """Return the same values as BinaryViews. Bytes are shared. CodedViews stay, and make their views on first use.

        Raises:
            SchemaError: the column has a fixed width.
            LimitError: a value has 2^31 bytes or more.
            FormatError: a value is outside its memory.
        """
        match self._variable():
            case BinaryOffsets() as values:
                return self._with(values=BinaryViews(*binary.views_of_offsets(values, self._valid_bits())))
            case DictionaryValues(codes, dictionary):
                inner = dictionary.as_views().values
                assert isinstance(inner, BinaryViews)
                views = binary.gather_views(inner.views, codes, self._valid_bits())
                return self._with(values=BinaryViews(views, inner.buffers))
        return self

    def as_offsets(self, wide: bool | None = None) -> Column:
        """Return the same values as BinaryOffsets. The bytes are copied into one buffer unless they have this layout already.

        Args:
            wide: whether the offsets are int64 instead of int32. None means int64 only if there are 2^31 bytes or more.

        Raises:
            SchemaError: the column has a fixed width.
            LimitError: ``wide`` is False and there are too many bytes for int32 offsets.
            FormatError: a value is outside its memory.
        """
        values = self._variable()
        if isinstance(values, BinaryOffsets) and (wide is None or wide == (values.offsets.dtype == np.int64)):
            return self
        reader = self._reader()
        size = binary.total_size(reader)
        wide = size > MAX_INT32 if wide is None else wide
        return self._with(values=BinaryOffsets(*binary.to_offsets(reader, wide, size)))

    def as_dictionary(self) -> Column:
        """Return the same values as DictionaryValues. The dictionary has the values in the order in which they first appear.

        Raises:
            SchemaError: the column has a fixed width.
            FormatError: a value is outside its memory.
        """
        if isinstance(self._variable(), DictionaryValues):
            return self
        source = self.as_views()
        codes, rows = binary.encode_dictionary(source._reader())
        values = source.values
        assert isinstance(values, BinaryViews)
        views = values.entries.views[values.codes[rows]] if isinstance(values, CodedViews) else values.views[rows]
        dictionary = Column._made(self.type, BinaryViews(views, values.buffers), nullable=False)
        return self._with(values=DictionaryValues(codes, dictionary))

    def _reader(self) -> SliceReader:
        return SliceReader(self.values, self._valid_bits())

    def _variable(self) -> BinaryViews | BinaryOffsets | DictionaryValues:
        if isinstance(self.values, np.ndarray) or not self.type.is_variable:
            raise SchemaError(f"the values in a column of {self.type} have a fixed width")
        return self.values


def fixed_values(column: Column) -> Array:
    """Return a column's fixed-width values, zero where null. Dictionary codes are decoded."""
    values = column.values
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values)
    if not isinstance(values, DictionaryValues):
        raise SchemaError(f"the values in a column of {column.type} do not have a fixed width")
    dictionary = fixed_values(values.dictionary)
    if len(dictionary) == 0:
        if column.null_count < len(column):
            raise FormatError("a dictionary code is outside the dictionary")
        return np.zeros(len(column), dictionary.dtype)
    # Negative codes become large unsigned numbers, so that they are outside the dictionary too.
    codes = values.codes.view(np.uint32)
    if len(codes) and int(codes.max()) >= len(dictionary):
        raise FormatError("a dictionary code is outside the dictionary")
    result = dictionary[codes]
    if column.null_count:
        result[~column.validity_mask()] = np.zeros((), result.dtype)
    return result


def _some_codes(codes: Array, entries: BinaryViews, validity: Array | None) -> BinaryViews:
    """Return some of the values in CodedViews.

    They become plain views if there are more entries than values, because each use of codes visits every entry.
    """
    if len(entries) <= len(codes):
        return CodedViews(codes, entries, validity)
    return BinaryViews(binary.gather_views(entries.views, np.ascontiguousarray(codes), validity), entries.buffers)


def _first_bytes(values: Values, number: int, most: int) -> tuple[bytes, int]:
    """Return at most ``most`` bytes from a value's start, and the whole value's length in bytes."""
    match values:
        case BinaryOffsets(offsets, data):
            start, stop = int(offsets[number]), int(offsets[number + 1])
            return data[start : min(stop, start + most)].tobytes(), stop - start
        case CodedViews(codes, entries):
            return _first_bytes(entries, int(codes[number]), most)
        case BinaryViews(views, buffers):
            view = np.ascontiguousarray(views[number : number + 1])
            length, _, buffer, offset = view.view(np.int32).tolist()
            if length <= INLINE_SIZE:
                return view.view(np.uint8)[4 : 4 + length].tobytes(), length
            return buffers[buffer][offset : offset + min(length, most)].tobytes(), length
        case DictionaryValues(codes, dictionary):
            return _first_bytes(dictionary.values, int(codes[number]), most)
    raise ValueError("the values have a fixed width")
