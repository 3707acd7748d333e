import numpy as np
from numpy.typing import NDArray

from fastpq.column.input import ColumnInput

def content_cuts(
    column: ColumnInput, start: int, stop: int, max_definition_level: int, sizes: tuple[int, int, int]
) -> NDArray[np.int64]: ...
