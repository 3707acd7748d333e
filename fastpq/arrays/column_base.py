"""The base class of all columns: nulls, parts, comparison, display and the Arrow interface."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.bitmap import bitmap_size, count_zeros, slice_bitmap, unpack_bitmap, validity_of
from fastpq.arrays.layouts import Array
from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.numpy_output import Nulls, Strings
from fastpq.common.display import ELLIPSIS, NULL, TEXT_WIDTH, Grid, Heading, View, counted, more, shorten, to_html, to_text
from fastpq.common.extensions import export
from fastpq.common.lazy import LazyModule, package
from fastpq.common.stack import nesting_limit
from fastpq.errors import ParquetError, SchemaError
from fastpq.format.slots import copy_instance, make_instance, place_of
from fastpq.schema.nested_types import DataType, Field

if TYPE_CHECKING:
    import pyarrow
else:       # types that annotations name, for typing.get_type_hints
    pyarrow = LazyModule("pyarrow")

# Number of values that a notebook shows, and that a column's text shows.
HTML_VALUES = 10
TEXT_VALUES = 10
# Number of nesting levels in one value's text.
TEXT_LEVELS = 4
# Text for values that cannot be shown, for example strings with offsets outside their buffer.
BROKEN = "<broken>"
# Number of values that ``for`` converts to Python objects at a time.
ITERATED = 4096


class ColumnBase(ABC):
    """Column of values that have the same type. Other objects may share its memory, which is never written to.

    Each subclass is a frozen dataclass with the attributes below and its own arrays. Its constructor checks the arrays. ``_made``
    and ``_with`` check nothing: they are for arrays that compiled code has made, and for parts of checked columns.

    Attributes:
        type: value type.
        validity: bitmap, uint8, LSB first, at least (n + 7) // 8 bytes, or None if no value is null.
        null_count: null count.
        nullable: whether the schema allows nulls (OPTIONAL).
        arrow: the Arrow field that the values have, or had before they were written to Parquet. Exports follow it.
    """

    __slots__ = ()

    NOUN: ClassVar[str]     # what one value is called in displays
    is_nested: ClassVar[bool]

    type: DataType
    validity: Array | None
    null_count: int
    nullable: bool
    arrow: FieldNode | None

    # ---- construction

    @classmethod
    def _made(
        cls,
        *parts: Any,
        validity: Array | None = None,
        null_count: int = 0,
        nullable: bool = True,
        arrow: FieldNode | None = None,
    ) -> Self:
        """Return a column without checking it.

        Args:
            *parts: the type, and the other fields that stand before validity, in the constructor's order.
            validity, null_count, nullable, arrow: as the attributes of the class.
        """
        return make_instance(cls, _places_of(cls), (*parts, validity, null_count, nullable, arrow))

    def _with(self, **changes: Any) -> Self:
        """Return the same column with some fields changed, without checking it."""
        return copy_instance(self, _places_of(type(self)), changes)

    def _check_validity(self) -> None:
        if not 0 <= self.null_count <= len(self):
            raise SchemaError(f"{self.null_count} nulls among {len(self)} values")
        bits = self.validity
        if self.null_count if bits is None else bits.dtype != np.uint8 or len(bits) < bitmap_size(len(self)):
            raise SchemaError(f"there is no validity bitmap of {len(self)} bits for {self.null_count} nulls")

    def with_arrow(self, field: FieldNode | None) -> Self:
        """Return the same values with another Arrow field.

        Args:
            field: the field, or None for no field.
        """
        return self._with(arrow=field)

    def as_field(self, name: str) -> Field:
        """Return the column's type as a struct field or a list element.

        Args:
            name: field name.
        """
        return Field(name, self.type, self.nullable)

    # ---- sizes

    @abstractmethod
    def __len__(self) -> int:
        """Value count."""

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes, including memory that other columns share."""
        with nesting_limit:
            return self._array_bytes() + (0 if self.validity is None else self.validity.nbytes)

    @abstractmethod
    def used_bytes(self) -> int:
        """Return the size in bytes of what the values use: their data, the validity bitmap, offsets, and views of strings.

        If two values share bytes, these bytes count twice. Bytes in the arrays that no value uses do not count.
        """

    @abstractmethod
    def _array_bytes(self) -> int:
        """Return the arrays' size in bytes, without the validity bitmap."""

    # ---- nulls

    def validity_mask(self) -> NDArray[np.bool_]:
        """Return a new array with shape (n,): True where there is a value, False where null."""
        if self.validity is None or not self.null_count:
            return np.ones(len(self), np.bool_)
        return unpack_bitmap(self.validity, 0, len(self))

    def _valid_bits(self) -> Array | None:
        """Return the validity bitmap if the column has nulls, else None."""
        return self.validity if self.null_count else None

    # ---- parts

    def slice(self, start: int = 0, stop: int | None = None) -> Self:
        """Return values ``start`` to ``stop - 1``. Bounds outside the column follow Python's rules for slices.

        The values are shared. The validity bits are copied if start is not a multiple of 8.

        Args:
            start: index of the first value.
            stop: one more than the last value's index, or None for all values from start on.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        if stop - start == len(self):
            return self
        validity, null_count = None, 0
        if self.validity is not None and self.null_count:
            validity = slice_bitmap(self.validity, start, stop - start)
            null_count = count_zeros(validity, stop - start)
        with nesting_limit:
            return self._sliced(start, stop, validity=validity if null_count else None, null_count=null_count)

    def take(self, indices: Array) -> Self:
        """Return the values at some indices, in the order of the indices.

        Args:
            indices: shape (n,), int64, each from 0 to ``len(self) - 1``.

        Raises:
            SchemaError: the indices have another shape.
        """
        if np.ndim(indices) != 1:
            raise SchemaError(f"indices must have one dimension, but their shape is {np.shape(indices)}")
        validity, null_count = None, 0
        if self.validity is not None and self.null_count:
            validity, null_count = validity_of(self.validity_mask()[indices])
        with nesting_limit:
            return self._taken(indices, validity=validity, null_count=null_count)

    @abstractmethod
    def _sliced(self, start: int, stop: int, **nulls: Any) -> Self:
        """Return values ``start`` to ``stop - 1``. Both bounds are within the column.

        Args:
            start, stop: bounds.
            **nulls: validity and null_count of the result.
        """

    @abstractmethod
    def _taken(self, indices: Array, **nulls: Any) -> Self:
        """Return the values at some indices.

        Args:
            indices: as for ``take``.
            **nulls: validity and null_count of the result.
        """

    @abstractmethod
    def leaves(self) -> Iterator[tuple[tuple[ColumnBase, ...], ColumnBase]]:
        """Yield the flat columns inside this column, in schema order.

        Yields:
            (the nested columns around the flat column, outermost first, the flat column). A flat column yields itself.
        """

    @abstractmethod
    def leaf(self, path: Sequence[str]) -> ColumnBase:
        """Return the flat column at the end of a path through structs. It is also null where a struct on the path is null.

        Args:
            path: field names below this column. Empty if this column is flat.

        Raises:
            SchemaError: a field does not exist, the path goes through a list, or the path ends before a flat column.
        """

    # ---- values

    def __getitem__(self, key: Any) -> Any:
        """Return one value as a Python object, or a slice of the column.

        A value is converted as by ``to_pylist``. A null is None.

        Args:
            key: the value's index, negative to count from the end, or a slice.

        Raises:
            IndexError: there is no such value.
            SchemaError: the key has another type.
        """
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            return self.slice(start, stop) if step == 1 else self.take(np.arange(start, stop, step))
        try:
            place = operator.index(key)
        except TypeError:
            raise SchemaError(
                f"a column index must be an integer, not a {type(key).__name__}: use take(indices) for several values"
            ) from None
        if not -len(self) <= place < len(self):
            raise IndexError(f"value {place} of a column of {len(self)} values")
        place %= len(self)
        return self.slice(place, place + 1).to_pylist()[0]

    def __iter__(self) -> Iterator[Any]:
        """Yield the values as Python objects, converted as by ``to_pylist``. A null is None."""
        for start in range(0, len(self), ITERATED):
            yield from self.slice(start, start + ITERATED).to_pylist()

    def to_arrow(self) -> pyarrow.Array:
        """Return the values as a pyarrow.Array. Memory is shared where the layouts agree.

        Raises:
            UnsupportedError: pyarrow is not installed.
        """
        return package("pyarrow", "Column.to_arrow").array(_PyarrowColumn(self))

    @abstractmethod
    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype") -> Array:
        """Return the values as a NumPy array."""

    @abstractmethod
    def to_pylist(self) -> list[Any]:
        """Return the values as Python objects, None where null."""

    def equals(self, other: object) -> bool:
        """Return whether type, nulls and values are equal. NaN equals NaN. Layout and ``nullable`` do not matter.

        Args:
            other: another column. Any other object is unequal.
        """
        if not isinstance(other, type(self)) or len(self) != len(other) or self.null_count != other.null_count:
            return False
        if self.null_count and not np.array_equal(self.validity_mask(), other.validity_mask()):
            return False
        with nesting_limit:
            return self.type == other.type and self._equal_values(other)

    @abstractmethod
    def _equal_values(self, other: Self) -> bool:
        """Return whether the values equal another column's values. Both columns have the same type, length and nulls."""

    # ---- display

    def __repr__(self) -> str:
        from fastpq.arrays.preview import type_text

        return to_text(View(type(self).__name__, [type_text(self.type), counted(len(self), self.NOUN)]))

    def __str__(self) -> str:
        view = self._view(TEXT_VALUES)
        texts = [] if view.grid is None else [shorten(str(row[0]), TEXT_WIDTH) for row in view.grid.rows]
        texts += [ELLIPSIS] * (len(self) > len(texts))
        return to_text(View(view.name, view.facts, lines=[", ".join(texts)] if texts else ()))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the column with its first values. IPython calls this to show a result."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_VALUES))

    def _view(self, most_values: int) -> View:
        """Return what ``str`` and notebooks show: the type, the value count and the first ``most_values`` values."""
        from fastpq.arrays.preview import is_number, type_text

        visible_count = min(len(self), most_values)
        facts = [type_text(self.type), counted(len(self), self.NOUN)]
        facts += [counted(self.null_count, "null")] if self.null_count else []
        rows = [(text,) for text in self._value_texts(0, visible_count)]
        heading = Heading("value", is_number=is_number(self.type))
        grid = Grid([heading], rows, more(len(self), visible_count, self.NOUN))
        return View(type(self).__name__, facts, grid if rows else None)

    def _value_texts(self, start: int, stop: int, levels: int = TEXT_LEVELS) -> list[str]:
        """Return a short text for each value from ``start`` to ``stop - 1``. Values that cannot be shown have the text BROKEN."""
        mask = [True] * (stop - start)
        try:
            part = self.slice(start, stop)
            mask = part.validity_mask().tolist()
            texts = part._texts(levels)
        except (ParquetError, ValueError, IndexError, OverflowError):
            texts = [BROKEN] * len(mask)
        return [text if is_valid else NULL for text, is_valid in zip(texts, mask, strict=True)]

    @abstractmethod
    def _texts(self, levels: int) -> list[str]:
        """Return a short text for each value. It shows at most ``levels`` levels of nesting. A null's text is arbitrary."""

    # ---- Arrow

    def __arrow_c_schema__(self) -> object:
        """Return the type as an Arrow PyCapsule without a name."""
        return export("schema", self)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return the type and the values as Arrow PyCapsules."""
        capsules: tuple[object, object] = export("array", self, requested_schema)
        return capsules


class _PyarrowColumn:
    """A column as pyarrow reads it: if its Arrow field says so, as a union or a narrow decimal (fastpq.arrow.original_types)."""

    def __init__(self, column: ColumnBase) -> None:
        self._column = column

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        arrays: tuple[object, object] = export("array", self._column, export("pyarrow_request", self._column) or requested_schema)
        return arrays


@cache
def _places_of(kind: type[ColumnBase]) -> dict[str, int]:
    """Return the byte offset of each field within an instance of a column class, by name, in the order of the constructor."""
    return {name: place_of(getattr(kind, name)) for name in kind.__match_args__}  # type: ignore[attr-defined]
