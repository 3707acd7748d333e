from typing import Any

import numpy as np

def encode(values: np.ndarray[Any, Any], bit_width: int) -> bytes: ...
