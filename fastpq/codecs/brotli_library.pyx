# distutils: language = c
"""The BROTLI codec (RFC 7932). It calls libbrotli."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.codecs.codec cimport BROKEN_STREAM, NO_CONTEXT, STREAM_TOO_LONG, LibraryCodec

cdef extern from "<brotli/encode.h>" nogil:
    int BROTLI_DEFAULT_WINDOW
    enum BrotliEncoderMode:
        BROTLI_MODE_GENERIC
    size_t BrotliEncoderMaxCompressedSize(size_t size) noexcept
    bint BrotliEncoderCompress(int quality, int window, BrotliEncoderMode mode, size_t size, const uint8_t* data,
                               size_t* written, uint8_t* out) noexcept

cdef extern from "<brotli/decode.h>" nogil:
    ctypedef struct BrotliDecoderState
    ctypedef enum BrotliDecoderResult:
        BROTLI_DECODER_RESULT_SUCCESS
        BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT
        BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT
    BrotliDecoderState* BrotliDecoderCreateInstance(void* allocate, void* release, void* opaque) noexcept
    void BrotliDecoderDestroyInstance(BrotliDecoderState* state) noexcept
    BrotliDecoderResult BrotliDecoderDecompressStream(
        BrotliDecoderState* state, size_t* size, const uint8_t** data, size_t* room, uint8_t** out, size_t* total) noexcept


cdef class BrotliLibrary(LibraryCodec):
    """The BROTLI codec at one level.

    Args:
        number, name, most_expansion: as for Codec.
        level: libbrotli's quality, from 0 to 11.
    """

    cdef int64_t bound(self, int64_t size) noexcept nogil:
        return <int64_t>max(BrotliEncoderMaxCompressedSize(<size_t>size), 16)

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        cdef size_t written = <size_t>room
        if not BrotliEncoderCompress(
                self.level, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, <size_t>size, data, &written, out):
            return NO_CONTEXT
        return <int64_t>written

    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil:
        cdef BrotliDecoderState* state = BrotliDecoderCreateInstance(NULL, NULL, NULL)
        cdef size_t left = <size_t>size, free = <size_t>room
        cdef BrotliDecoderResult result
        if state == NULL:
            return NO_CONTEXT
        result = BrotliDecoderDecompressStream(state, &left, &stream, &free, &target, NULL)
        BrotliDecoderDestroyInstance(state)
        if result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
            return STREAM_TOO_LONG
        if result != BROTLI_DECODER_RESULT_SUCCESS or left:
            return BROKEN_STREAM
        return room - <int64_t>free
