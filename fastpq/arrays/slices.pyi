from typing import Any

from numpy.typing import NDArray

class SliceReader:
    count: int
    def __init__(self, values: object, validity: NDArray[Any] | None = None) -> None: ...
