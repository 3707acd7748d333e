from fastpq.column.assembly import NestedOutput
from fastpq.column.reader import ChunkReader

class NestedReader(ChunkReader):
    def read_rows(self, output: NestedOutput, count: int) -> int: ...
