"""Joins the decoded leaves of a nested column to one column. shred.py does the reverse.

Each leaf has a NestedOutput (assembly.pyx), which holds the offsets and the validity for all layers above the leaf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.arrays.layouts import Array
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.column.assembly import LayerOutput, NestedOutput
from fastpq.errors import FormatError
from fastpq.schema.shape import LeafShape, ListShape, Shape, StructShape

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn, Column


@dataclass(frozen=True, slots=True)
class _Layer:
    offsets: Array | None
    validity: Array | None
    null_count: int
    slots: int

    @classmethod
    def of(cls, output: LayerOutput) -> _Layer:
        validity, null_count = output.validity()
        return cls(output.offsets() if output.is_list else None, validity, null_count, output.slots)

    def agrees(self, other: _Layer) -> bool:
        same = self.slots == other.slots and self.null_count == other.null_count
        return same and _equal(self.offsets, other.offsets) and _equal(self.validity, other.validity)


def _equal(one: Array | None, other: Array | None) -> bool:
    return np.array_equal(one, other) if one is not None and other is not None else one is other


def assemble(shape: Shape, outputs: Mapping[int, NestedOutput], leaves: Mapping[int, Column]) -> AnyColumn:
    """Join all decoded leaves to one column.

    Args:
        shape: the column's shape.
        outputs: the leaves' outputs, by leaf index. All have the same rows.
        leaves: the leaves' values as flat columns, by leaf index.

    Raises:
        FormatError: the leaves below a list or a struct disagree about its nulls or offsets.
    """
    layers = {index: [_Layer.of(layer) for layer in output.layers] for index, output in outputs.items()}
    return _Assembly(leaves, layers).column(shape)


@dataclass(frozen=True, slots=True)
class _Assembly:
    leaves: Mapping[int, Column]
    layers: Mapping[int, list[_Layer]]

    def column(self, shape: Shape) -> AnyColumn:
        if isinstance(shape, LeafShape):
            return self.leaves[shape.column.index]
        if isinstance(shape, StructShape):
            return self._struct(shape)
        layer = self._shared(shape, shape.layer)
        assert layer.offsets is not None
        elements = self.column(shape.element)
        nulls = _nulls(shape, layer)
        return ListColumn._made(shape.type, layer.offsets, elements, **nulls, nullable=shape.nullable)

    def _struct(self, shape: StructShape) -> StructColumn:
        children = tuple(self.column(child) for child in shape.children)
        lengths = {len(child) for child in children}
        if len(lengths) > 1:
            raise FormatError("the leaves of a struct disagree about the number of structs", column=_name(shape))
        length = lengths.pop()
        if shape.layer is None:
            return StructColumn._made(shape.type, children, length, nullable=False)
        layer = self._shared(shape, shape.layer)
        if layer.slots != length:
            raise FormatError(f"{layer.slots} structs, but {length} values in each field", column=_name(shape))
        return StructColumn._made(shape.type, children, length, **_nulls(shape, layer))

    def _shared(self, shape: ListShape | StructShape, number: int) -> _Layer:
        """Return the layer for a list or a struct. Check first that all leaves below it have the same layer."""
        first, *others = [self.layers[leaf.column.index][number] for leaf in shape.leaves]
        if not all(first.agrees(other) for other in others):
            kind = "lists" if isinstance(shape, ListShape) else "structs"
            raise FormatError(f"the leaves below disagree about its {kind}", column=_name(shape))
        return first


def _nulls(shape: ListShape | StructShape, layer: _Layer) -> dict[str, Any]:
    # A required field has no nulls. Where the struct above it is null, the struct's own bitmap says so.
    return {"validity": layer.validity, "null_count": layer.null_count} if shape.nullable else {}


def _name(shape: ListShape | StructShape) -> str:
    return shape.leaves[0].column.path[0]
