"""parquet.thrift's PageHeader as a C struct, which is read from and written in the compact protocol."""

from libc.stdint cimport int32_t, int64_t, uint8_t

# PageType in parquet.thrift. fastpq.format.PageType has the same members
cdef enum:
    TYPE_DATA_PAGE = 0
    TYPE_INDEX_PAGE = 1
    TYPE_DICTIONARY_PAGE = 2
    TYPE_DATA_PAGE_V2 = 3


cdef struct PageHeader:
    int32_t type                        # PageType. Unknown values are kept
    int32_t uncompressed_page_size
    int32_t compressed_page_size
    bint has_crc
    int32_t crc
    int32_t num_values                  # from the inner header: data page V1, data page V2 or dictionary page
    int32_t encoding
    int32_t definition_level_encoding   # V1 only
    int32_t repetition_level_encoding   # V1 only
    int32_t num_nulls                   # V2 only, like the next three
    int32_t num_rows
    int32_t definition_levels_byte_length
    int32_t repetition_levels_byte_length
    bint is_compressed                  # true, except where a V2 header says otherwise
    bint is_sorted                      # dictionary page only


cdef enum:
    PAGE_HEADER_TRUNCATED = -1          # the bytes end inside the header
    PAGE_HEADER_INVALID = -2            # a wrong wire type, a missing required field, or a negative size or count
    PAGE_HEADER_BOUND = 128             # write_page_header writes at most this many bytes

# Parses the header at data, which has at most size bytes. Returns the header's length, or one of the negative values above.
# *walked becomes the number of parsed bytes, even if the header is broken.
cdef int64_t read_page_header(const uint8_t* data, size_t size, PageHeader* header, int64_t* walked) noexcept nogil

# Writes a header to out, which must have room for PAGE_HEADER_BOUND bytes, and returns the header's length.
cdef int64_t write_page_header(const PageHeader* header, uint8_t* out) noexcept nogil

# Returns how many bytes the levels take at the start of a data page V2. 0 for other pages.
cdef inline int64_t levels_size(const PageHeader* header) noexcept nogil:
    if header.type != TYPE_DATA_PAGE_V2:
        return 0
    return <int64_t>header.repetition_levels_byte_length + header.definition_levels_byte_length
