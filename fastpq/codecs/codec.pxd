"""Codec: the interface through which the page loop uses a compression codec at one level."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    # Codec.decode returns these in place of a size.
    BROKEN_STREAM = -1
    STREAM_TOO_LONG = -2        # the stream has more bytes than the target
    NO_CONTEXT = -3             # there is no memory for the library's state


# Parts in a page whose bytes are distributed differently: BYTE_STREAM_SPLIT's streams, or lengths and text. A codec may compress
# each part with its own table.
cdef struct Streams:
    int64_t first               # bytes in the first part; 0 if the page is one stream
    int64_t each                # bytes in each part behind it. The last one has what is left.


cdef class Codec:
    cdef readonly int number                    # CompressionCodec
    cdef readonly str name
    cdef readonly tuple most_expansion          # (bytes produced, bytes consumed) of the densest stream
    cdef int64_t produced
    cdef int64_t consumed

    # Returns the largest size that size bytes can have after compression.
    cdef int64_t bound(self, int64_t size) noexcept nogil
    # Compresses size bytes to out, which has room for bound(size) bytes. Returns the number of bytes written.
    cdef int64_t compress_to(self, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil
    # Like compress_to, for a page with streams.
    cdef int64_t compress_streams_to(self, const uint8_t* data, int64_t size, Streams streams, uint8_t* out) except -1 nogil
    # Decompresses a stream that has size bytes to exactly room bytes. Raises FormatError for any other stream.
    #   page, offset: the page's place, for errors, or negative if unknown
    cdef int decompress_to(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room, int64_t page,
                           int64_t offset) except -1 nogil

    # Each implementation overrides decode and encode.
    # Decompresses a stream to the front of target. Returns the number of bytes written, or a negative result as above.
    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil
    # Compresses size bytes to out, which has room bytes. Returns the number of bytes written, or NO_CONTEXT.
    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil
    # Like encode, for a page with streams. A codec overrides it only if its format can have a table for each part.
    cdef int64_t encode_streams(self, const uint8_t* data, int64_t size, Streams streams, uint8_t* out,
                                int64_t room) except? -100 nogil


cdef class LibraryCodec(Codec):
    cdef int level


cdef class PackageCodec(Codec):
    cdef object compress_whole                  # streams.Compress
    cdef object decompress_whole                # streams.DecompressInto
