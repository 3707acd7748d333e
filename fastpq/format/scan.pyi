from typing import Any

import numpy as np

def scan_list(data: Any, offset: int, name: str) -> np.ndarray[Any, np.dtype[np.int64]]: ...
