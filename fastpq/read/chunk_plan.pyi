from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from fastpq.format.plain_chunk import ChunkEntries
from fastpq.index.ranges import Int64s, RowRanges
from fastpq.io.coalescing import Range
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor

_Output = TypeVar("_Output")

class PageSelection(NamedTuple):
    rows: RowRanges
    ranges: list[Range]
    directory: Int64s
    num_pages: int
    @property
    def num_bytes(self) -> int: ...
    @property
    def has_dictionary(self) -> bool: ...

@final
class ChunkPlan:
    @property
    def column(self) -> ColumnDescriptor: ...
    @property
    def row_group(self) -> int: ...
    @property
    def row_offset(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_values(self) -> int: ...
    @property
    def chunk_values(self) -> int: ...
    @property
    def uncompressed_size(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def num_bytes(self) -> int: ...
    @property
    def dictionary_size(self) -> int: ...
    @property
    def codec(self) -> int: ...
    @property
    def is_encrypted(self) -> bool: ...
    @property
    def under_footer_key(self) -> bool: ...
    @property
    def under_own_key(self) -> bool: ...
    @property
    def key_metadata(self) -> bytes | None: ...
    @property
    def row_group_ordinal(self) -> int: ...
    @property
    def has_dictionary(self) -> bool: ...
    @property
    def v2_is_compressed(self) -> bool: ...
    @property
    def file_path(self) -> str | None: ...
    @property
    def pages(self) -> PageSelection | None: ...
    @property
    def kept(self) -> RowRanges | None: ...
    @property
    def metadata(self) -> ColumnChunkMetaData: ...
    @property
    def ranges(self) -> Sequence[Range]: ...
    @property
    def kept_rows(self) -> NDArray[np.int64]: ...
    def __init__(
        self,
        column: ColumnDescriptor,
        row_group: int,
        row_offset: int,
        num_rows: int,
        num_values: int,
        start: int,
        length: int,
        metadata: ColumnChunkMetaData,
        codec: int,
        is_encrypted: bool,
        has_dictionary: bool,
        v2_is_compressed: bool = False,
        file_path: str | None = None,
        pages: PageSelection | None = None,
    ) -> None: ...
    def of_rows(
        self,
        row_offset: int,
        num_rows: int,
        num_values: int,
        pages: PageSelection | None = None,
        kept: RowRanges | None = None,
    ) -> ChunkPlan: ...
    def keeping(self, kept: RowRanges | None, num_rows: int) -> ChunkPlan: ...

@final
class ChunkPlanner:
    def __init__(
        self,
        file: FileMetaData,
        entries: ChunkEntries | None,
        groups: list[tuple[int, int, int]],
        file_size: int,
        slack: int,
        v2_is_compressed: bool,
        check: Callable[[ColumnDescriptor, int, bool], None] | None,
        open_metadata: Callable[[ColumnDescriptor, int, bytes | None, bytes], bytes | None] | None,
        plan_other: Callable[[ColumnDescriptor, int, int], ChunkPlan],
    ) -> None: ...
    def chunks(self, column: ColumnDescriptor) -> list[ChunkPlan]: ...
    def columns(self, leaves: Iterable[ColumnDescriptor], kind: type[_Output]) -> list[_Output]: ...

def index_of_leaf(leaf_and_chunks: tuple[ColumnDescriptor, list[ChunkPlan]]) -> int: ...
def claimed_sizes(chunks: list[ChunkPlan], repeated: bool, width: int, large: int) -> tuple[int, int, list[int]]: ...
