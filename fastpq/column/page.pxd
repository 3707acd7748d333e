"""Pages of a column chunk: read, checked, decrypted, decompressed and split once."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from fastpq.column.scratch cimport Scratch
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.page_header cimport PageHeader


cdef enum PageKind:
    NO_PAGE = 0
    DATA = 1
    DICTIONARY = 2


# Levels of one kind as a page holds them.
cdef struct LevelStream:
    const uint8_t* data
    int64_t size
    bint bit_packed                 # the deprecated BIT_PACKED encoding; otherwise the hybrid


# A page, whatever its version: the level streams and the value stream, all in the clear.
cdef struct Page:
    int kind
    int32_t num_values
    int32_t encoding
    int64_t null_count              # what a V2 header claims, or -1
    LevelStream repetition          # empty where the column has no such levels
    LevelStream definition
    const uint8_t* values
    int64_t values_size
    bint retained                   # values lie in PageReader.retained and outlive the page


cdef class PageReader:
    cdef const uint8_t* data        # the stored chunk
    cdef int64_t size
    cdef int64_t position
    cdef int64_t ordinal            # of the next data page
    cdef int max_definition_level
    cdef int max_repetition_level
    cdef bint retain_values         # bytes of values are referred to after the page is done
    cdef bint expect_dictionary
    cdef const int64_t[:, ::1] directory    # ordinal, stored size, values and rows of each data page that is there
    cdef int64_t listed             # pages in the directory; -1 where all pages are there
    cdef int64_t next_listed
    cdef int64_t listed_start       # where the first of them begins, behind the dictionary page
    cdef bint verify_checksums
    cdef bint verify_decimals       # for who reads the values
    cdef int64_t max_page_size
    cdef int64_t max_dictionary_size
    cdef int64_t max_allocation
    cdef object owner               # keeps data alive
    cdef ModuleCipher cipher
    cdef object codec               # fastpq.codecs.compression.Codec
    cdef object decompress_into
    cdef int64_t produced           # Codec.most_expansion
    cdef int64_t consumed
    cdef bint compressed
    cdef bint v2_is_compressed
    cdef Scratch body
    cdef readonly object retained   # array that the last retained page's values lie in
    cdef const uint8_t* retained_data   # its first byte
    cdef int next(self, Page* page) except -1 nogil
    # Raises the error of a negative Status, with the page's number.
    cdef int fail(self, int64_t status, const char* what) except -1 nogil
    cdef int64_t _read_header(self, PageHeader* header) except -1 nogil
    cdef int _check_header(self, const PageHeader* header) except -1 nogil
    cdef int _check_crc(self, const PageHeader* header, int64_t start) except -1 nogil
    cdef int _enter_listed(self) except -1 nogil
    cdef int _check_listed(self, const PageHeader* header, int64_t start) except -1 nogil
    cdef int _split_v1(self, const PageHeader* header, const uint8_t* stored, Page* page) except -1 nogil
    cdef int _split_v2(self, const PageHeader* header, const uint8_t* stored, Page* page) except -1 nogil
    cdef uint8_t* _retain(self, int64_t size) except NULL
    cdef int _take_levels(self, const uint8_t** body, int64_t* size, int64_t count, int max_level, int encoding,
                          LevelStream* levels) except -1 nogil
    cdef int _levels_overrun(self, int64_t claimed, int64_t size) except -1 nogil
    cdef int _levels_encoding(self, int encoding) except -1 nogil
    cdef const uint8_t* _inflate(self, const PageHeader* header, const uint8_t* plain, int64_t plain_size, int64_t size,
                                 bint compressed, bint retain, bint in_chunk) except NULL nogil
