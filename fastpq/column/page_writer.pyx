"""Stores pages: compresses and encrypts a body, adds a CRC-32, and puts the encrypted header in front."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from fastpq.arrays.memory cimport Pieces
from fastpq.codecs.checksum cimport crc32_of
from fastpq.codecs.codec cimport Codec, Streams
from fastpq.column.chunk_settings cimport ChunkSettings
from fastpq.column.input cimport ColumnInput, StoredView
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.gcm cimport MODULE_OVERHEAD
from fastpq.encryption.modules cimport DATA_PAGE, DATA_PAGE_HEADER, DICTIONARY_PAGE, DICTIONARY_PAGE_HEADER
from fastpq.format.page_header cimport PAGE_HEADER_BOUND, TYPE_DICTIONARY_PAGE, PageHeader, write_page_header

from fastpq.errors import LimitError


cdef enum:
    LARGEST_PAGE = 1 << 30              # bytes: the reader's default of max_page_size, fastpq.options.LARGEST_PAGE
    COPIED = 1 << 16                    # bytes: larger pages in the column's memory are not copied


@cython.no_gc          # no instance can be part of a cycle
cdef class PageWriter:
    """Stores the pages in one column chunk.

    Args:
        column: the chunk's column.
        codec: the chunk's Codec.
        cipher: the chunk's ModuleCipher.
        settings: the column's ChunkSettings.
        give: function that is called with lists of stored pages, in order. If it is None, all pages wait in ``pieces``.
    """

    def __cinit__(self, ColumnInput column not None, Codec codec not None, ModuleCipher cipher not None,
                  ChunkSettings settings not None, give=None):
        self.column = column
        self.codec = codec
        self.cipher = cipher
        self.settings = settings
        self.pieces = Pieces(give)

    def __dealloc__(self):
        with nogil:             # because it takes long to return large blocks to the operating system
            self.free()

    cdef void free(self) noexcept nogil:
        scratch_free(&self.packed)
        scratch_free(&self.encrypted)

    cdef dict page_counts(self):
        cdef int type, encoding
        cdef dict counts = {}
        for type in range(PAGE_TYPES):
            for encoding in range(ENCODINGS):
                if self.counts[type][encoding]:
                    counts[type, encoding] = self.counts[type][encoding]
        return counts

    cdef bint stores_parts(self) noexcept nogil:
        return self.codec.number == 0 and self.cipher.sealed_size(DATA_PAGE, 0) == 0

    cdef int64_t write(self, PageHeader* header, int ordinal, const uint8_t* body, int64_t size, int64_t levels_size,
                       Streams streams, const uint8_t* in_column) except -1 nogil:
        cdef bint dictionary = header.type == TYPE_DICTIONARY_PAGE
        cdef int module = DICTIONARY_PAGE if dictionary else DATA_PAGE
        cdef uint8_t room[PAGE_HEADER_BOUND]
        cdef uint8_t sealed_header[PAGE_HEADER_BOUND + MODULE_OVERHEAD]
        cdef int64_t sealed_size, header_size, second_size = 0
        cdef uint8_t* encrypted
        cdef const uint8_t* stored = body
        if in_column != NULL and levels_size:
            second_size = size - levels_size        # the values are stored unchanged behind the levels
            size = levels_size
        elif in_column != NULL:
            body = stored = in_column
        if not self.settings.version_2:
            if streams.first:
                streams.first += levels_size
            levels_size = 0         # in V1 pages, levels are compressed with the values
        if self.codec.number:
            stored = self._compress(body, &size, levels_size, streams)
        sealed_size = self.cipher.sealed_size(module, size)
        check_page_size(sealed_size)
        if sealed_size != size:
            encrypted = scratch_reserve(&self.encrypted, <size_t>sealed_size)
            self.cipher.seal_to(module, ordinal, stored, size, levels_size, encrypted)
            stored = encrypted
        header.compressed_page_size = <int32_t>(sealed_size - self.cipher.uncounted + second_size)
        header.has_crc = self.settings.checksums
        header.crc = <int32_t><uint32_t>crc32_of(stored, sealed_size) if self.settings.checksums else 0
        if self.settings.checksums and second_size:
            header.crc = <int32_t><uint32_t>crc32_of(in_column, second_size, <uint32_t>header.crc)
        header_size = write_page_header(header, room)
        module = DICTIONARY_PAGE_HEADER if dictionary else DATA_PAGE_HEADER
        self.cipher.seal_to(module, ordinal, room, header_size, 0, sealed_header)
        header_size = self.cipher.sealed_size(module, header_size)
        self.pieces.append(sealed_header, <size_t>header_size)
        if stored == in_column:
            self._append_column(stored, sealed_size)
        else:
            self.pieces.append(stored, <size_t>sealed_size)
        if second_size:
            self._append_column(in_column, second_size)
        self.uncompressed_size += header_size + header.uncompressed_page_size
        self.counts[header.type][header.encoding] += 1
        return header_size + sealed_size + second_size

    cdef int _append_column(self, const uint8_t* values, int64_t size) except -1 nogil:
        """Add values in the column's memory to the pieces. Only a few bytes are copied."""
        if size > COPIED:
            with gil:
                self.pieces.append_buffer(memoryview(StoredView.of(self.column, values, size)), size)
            return 0
        return self.pieces.append(values, <size_t>size)

    cdef const uint8_t* _compress(self, const uint8_t* body, int64_t* size, int64_t levels_size,
                                  Streams streams) except NULL nogil:
        """Compress the values in a body, but not the levels in front. Returns reused memory, and sets size to the new size."""
        cdef int64_t values_size = size[0] - levels_size
        cdef uint8_t* out = scratch_reserve(&self.packed, <size_t>(levels_size + self.codec.bound(values_size)))
        memcpy(out, body, <size_t>levels_size)
        size[0] = levels_size + self.codec.compress_streams_to(
            body + levels_size, values_size, streams, out + levels_size)
        return out


cdef int check_page_size(int64_t size) except -1 nogil:
    if size > LARGEST_PAGE:
        with gil:
            raise LimitError(f"a page of {size} bytes: no page can be larger than {LARGEST_PAGE}")
    return 0
