"""Encoding of columns into stored pages."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from fastpq.column.input cimport ColumnInput
from fastpq.column.page_log cimport PageLog
from fastpq.column.page_writer cimport PageWriter
from fastpq.column.scratch cimport Scratch
from fastpq.column.value_writer cimport ValueWriter
from fastpq.encodings.views cimport Slice
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.index.bloom_filter cimport SplitBlockBloomFilter


# Sizes of the levels in front of the values of a page body.
cdef struct PageLevels:
    int64_t size                        # of both streams, with their length prefixes
    int64_t repetition                  # of the stream without prefix
    int64_t definition


cdef class ChunkWriter:
    cdef ColumnInput input
    cdef bint compresses
    cdef object settings
    cdef int max_definition_level
    cdef int max_repetition_level
    cdef int64_t data_page_size         # bounds of a page, of the settings
    cdef int64_t data_page_rows
    cdef int64_t most_dictionary_size
    cdef bint keep_dictionary
    cdef bint has_bloom_filter
    cdef bint version_2
    cdef ValueWriter values             # of pages without dictionary
    cdef int index_encoding             # of dictionary-encoded pages
    cdef DictionaryEncoder dictionary
    cdef int64_t ordinal                # of the next data page
    cdef PageWriter stored              # stored pages with their headers
    cdef readonly int64_t dictionary_page_size      # stored, with header; 0 without dictionary
    cdef readonly int64_t num_values    # nulls and empty lists included
    cdef readonly int64_t null_count
    cdef readonly PageLog pages         # of the data pages
    cdef readonly int64_t distinct_count            # of the values; -1 where unknown
    cdef bint is_begun                              # whether the dictionary began with given entries
    cdef const uint32_t* mapping        # number of a given entry -> code; NULL where the rows are not in such numbers
    cdef object mapping_owner
    cdef readonly SplitBlockBloomFilter bloom_filter    # None without
    cdef Scratch codes
    cdef Scratch body

    cdef void _free(self) noexcept nogil
    cdef int64_t _entries(self, int64_t start, int64_t rows) noexcept nogil
    cdef int64_t _rows_within(self, int64_t start, int64_t most, int64_t entries) noexcept nogil
    cdef int _write_rows(self, int64_t start, int64_t stop) except -1 nogil
    cdef int64_t _dictionary_rows(self, int64_t start, int64_t stop) except -1 nogil
    cdef int64_t _encode(self, int64_t start, int64_t rows, uint32_t* codes, int64_t* present, const uint8_t** values,
                         Slice** slices) except -1 nogil
    cdef bint _dictionary_pays(self, int64_t done, int64_t present, const uint32_t* codes) noexcept nogil
    cdef int64_t _page_rows(self, int64_t start, int64_t stop) except -1 nogil
    cdef int _add_page(self, int64_t start, int64_t rows, int64_t present) except -1 nogil
    cdef int _add_levels(self, int64_t start, int64_t rows) except -1 nogil
    cdef int _log_codes(self, int64_t start, int64_t rows, int64_t present, const uint32_t* codes, const Slice* slices,
                        const uint8_t* values) except -1 nogil
    cdef int _begin_bloom_filter(self, int64_t distinct) except -1 nogil
    cdef int _write_dictionary(self) except -1 nogil
    cdef int _write_indices(self, int64_t start, int64_t rows, const uint32_t* codes, int64_t present) except -1 nogil
    cdef int _write_values(self, int64_t start, int64_t rows) except -1 nogil
    cdef uint8_t* _body(self, int64_t start, int64_t rows, int64_t present, int64_t bound, PageLevels* levels) except NULL nogil
    cdef int64_t _nested_levels(self, const uint8_t* levels, int64_t start, int64_t entries, int max_level,
                                uint8_t* out) noexcept nogil
    cdef int _write_data_page(self, int encoding, int64_t start, int64_t rows, int64_t present, const uint8_t* body,
                              int64_t size, PageLevels levels, bint in_column) except -1 nogil
