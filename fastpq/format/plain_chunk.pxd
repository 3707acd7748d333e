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
    bint under_footer_key           # encrypted with the footer key
    bint under_own_key              # encrypted with a key of its own
    const uint8_t* key_metadata     # the own key's key metadata, or NULL
    size_t key_metadata_size
    const uint8_t* sealed_metadata  # the module with the encrypted ColumnMetaData, or NULL
    size_t sealed_metadata_size
    bint is_sealed                  # under_own_key, with sealed_metadata, which have all fields above under_footer_key

# Parses the ColumnChunk at data, which has at most size bytes. Returns False if the chunk has its own key, encrypted metadata,
# another file, or another path than the path_size serialized bytes at path. False, too, for bytes that are not a ColumnChunk.
# In all these cases fastpq.format.decode tells what they are. If chunk.is_sealed, read_opened_metadata can complete it.
cdef bint read_plain_chunk(const uint8_t* data, size_t size, const uint8_t* path, size_t path_size,
                           PlainChunk* chunk) noexcept nogil
# Parses the decrypted ColumnMetaData of a sealed chunk into the same struct, and returns whether they are plausible. They may be
# followed by zeros.
cdef bint read_opened_metadata(const uint8_t* data, size_t size, const uint8_t* path, size_t path_size,
                               PlainChunk* chunk) noexcept nogil


cdef class ChunkEntries:
    cdef const uint8_t[::1] footer
    cdef StructList row_groups
    cdef dict paths                 # serialized path_in_schema by column index
    # Returns the serialized path_in_schema for a ColumnDescriptor.
    cdef bytes path_of(self, column)
    # Reads a column chunk's entry with read_plain_chunk, and returns its result. False if the entry's place is unknown.
    cdef bint read(self, int64_t row_group, int64_t column, bytes path, PlainChunk* chunk)
