"""Kinds of small columns: what the columns of one type have in common, for SmallColumns and StackedColumns."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.column.chunk_reader cimport ChunkReader


cdef class SmallColumnKind:
    cdef object type
    cdef object layout
    cdef bint is_read
    cdef bint is_variable
    cdef int64_t width
    cdef object dtype
    cdef dict readers

# Returns the kind of a leaf's type, which is made once. `kinds` holds the kinds that were made, by the id of the type.
cdef SmallColumnKind kind_of(opener, dict kinds, leaf)
# Returns a Column of decoded values. The validity is a bitmap, or None if no value is null.
cdef object column_of(SmallColumnKind kind, values, list buffers, validity, int64_t nulls, bint nullable)
# Gives a reader other bytes, before it reads a chunk that lies in them. `to_retain` is the uncompressed size of that chunk.
cdef int share_bytes(ChunkReader reader, array, const uint8_t* data, int64_t size, int64_t to_retain) except -1
