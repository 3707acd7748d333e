"""ChunkSettings, how the chunks of one column are encoded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """WriterProperties of one column, resolved.

    Attributes:
        max_definition_level, max_repetition_level: of the column; pages carry no levels of a maximum of 0.
        dictionary: whether to try a dictionary.
        keep_dictionary: use the dictionary even where plain values are smaller.
        value_encoding: number of the encoding of pages without dictionary.
        index_encoding: PLAIN_DICTIONARY or RLE_DICTIONARY.
        order: a value of ``Order`` in fastpq.stats.statistics.
        total_order: whether floats are in IEEE 754 total order.
        statistics: whether the footer has statistics of the column.
        data_page_size, data_page_rows, dictionary_page_size: bounds of a page; the sizes in uncompressed bytes.
        version_2: data pages V2.
        checksums: write the CRC-32 of each page.
        bloom_filter_fpp: false positive rate of the chunk's bloom filter; None for a chunk without one.
        bloom_filter_ndv: the number of distinct values to size the filter for; None for the number in the chunk.
    """

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
