"""PageHeader of parquet.thrift as a C struct, and its compact serialization both ways."""

from libc.stdint cimport int32_t, int64_t, uint8_t

# parquet.thrift: PageType; fastpq.format.PageType has the same members
cdef enum:
    TYPE_DATA_PAGE = 0
    TYPE_INDEX_PAGE = 1
    TYPE_DICTIONARY_PAGE = 2
    TYPE_DATA_PAGE_V2 = 3


cdef struct PageHeader:
    int32_t type                        # PageType; unknown values are kept
    int32_t uncompressed_page_size
    int32_t compressed_page_size
    bint has_crc
    int32_t crc
    int32_t num_values                  # of the data page V1, V2 or dictionary page header
    int32_t encoding
    int32_t definition_level_encoding   # V1 only
    int32_t repetition_level_encoding   # V1 only
    int32_t num_nulls                   # V2 only, as the next four
    int32_t num_rows
    int32_t definition_levels_byte_length
    int32_t repetition_levels_byte_length
    bint is_compressed                  # true unless a V2 header says otherwise
    bint is_sorted                      # dictionary page only


cdef enum:
    PAGE_HEADER_TRUNCATED = -1          # the bytes end inside the header
    PAGE_HEADER_INVALID = -2            # a wrong wire type, a missing required field, or a negative size or count
    PAGE_HEADER_BOUND = 128             # most bytes of a header by write_page_header

# Parses the header at data, of at most size bytes. Returns the length of the header, or one of the negative values above.
# walked is set to the number of bytes parsed, also of a broken header.
cdef int64_t read_page_header(const uint8_t* data, size_t size, PageHeader* header, int64_t* walked) noexcept nogil

# Writes a header to out, of PAGE_HEADER_BOUND bytes; returns the length of the header.
cdef int64_t write_page_header(const PageHeader* header, uint8_t* out) noexcept nogil

# Bytes of levels at the start of the body of a data page V2; 0 for other pages.
cdef inline int64_t levels_size(const PageHeader* header) noexcept nogil:
    if header.type != TYPE_DATA_PAGE_V2:
        return 0
    return <int64_t>header.repetition_levels_byte_length + header.definition_levels_byte_length
