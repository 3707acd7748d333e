from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.column_output import ColumnOutput

def read_chunks(readers: list[ChunkReader], output: ColumnOutput, offset: int) -> int: ...
