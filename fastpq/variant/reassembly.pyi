from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.slices import SliceReader
from fastpq.variant.shredded import Shredded

def reassemble(
    metadata: SliceReader, shredded: Shredded, validity: NDArray[np.uint8] | None, limit: int
) -> tuple[NDArray[np.int64], NDArray[Any]]: ...
