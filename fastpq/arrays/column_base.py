"""The base of all columns: nulls, parts, comparison, display and the Arrow interface."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.bitmap import bitmap_size, count_zeros, pack_bitmap, slice_bitmap, unpack_bitmap
from fastpq.arrays.layouts import Array
from fastpq.arrays.numpy_output import Nulls, Strings
from fastpq.common.display import to_html
from fastpq.common.extensions import export
from fastpq.common.lazy import LazyModule, package
from fastpq.errors import SchemaError
from fastpq.format.slots import made_of, place_of
from fastpq.schema.nested_types import DataType, Field

if TYPE_CHECKING:
    import pyarrow

    from fastpq.arrays import flat_column, nodes
else:       # types of annotations, for typing.get_type_hints
    pyarrow = LazyModule("pyarrow")
    flat_column = LazyModule("fastpq.arrays.flat_column")
    nodes = LazyModule("fastpq.arrays.nodes")

# Values of a column in a notebook.
HTML_VALUES = 10
# Values made into Python objects at a time by iteration.
ITERATED = 4096


class ColumnBase(ABC):
    """Values of one type; the memory may be shared with other objects and is never written to.

    Each kind of column is a frozen dataclass with the fields below and arrays of its own. The constructor of a kind checks its
    arrays. ``_made`` and ``_with`` check nothing: they take arrays from kernels, and parts of checked columns.

    Attributes:
        type: type of the values.
        validity: bitmap, uint8, LSB first, at least (n + 7) // 8 bytes, or None when no value is null.
        null_count: number of nulls.
        nullable: whether the schema allows nulls (OPTIONAL).
        arrow: the Arrow field from which the values came, now or before Parquet held them; exports follow it.
    """

    __slots__ = ()

    NOUN: ClassVar[str]     # one value, in displays
    is_nested: ClassVar[bool]

    type: DataType
    validity: Array | None
    null_count: int
    nullable: bool
    arrow: nodes.FieldNode | None

    # ---- construction

    @classmethod
    def _made(
        cls,
        *parts: Any,
        validity: Array | None = None,
        null_count: int = 0,
        nullable: bool = True,
        arrow: nodes.FieldNode | None = None,
    ) -> Self:
        """A column of arrays from kernels, or of parts of checked columns: nothing is checked.

        Args:
            *parts: the type, and the other fields of the kind before validity, in the order of the constructor.
            validity, null_count, nullable, arrow: as above.
        """
        return made_of(cls, _places_of(cls), (*parts, validity, null_count, nullable, arrow))

    def _with(self, **changes: Any) -> Self:
        """The same column with some fields changed, unchecked."""
        names = self.__match_args__  # type: ignore[attr-defined]
        values = tuple([changes.pop(name) if name in changes else getattr(self, name) for name in names])
        assert not changes, f"no fields of a {type(self).__name__}: {[*changes]}"
        return made_of(type(self), _places_of(type(self)), values)

    def _check_validity(self) -> None:
        if not 0 <= self.null_count <= len(self):
            raise SchemaError(f"{self.null_count} nulls among {len(self)} values")
        bits = self.validity
        if self.null_count if bits is None else bits.dtype != np.uint8 or len(bits) < bitmap_size(len(self)):
            raise SchemaError(f"{self.null_count} nulls and no validity bitmap of {len(self)} bits")

    def with_arrow(self, field: nodes.FieldNode | None) -> Self:
        """The same values, with another Arrow field.

        Args:
            field: the field; None for none.
        """
        return self._with(arrow=field)

    def as_field(self, name: str) -> Field:
        """The column as a field of a struct or a list.

        Args:
            name: name of the field.
        """
        return Field(name, self.type, self.nullable)

    # ---- sizes

    @abstractmethod
    def __len__(self) -> int:
        """Number of values."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, memory shared with other columns included."""
        return self._array_bytes() + (0 if self.validity is None else self.validity.nbytes)

    @abstractmethod
    def used_bytes(self) -> int:
        """Bytes of the values alone: of shared memory, the bytes of each value, as often as the value occurs."""

    @abstractmethod
    def _array_bytes(self) -> int:
        """Bytes of the arrays without the validity bitmap."""

    # ---- nulls

    def validity_mask(self) -> NDArray[np.bool_]:
        """True where there is a value, False where null; shape (n,), new memory."""
        if self.validity is None or not self.null_count:
            return np.ones(len(self), np.bool_)
        return unpack_bitmap(self.validity, 0, len(self))

    def _valid_bits(self) -> Array | None:
        """The validity bitmap of a column with nulls; None without nulls."""
        return self.validity if self.null_count else None

    # ---- parts

    def slice(self, start: int = 0, stop: int | None = None) -> Self:
        """Values ``start`` to ``stop - 1``, with Python's rules for bounds outside of the column.

        Values are shared; of the validity bits a copy is made where start is not a multiple of 8.

        Args:
            start: first value.
            stop: value behind the last; None for all values from start on.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        validity, null_count = None, 0
        if self.validity is not None and self.null_count:
            validity = slice_bitmap(self.validity, start, stop - start)
            null_count = count_zeros(validity, stop - start)
        return self._sliced(start, stop, validity=validity if null_count else None, null_count=null_count)

    def take(self, indices: Array) -> Self:
        """The values at some places.

        Args:
            indices: int64, each from 0 to ``len(self) - 1``; shape (n,).

        Raises:
            SchemaError: indices of another shape.
        """
        if np.ndim(indices) != 1:
            raise SchemaError(f"indices of shape {np.shape(indices)}, not of one dimension")
        validity, null_count = None, 0
        if self.validity is not None and self.null_count:
            mask = self.validity_mask()[indices]
            null_count = len(mask) - int(np.count_nonzero(mask))
            validity = pack_bitmap(mask) if null_count else None
        return self._taken(indices, validity=validity, null_count=null_count)

    @abstractmethod
    def _sliced(self, start: int, stop: int, **nulls: Any) -> Self:
        """Values ``start`` to ``stop - 1``, both within the column, with the fields validity and null_count."""

    @abstractmethod
    def _taken(self, indices: Array, **nulls: Any) -> Self:
        """The values at some places, with the fields validity and null_count."""

    @abstractmethod
    def _joined(self, parts: Sequence[Any], name: str, **nulls: Any) -> Self:
        """The values of columns of this type, one after another.

        Args:
            parts: the columns, this one first.
            name: name of the column, for errors.
            **nulls: the fields validity, null_count and nullable.
        """

    @abstractmethod
    def leaves(self) -> Iterator[tuple[tuple[ColumnBase, ...], flat_column.Column]]:
        """Each flat column inside, in the order of the schema, with the columns above from the outermost on."""

    @abstractmethod
    def leaf(self, path: Sequence[str]) -> flat_column.Column:
        """The flat column at the end of a path of structs, null also where a struct above is null.

        Args:
            path: names of fields; none for a flat column itself.

        Raises:
            SchemaError: no field of a name, or a path through lists or one with an early end.
        """

    # ---- values

    def __getitem__(self, key: Any) -> Any:
        """A value as a Python object, None where null (``to_pylist``), or the column of a slice of the values.

        Args:
            key: place of the value, negative from the end; or a slice.

        Raises:
            IndexError: there is no such value.
            SchemaError: key is something else.
        """
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            return self.slice(start, stop) if step == 1 else self.take(np.arange(start, stop, step))
        try:
            place = operator.index(key)
        except TypeError:
            raise SchemaError(
                f"a value of a column has a number, not a {type(key).__name__}; take(indices) gives several values"
            ) from None
        if not -len(self) <= place < len(self):
            raise IndexError(f"value {place} of a column of {len(self)} values")
        place %= len(self)
        return self.slice(place, place + 1).to_pylist()[0]

    def __iter__(self) -> Iterator[Any]:
        """The values as Python objects, None where null (``to_pylist``)."""
        for start in range(0, len(self), ITERATED):
            yield from self.slice(start, start + ITERATED).to_pylist()

    def to_arrow(self) -> pyarrow.Array:
        """The values as a pyarrow.Array; memory is shared where the layouts agree.

        Raises:
            UnsupportedError: pyarrow is not installed.
        """
        return package("pyarrow", "Column.to_arrow").array(_Requested(self))

    @abstractmethod
    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype") -> Array:
        """The values as a NumPy array."""

    @abstractmethod
    def to_pylist(self) -> list[Any]:
        """The values as Python objects, None where null."""

    def equals(self, other: object) -> bool:
        """Whether type, nulls and values are equal; NaN equals NaN; layout and ``nullable`` do not count.

        Args:
            other: another column; any other object is unequal.
        """
        if not isinstance(other, type(self)) or self.type != other.type:
            return False
        if len(self) != len(other) or self.null_count != other.null_count:
            return False
        if self.null_count and not np.array_equal(self.validity_mask(), other.validity_mask()):
            return False
        return self._equal_values(other)

    @abstractmethod
    def _equal_values(self, other: Self) -> bool:
        """Whether the values of a column of the same type, length and nulls are equal."""

    # ---- display

    def __repr__(self) -> str:
        from fastpq.arrays.preview import headline

        return headline(self)

    def __str__(self) -> str:
        from fastpq.arrays.preview import with_values

        return with_values(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython, where a person asks to see the column: with values."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        from fastpq.arrays.preview import column_view

        return to_html(column_view(self, HTML_VALUES))

    @abstractmethod
    def _texts(self, levels: int) -> list[str]:
        """A short text for each value, down to some levels of nesting; any text for a null."""

    # ---- Arrow

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: the type, nameless."""
        return export("schema", self)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Arrow PyCapsule interface: the type and the values."""
        capsules: tuple[object, object] = export("array", self, requested_schema)
        return capsules


class _Requested:
    """A column whose decimals pyarrow takes in the width of the Arrow schema (fastpq.arrow.narrow_decimals)."""

    def __init__(self, column: ColumnBase) -> None:
        self._column = column

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        arrays: tuple[object, object] = export("array", self._column, export("request", self._column) or requested_schema)
        return arrays


@cache
def _places_of(kind: type[ColumnBase]) -> tuple[int, ...]:
    """Places of the fields of a kind of column in memory, in the order of its constructor."""
    return tuple(place_of(getattr(kind, name)) for name in kind.__match_args__)  # type: ignore[attr-defined]
