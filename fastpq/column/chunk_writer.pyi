from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.memory import Pieces
from fastpq.codecs.codec import Codec
from fastpq.column.chunk_settings import ChunkSettings
from fastpq.column.input import ColumnInput
from fastpq.column.page_log import PageLog
from fastpq.encryption.cipher import ModuleCipher
from fastpq.index.bloom_filter import SplitBlockBloomFilter

class ChunkWriter:
    @property
    def pieces(self) -> Pieces: ...
    @property
    def stored_size(self) -> int: ...
    @property
    def uncompressed_size(self) -> int: ...
    @property
    def dictionary_page_size(self) -> int: ...
    @property
    def num_data_pages(self) -> int: ...
    @property
    def page_counts(self) -> dict[tuple[int, int], int]: ...
    @property
    def num_values(self) -> int: ...
    @property
    def null_count(self) -> int: ...
    @property
    def pages(self) -> PageLog: ...
    @property
    def distinct_count(self) -> int: ...
    @property
    def bloom_filter(self) -> SplitBlockBloomFilter | None: ...
    def __init__(
        self,
        input: ColumnInput,
        codec: Codec,
        cipher: ModuleCipher,
        settings: ChunkSettings,
        give: Callable[[list[bytes | memoryview]], object] | None = None,
        cuts: NDArray[np.int64] | None = None,
    ) -> None: ...
    def begin_dictionary(self, entries: ColumnInput) -> None: ...
    def write(self, start: int, stop: int) -> None: ...
