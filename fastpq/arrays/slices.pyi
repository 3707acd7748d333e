from typing import Any

from numpy.typing import NDArray

from fastpq.arrays.layouts import Values

class SliceReader:
    count: int
    def __init__(self, values: Values, validity: NDArray[Any] | None = None) -> None: ...
