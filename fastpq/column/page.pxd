"""Pages of a column chunk: read, checked, decrypted, decompressed and split once."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from fastpq.arrays.allowance cimport Allowance, Counted
from fastpq.codecs.codec cimport Codec
from fastpq.column.page_walker cimport PageWalker, StoredPage
from fastpq.column.scratch cimport Scratch
from fastpq.encryption.cipher cimport ModuleCipher


cdef enum PageKind:
    NO_PAGE = 0
    DATA = 1
    DICTIONARY = 2
    PASSED = 3                      # a data page left unopened: its values are not wanted


# Encoded levels of one kind.
cdef struct LevelStream:
    const uint8_t* data
    int64_t size
    bint bit_packed                 # the deprecated BIT_PACKED encoding; otherwise the hybrid


# A page of any version: level streams and value stream in the clear.
cdef struct Page:
    int kind
    int32_t num_values
    int32_t encoding
    int64_t null_count              # of a V2 header, unchecked; -1 for other pages
    LevelStream repetition          # empty for a column without repetition levels
    LevelStream definition
    const uint8_t* values           # NULL while the values are in the file
    int64_t values_size
    bint deferred                   # the values are still in the file, for PageReader.read_deferred or load_deferred
    bint retained                   # the values are in PageReader.retained and outlive the page


cdef class PageReader(PageWalker):
    cdef int max_definition_level
    cdef int max_repetition_level
    cdef bint retain_values         # keep the bytes of values after the page is done
    cdef bint verify_decimals       # for ValueReader
    cdef Allowance allowance        # of the read, for pages that views keep
    cdef bint counts_chunk          # whether the chunk's own bytes count
    cdef Codec codec
    cdef bint compressed
    cdef bint v2_is_compressed
    cdef Scratch body
    cdef readonly object retained   # array with the values of the last retained page, behind those of pages before
    cdef const uint8_t* retained_data   # first byte of the array
    cdef Counted extended           # the owner of the array, if its memory may have room for the next page
    cdef int64_t to_retain          # bytes of the values to come, where pages share arrays; 0 where each has its own
    cdef bint in_place              # the stored body at hand was read to the array
    cdef StoredPage deferred        # the page with values still in the file
    cdef int64_t deferred_levels    # bytes of levels in front of the values
    cdef uint32_t deferred_crc      # CRC-32 of the levels
    # Reads the next data or dictionary page; page.kind is NO_PAGE at the end of the chunk, and PASSED for a data page of at most
    # unwanted values, of which only num_values is known. PLAIN values of a large data page of at most at_once values, nulls
    # included, may stay in the file (page.deferred), for a caller that asks for all of them, in their stored form, before the
    # next page. The CRC-32 is checked when the values are read.
    cdef int next(self, Page* page, int64_t unwanted=*, int64_t at_once=*) except -1 nogil
    # Reads all deferred values, size bytes, to out, then checks the CRC-32 of the page.
    cdef int read_deferred(self, uint8_t* out, int64_t size) except -1 nogil
    # Address of the deferred values, read to memory valid until the next page, and checked.
    cdef const uint8_t* load_deferred(self) except NULL nogil
    # Leaves the memory of the last retained page from an address on to the pages behind it; for pages that share arrays. NULL
    # leaves nothing.
    cdef void keep_to(self, const uint8_t* end) noexcept nogil
    # Raises the error of a negative Status, with the page's number.
    cdef int fail(self, int64_t status, const char* part) except -1 nogil
    cdef const uint8_t* _stored_body(self, const StoredPage* stored) except NULL nogil
    cdef int64_t _levels_of_deferred(self, const StoredPage* stored, int64_t at_once) except -2 nogil
    cdef int _defer(self, const StoredPage* stored, const uint8_t* levels, int64_t level_bytes, Page* page) except -1 nogil
    cdef bint _retains(self, const StoredPage* stored) noexcept nogil
    cdef bint _is_compressed(self, const StoredPage* stored) noexcept nogil
    cdef int _split_v1(self, const StoredPage* stored, const uint8_t* sealed, Page* page) except -1 nogil
    cdef int _split_v2(self, const StoredPage* stored, const uint8_t* sealed, Page* page) except -1 nogil
    cdef uint8_t* _retain(self, const StoredPage* stored, int64_t size) except NULL nogil
    cdef uint8_t* _new_retained(self, int64_t size) except NULL
    cdef void _forget_retained(self) noexcept
    cdef int _retain_chunk(self, const uint8_t* plain, int64_t size) except -1
    cdef int _take_levels(self, const StoredPage* stored, const uint8_t** body, int64_t* size, int max_level, int encoding,
                          LevelStream* levels) except -1 nogil
    cdef int _levels_overrun(self, const StoredPage* stored, int64_t claimed, int64_t size) except -1 nogil
    cdef int _levels_encoding(self, const StoredPage* stored, int encoding) except -1 nogil
    cdef const uint8_t* _inflate(self, const StoredPage* stored, const uint8_t* plain, int64_t plain_size, int64_t size,
                                 bint compressed, bint retain, bint in_chunk) except NULL nogil
