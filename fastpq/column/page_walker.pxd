"""Steps from page header to page header in a column chunk."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.column.scratch cimport Scratch
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.page_header cimport PageHeader
from fastpq.io.origin cimport StoredBytes

cdef enum:
    PIECE = 256 << 10               # bytes read from a file at a time: a piece stays in the processor's cache
    USUAL_HEADER = 4 << 10          # bytes: enough for almost every page header
    BODY_OVERRUN = -3               # a fault, besides PAGE_HEADER_TRUNCATED and PAGE_HEADER_INVALID


# A stored page. Positions count from the chunk's first byte.
cdef struct StoredPage:
    PageHeader header
    const uint8_t* plain            # the decrypted header, valid until the cipher is called again
    int64_t plain_size              # how many header bytes were parsed, even if the header is broken
    int64_t start                   # where the stored header starts
    int64_t body                    # where the stored body starts
    int64_t body_size
    int64_t ordinal                 # the data page's number; for another page, the next data page's number
    bint is_data
    bint is_dictionary


# Parses a page header, and finds the body behind it. Returns 0 or a fault: PAGE_HEADER_TRUNCATED, PAGE_HEADER_INVALID or
# BODY_OVERRUN.
#   plain, plain_size: the decrypted header, and how many bytes may be parsed at most
#   stored_size: how many bytes the stored header has; negative if it is not encrypted
#   start, end: where the stored header starts, and where the chunk ends
#   uncounted: bytes of a stored body that compressed_page_size does not count (ModuleCipher.uncounted)
cdef int64_t parse_page(const uint8_t* plain, int64_t plain_size, int64_t stored_size, int64_t start, int64_t end,
                        int64_t uncounted, StoredPage* page) noexcept nogil

# Returns whether a stored body has the CRC-32 that its header claims.
cdef int has_own_crc(const uint8_t* body, const StoredPage* page) except -1 nogil

# Returns the error for a page whose body has another CRC-32 than its header claims.
cdef object wrong_checksum(const StoredPage* page)


cdef class PageWalker:
    cdef int64_t size
    cdef int64_t base               # where the chunk starts in data or source
    cdef const uint8_t* data        # the stored bytes in memory; NULL if they are read in pieces
    cdef object owner               # keeps data alive
    cdef StoredBytes source         # the stored bytes that are read in pieces; None if they are in memory
    cdef Scratch window             # the last piece: the chunk's bytes [window_start, window_end)
    cdef int64_t window_start
    cdef int64_t window_end
    cdef int64_t piece              # bytes to read at least: PIECE, or USUAL_HEADER if bodies are read to other memory
    cdef ModuleCipher cipher
    cdef readonly int64_t position  # where the next page starts
    cdef int64_t ordinal            # the current page's ordinal, as in StoredPage
    cdef int64_t next_ordinal       # the next data page's ordinal, unless the directory has another
    cdef bint expect_dictionary     # whether the next page is a dictionary page, according to the metadata
    cdef const int64_t[:, ::1] directory    # each data page's ordinal, stored size, value count and row count, or None
    cdef int64_t listed_pages       # how many pages the directory has; -1 without a directory
    cdef int64_t next_listed        # the next page's index in the directory
    cdef int64_t listed_start       # where the first data page starts, behind the dictionary page
    cdef bint verify_checksums
    cdef int64_t max_page_size
    cdef int64_t max_dictionary_size

    # Goes to the first page of another chunk, which has size bytes from position base on, and no directory.
    cdef void move_to(self, int64_t base, int64_t size, bint expect_dictionary) noexcept nogil
    # Returns the chunk's bytes [position, position + size). They are valid until the next call for other bytes.
    cdef const uint8_t* at(self, int64_t position, int64_t size) except NULL nogil
    # Steps to the next page, whatever its type. Returns False at the chunk's end. The body is neither opened nor checked.
    cdef bint step(self, StoredPage* page) except -1 nogil
    # Reads the bytes [position, position + size) from a chunk that is not in memory. Bytes in the last piece are not read again.
    cdef int copy_to(self, int64_t position, int64_t size, uint8_t* out) except -1 nogil
    # Checks a stored body against the header's CRC-32, if the header has one and checksums are verified.
    cdef int check_crc(self, const StoredPage* page, const uint8_t* body) except -1 nogil

    cdef bint _checks_crc(self, const StoredPage* page) noexcept nogil
    cdef int _slide(self, int64_t position, int64_t size) except -1 nogil
    cdef int64_t _header_size(self) except -1 nogil
    cdef int64_t _parse(self, int64_t available, bint* dictionary, StoredPage* page) except? -100 nogil
    cdef int _refuse(self, int64_t fault, const StoredPage* page) except -1 nogil
    cdef int _check_bounds(self, const StoredPage* page) except -1 nogil
    cdef int _check_listed(self, const StoredPage* page) except -1 nogil
    cdef int64_t _count(self, int64_t enough) except -1 nogil


cdef class WalkedPage:
    cdef StoredPage stored
    cdef readonly int64_t start, body_start, size, ordinal, levels_size
    cdef readonly bint is_dictionary, is_data
    cdef readonly int type, encoding, num_values, uncompressed_size
    cdef readonly object num_rows
    cdef readonly bytes header
    cdef readonly object body
