"""PlainChunk: parquet.thrift's ColumnChunk as a C struct, for chunks with plaintext metadata that are in the footer's file."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastpq.format.list_offsets cimport StructList


# What a read needs from a ColumnChunk and its ColumnMetaData.
cdef struct PlainChunk:
    int32_t type                    # Type. Unknown values are kept
    int32_t codec                   # CompressionCodec. Unknown values are kept
    int64_t num_values
    int64_t total_uncompressed_size
    int64_t total_compressed_size
    int64_t data_page_offset
    int64_t dictionary_page_offset  # 0 for none
    bint under_footer_key           # encrypted with the footer key, else not encrypted

# Parses the ColumnChunk at data, which has at most size bytes. Returns False if the chunk has its own key, encrypted metadata,
# another file, or another path than the path_size serialized bytes at path. False, too, for bytes that are not a ColumnChunk.
# In all these cases fastpq.format.decode tells what they are.
cdef bint read_plain_chunk(const uint8_t* data, size_t size, const uint8_t* path, size_t path_size,
                           PlainChunk* chunk) noexcept nogil


cdef class ChunkEntries:
    cdef const uint8_t[::1] footer
    cdef StructList row_groups
    cdef dict paths                 # serialized path_in_schema by column index
    # Returns the serialized path_in_schema for a ColumnDescriptor.
    cdef bytes path_of(self, column)
    # Reads a column chunk's entry with read_plain_chunk, and returns its result. False if the entry's place is unknown.
    cdef bint read(self, int64_t row_group, int64_t column, bytes path, PlainChunk* chunk)
