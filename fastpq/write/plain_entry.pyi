from typing import Literal, final

from fastpq.column.chunk_writer import ChunkWriter
from fastpq.encryption.cipher import ModuleCipher
from fastpq.write.spec import ColumnSpec

MOST_COUNTED_LEVELS: int

@final
class EntryPattern:
    def __init__(self, spec: ColumnSpec) -> None: ...
    def entry(self, path: tuple[str, ...], writer: ChunkWriter, start: int) -> PlainEntry | None: ...

@final
class PlainEntry:
    offset_index_offset: int | None
    offset_index_length: int | None
    column_index_offset: int | None
    column_index_length: int | None
    @property
    def column_index(self) -> bytes | None: ...
    @property
    def offset_index(self) -> bytes | None: ...
    @property
    def total_uncompressed_size(self) -> int: ...
    @property
    def total_compressed_size(self) -> int: ...
    @property
    def data_page_offset(self) -> int: ...
    @property
    def dictionary_page_offset(self) -> int | None: ...
    def protect(
        self, crypto_metadata: bytes, shown: Literal["all", "visible", "none"], cipher: ModuleCipher
    ) -> None: ...
