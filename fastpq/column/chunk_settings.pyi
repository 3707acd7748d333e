from dataclasses import dataclass

@dataclass(frozen=True)
class ChunkSettings:
    max_definition_level: int
    max_repetition_level: int
    dictionary: bool
    keep_dictionary: bool
    value_encoding: int
    index_encoding: int
    order: int
    total_order: bool
    truncation: int
    statistics: bool
    data_page_size: int
    data_page_rows: int
    dictionary_page_size: int
    version_2: bool
    checksums: bool
    bloom_filter_fpp: float | None
    bloom_filter_ndv: int | None
    content_chunks: tuple[int, int, int] | None = None
    def bloom_filter_bytes(self, distinct: int) -> int: ...
