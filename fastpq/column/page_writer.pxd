"""Stores pages: compresses and encrypts them, and adds a CRC-32."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.arrays.memory cimport Pieces
from fastpq.codecs.codec cimport Codec, Streams
from fastpq.column.chunk_settings cimport ChunkSettings
from fastpq.column.input cimport ColumnInput
from fastpq.column.scratch cimport Scratch
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.page_header cimport PageHeader

cdef enum:
    PAGE_TYPES = 4          # the page types that are written have smaller numbers
    ENCODINGS = 32          # the encodings that are written have smaller numbers


# Raises LimitError for a page with more than 2^31 - 1 bytes.
cdef int check_page_size(int64_t size) except -1 nogil


cdef class PageWriter:
    cdef ColumnInput column
    cdef Codec codec
    cdef ModuleCipher cipher
    cdef ChunkSettings settings
    cdef Pieces pieces
    cdef int64_t uncompressed_size                  # bytes in all pages with their headers, before compression
    cdef int64_t[PAGE_TYPES][ENCODINGS] counts      # page counts
    cdef Scratch packed                             # a compressed body
    cdef Scratch encrypted                          # an encrypted body

    # Compresses and encrypts a body, encrypts its header, and adds both to the pieces. Returns their stored size together.
    #   header: this function sets the stored body's sizes and checksum
    #   ordinal: the data page's number
    #   levels_size: bytes of levels at the start of the body
    #   streams: the streams in the values. They are compressed together with the levels in V1 pages.
    #   in_column: the values, if they are in the column's memory. Large values are then not copied. The body has only levels, and
    #       it may have levels only if stores_parts. NULL if the values are in the body, behind the levels.
    cdef int64_t write(self, PageHeader* header, int ordinal, const uint8_t* body, int64_t size, int64_t levels_size,
                       Streams streams, const uint8_t* in_column) except -1 nogil
    # Returns whether a body is stored as it is: neither compressed nor encrypted.
    cdef bint stores_parts(self) noexcept nogil
    cdef int _append_column(self, const uint8_t* values, int64_t size) except -1 nogil
    # Returns page counts by page type and encoding.
    cdef dict page_counts(self)
    # Frees scratch memory.
    cdef void free(self) noexcept nogil
    cdef const uint8_t* _compress(self, const uint8_t* body, int64_t* size, int64_t levels_size,
                                  Streams streams) except NULL nogil
