from typing import final

from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.column_output import ColumnOutput
from fastpq.encryption.cipher import ModuleCipher
from fastpq.read.chunk_plan import ChunkPlan

def cut_runs(chunks: list[ChunkPlan], width: int, variable: bool, largest: int, most: int) -> list[tuple[int, int]]: ...

@final
class ChunkRun:
    @property
    def reader(self) -> ChunkReader: ...
    @property
    def current(self) -> int: ...
    def __init__(
        self, reader: ChunkReader, chunks: list[ChunkPlan], positions: list[int], ciphers: list[ModuleCipher] | None = None
    ) -> None: ...
    def read(self, output: ColumnOutput, offset: int) -> int: ...
