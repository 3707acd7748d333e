import numpy as np
from numpy.typing import NDArray

Bytes = bytes | bytearray | memoryview | NDArray[np.uint8]

def check(metadata: Bytes, value: Bytes, strict: bool = True) -> None: ...
