from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.column.chunk_writer import ChunkWriter
from fastpq.column.shred import LeafToWrite
from fastpq.encryption.cipher import ModuleCipher
from fastpq.index.written_pages import WrittenPages
from fastpq.io.sink import Sink
from fastpq.write.plain_entry import EntryPattern
from fastpq.write.row_groups import PlacedChunk
from fastpq.write.spec import ColumnSpec

@final
class ChunkToWrite:
    def __init__(
        self,
        leaf: LeafToWrite,
        path: tuple[str, ...],
        spec: ColumnSpec,
        cipher: ModuleCipher,
        row_group: int,
        start: int,
        stop: int,
        cuts: NDArray[np.int64] | None = None,
    ) -> None: ...

@final
class EncodedChunk:
    @property
    def spec(self) -> ColumnSpec: ...
    @property
    def writer(self) -> ChunkWriter: ...
    def __init__(
        self,
        path: tuple[str, ...],
        spec: ColumnSpec,
        cipher: ModuleCipher,
        writer: ChunkWriter,
        geospatial: fmt.GeospatialStatistics | None,
    ) -> None: ...
    def place(self, sink: Sink) -> int: ...
    def written_pages(self) -> WrittenPages: ...
    def placed(self, start: int, pattern: EntryPattern | None = None) -> PlacedChunk: ...

def encode_chunk(chunk: ChunkToWrite, give: Callable[[list[bytes | memoryview]], object]) -> EncodedChunk: ...
