"""Page bodies as stored pages."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.arrays.memory cimport Pieces
from fastpq.codecs.codec cimport Codec
from fastpq.column.input cimport ColumnInput
from fastpq.column.scratch cimport Scratch
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.page_header cimport PageHeader

cdef enum:
    PAGE_TYPES = 4          # numbers of page types that are written are below
    ENCODINGS = 32          # and numbers of encodings


# Raises the LimitError of a page of more than 2^31 - 1 bytes.
cdef int check_page_size(int64_t size) except -1 nogil


cdef class PageWriter:
    cdef ColumnInput column
    cdef Codec codec
    cdef ModuleCipher cipher
    cdef bint version_2
    cdef bint checksums
    cdef Pieces pieces
    cdef int64_t uncompressed_size                  # of the pages with their headers
    cdef int64_t[PAGE_TYPES][ENCODINGS] counts      # of the pages
    cdef Scratch packed                             # a compressed page body
    cdef Scratch encrypted                          # an encrypted one

    # Compresses and seals a body, seals its header and adds both to the pieces; returns the stored size of both.
    #   header: sizes and checksum of the stored body are set here
    #   ordinal: of a data page
    #   levels_size: bytes of levels at the front of the body
    #   in_column: the body is in the column's memory, not to be copied where it is large
    cdef int64_t write(self, PageHeader* header, int ordinal, const uint8_t* body, int64_t size, int64_t levels_size,
                       bint in_column) except -1 nogil
    # Number of pages by page type and encoding.
    cdef dict page_counts(self)
    # Frees scratch memory.
    cdef void free(self) noexcept nogil
    cdef const uint8_t* _compress(self, const uint8_t* body, int64_t* size, int64_t levels_size) except NULL nogil
