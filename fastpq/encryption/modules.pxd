"""The module types in Parquet Modular Encryption, and the only function that builds an AAD (Encryption.md, 4.4)."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    # Encryption.md, 4.4.2
    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9

cdef enum:
    LARGEST_ORDINAL = 32767     # ordinals are signed 16-bit integers
    AAD_SUFFIX_SIZE = 7         # most bytes that an AAD has behind the file's part: the module type and three ordinals

cdef bint has_chunk(int module) noexcept nogil      # whether the module belongs to a column chunk
cdef bint has_page(int module) noexcept nogil       # whether the module belongs to a data page

# Writes a module's AAD to out, which has file_aad_size + AAD_SUFFIX_SIZE bytes. Returns the AAD's size in bytes.
cdef int64_t build_aad(const uint8_t* file_aad, size_t file_aad_size, int module, int64_t row_group, int64_t column,
                       int64_t page, uint8_t* out) except -1 nogil
