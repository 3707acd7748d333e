from typing import Any

import numpy as np
from numpy.typing import NDArray

def find_pages(data: Any, start: int, checksums: bool) -> NDArray[np.int64]: ...
