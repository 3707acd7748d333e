import numpy as np
from numpy.typing import NDArray

from fastpq.schema.variant_kinds import MAX_DEPTH as MAX_DEPTH

_Bytes = bytes | bytearray | memoryview | NDArray[np.uint8]

def check(metadata: _Bytes, value: _Bytes, strict: bool = True) -> None: ...
