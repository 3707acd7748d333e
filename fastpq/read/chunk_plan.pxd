"""ChunkPlan: a column chunk of a read, or some of its rows."""

from libc.stdint cimport int64_t

from fastpq.format.plain_chunk cimport ChunkEntries, PlainChunk


cdef class ChunkPlan:
    cdef readonly object column
    cdef readonly int64_t row_group
    cdef readonly int64_t row_offset
    cdef readonly int64_t num_rows
    cdef readonly int64_t num_values
    cdef readonly int64_t chunk_values
    cdef readonly int64_t uncompressed_size
    cdef readonly int64_t start
    cdef readonly int64_t length
    cdef readonly int64_t num_bytes
    cdef readonly int64_t dictionary_size
    cdef readonly int codec
    cdef readonly bint is_encrypted
    cdef readonly bint under_footer_key
    cdef readonly bint under_own_key
    cdef readonly object key_metadata
    cdef readonly bint has_dictionary
    cdef readonly bint v2_is_compressed
    cdef readonly object file_path
    cdef readonly object pages
    cdef readonly object kept
    cdef object file            # the FileMetaData, for metadata on demand
    cdef object stored          # the ColumnChunkMetaData, or None before its first use
    cdef object parts           # the byte ranges, or None for the whole chunk

    cdef ChunkPlan copy(self)


cdef class ChunkPlanner:
    cdef object file
    cdef ChunkEntries entries
    cdef list groups
    cdef int64_t file_size
    cdef int64_t slack
    cdef bint v2_is_compressed
    cdef object check
    cdef object open_metadata
    cdef object plan_other

    cpdef list chunks(self, column)
    # Reads the entry of the column's chunk in a row group, and sets the offset of the chunk. False if the chunk has its own key,
    # or has to be planned by plan_other. `path` is the column's serialized path_in_schema, and `physical` its Type.
    cdef bint read_entry(self, int64_t row_group, int64_t column, bytes path, int physical, int64_t num_rows, PlainChunk* stored,
                         int64_t* start)
    # Completes the entry of a chunk that has its own key. False if the chunk has to be planned by plan_other.
    cdef bint open_entry(self, column, int64_t row_group, bytes path, int physical, int64_t num_rows, PlainChunk* stored,
                         int64_t* start, ChunkPlan plan) except -1
    # Sets the offset of a chunk, and returns whether its metadata agree with the schema and the file size.
    cdef bint fits(self, int physical, int64_t num_rows, const PlainChunk* stored, int64_t* start) noexcept
