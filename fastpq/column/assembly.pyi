from typing import Any

from numpy.typing import NDArray

from fastpq.column.column_output import Output
from fastpq.schema.shape import Layer, LeafShape

class LayerOutput:
    is_list: bool
    slots: int
    elements: int
    def __init__(self, layer: Layer, expected: int = 0) -> None: ...
    def offsets(self) -> NDArray[Any]: ...
    def validity(self) -> tuple[NDArray[Any] | None, int]: ...

class NestedOutput(Output):
    layers: tuple[LayerOutput, ...]

    slots: int

    def __init__(self, leaf: LeafShape, width: int, expected: int = 0) -> None: ...
    def contents(self) -> NDArray[Any]: ...
    def validity(self) -> tuple[NDArray[Any] | None, int]: ...
