"""The settings that a ChunkWriter needs for one column."""

from cython.dataclasses cimport dataclass


@dataclass(frozen=True)
cdef class ChunkSettings:
    """How one column's chunks are encoded: the WriterProperties, resolved for the column.

    Attributes:
        max_definition_level, max_repetition_level: the column's highest levels. If one is 0, pages do not store such levels.
        dictionary: whether to try a dictionary.
        keep_dictionary: whether to use the dictionary even if plain values are smaller.
        value_encoding: number of the encoding for pages without dictionary.
        index_encoding: number of the encoding for pages with indices into the dictionary.
        order: a value of ``Order`` in fastpq.stats.statistics.
        total_order: whether floats are in IEEE 754 total order.
        truncation: most bytes that a bound may have in statistics and indexes. It applies to BYTE_ARRAY columns.
        statistics: whether the footer has statistics for the column.
        data_page_size, data_page_rows, dictionary_page_size: the largest page. Sizes are uncompressed bytes.
        version_2: whether data pages are V2.
        checksums: whether to write a CRC-32 for each page.
        content_chunks: least and most bytes of a page that is cut by its content, and the mask of the hash. None cuts pages by
            their size.
        bloom_filter_fpp: the bloom filter's false positive rate; None for a chunk without a bloom filter.
        bloom_filter_ndv: distinct value count that the filter is sized for; None for the count in the chunk.
    """

    content_chunks = None

    def bloom_filter_bytes(self, distinct):
        """Return the size of a bloom filter in bytes.

        Args:
            distinct: how many distinct values the chunk has. ``bloom_filter_ndv`` takes its place if it is set.
        """
        from fastpq.index.bloom_size import bytes_for

        assert self.bloom_filter_fpp is not None, "a filter is made only for a column that has bloom_filter_fpp"
        return bytes_for(distinct if self.bloom_filter_ndv is None else self.bloom_filter_ndv, self.bloom_filter_fpp)
