from dataclasses import dataclass
from typing import Any

from fastpq.codecs.codec import Codec
from fastpq.column.input import ColumnInput
from fastpq.column.page_log import PageLog
from fastpq.encryption.cipher import ModuleCipher
from fastpq.index.bloom_filter import SplitBlockBloomFilter

@dataclass(frozen=True, slots=True)
class ChunkSettings:
    max_definition_level: int
    max_repetition_level: int
    dictionary: bool
    keep_dictionary: bool
    value_encoding: int
    index_encoding: int
    order: int
    total_order: bool
    statistics: bool
    data_page_size: int
    data_page_rows: int
    dictionary_page_size: int
    version_2: bool
    checksums: bool
    bloom_filter_fpp: float | None
    bloom_filter_ndv: int | None

class ChunkWriter:
    @property
    def pieces(self) -> list[Any]: ...
    @property
    def stored_size(self) -> int: ...
    @property
    def uncompressed_size(self) -> int: ...
    @property
    def dictionary_page_size(self) -> int: ...
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
    def __init__(self, input: ColumnInput, codec: Codec, cipher: ModuleCipher, settings: ChunkSettings) -> None: ...
    def begin_dictionary(self, entries: ColumnInput) -> None: ...
    def write(self, start: int, stop: int) -> None: ...
