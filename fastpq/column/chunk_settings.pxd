"""The settings that a ChunkWriter needs for one column."""

from libc.stdint cimport int64_t


cdef class ChunkSettings:
    cdef readonly int max_definition_level
    cdef readonly int max_repetition_level
    cdef readonly bint dictionary
    cdef readonly bint keep_dictionary
    cdef readonly int value_encoding
    cdef readonly int index_encoding
    cdef readonly int order
    cdef readonly bint total_order
    cdef readonly int64_t truncation
    cdef readonly bint statistics
    cdef readonly int64_t data_page_size
    cdef readonly int64_t data_page_rows
    cdef readonly int64_t dictionary_page_size
    cdef readonly bint version_2
    cdef readonly bint checksums
    cdef readonly object bloom_filter_fpp
    cdef readonly object bloom_filter_ndv
    cdef readonly tuple content_chunks
