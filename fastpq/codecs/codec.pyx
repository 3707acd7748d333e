# distutils: language = c
"""Codec: a compression codec at one level. It calls a C library, a C kernel, or a Python package."""

from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastpq.errors import FormatError, LimitError, ParquetError


cdef class Codec:
    """A compression codec at one level. Several threads may call its methods at the same time.

    Args:
        number: the codec's value in ``CompressionCodec`` (parquet.thrift).
        name: the codec's name in ``codec_for_write``.
        most_expansion: greatest expansion that a stream can have, as (bytes produced, bytes consumed).
        options: arguments for the subclass: a level, or functions.
    """

    def __cinit__(self, int number, str name, tuple most_expansion, *options):
        self.number = number
        self.name = name
        self.most_expansion = most_expansion
        self.produced, self.consumed = most_expansion

    def compress(self, const uint8_t[::1] data not None):
        """Compress a contiguous buffer, and return the stream as a bytes-like object. The GIL is released."""
        cdef uint8_t nothing = 0        # its address is used in place of NULL if the view is empty
        cdef const uint8_t* first = &data[0] if data.shape[0] else &nothing
        cdef int64_t size = data.shape[0], written
        cdef uint8_t* out
        with nogil:
            out = <uint8_t*>malloc(<size_t>self.bound(size))
            if out == NULL:
                with gil:
                    raise MemoryError()
            try:
                written = self.compress_to(first, size, out)
                with gil:
                    return PyBytes_FromStringAndSize(<char*>out, written)
            finally:
                free(out)

    def decompress_into(self, const uint8_t[::1] source not None, uint8_t[::1] target not None):
        """Decompress one page, which must fill ``target`` exactly. An empty source fits an empty target. The GIL is released.

        Raises:
            FormatError: the stream is broken, too long or too short. ``target`` then has undefined content.
        """
        cdef uint8_t nothing = 0
        cdef const uint8_t* first = &source[0] if source.shape[0] else &nothing
        cdef uint8_t* out = &target[0] if target.shape[0] else &nothing
        with nogil:
            self.decompress_to(first, source.shape[0], out, target.shape[0], -1, -1)

    cdef int64_t bound(self, int64_t size) noexcept nogil:
        # Snappy grows by at most a sixth, LZO by a sixteenth and less than 128 bytes per block, and the others grow less
        return size + size // 6 + 128

    cdef int64_t compress_to(self, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        cdef Streams streams
        streams.first = streams.each = 0
        return self.compress_streams_to(data, size, streams, out)

    cdef int64_t compress_streams_to(self, const uint8_t* data, int64_t size, Streams streams, uint8_t* out) except -1 nogil:
        cdef int64_t written, room = self.bound(size)
        if 0 < streams.first < size:
            written = self.encode_streams(data, size, streams, out, room)
        else:
            written = self.encode(data, size, out, room)
        if written < 0:
            with gil:
                raise MemoryError(f"no memory for the state of {self.name}")
        return written

    cdef int decompress_to(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room, int64_t page,
                           int64_t offset) except -1 nogil:
        cdef int64_t written
        if size == 0 and room == 0:     # some writers store no bytes for a page without values
            return 0
        written = self.decode(stream, size, target, room)
        if written != room:
            with gil:
                raise self._refusal(written, room).at(**place_of(page, offset))
        return 0

    def _refusal(self, int64_t written, int64_t room):
        if written == NO_CONTEXT:
            return LimitError(f"no memory for the state of {self.name}")
        if written == BROKEN_STREAM:
            return FormatError(f"broken {self.name} stream")
        if written == STREAM_TOO_LONG:
            return FormatError(f"a {self.name} stream has more bytes than the {room} that the page header claims")
        return FormatError(f"a {self.name} stream has {written} bytes, and the page header claims {room}")

    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil:
        return BROKEN_STREAM

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        return NO_CONTEXT

    cdef int64_t encode_streams(self, const uint8_t* data, int64_t size, Streams streams, uint8_t* out,
                                int64_t room) except? -100 nogil:
        return self.encode(data, size, out, room)


cdef class LibraryCodec(Codec):
    """A codec that calls a C library. There is a subclass for each library.

    Args:
        number, name, most_expansion: as for Codec.
        level: the library's level.
    """

    def __cinit__(self, int number, str name, tuple most_expansion, int level):
        self.level = level


cdef class PackageCodec(Codec):
    """A codec that calls functions in a Python package. They are called with the GIL, and release it while they work.

    Args:
        number, name, most_expansion: as for Codec.
        compress: gets a contiguous byte buffer, and returns the compressed page as a bytes-like object.
        decompress_into: gets ``(source, target)``, two contiguous one-dimensional byte buffers. It fills the target, or raises
            FormatError.
    """

    def __cinit__(self, int number, str name, tuple most_expansion, compress, decompress_into):
        self.compress_whole = compress
        self.decompress_whole = decompress_into

    def compress(self, data):
        """Compress a contiguous buffer, and return the stream as a bytes-like object. The GIL is released."""
        return self.compress_whole(data)

    def decompress_into(self, source, target):
        """Decompress one page, as ``Codec.decompress_into`` does."""
        if len(source) or len(target):
            self.decompress_whole(source, target)

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        cdef Py_buffer view
        cdef int64_t written
        with gil:
            stored = self.compress_whole(PyMemoryView_FromMemory(<char*>data, size, PyBUF_READ))
            PyObject_GetBuffer(stored, &view, PyBUF_SIMPLE)
            try:
                written = view.len
                if written > room:
                    raise MemoryError(f"{size} bytes grew to {written} bytes of {self.name}")
                memcpy(out, view.buf, <size_t>written)
            finally:
                PyBuffer_Release(&view)
        return written

    cdef int decompress_to(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room, int64_t page,
                           int64_t offset) except -1 nogil:
        if size == 0 and room == 0:
            return 0
        with gil:
            try:
                self.decompress_whole(PyMemoryView_FromMemory(<char*>stream, size, PyBUF_READ),
                                      PyMemoryView_FromMemory(<char*>target, room, PyBUF_WRITE))
            except ParquetError as error:
                raise error.at(**place_of(page, offset))
        return 0


cdef dict place_of(int64_t page, int64_t offset):
    """Return page and offset as context for an error. Negative numbers are left out."""
    return {"page": page if page >= 0 else None, "offset": offset if offset >= 0 else None}
