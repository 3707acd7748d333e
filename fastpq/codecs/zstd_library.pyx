# distutils: language = c
"""The ZSTD codec (RFC 8878), by libzstd."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.codecs.codec cimport BROKEN_STREAM, NO_CONTEXT, STREAM_TOO_LONG, LibraryCodec
from fastpq.codecs.contexts cimport context_give, context_pool, context_take, contexts_release

cdef extern from "<zstd.h>" nogil:
    ctypedef struct ZSTD_CCtx
    ctypedef struct ZSTD_DCtx
    ZSTD_CCtx* ZSTD_createCCtx() noexcept
    ZSTD_DCtx* ZSTD_createDCtx() noexcept
    size_t ZSTD_freeCCtx(ZSTD_CCtx* context) noexcept
    size_t ZSTD_freeDCtx(ZSTD_DCtx* context) noexcept
    size_t ZSTD_sizeof_CCtx(const ZSTD_CCtx* context) noexcept
    size_t ZSTD_compressBound(size_t size) noexcept
    size_t ZSTD_compressCCtx(ZSTD_CCtx* context, void* out, size_t room, const void* data, size_t size, int level) noexcept
    size_t ZSTD_decompressDCtx(ZSTD_DCtx* context, void* out, size_t room, const void* data, size_t size) noexcept
    unsigned ZSTD_isError(size_t result) noexcept

cdef extern from "<zstd_errors.h>" nogil:
    ctypedef enum ZSTD_ErrorCode:
        ZSTD_error_dstSize_tooSmall
        ZSTD_error_memory_allocation
    ZSTD_ErrorCode ZSTD_getErrorCode(size_t result) noexcept

cdef size_t LARGEST_KEPT = 64 << 20     # bytes; contexts of the highest levels are larger, and slow to use anyway


cdef void release_compressor(void* context) noexcept nogil:
    ZSTD_freeCCtx(<ZSTD_CCtx*>context)


cdef void release_decompressor(void* context) noexcept nogil:
    ZSTD_freeDCtx(<ZSTD_DCtx*>context)


cdef class ZstdLibrary(LibraryCodec):
    """The ZSTD codec at one level: writes one frame, reads any number of frames.

    Args:
        number, name, most_expansion: as for Codec.
        level: of libzstd.
    """
    cdef context_pool compressors
    cdef context_pool decompressors

    def __dealloc__(self):
        contexts_release(&self.compressors, release_compressor)
        contexts_release(&self.decompressors, release_decompressor)

    cdef int64_t bound(self, int64_t size) noexcept nogil:
        return <int64_t>ZSTD_compressBound(<size_t>size)

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        cdef ZSTD_CCtx* context = <ZSTD_CCtx*>context_take(&self.compressors)
        cdef size_t written
        if context == NULL:
            context = ZSTD_createCCtx()
        if context == NULL:
            return NO_CONTEXT
        written = ZSTD_compressCCtx(context, out, <size_t>room, data, <size_t>size, self.level)
        if ZSTD_sizeof_CCtx(context) > LARGEST_KEPT:
            ZSTD_freeCCtx(context)
        else:
            context_give(&self.compressors, context, release_compressor)
        return NO_CONTEXT if ZSTD_isError(written) else <int64_t>written

    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil:
        cdef ZSTD_DCtx* context = <ZSTD_DCtx*>context_take(&self.decompressors)
        cdef size_t written
        cdef ZSTD_ErrorCode error
        if context == NULL:
            context = ZSTD_createDCtx()
        if context == NULL:
            return NO_CONTEXT
        written = ZSTD_decompressDCtx(context, target, <size_t>room, stream, <size_t>size)
        context_give(&self.decompressors, context, release_decompressor)
        if not ZSTD_isError(written):
            return <int64_t>written
        error = ZSTD_getErrorCode(written)
        if error == ZSTD_error_memory_allocation:
            return NO_CONTEXT
        return STREAM_TOO_LONG if error == ZSTD_error_dstSize_tooSmall else BROKEN_STREAM
