"""PageHeader of parquet.thrift without Python objects: what the page loop needs of it."""

from libc.stdint cimport int32_t, int64_t, uint8_t


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


# Parses the header at data (of which size bytes may be read) and returns its length, or a negative value: PAGE_HEADER_TRUNCATED
# when the bytes end inside it, PAGE_HEADER_INVALID when they are no page header (wrong wire types, a required field missing,
# a negative size or count).
cdef enum:
    PAGE_HEADER_TRUNCATED = -1
    PAGE_HEADER_INVALID = -2
    PAGE_HEADER_BOUND = 128             # most bytes that write_page_header writes

cdef int64_t read_page_header(const uint8_t* data, size_t size, PageHeader* header) noexcept nogil

# The same; walked is set to how many bytes were looked at.
cdef int64_t try_page_header(const uint8_t* data, size_t size, PageHeader* header, int64_t* walked) noexcept nogil
cdef int64_t write_page_header(const PageHeader* header, uint8_t* out) noexcept nogil
