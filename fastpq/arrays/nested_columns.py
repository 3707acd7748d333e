"""Nested columns in memory, in Arrow's layout: lists and maps as offsets into a column of elements, structs as columns side by
side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import numpy as np

from fastpq.arrays.bitmap import pack_bitmap
from fastpq.arrays.column_base import ColumnBase
from fastpq.arrays.flat_column import Column
from fastpq.arrays.layouts import MAX_INT32, Array
from fastpq.arrays.numpy_output import Nulls, Strings, rows_of_one_size, structured_of_struct
from fastpq.common.extensions import registered
from fastpq.common.lazy import LazyModule
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import ListType, MapType, StructType, element_of

if TYPE_CHECKING:
    from fastpq.arrays import nodes
else:       # types of annotations, for typing.get_type_hints
    nodes = LazyModule("fastpq.arrays.nodes")


class NestedColumn(ColumnBase):
    """A column of values with columns inside."""

    __slots__ = ()

    is_nested: ClassVar[Literal[True]] = True

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Array:
        """The values as an object array of lists or dicts, None where null; the columns inside are at hand without a copy.

        Args:
            nulls: without effect.
            strings: without effect.
            structured: without effect.
        """
        values = self.to_pylist()
        return np.fromiter(values, dtype=object, count=len(values))

    def _with_nones(self, values: list[Any]) -> list[Any]:
        if self.null_count:
            for i in np.flatnonzero(~self.validity_mask()).tolist():
                values[i] = None
        return values


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListColumn(NestedColumn):
    """Lists, or maps as lists of pairs.

    Attributes:
        type: a ListType or a MapType.
        offsets: shape (n + 1,), int32 or int64, ascending: list i is elements ``offsets[i]`` to ``offsets[i + 1] - 1``. The
            first need not be 0, and there may be elements after the last.
        elements: the values of all lists; of a map a StructColumn of keys and values.
        validity: bitmap, uint8, LSB first, or None when no list is null.
        null_count: number of null lists.
        nullable: whether the schema allows null lists.
        arrow: as in Column.

    Raises:
        SchemaError: sizes or types in disagreement.
    """

    NOUN: ClassVar[str] = "list"

    type: ListType | MapType
    offsets: Array
    elements: AnyColumn
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True
    arrow: nodes.FieldNode | None = None

    def __post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or not len(offsets) or offsets.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
            raise SchemaError(f"offsets of shape {offsets.shape} and dtype {offsets.dtype}")
        if int(offsets[0]) < 0 or int(offsets[-1]) > len(self.elements) or bool((offsets[1:] < offsets[:-1]).any()):
            raise SchemaError(f"offsets that are not ascending within {len(self.elements)} elements")
        if self.elements.type != element_of(self.type).type:
            raise SchemaError(f"elements of type {self.elements.type} in a {self.type}")
        self._check_validity()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Array:
        """The values as an object array of lists, None where null; of Arrow's fixed-size lists an array of more dimensions.

        Args:
            nulls: of fixed-size lists as for ``Column.to_numpy``; ``"object"`` gives lists.
            strings: as for ``Column.to_numpy``, for fixed-size lists.
            structured: whether structs in fixed-size lists are structured arrays, as for ``StructColumn.to_numpy``.

        Returns:
            Shape (n,), dtype object. For lists that came as fixed-size lists of k values, in Arrow data, ARROW:schema or an array
            of two dimensions, the elements' array in shape (n, k), without a copy if no list is null.
        """
        size = None if self.arrow is None or nulls == "object" else self.arrow.list_size
        rows = None if size is None or self.pairs is not None else rows_of_one_size(self, size, nulls, strings, structured)
        return NestedColumn.to_numpy(self) if rows is None else rows

    def _array_bytes(self) -> int:
        return self.offsets.nbytes + self.elements.nbytes

    def used_bytes(self) -> int:
        bits = 0 if self.validity is None else self.validity.nbytes
        return bits + self.offsets.nbytes + self.used_elements().used_bytes()

    @property
    def pairs(self) -> StructColumn | None:
        """Keys and values of all maps; None of lists."""
        return cast("StructColumn", self.elements) if isinstance(self.type, MapType) else None

    def used_elements(self) -> AnyColumn:
        """The elements from the first offset to the last."""
        return self.elements.slice(int(self.offsets[0]), int(self.offsets[-1]))

    def _sliced(self, start: int, stop: int, **nulls: Any) -> ListColumn:
        return self._with(offsets=self.offsets[start : stop + 1], **nulls)

    def _taken(self, indices: Array, **nulls: Any) -> ListColumn:
        starts = self.offsets[:-1][indices].astype(np.int64)
        lengths = np.diff(self.offsets)[indices].astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
        if offsets[-1] <= MAX_INT32:
            offsets = offsets.astype(np.int32)
        return self._with(offsets=offsets, elements=self.elements.take(places), **nulls)

    def _joined(self, parts: Sequence[ListColumn], name: str, **nulls: Any) -> ListColumn:
        from fastpq.arrays.concat import concat_columns, concat_offsets

        elements = concat_columns([part.used_elements() for part in parts], name)
        return self._with(offsets=concat_offsets([part.offsets for part in parts]), elements=elements, **nulls)

    def leaves(self) -> Iterator[tuple[tuple[ColumnBase, ...], Column]]:
        """Each flat column of the elements, in the order of the schema, with the columns above from this one on."""
        elements = self.elements
        if self.pairs is not None:      # keys are required, whatever the file of the column says
            key, value = self.pairs.children
            elements = self.pairs._with(children=(key._with(nullable=False), value))
        for above, leaf in elements.leaves():
            yield (self, *above), leaf

    def leaf(self, path: Sequence[str]) -> Column:
        """Lists have no leaf with a value for each row.

        Args:
            path: names of fields.

        Raises:
            SchemaError: always.
        """
        raise SchemaError(f"a {self.type} column is repeated")

    def to_pylist(self) -> list[Any]:
        """A list for each list, of pairs for a map; None where null."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        if self.pairs is None:
            elements = self.elements.slice(first, last).to_pylist()
        else:
            keys, values = (child.slice(first, last).to_pylist() for child in self.pairs.children)
            elements = list(zip(keys, values, strict=True))
        bounds = (self.offsets - self.offsets[0]).tolist()
        return self._with_nones([elements[start:stop] for start, stop in pairwise(bounds)])

    def _texts(self, levels: int) -> list[str]:
        from fastpq.arrays.preview import list_texts

        return list_texts(self, levels)

    def _equal_values(self, other: ListColumn) -> bool:
        mine, theirs = self._without_hidden_elements(), other._without_hidden_elements()
        if not np.array_equal(np.diff(mine.offsets), np.diff(theirs.offsets)):
            return False
        return mine.used_elements().equals(theirs.used_elements())

    def _without_hidden_elements(self) -> ListColumn:
        """The same lists with no elements under null lists."""
        if not self.null_count:
            return self
        lengths = np.diff(self.offsets)
        mask = self.validity_mask()
        if not bool(lengths[~mask].any()):
            return self
        packed = self._taken(np.flatnonzero(mask), validity=None, null_count=0)
        lengths = np.where(mask, lengths, 0)
        offsets = np.concatenate([np.zeros(1, self.offsets.dtype), np.cumsum(lengths, dtype=self.offsets.dtype)])
        return self._with(offsets=offsets, elements=packed.elements)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StructColumn(NestedColumn):
    """Structs: a column for each field.

    Attributes:
        type: a StructType.
        children: the columns of the fields, all of one length; their values under a null struct do not count.
        length: number of structs.
        validity: bitmap, uint8, LSB first, or None when no struct is null.
        null_count: number of null structs.
        nullable: whether the schema allows null structs.
        arrow: as in Column.

    Raises:
        SchemaError: sizes or types in disagreement.
    """

    NOUN: ClassVar[str] = "struct"

    type: StructType
    children: tuple[AnyColumn, ...]
    length: int
    validity: Array | None = None
    null_count: int = 0
    nullable: bool = True
    arrow: nodes.FieldNode | None = None

    def __post_init__(self) -> None:
        if [child.type for child in self.children] != [field.type for field in self.type.fields]:
            raise SchemaError(f"fields of types {[str(child.type) for child in self.children]} in a {self.type}")
        for field, child in zip(self.type.fields, self.children, strict=True):
            if len(child) != self.length:
                raise SchemaError(f"{len(child)} values of field {field.name!r} in {self.length} structs")
        self._check_validity()

    def __len__(self) -> int:
        return self.length

    def to_numpy(self, *, nulls: Nulls = "masked", strings: Strings = "stringdtype", structured: bool = False) -> Array:
        """The values as an object array of dicts, None where null; or as a structured array.

        Args:
            nulls: of structured arrays, as for ``Column.to_numpy``, in each field; the fields of a null struct are null.
            strings: without effect; fields of structured arrays hold text as objects.
            structured: whether to return a structured array, with structured fields for structs and subarrays for fixed-size
                lists. Structs of ``real`` and ``imag``, both FLOAT or both DOUBLE, are complex numbers. Other lists, maps,
                variants and FILE values are objects.

        Raises:
            SchemaError: two fields of one name, or nulls without NaN.
        """
        if structured and self.type.annotation is None:
            return structured_of_struct(self, nulls)
        return NestedColumn.to_numpy(self)

    def _array_bytes(self) -> int:
        return sum(child.nbytes for child in self.children)

    def used_bytes(self) -> int:
        bits = 0 if self.validity is None else self.validity.nbytes
        return bits + sum(child.used_bytes() for child in self.children)

    def __getitem__(self, name: Any) -> Any:
        """The column of the one field of a name, whose nulls are not those of the struct; or a value, or a slice."""
        if not isinstance(name, str):
            return ColumnBase.__getitem__(self, name)
        found = [child for field, child in zip(self.type.fields, self.children, strict=True) if field.name == name]
        if len(found) != 1:
            raise SchemaError(f"{len(found)} fields are named {name!r} in {self.type}")
        return found[0]

    def _sliced(self, start: int, stop: int, **nulls: Any) -> StructColumn:
        children = tuple(child.slice(start, stop) for child in self.children)
        return self._with(children=children, length=stop - start, **nulls)

    def _taken(self, indices: Array, **nulls: Any) -> StructColumn:
        return self._with(children=tuple(child.take(indices) for child in self.children), length=len(indices), **nulls)

    def _joined(self, parts: Sequence[StructColumn], name: str, **nulls: Any) -> StructColumn:
        from fastpq.arrays.concat import concat_columns

        fields = zip(*[part.children for part in parts], strict=True)
        children = tuple(concat_columns(columns, name) for columns in fields)
        return self._with(children=children, length=sum(map(len, parts)), **nulls)

    def leaves(self) -> Iterator[tuple[tuple[ColumnBase, ...], Column]]:
        """Each flat column of the fields, in the order of the schema, with the columns above from this one on."""
        for child in self.children:
            for above, leaf in child.leaves():
                yield (self, *above), leaf

    def leaf(self, path: Sequence[str]) -> Column:
        """The flat column at the end of a path of fields, null also where a struct above is null.

        Args:
            path: names of fields.

        Raises:
            SchemaError: no field of a name, or a path through lists or one with an early end.
        """
        if not path:
            raise SchemaError(f"a {self.type} column is no leaf")
        found: Column = self[path[0]].leaf(path[1:])
        return found._with(**self._nulls_with(found)) if self.null_count else found

    def fields(self) -> Iterator[AnyColumn]:
        """The column of each field; a field that is a struct is null also where this struct is null.

        A REQUIRED variant in a null struct has no bytes, and is no value.
        """
        for child in self.children:
            yield child._with(**self._nulls_with(child)) if self.null_count and isinstance(child, StructColumn) else child

    def _nulls_with(self, child: ColumnBase) -> dict[str, Any]:
        """The fields of a column for nulls where this struct or the column is null."""
        valid = child.validity_mask() & self.validity_mask()
        return {"validity": pack_bitmap(valid), "null_count": len(valid) - int(np.count_nonzero(valid)), "nullable": True}

    def to_pylist(self) -> list[Any]:
        """A dict for each struct, None where null; of fields of one name the last.

        A variant is the value inside (``fastpq.schema.variant_kinds``), and a FILE a ``fastpq.file_reference.FileReference``.
        """
        annotated = None if self.type.annotation is None else registered(f"to_pylist {self.type.annotation}")
        if annotated is not None:
            values: list[Any] = annotated(self)
            return values
        names = [field.name for field in self.type.fields]
        columns = [child.to_pylist() for child in self.fields()]
        if not columns:
            return self._with_nones([{} for _ in range(self.length)])
        return self._with_nones([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])

    def _texts(self, levels: int) -> list[str]:
        from fastpq.arrays.preview import struct_texts

        return struct_texts(self, levels)

    def _equal_values(self, other: StructColumn) -> bool:
        pairs = zip(self.children, other.children, strict=True)
        if not self.null_count:
            return all(mine.equals(theirs) for mine, theirs in pairs)
        there = np.flatnonzero(self.validity_mask())
        return all(mine.take(there).equals(theirs.take(there)) for mine, theirs in pairs)


AnyColumn: TypeAlias = Column | ListColumn | StructColumn
