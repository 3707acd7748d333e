"""Column: flat values in memory, in Arrow's layout, held in NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from fastpq.arrays import binary
from fastpq.arrays.column_base import ColumnBase
from fastpq.arrays.layouts import MAX_INT32, VIEW_DTYPE, Array, BinaryOffsets, BinaryViews, CodedViews, DictionaryValues, Values
from fastpq.arrays.numpy_output import Nulls, Strings, fixed_values, to_numpy, to_pylist
from fastpq.arrays.slices import SliceReader
from fastpq.common.lazy import LazyModule
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType

if TYPE_CHECKING:
    from fastpq.arrays import nodes
else:       # types of annotations, for typing.get_type_hints
    nodes = LazyModule("fastpq.arrays.nodes")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column(ColumnBase):
    """Values of one type; the memory may be shared with other objects and is never written to.

    Attributes:
        type: type of the values.
        values: fixed-width: shape (n,), dtype type.dtype, zero where null; otherwise one of the binary layouts.
        validity: bitmap, uint8, LSB first, at least (n + 7) // 8 bytes, or None when no value is null.
        null_count: number of nulls.
        nullable: whether the schema allows nulls (OPTIONAL).
        arrow: the Arrow field from which the values came, or the one that a file names; exports follow it (fastpq.arrow.hints).

    Raises:
        SchemaError: values of another dtype than the type's, or sizes in disagreement.
    """

    NOUN: ClassVar[str] = "value"
    is_nested: ClassVar[Literal[False]] = False

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
        self._check_validity()

    def __len__(self) -> int:
        return len(self.values)

    def _with(self, **changes: Any) -> Column:
        """The same column with some fields changed, unchecked. Codes of nulls are no values: views of them are empty."""
        values = self.values
        if self.null_count and "validity" in changes and "values" not in changes and isinstance(values, CodedViews):
            changes["values"] = BinaryViews(values.views, values.buffers)
        return ColumnBase._with(self, **changes)

    def _array_bytes(self) -> int:
        return self.values.nbytes

    def used_bytes(self) -> int:
        bits = 0 if self.validity is None else self.validity.nbytes
        match self.values:
            case CodedViews(codes, entries) if not self.null_count:
                sizes = np.ascontiguousarray(entries.views).view(np.int32)[::4].copy()      # the lengths
                return bits + VIEW_DTYPE.itemsize * len(self) + binary.size_of_codes(codes, sizes)
            case CodedViews():
                return bits + VIEW_DTYPE.itemsize * len(self) + int(binary.total_size(self._reader()))
            case BinaryViews(views):
                return bits + views.nbytes + binary.size_of_views(np.ascontiguousarray(views).view(np.int32))
        return bits + self.values.nbytes

    # ---- parts

    def _sliced(self, start: int, stop: int, **nulls: Any) -> Column:
        values: Values
        match self.values:
            case CodedViews(codes, entries):
                values = part_of_codes(codes[start:stop], entries, nulls["validity"])
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
                values = part_of_codes(codes[indices], entries, nulls["validity"])
            case BinaryViews(views, buffers):
                values = BinaryViews(views[indices], buffers)
            case BinaryOffsets():
                return self.as_views()._taken(indices, **nulls)
            case DictionaryValues(codes, dictionary, is_ordered):
                values = DictionaryValues(codes[indices], dictionary, is_ordered)
            case array:
                values = array[indices]
        return self._with(values=values, **nulls)

    def _joined(self, parts: Sequence[Column], name: str, **nulls: Any) -> Column:
        from fastpq.arrays.concat import concat_values

        values = concat_values([part.values for part in _of_one_layout(parts)], nulls["validity"])
        arrow = _arrow_of([part for part in parts if part.null_count < len(part)], name) or self.arrow
        return self._with(values=values, arrow=arrow, **nulls)

    def leaves(self) -> Iterator[tuple[tuple[ColumnBase, ...], Column]]:
        """The column itself, with nothing above."""
        yield (), self

    def leaf(self, path: Sequence[str]) -> Column:
        """The column itself.

        Args:
            path: names of fields; a flat column has none.

        Raises:
            SchemaError: a path of any name.
        """
        if path:
            raise SchemaError(f"a {self.type} column has no field {path[0]!r}")
        return self

    # ---- values

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Array:
        """The values as a NumPy array of ``type.numpy_dtype``, sharing the column's memory where layouts agree.

        Shared are booleans, integers, floats, timestamps, durations (timedelta64), INT96, fixed-length bytes and intervals.
        Decimals, UUIDs and bytes become objects (``decimal.Decimal``, ``uuid.UUID``, ``bytes``), exactly.

        Args:
            nulls: how a nullable column shows its nulls: ``"masked"``: numpy.ma.MaskedArray, whether or not there are
                any; ``"nan"``: NaN in floats, NaT in dates and times, a missing value (NaN) in StringDType, None in
                objects, SchemaError for nulls of other types; ``"object"``: an object array of the values of
                ``to_pylist``. Columns without nullable values are plain arrays.
            strings: text as ``"stringdtype"`` or as ``"object"``: str.
            structured: without effect; for structs (``StructColumn.to_numpy``).

        Raises:
            SchemaError: nulls that cannot be shown as asked.
            FormatError: text in another encoding than UTF-8, or values outside their memory.
        """
        return to_numpy(self, nulls, strings)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """For numpy.asarray: ``to_numpy(nulls="nan")``, for an array cannot mask its nulls."""
        values = self.to_numpy(nulls="nan")
        return np.array(values, dtype) if copy else np.asarray(values, dtype)

    def to_pylist(self) -> list[Any]:
        """The values as Python objects, None where null.

        bool, int, float, str, bytes, decimal.Decimal, uuid.UUID, datetime.date, datetime.time, datetime.timedelta;
        datetime.datetime for timestamps in ms and us (aware when utc); an interval is (months, days, milliseconds). Values
        beyond Python's types, nanoseconds and years outside of 1 to 9999, are numpy.datetime64 or numpy.timedelta64.
        """
        return to_pylist(self)

    def _equal_values(self, other: Column) -> bool:
        if self.type.is_variable:
            return binary.first_difference(self._reader(), other._reader()) < 0
        left, right = fixed_values(self), fixed_values(other)
        same: Array = left == right
        if left.dtype.kind == "f":
            same |= np.isnan(left) & np.isnan(right)
        return bool((same | ~self.validity_mask()).all())

    def _texts(self, levels: int) -> list[str]:
        from fastpq.arrays.preview import flat_texts

        return flat_texts(self)

    # ---- layouts

    def as_views(self) -> Column:
        """The same values as BinaryViews; bytes are shared, only views are made, those of CodedViews when they are asked for.

        Raises:
            SchemaError: the column is of fixed width.
            LimitError: a value of 2^31 bytes or more.
            FormatError: values outside their memory.
        """
        match self._variable():
            case BinaryOffsets(offsets, data):
                return self._with(values=BinaryViews(*binary.views_of_offsets(offsets, data, self._valid_bits())))
            case DictionaryValues(codes, dictionary):
                inner = dictionary.as_views().values
                assert isinstance(inner, BinaryViews)
                views = binary.gather_views(inner.views, codes, self._valid_bits())
                return self._with(values=BinaryViews(views, inner.buffers))
        return self

    def as_offsets(self, wide: bool | None = None) -> Column:
        """The same values as BinaryOffsets, bytes copied into one run unless they are so already.

        Args:
            wide: int64 offsets (True) or int32 (False); None for int32 unless the bytes are 2^31 or more.

        Raises:
            SchemaError: the column is of fixed width.
            LimitError: more bytes than int32 offsets reach, with ``wide=False``.
            FormatError: values outside their memory.
        """
        values = self._variable()
        if isinstance(values, BinaryOffsets) and (wide is None or wide == (values.offsets.dtype == np.int64)):
            return self
        reader = self._reader()
        size = binary.total_size(reader)
        wide = size > MAX_INT32 if wide is None else wide
        return self._with(values=BinaryOffsets(*binary.to_offsets(reader, wide, size)))

    def as_dictionary(self) -> Column:
        """The same values as DictionaryValues, the dictionary in order of first appearance.

        Raises:
            SchemaError: the column is of fixed width.
            FormatError: values outside their memory.
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
            raise SchemaError(f"the values of a {self.type} column are not of variable length")
        return self.values


