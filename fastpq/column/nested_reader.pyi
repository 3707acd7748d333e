import numpy as np
from numpy.typing import NDArray

from fastpq.column.assembly import NestedOutput
from fastpq.column.chunk_reader import ChunkReader

class NestedReader(ChunkReader):
    def read_rows(self, output: NestedOutput, count: int) -> int: ...
    def read_row_ranges(self, output: NestedOutput, ranges: NDArray[np.int64]) -> int: ...

class StructLeafReader(NestedReader): ...
