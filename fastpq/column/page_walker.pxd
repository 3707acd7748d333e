"""The one walk over the page headers of a column chunk."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.column.scratch cimport Scratch
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.page_header cimport PageHeader
from fastpq.io.origin cimport StoredBytes

cdef enum:
    PIECE = 256 << 10               # bytes read at a time of a chunk not in memory; pieces stay in the processor's cache
    USUAL_HEADER = 4 << 10          # bytes with room for almost every page header
    BODY_OVERRUN = -3               # a fault beside PAGE_HEADER_TRUNCATED and PAGE_HEADER_INVALID


# A stored page; positions count from the first byte of the chunk.
cdef struct StoredPage:
    PageHeader header
    const uint8_t* plain            # the header in the clear; valid until the next call of the cipher
    int64_t plain_size              # bytes parsed of the plain header, also of a broken one
    int64_t start                   # position of the stored header
    int64_t body                    # position of the stored body
    int64_t body_size
    int64_t ordinal                 # of the data page; of the next data page where the page is another
    bint is_data
    bint is_dictionary


# Parses a page header and places the body behind the header. Returns 0 or a fault: PAGE_HEADER_TRUNCATED, PAGE_HEADER_INVALID,
# BODY_OVERRUN.
#   plain, plain_size: the header in the clear, and the most bytes to parse
#   stored_size: stored bytes of the header; negative where the header is stored in the clear
#   start, end: position of the stored header, and of the end of the chunk
#   uncounted: bytes of a stored body not counted in compressed_page_size (ModuleCipher.uncounted)
cdef int64_t parse_page(const uint8_t* plain, int64_t plain_size, int64_t stored_size, int64_t start, int64_t end,
                        int64_t uncounted, StoredPage* page) noexcept nogil

# Whether a stored body has the CRC-32 of its header.
cdef int has_own_crc(const uint8_t* body, const StoredPage* page) except -1 nogil

# The error of a page with another CRC-32 than its header's.
cdef object wrong_checksum(const StoredPage* page)


cdef class PageWalker:
    cdef int64_t size
    cdef int64_t base               # place of the chunk in the bytes below; 0 where they are those of the chunk
    cdef const uint8_t* data        # the stored bytes in memory; NULL where they are read in pieces
    cdef object owner               # keeps data alive
    cdef StoredBytes source         # the stored bytes to be read in pieces; None where they are in memory
    cdef Scratch window             # the last piece, [window_start, window_end) of the chunk
    cdef int64_t window_start
    cdef int64_t window_end
    cdef int64_t piece              # least bytes to be read next: PIECE, or USUAL_HEADER where bodies are read to other memory
    cdef ModuleCipher cipher
    cdef readonly int64_t position  # of the next page
    cdef int64_t ordinal            # of the page at hand, as StoredPage.ordinal
    cdef int64_t next_ordinal       # of the next data page, unless the directory knows better
    cdef bint expect_dictionary     # the next page is a dictionary page, by the metadata
    cdef const int64_t[:, ::1] directory    # ordinal, stored size, values and rows of each data page of the chunk's bytes
    cdef int64_t listed             # pages in the directory; -1 without one
    cdef int64_t next_listed
    cdef int64_t listed_start       # position of the first data page, behind the dictionary page
    cdef bint verify_checksums
    cdef int64_t max_page_size
    cdef int64_t max_dictionary_size

    # Goes to the first page of another chunk of size bytes, base bytes behind the first byte; without a directory.
    cdef void move_to(self, int64_t base, int64_t size, bint expect_dictionary) noexcept nogil
    # The bytes [position, position + size) of the chunk; valid until the next call for bytes outside of them.
    cdef const uint8_t* at(self, int64_t position, int64_t size) except NULL nogil
    # Steps to the next page, of any type; False at the end of the chunk. The body is neither opened nor checked.
    cdef bint step(self, StoredPage* page) except -1 nogil
    # Reads the bytes [position, position + size) of a chunk that is not in memory; bytes of the last piece are not read again.
    cdef int copy_to(self, int64_t position, int64_t size, uint8_t* out) except -1 nogil
    # Checks the CRC-32 of a page's stored body, where the header has one and checksums are verified.
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
    cdef readonly bytes header
    cdef readonly object body
