"""Opens the pages in a column chunk: checks and decrypts them, decompresses them and splits them into levels and values."""

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
    PASSED = 3                      # a data page that stays closed, because its values were not requested


# A page's encoded repetition levels or definition levels.
cdef struct LevelStream:
    const uint8_t* data
    int64_t size
    bint bit_packed                 # whether the encoding is the deprecated BIT_PACKED, not RLE


# An open page, whatever its version: its levels and values, decrypted and decompressed.
cdef struct Page:
    int kind
    int32_t num_values
    int32_t encoding
    int64_t null_count              # as a V2 header claims; -1 for other pages
    LevelStream repetition          # empty for a column without repetition levels
    LevelStream definition
    const uint8_t* values           # NULL for deferred values
    int64_t values_size
    bint deferred                   # the values are still in the file: PageReader.read_deferred or load_deferred reads them
    bint retained                   # the values are in PageReader.retained, and outlive the page


cdef class PageReader(PageWalker):
    cdef int max_definition_level
    cdef int max_repetition_level
    cdef bint retain_values         # whether the values' bytes outlive the page
    cdef bint verify_decimals       # for ValueReader
    cdef Allowance allowance        # counts the memory that views keep
    cdef bint counts_chunk          # whether it also counts pages that stay in the chunk's own memory
    cdef Codec codec
    cdef bint compressed
    cdef bint v2_is_compressed
    cdef Scratch body
    cdef readonly object retained   # array with the last retained page's values, perhaps behind those from earlier pages
    cdef const uint8_t* retained_data   # this array's first byte
    cdef Counted extended           # this array's owner, if its memory may have room for the next page
    cdef int64_t to_retain          # bytes that the next values will have, if pages share arrays; 0 if each has its own
    cdef bint in_place              # whether the current body was read right into the array
    cdef StoredPage deferred        # the page whose values are still in the file
    cdef int64_t deferred_levels    # bytes of levels in front of these values
    cdef uint32_t deferred_crc      # the CRC-32 over these levels
    # Opens the next data or dictionary page. page.kind is NO_PAGE at the chunk's end.
    #   unwanted: a data page with at most so many values stays closed: page.kind is PASSED, and only num_values is set
    #   at_once: the caller reads a data page with at most so many values, nulls included, at once and in stored form. Its PLAIN
    #     values may stay in the file (page.deferred) until then, and the CRC-32 is checked when they are read.
    cdef int next(self, Page* page, int64_t unwanted=*, int64_t at_once=*) except -1 nogil
    # Reads all deferred values, which have size bytes, to out. Then checks the page's CRC-32.
    cdef int read_deferred(self, uint8_t* out, int64_t size) except -1 nogil
    # Reads the deferred values to memory that is valid until the next page, checks the CRC-32, and returns their address.
    cdef const uint8_t* load_deferred(self) except NULL nogil
    # For pages that share an array: lets the next page use the last retained page's memory from `end` on. NULL gives no memory.
    cdef void keep_to(self, const uint8_t* end) noexcept nogil
    # Raises the error for a negative Status, with the page number.
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
