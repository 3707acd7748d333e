# distutils: language = c
"""The GZIP codec (RFC 1952). It calls libdeflate."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.codecs.codec cimport BROKEN_STREAM, NO_CONTEXT, STREAM_TOO_LONG, LibraryCodec
from fastpq.codecs.contexts cimport context_give, context_pool, context_take, contexts_release

cdef extern from "<libdeflate.h>" nogil:
    struct libdeflate_compressor
    struct libdeflate_decompressor
    enum libdeflate_result:
        LIBDEFLATE_SUCCESS
        LIBDEFLATE_INSUFFICIENT_SPACE
    libdeflate_compressor* libdeflate_alloc_compressor(int level) noexcept
    libdeflate_decompressor* libdeflate_alloc_decompressor() noexcept
    void libdeflate_free_compressor(libdeflate_compressor* context) noexcept
    void libdeflate_free_decompressor(libdeflate_decompressor* context) noexcept
    size_t libdeflate_gzip_compress_bound(libdeflate_compressor* context, size_t size) noexcept
    size_t libdeflate_gzip_compress(
        libdeflate_compressor* context, const void* data, size_t size, void* out, size_t room) noexcept
    libdeflate_result libdeflate_gzip_decompress_ex(
        libdeflate_decompressor* context, const void* data, size_t size, void* out, size_t room, size_t* taken,
        size_t* written) noexcept
    libdeflate_result libdeflate_zlib_decompress_ex(
        libdeflate_decompressor* context, const void* data, size_t size, void* out, size_t room, size_t* taken,
        size_t* written) noexcept


cdef void release_compressor(void* context) noexcept nogil:
    libdeflate_free_compressor(<libdeflate_compressor*>context)


cdef void release_decompressor(void* context) noexcept nogil:
    libdeflate_free_decompressor(<libdeflate_decompressor*>context)


cdef class GzipLibrary(LibraryCodec):
    """The GZIP codec at one level. It writes one member, and reads any number of members and zlib streams (RFC 1950).

    Args:
        number, name, most_expansion: as for Codec.
        level: libdeflate's level, from 1 to 12.
    """
    cdef context_pool compressors
    cdef context_pool decompressors

    def __dealloc__(self):
        contexts_release(&self.compressors, release_compressor)
        contexts_release(&self.decompressors, release_decompressor)

    cdef int64_t bound(self, int64_t size) noexcept nogil:
        return <int64_t>libdeflate_gzip_compress_bound(NULL, <size_t>size)

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        cdef libdeflate_compressor* context = <libdeflate_compressor*>context_take(&self.compressors)
        cdef size_t written
        if context == NULL:
            context = libdeflate_alloc_compressor(self.level)
        if context == NULL:
            return NO_CONTEXT
        written = libdeflate_gzip_compress(context, data, <size_t>size, out, <size_t>room)
        context_give(&self.compressors, context, release_compressor)
        return <int64_t>written if written else NO_CONTEXT      # a member has at least 20 bytes

    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil:
        cdef libdeflate_decompressor* context = <libdeflate_decompressor*>context_take(&self.decompressors)
        cdef int64_t filled
        if context == NULL:
            context = libdeflate_alloc_decompressor()
        if context == NULL:
            return NO_CONTEXT
        filled = inflate_members(context, stream, <size_t>size, target, <size_t>room)
        context_give(&self.decompressors, context, release_decompressor)
        return filled


cdef int64_t inflate_members(libdeflate_decompressor* context, const uint8_t* stream, size_t size, uint8_t* target,
                             size_t room) noexcept nogil:
    """Decompress all gzip members or zlib streams. Return the number of bytes written, or a negative result as Codec.decode."""
    cdef size_t position = 0, filled = 0, taken = 0, written = 0
    cdef libdeflate_result result
    while position < size:
        if stream[position] == 0x1f:        # gzip's magic number begins with this byte, and no zlib stream does
            result = libdeflate_gzip_decompress_ex(
                context, stream + position, size - position, target + filled, room - filled, &taken, &written)
        else:
            result = libdeflate_zlib_decompress_ex(
                context, stream + position, size - position, target + filled, room - filled, &taken, &written)
        if result != LIBDEFLATE_SUCCESS:
            return STREAM_TOO_LONG if result == LIBDEFLATE_INSUFFICIENT_SPACE else BROKEN_STREAM
        position += taken
        filled += written
    return <int64_t>filled
