"""ChunkPlan: a column chunk of a read, or some of its rows."""

from libc.stdint cimport int64_t


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
    cdef readonly bint has_dictionary
    cdef readonly bint v2_is_compressed
    cdef readonly object file_path
    cdef readonly object pages
    cdef readonly object kept
    cdef object file            # the FileMetaData, for metadata on demand
    cdef object stored          # the ColumnChunkMetaData; None until asked for
    cdef object parts           # the ranges; None for the whole chunk

    cdef ChunkPlan copy(self)
