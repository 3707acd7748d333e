# distutils: language = c
"""Codec, a compression codec at one level: over a library or kernel in C, or over the callables of a package."""

from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastpq.errors import FormatError, LimitError, ParquetError


cdef class Codec:
    """A compression codec at one level. Stateless; several threads may call its methods at once.

    Args:
        number: the codec's value in ``CompressionCodec`` (parquet.thrift).
        name: the codec's name in ``codec_for_write``.
        most_expansion: greatest expansion of any stream, as (bytes produced, bytes consumed).
        options: for the implementation: a level, or callables.
    """

    def __cinit__(self, int number, str name, tuple most_expansion, *options):
        self.number = number
        self.name = name
        self.most_expansion = most_expansion
        self.produced, self.consumed = most_expansion

    def compress(self, const uint8_t[::1] data not None):
        """The compressed form of a contiguous buffer, bytes-like. Releases the GIL."""
        cdef uint8_t nothing = 0        # an address in place of an empty view's NULL
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
        """Decompress one page to exactly the size of target; an empty source fits an empty target. Releases the GIL.

        Raises:
            FormatError: a stream broken, too long or too short; target's content is then undefined.
        """
        cdef uint8_t nothing = 0
        cdef const uint8_t* first = &source[0] if source.shape[0] else &nothing
        cdef uint8_t* out = &target[0] if target.shape[0] else &nothing
        with nogil:
            self.decompress_to(first, source.shape[0], out, target.shape[0], -1, -1)

    cdef int64_t bound(self, int64_t size) noexcept nogil:
        # Snappy grows by a sixth, LZO by a sixteenth and less than 128 bytes a block, all others by less
        return size + size // 6 + 128

    cdef int64_t compress_to(self, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        cdef int64_t written = self.encode(data, size, out, self.bound(size))
        if written < 0:
            with gil:
                raise MemoryError(f"the state of {self.name}")
        return written

    cdef int decompress_to(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room, int64_t page,
                           int64_t offset) except -1 nogil:
        cdef int64_t written
        if size == 0 and room == 0:     # some writers store a page without values as no bytes
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
            return FormatError(f"{self.name} stream of more bytes than the {room} that the page header claims")
        return FormatError(f"{self.name} stream of {written} bytes, the page header claims {room}")

    cdef int64_t decode(self, const uint8_t* stream, int64_t size, uint8_t* target, int64_t room) except? -100 nogil:
        return BROKEN_STREAM

    cdef int64_t encode(self, const uint8_t* data, int64_t size, uint8_t* out, int64_t room) except? -100 nogil:
        return NO_CONTEXT


cdef class LibraryCodec(Codec):
    """A codec of a library in C, at one level; the classes below differ in the library.

    Args:
        number, name, most_expansion: as for Codec.
        level: of the library.
    """

    def __cinit__(self, int number, str name, tuple most_expansion, int level):
        self.level = level


cdef class PackageCodec(Codec):
    """A codec of a package: Python callables, called under the GIL, which they release for their work.

    Args:
        number, name, most_expansion: as for Codec.
        compress: function from a contiguous buffer of bytes to the compressed page, bytes-like.
        decompress_into: function of ``(source, target)``, contiguous one-dimensional buffers of bytes. Fills target, or raises
            FormatError.
    """

    def __cinit__(self, int number, str name, tuple most_expansion, compress, decompress_into):
        self.compress_whole = compress
        self.decompress_whole = decompress_into

    def compress(self, data):
        """The compressed form of a contiguous buffer, bytes-like. Releases the GIL."""
        return self.compress_whole(data)

    def decompress_into(self, source, target):
        """As ``Codec.decompress_into``."""
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
                    raise MemoryError(f"{size} bytes grew to {written} of {self.name}")
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
    """Page and offset as the context of an error; negative numbers are left out."""
    return {"page": page if page >= 0 else None, "offset": offset if offset >= 0 else None}