def part_of_codes(codes: Array, entries: BinaryViews, validity: Array | None) -> BinaryViews:
    """Some values of CodedViews: as views where there are more entries than values, which each use of codes looks at."""
    if len(entries) <= len(codes):
        return CodedViews(codes, entries, validity)
    return BinaryViews(binary.gather_views(entries.views, np.ascontiguousarray(codes), validity), entries.buffers)


def _of_one_layout(parts: Sequence[Column]) -> Sequence[Column]:
    """Parts of one layout, dictionaries of equal entries as the first of these; of mixed layouts strings become views, and
    dictionaries of fixed-width values are gathered."""
    if len({_layout(part) for part in parts}) == 1:
        return parts
    coded = [part.values for part in parts if isinstance(part.values, DictionaryValues)]
    if len(coded) == len(parts) and all(values.dictionary.equals(coded[0].dictionary) for values in coded[1:]):
        entries, is_ordered = coded[0].dictionary, all(values.is_ordered for values in coded)
        values = [DictionaryValues(each.codes, entries, is_ordered) for each in coded]
        return [part._with(values=own) for part, own in zip(parts, values, strict=True)]
    if parts[0].type.is_variable:
        return [part.as_views() for part in parts]
    return [part._with(values=fixed_values(part)) for part in parts]


def _layout(column: Column) -> tuple[type, int]:
    """Layout and dictionary: values of equal ones are joined as they are."""
    values = column.values
    return type(values), id(values.dictionary) if isinstance(values, DictionaryValues) else 0


def _arrow_of(parts: Sequence[Column], name: str) -> nodes.FieldNode | None:
    """Arrow field of parts joined: of the first part with values. The unit of durations stands in no other place."""
    durations = {part.arrow.format if part.arrow is not None and part.arrow.is_duration else None for part in parts}
    if len(durations) > 1:
        raise SchemaError(f"numbers that are durations of different units: {sorted(map(str, durations))}", column=name)
    return parts[0].arrow if parts else None
