"""Joining the NestedOutputs of all leaves to one nested column; shred.py takes columns apart.

assembly.pyx has made offsets and validity from the levels of each leaf.
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


def _equal(left: Array | None, right: Array | None) -> bool:
    return np.array_equal(left, right) if left is not None and right is not None else left is right


def assemble(shape: Shape, outputs: Mapping[int, NestedOutput], leaves: Mapping[int, Column]) -> AnyColumn:
    """The column of a shape.

    Args:
        shape: of the column.
        outputs: the outputs of all leaves, by leaf index and of the same rows.
        leaves: the columns of the leaves, by leaf index; layers above play no part.

    Raises:
        FormatError: the leaves below a list or a struct disagree about the nulls or offsets.
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
            raise FormatError("the leaves of a struct disagree about how often there is one", column=_name(shape))
        length = lengths.pop()
        if shape.layer is None:
            return StructColumn._made(shape.type, children, length, nullable=False)
        layer = self._shared(shape, shape.layer)
        if layer.slots != length:
            raise FormatError(f"{layer.slots} structs with fields of {length} values", column=_name(shape))
        return StructColumn._made(shape.type, children, length, **_nulls(shape, layer))

    def _shared(self, shape: ListShape | StructShape, number: int) -> _Layer:
        """The layer of a list or a struct, equal in the outputs of all leaves below."""
        first, *others = [self.layers[leaf.column.index][number] for leaf in shape.leaves]
        if not all(first.agrees(other) for other in others):
            kind = "lists" if isinstance(shape, ListShape) else "structs"
            raise FormatError(f"the leaves below disagree about its {kind}", column=_name(shape))
        return first


def _nulls(shape: ListShape | StructShape, layer: _Layer) -> dict[str, Any]:
    # a required value under a null struct counts as no null: the struct's own bitmap marks the row
    return {"validity": layer.validity, "null_count": layer.null_count} if shape.nullable else {}


def _name(shape: ListShape | StructShape) -> str:
    return shape.leaves[0].column.path[0]
