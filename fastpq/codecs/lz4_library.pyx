# distutils: language = c
"""The LZ4_RAW codec, which is one LZ4 block, and the deprecated LZ4 codec. Both call liblz4."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcmp

from fastpq.codecs.codec cimport BROKEN_STREAM, NO_CONTEXT, STREAM_TOO_LONG, LibraryCodec
from fastpq.codecs.contexts cimport context_give, context_pool, context_take, contexts_release

cdef extern from "<lz4.h>" nogil:
    int LZ4_compress_default(const char* data, char* out, int size, int room) noexcept
    int LZ4_decompress_safe(const char* data, char* out, int size, int room) noexcept

cdef extern from "<lz4hc.h>" nogil:
    int LZ4_compress_HC(const char* data, char* out, int size, int room, int level) noexcept

cdef extern from "<lz4frame.h>" nogil:
    ctypedef struct LZ4F_dctx
    unsigned LZ4F_VERSION
    size_t LZ4F_createDecompressionContext(LZ4F_dctx** context, unsigned version) noexcept
    size_t LZ4F_freeDecompressionContext(LZ4F_dctx* context) noexcept
    size_t LZ4F_decompress(LZ4F_dctx* context, void* out, size_t* room, const void* data, size_t* size, void* options) noexcept
    unsigned LZ4F_isError(size_t result) noexcept

cdef int HIGH_COMPRESSION = 3               # first level that uses this mode, as in pyarrow
cdef int64_t LARGEST_BLOCK = 0x7E000000     # LZ4_MAX_INPUT_SIZE, in bytes
cdef int64_t HADOOP_BLOCK_SIZE = 1 << 18    # uncompressed size in bytes of a block that Hadoop's block codecs write
cdef const uint8_t* FRAME_MAGIC = b"\x04\x22\x4d\x18"


cdef int64_t encode_block(const uint8_t* data, int64_t size, uint8_t* out, int64_t room, int level) noexcept nogil:
    """Compress one block. Return the number of bytes written, or NO_CONTEXT."""
    cdef int written
    if size > LARGEST_BLOCK:
        return NO_CONTEXT
    if level < HIGH_COMPRESSION:
        written = LZ4_compress_default(<const char*>data, <char*>out, <int>size, <int>min(room, <int64_t>0x7fffffff))
    else:
        written = LZ4_compress_HC(<const char*>data, <char*>out, <int>size, <int>min(room, <int64_t>0x7fffffff), level)
    return written if written > 0 else NO_CONTEXT


cdef int64_t decode_block(const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) noexcept nogil:
    """Decompress one block to the front of target. Return the number of bytes written, or BROKEN_STREAM."""
    cdef int written = -1
    if size <= 0x7fffffff and room <= 0x7fffffff:       # a page is never larger
        written = LZ4_decompress_safe(<const char*>stream, <char*>target, <int>size, <int>room)
    return written if written >= 0 else BROKEN_STREAM


cdef class Lz4RawLibrary(LibraryCodec):
    """The LZ4_RAW codec at one level.

    Args:
        number, name, most_expansion: as for Codec.
        level: 1 or 2 for the fast mode, 3 to 12 for high compression.
    """

    cdef int64_t bound(self, int64_t size) noexcept nogil:
        return size + size // 255 + 16

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        return encode_block(data, size, out, room, self.level)

    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil:
        return decode_block(stream, size, target, room)


cdef void release_decompressor(void* context) noexcept nogil:
    LZ4F_freeDecompressionContext(<LZ4F_dctx*>context)


cdef class Lz4HadoopLibrary(LibraryCodec):
    """The deprecated LZ4 codec. It writes Hadoop's framing, and reads that framing, LZ4 frames and raw blocks.

    A dialect fits if its own lengths match the source's and the target's size to the byte. No stream fits two dialects.

    Args:
        number, name, most_expansion: as for Codec.
        level: as for Lz4RawLibrary.
    """
    cdef context_pool decompressors

    def __dealloc__(self):
        contexts_release(&self.decompressors, release_decompressor)

    cdef int64_t bound(self, int64_t size) noexcept nogil:
        return 4 + size + size // 255 + (size // HADOOP_BLOCK_SIZE + 1) * 24

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        cdef int64_t start = 0, position = 0, block, chunk
        if size == 0:
            store_length(out, 0)
            return 4
        while start < size:
            block = min(HADOOP_BLOCK_SIZE, size - start)
            chunk = encode_block(data + start, block, out + position + 8, room - position - 8, self.level)
            if chunk < 0:
                return chunk
            store_length(out + position, block)
            store_length(out + position + 4, chunk)
            position += 8 + chunk
            start += block
        return position

    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil:
        cdef int64_t framed
        if size >= 4 and memcmp(stream, FRAME_MAGIC, 4) == 0:
            framed = self._frames(stream, size, target, room)
            if framed == room or framed == NO_CONTEXT:
                return framed
        framed = hadoop_decode(stream, size, target, room)
        if framed == room or decode_block(stream, size, target, room) == room:
            return room
        return framed

    cdef int64_t _frames(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) noexcept nogil:
        cdef LZ4F_dctx* context = <LZ4F_dctx*>context_take(&self.decompressors)
        cdef size_t hint = 1, taken, written
        cdef int64_t position = 0, filled = 0
        if context == NULL and LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)):
            return NO_CONTEXT
        while hint and position < size:
            taken, written = <size_t>(size - position), <size_t>(room - filled)
            hint = LZ4F_decompress(context, target + filled, &written, stream + position, &taken, NULL)
            if LZ4F_isError(hint) or taken + written == 0:
                break
            position += <int64_t>taken
            filled += <int64_t>written
        if hint:        # the context is inside a frame, and cannot begin another stream
            LZ4F_freeDecompressionContext(context)
            return BROKEN_STREAM
        context_give(&self.decompressors, context, release_decompressor)
        return filled if position == size else BROKEN_STREAM


cdef int64_t hadoop_decode(const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) noexcept nogil:
    """Decompress the format that Hadoop's BlockCompressorStream writes. framing.hadoop_decompress describes it."""
    cdef int64_t position = 0, filled = 0, end, block, chunk, written
    while position < size:
        if size - position < 4:
            return BROKEN_STREAM
        block = load_length(stream + position)
        position += 4
        if block > room - filled:
            return STREAM_TOO_LONG
        end = filled + block
        while filled < end or (block == 0 and position < size):
            if size - position < 4:
                return BROKEN_STREAM
            chunk = load_length(stream + position)
            position += 4
            if chunk == 0 or chunk > size - position:
                return BROKEN_STREAM
            written = decode_block(stream + position, chunk, target + filled, end - filled)
            if written < 0 or (written == 0 and block):
                return BROKEN_STREAM
            position += chunk
            filled += written
    return filled


cdef inline int64_t load_length(const uint8_t* data) noexcept nogil:
    return <int64_t>(<uint32_t>data[0] << 24 | <uint32_t>data[1] << 16 | <uint32_t>data[2] << 8 | data[3])


cdef inline void store_length(uint8_t* out, int64_t length) noexcept nogil:
    out[0], out[1], out[2], out[3] = length >> 24 & 0xff, length >> 16 & 0xff, length >> 8 & 0xff, length & 0xff
