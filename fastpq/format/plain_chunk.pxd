"""ColumnChunk of parquet.thrift as a C struct, for chunks in the clear and in the file of their footer."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastpq.format.list_offsets cimport StructList


# What a read needs of a ColumnChunk and its ColumnMetaData.
cdef struct PlainChunk:
    int32_t type                    # Type; unknown values are kept
    int32_t codec                   # CompressionCodec; unknown values are kept
    int64_t num_values
    int64_t total_compressed_size
    int64_t data_page_offset
    int64_t dictionary_page_offset  # 0 for none

# Parses the ColumnChunk at data, of at most size bytes. False for a chunk that is encrypted, or in another file, or of another
# path than the path_size serialized bytes at path, and for bytes that are no ColumnChunk: fastpq.format.decode tells which.
cdef bint read_plain_chunk(const uint8_t* data, size_t size, const uint8_t* path, size_t path_size,
                           PlainChunk* chunk) noexcept nogil


cdef class ChunkEntries:
    cdef const uint8_t[::1] footer
    cdef StructList row_groups
    # Reads the entry of a column, as read_plain_chunk; False also where the row group has no entry known by its place.
    cdef bint read(self, int64_t row_group, int64_t column, const uint8_t* path, size_t path_size, PlainChunk* chunk) noexcept
