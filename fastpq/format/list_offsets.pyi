import numpy as np
from numpy.typing import NDArray

class StructList:
    offsets: NDArray[np.int64]
    def inner(self, index: int) -> tuple[NDArray[np.int64], int] | None: ...
