# distutils: language = c
"""The ZSTD codec (RFC 8878). It calls libzstd."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.codecs.codec cimport BROKEN_STREAM, NO_CONTEXT, STREAM_TOO_LONG, LibraryCodec, Streams
from fastpq.codecs.contexts cimport context_give, context_pool, context_take, contexts_release

cdef extern from "<zstd.h>" nogil:
    ctypedef struct ZSTD_CCtx
    ctypedef struct ZSTD_DCtx
    ctypedef struct ZSTD_inBuffer:
        const void* src
        size_t size
        size_t pos
    ctypedef struct ZSTD_outBuffer:
        void* dst
        size_t size
        size_t pos
    ctypedef enum ZSTD_cParameter:
        ZSTD_c_compressionLevel
    ctypedef enum ZSTD_ResetDirective:
        ZSTD_reset_session_and_parameters
    ctypedef enum ZSTD_EndDirective:
        ZSTD_e_flush
        ZSTD_e_end
    ZSTD_CCtx* ZSTD_createCCtx() noexcept
    ZSTD_DCtx* ZSTD_createDCtx() noexcept
    size_t ZSTD_freeCCtx(ZSTD_CCtx* context) noexcept
    size_t ZSTD_freeDCtx(ZSTD_DCtx* context) noexcept
    size_t ZSTD_sizeof_CCtx(const ZSTD_CCtx* context) noexcept
    size_t ZSTD_compressBound(size_t size) noexcept
    size_t ZSTD_compressCCtx(ZSTD_CCtx* context, void* out, size_t room, const void* data, size_t size, int level) noexcept
    size_t ZSTD_CCtx_reset(ZSTD_CCtx* context, ZSTD_ResetDirective reset) noexcept
    size_t ZSTD_CCtx_setParameter(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) noexcept
    size_t ZSTD_CCtx_setPledgedSrcSize(ZSTD_CCtx* context, unsigned long long size) noexcept
    size_t ZSTD_compressStream2(ZSTD_CCtx* context, ZSTD_outBuffer* out, ZSTD_inBuffer* data, ZSTD_EndDirective end) noexcept
    size_t ZSTD_decompressDCtx(ZSTD_DCtx* context, void* out, size_t room, const void* data, size_t size) noexcept
    unsigned ZSTD_isError(size_t result) noexcept

cdef extern from "<zstd_errors.h>" nogil:
    ctypedef enum ZSTD_ErrorCode:
        ZSTD_error_dstSize_tooSmall
        ZSTD_error_memory_allocation
    ZSTD_ErrorCode ZSTD_getErrorCode(size_t result) noexcept

# Size in bytes of the largest context that is kept. Contexts for the highest levels are larger, but are cheap to make compared
# with their use.
cdef size_t LARGEST_KEPT = 64 << 20

cdef enum:
    # bytes. In a smaller part, its own tables cost more than they save. They take up to some 200 bytes.
    SMALLEST_STREAM = 1024
    MOST_STREAMS = 64           # parts in a page
    STREAM_OVERHEAD = 16        # bytes that each part may add, because its block ends


cdef void release_compressor(void* context) noexcept nogil:
    ZSTD_freeCCtx(<ZSTD_CCtx*>context)


cdef void release_decompressor(void* context) noexcept nogil:
    ZSTD_freeDCtx(<ZSTD_DCtx*>context)


cdef class ZstdLibrary(LibraryCodec):
    """The ZSTD codec at one level. It writes one frame, and reads any number of frames.

    Args:
        number, name, most_expansion: as for Codec.
        level: libzstd's level.
    """
    cdef context_pool compressors
    cdef context_pool decompressors

    def __dealloc__(self):
        contexts_release(&self.compressors, release_compressor)
        contexts_release(&self.decompressors, release_decompressor)

    cdef int64_t bound(self, int64_t size) noexcept nogil:
        return <int64_t>ZSTD_compressBound(<size_t>size) + MOST_STREAMS * STREAM_OVERHEAD

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        cdef ZSTD_CCtx* context = <ZSTD_CCtx*>context_take(&self.compressors)
        cdef size_t written
        if context == NULL:
            context = ZSTD_createCCtx()
        if context == NULL:
            return NO_CONTEXT
        written = ZSTD_compressCCtx(context, out, <size_t>room, data, <size_t>size, self.level)
        self._keep(context)
        return NO_CONTEXT if ZSTD_isError(written) else <int64_t>written

    cdef int64_t encode_streams(self, const uint8_t* data, int64_t size, Streams streams, uint8_t* out,
                                int64_t room) except? -100 nogil:
        """Compress a page to one frame. A block ends where a stream ends, so that each stream has its own entropy tables."""
        cdef ZSTD_CCtx* context
        cdef int64_t written
        if min(streams.first, streams.each) < SMALLEST_STREAM or (size - streams.first) // streams.each >= MOST_STREAMS - 1:
            return self.encode(data, size, out, room)
        context = <ZSTD_CCtx*>context_take(&self.compressors)
        if context == NULL:
            context = ZSTD_createCCtx()
        if context == NULL:
            return NO_CONTEXT
        written = self._encode_blocks(context, data, size, streams, out, room)
        self._keep(context)
        return written

    cdef int64_t _encode_blocks(self, ZSTD_CCtx* context, const uint8_t* data, int64_t size, Streams streams, uint8_t* out,
                                int64_t room) noexcept nogil:
        cdef ZSTD_inBuffer part
        cdef ZSTD_outBuffer target
        cdef int64_t end = streams.first
        cdef size_t left = 0
        target.dst, target.size, target.pos = out, <size_t>room, 0
        part.src, part.size, part.pos = data, 0, 0
        ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)
        left = ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, self.level)
        if not ZSTD_isError(left):
            left = ZSTD_CCtx_setPledgedSrcSize(context, <unsigned long long>size)
        while not ZSTD_isError(left):
            part.size = <size_t>min(end, size)
            left = ZSTD_compressStream2(context, &target, &part, ZSTD_e_end if end >= size else ZSTD_e_flush)
            if left == 0 and end >= size:
                break
            if left == 0:
                end += streams.each
            elif not ZSTD_isError(left) and target.pos == target.size:
                return NO_CONTEXT
        ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)
        return NO_CONTEXT if ZSTD_isError(left) else <int64_t>target.pos

    cdef void _keep(self, ZSTD_CCtx* context) noexcept nogil:
        """Keep a context for the next page, or free it if it is large."""
        if ZSTD_sizeof_CCtx(context) > LARGEST_KEPT:
            ZSTD_freeCCtx(context)
        else:
            context_give(&self.compressors, context, release_compressor)

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
