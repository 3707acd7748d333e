"""Codec, the page loop's interface to a compression codec at one level."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    # Results of Codec.decode in place of a size.
    BROKEN_STREAM = -1
    STREAM_TOO_LONG = -2        # more bytes than the target has
    NO_CONTEXT = -3             # no memory for the library's state


cdef class Codec:
    cdef readonly int number                    # CompressionCodec
    cdef readonly str name
    cdef readonly tuple most_expansion          # (bytes produced, bytes consumed) of the densest stream
    cdef int64_t produced
    cdef int64_t consumed

    # Most bytes of a compressed stream of size bytes.
    cdef int64_t bound(self, int64_t size) noexcept nogil
    # Compresses size bytes to out, of bound(size) bytes; returns the bytes written.
    cdef int64_t compress_to(self, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil
    # Decompresses a stream of size bytes to exactly room bytes; raises FormatError for any other stream.
    #   page, offset: place of the page, for errors; negative where unknown
    cdef int decompress_to(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room, int64_t page,
                           int64_t offset) except -1 nogil

    # Overridden by each implementation.
    # Decompresses a stream to the front of target; returns the bytes written, or a negative result as above.
    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil
    # Compresses size bytes to out, of room bytes; returns the bytes written, or a negative number without memory.
    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil


cdef class LibraryCodec(Codec):
    cdef int level


cdef class PackageCodec(Codec):
    cdef object compress_whole                  # streams.Compress
    cdef object decompress_whole                # streams.DecompressInto
