"""Encodes columns into stored pages."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from fastpq.codecs.codec cimport Streams
from fastpq.column.chunk_settings cimport ChunkSettings
from fastpq.column.input cimport ColumnInput
from fastpq.column.leaf_entries cimport Entries
from fastpq.column.page_log cimport PageLog
from fastpq.column.page_writer cimport PageWriter
from fastpq.column.scratch cimport Scratch
from fastpq.column.value_writer cimport ValueWriter
from fastpq.encodings.views cimport Slice
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.index.bloom_filter cimport SplitBlockBloomFilter


# How many bytes the levels take in a page body. They come before the values.
cdef struct PageLevels:
    int64_t size                        # both streams, with their lengths
    int64_t repetition                  # the stream without its length
    int64_t definition


cdef class ChunkWriter:
    cdef ColumnInput input
    cdef bint compresses
    cdef ChunkSettings settings
    cdef const int64_t[::1] cuts        # rows at which a new page begins
    cdef int64_t cut_count
    cdef int64_t next_cut               # the first cut that may be ahead
    cdef bint has_bloom_filter
    cdef bint dictionary_has_ended      # whether no further page gets indices: the dictionary is full, or does not pay
    cdef ValueWriter values             # for pages without dictionary
    cdef DictionaryEncoder dictionary
    cdef int64_t ordinal                # the next data page's number
    cdef PageWriter page_writer
    cdef readonly int64_t dictionary_page_size      # stored bytes with the header; 0 without a dictionary page
    cdef readonly int64_t num_values    # nulls and empty lists included
    cdef readonly int64_t null_count
    cdef readonly PageLog pages         # counts and bounds for the data pages
    cdef readonly int64_t distinct_count            # distinct values; -1 if unknown
    cdef bint has_entries               # whether begin_dictionary filled the dictionary
    cdef const uint32_t* mapping        # the code for each such entry; NULL if the rows are not codes for these entries
    cdef object mapping_owner
    cdef readonly SplitBlockBloomFilter bloom_filter    # or None
    cdef Scratch codes
    cdef Scratch body

    cdef void _free(self) noexcept nogil
    cdef int _end(self) except -1
    cdef int64_t _entries(self, int64_t start, int64_t rows) noexcept nogil
    cdef int64_t _rows_within(self, int64_t start, int64_t most, int64_t entries) noexcept nogil
    cdef int64_t _most_rows(self, int64_t start, int64_t stop) noexcept nogil
    cdef int _write_rows(self, int64_t start, int64_t stop) except -1 nogil
    cdef int _count_rows(self, int64_t start, int64_t stop) except -1 nogil
    cdef int64_t _rows_of_codes(self, int64_t start, int64_t stop) noexcept nogil
    cdef int64_t _dictionary_rows(self, int64_t start, int64_t stop) except -1 nogil
    cdef int64_t _encode_page(self, int64_t start, int64_t stop, uint32_t* codes, int64_t* present) except -1 nogil
    cdef int64_t _encode(self, int64_t start, int64_t rows, uint32_t* codes, int64_t* present, const uint8_t** values,
                         Slice** slices) except -1 nogil
    cdef int64_t _keys(self, int64_t start, int64_t rows, const uint8_t** values) except -1 nogil
    cdef bint _is_mostly_distinct(self, int64_t start, int64_t stop) except -1 nogil
    cdef bint _dictionary_pays(self, int64_t done, int64_t present, const uint32_t* codes) noexcept nogil
    cdef int64_t _page_rows(self, int64_t start, int64_t stop) except -1 nogil
    cdef int _add_page(self, int64_t start, int64_t rows, int64_t present) except -1 nogil
    cdef int _log_codes(self, int64_t start, int64_t rows, int64_t present, const uint32_t* codes, const Slice* slices,
                        const uint8_t* values) except -1 nogil
    cdef int _begin_bloom_filter(self, int64_t distinct) except -1 nogil
    cdef int _check_text(self, const Slice* values, int64_t count) except -1 nogil
    cdef int _write_dictionary(self) except -1 nogil
    cdef int _write_indices(self, int64_t start, int64_t rows, const uint32_t* codes, int64_t present) except -1 nogil
    cdef int _write_values(self, int64_t start, int64_t rows) except -1 nogil
    cdef int _log_levels(self, Entries* entries) except -1 nogil
    cdef uint8_t* _body(self, int64_t start, int64_t rows, int64_t present, int64_t bound, PageLevels* levels) except NULL nogil
    cdef int _write_data_page(self, int encoding, int64_t start, int64_t rows, int64_t present, const uint8_t* body,
                              int64_t size, PageLevels levels, Streams streams, const uint8_t* in_column) except -1 nogil
