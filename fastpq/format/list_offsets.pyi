import numpy as np
from numpy.typing import NDArray

MISSING: int

class StructList:
    offsets: NDArray[np.int64]
    def number(self, index: int, field: int) -> int | None: ...
    def noted(self, field: int) -> NDArray[np.int64]: ...
    def inner(self, index: int) -> tuple[NDArray[np.int64], int] | None: ...
