"""PlainEntry: the footer entry and the page indexes of a chunk with one data page, encoded without structs.

A wide file has thousands of such chunks. To make their structs (ColumnChunk, ColumnMetaData, Statistics, OffsetIndex,
ColumnIndex) takes longer than to encode their values.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from fastpq.column.chunk_writer cimport ChunkWriter
from fastpq.column.page_log cimport PageRecord
from fastpq.column.page_writer cimport ENCODINGS, PAGE_TYPES, PageWriter
from fastpq.encodings.numbers cimport RLE
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.modules cimport COLUMN_METADATA
from fastpq.format.compact cimport EncodedStruct
from fastpq.format.cursor cimport BINARY, FALSE, I32, I64, LIST, STOP, STRUCT, TRUE
from fastpq.format.varint cimport write_varint

from fastpq.format.plain_chunk import stored_path
from fastpq.schema.types import Type
from fastpq.stats.bounds import FLOAT_ORDERS
from fastpq.stats.statistics import Order

cdef enum:
    ROOM = 1024                 # bytes for all fields of an entry or an index, without its path and its bounds
    NO_PAGE = -1                # page ordinal in the AAD for a module that belongs to no page

MOST_COUNTED_LEVELS = 32        # definition levels, 10 bytes each

cdef int BYTE_ARRAY = Type.BYTE_ARRAY
cdef int NO_ORDER = Order.ORDER_NONE
cdef frozenset ORDERS_OF_FLOATS = frozenset(int(order) for order in FLOAT_ORDERS)


@cython.final
cdef class EntryPattern:
    """What the entries of columns with one ColumnSpec have in common.

    Args:
        spec: the ColumnSpec. It has statistics, and no total order of floats.
    """

    cdef int physical
    cdef int codec
    cdef int order
    cdef bint is_float
    cdef bint has_levels
    cdef int counted_levels         # how many definition levels have counts in histograms. 0 without histograms
    cdef bint has_path
    cdef bint has_page_index
    cdef int64_t truncation

    def __init__(self, spec):
        self.physical = spec.type.physical
        self.codec = spec.codec.number
        self.order = spec.settings.order
        self.is_float = self.order in ORDERS_OF_FLOATS
        self.has_levels = spec.settings.max_definition_level > 0
        # levels up to 1 say no more than the null count
        self.counted_levels = spec.settings.max_definition_level + 1 if spec.settings.max_definition_level > 1 else 0
        self.has_path = spec.has_path
        self.has_page_index = spec.has_page_index
        self.truncation = spec.truncation

    def entry(self, tuple path not None, ChunkWriter writer not None, int64_t start):
        """Return a chunk's entry, or None if the chunk has not one data page, or has a long bound.

        Args:
            path: column path.
            writer: the chunk's ChunkWriter, which has written all rows.
            start: file offset of the first page.
        """
        cdef PageRecord* page
        cdef PlainEntry entry
        if writer.pages.count() != 1 or writer.bloom_filter is not None:
            return None
        page = writer.pages.page(0)
        if page.smallest_size > self.truncation or page.largest_size > self.truncation:
            return None
        entry = PlainEntry.__new__(PlainEntry)
        entry.total_uncompressed_size = writer.page_writer.uncompressed_size
        entry.total_compressed_size = writer.page_writer.pieces.size
        entry.data_page_offset = start + writer.dictionary_page_size
        entry.dictionary_page_offset = start if writer.dictionary_page_size else None
        entry.metadata = self._metadata(entry, path, writer, page)
        entry.shown_size = len(entry.metadata)
        if self.has_page_index:
            entry.offset_index = self._offset_index(entry, page)
            if self.order != NO_ORDER and (page.smallest_size >= 0 or page.present == 0):
                entry.column_index = self._column_index(writer, page)
        return entry

    cdef bytes _metadata(self, PlainEntry entry, tuple path, ChunkWriter writer, const PageRecord* page):
        """Return the ColumnMetaData, and note where the fields end that a plaintext footer shows of an encrypted column."""
        cdef bytes names = stored_path(path) if self.has_path else b""
        cdef int64_t bounds = max(page.smallest_size, <int64_t>0) + max(page.largest_size, <int64_t>0)
        cdef bytes room = PyBytes_FromStringAndSize(NULL, ROOM + len(names) + bounds)
        cdef uint8_t* begin = <uint8_t*>PyBytes_AS_STRING(room)
        cdef uint8_t* out = begin
        out = put_number(out, 1, I32, self.physical)
        out = put_header(out, 1, LIST)
        out = put_encodings(out, writer.page_writer, self.has_levels)
        if self.has_path:
            out = put_header(out, 1, LIST)
            out = put_bytes(out, PyBytes_AS_STRING(names), len(names))
        out = put_number(out, 1 if self.has_path else 2, I32, self.codec)
        out = put_number(out, 1, I64, writer.num_values)
        out = put_number(out, 1, I64, entry.total_uncompressed_size)
        out = put_number(out, 1, I64, entry.total_compressed_size)
        out = put_number(out, 2, I64, entry.data_page_offset)
        if entry.dictionary_page_offset is not None:
            out = put_number(out, 2, I64, entry.dictionary_page_offset)
        entry.visible_size = out - begin
        out = put_header(out, 1 if entry.dictionary_page_offset is not None else 3, STRUCT)
        out = self._statistics(out, writer, page)
        out = put_header(out, 1, LIST)
        out = put_encoding_stats(out, writer.page_writer)
        if self.physical == BYTE_ARRAY or self.counted_levels:
            out = put_header(out, 3, STRUCT)                        # size_statistics
            if self.physical == BYTE_ARRAY:
                out = put_number(out, 1, I64, page.unencoded)
            if self.counted_levels:
                out = put_header(out, 2 if self.physical == BYTE_ARRAY else 3, LIST)
                out = put_level_counts(out, writer, self.counted_levels)
            out = put_byte(out, STOP)
        out = put_byte(out, STOP)
        return PyBytes_FromStringAndSize(<const char*>begin, out - begin)

    cdef uint8_t* _statistics(self, uint8_t* out, ChunkWriter writer, const PageRecord* page):
        """Write the chunk's Statistics."""
        cdef const uint8_t* smallest = <const uint8_t*>writer.pages.bounds.data
        cdef int last = 3
        out = put_number(out, 3, I64, writer.null_count)
        if not self.is_float and writer.distinct_count >= 0:
            out = put_number(out, 1, I64, writer.distinct_count)
            last = 4
        if page.smallest_size >= 0:
            out = put_header(out, 5 - last, BINARY)
            out = put_binary(out, smallest + page.smallest_size, page.largest_size)
            out = put_header(out, 1, BINARY)
            out = put_binary(out, smallest, page.smallest_size)
            out = put_header(out, 1, TRUE)          # both bounds are exact
            out = put_header(out, 1, TRUE)
            last = 8
        if self.is_float:
            out = put_number(out, 9 - last, I64, page.nans)
        return put_byte(out, STOP)

    cdef bytes _offset_index(self, PlainEntry entry, const PageRecord* page):
        cdef uint8_t[ROOM] room
        cdef uint8_t* out = put_header(&room[0], 1, LIST)
        out = put_byte(out, 1 << 4 | STRUCT)
        out = put_number(out, 1, I64, entry.data_page_offset)
        out = put_number(out, 1, I32, page.size)
        out = put_number(out, 1, I64, 0)                # first_row_index
        out = put_byte(out, STOP)
        if self.physical == BYTE_ARRAY:
            out = put_header(out, 1, LIST)
            out = put_byte(out, 1 << 4 | I64)
            out = put_zigzag(out, page.unencoded)
        out = put_byte(out, STOP)
        return PyBytes_FromStringAndSize(<const char*>&room[0], out - &room[0])

    cdef bytes _column_index(self, ChunkWriter writer, const PageRecord* page):
        cdef const uint8_t* smallest = <const uint8_t*>writer.pages.bounds.data
        cdef int64_t smallest_size = max(page.smallest_size, <int64_t>0), largest_size = 0
        cdef bytes room
        cdef uint8_t* begin
        cdef uint8_t* out
        if page.smallest_size >= 0:
            largest_size = page.largest_size
        room = PyBytes_FromStringAndSize(NULL, ROOM + smallest_size + largest_size)
        begin = out = <uint8_t*>PyBytes_AS_STRING(room)
        out = put_header(out, 1, LIST)
        out = put_byte(out, 1 << 4 | TRUE)
        out = put_byte(out, TRUE if page.present == 0 else FALSE)
        out = put_header(out, 1, LIST)
        out = put_byte(out, 1 << 4 | BINARY)
        out = put_binary(out, smallest, smallest_size)
        out = put_header(out, 1, LIST)
        out = put_byte(out, 1 << 4 | BINARY)
        out = put_binary(out, smallest + smallest_size, largest_size)
        out = put_number(out, 1, I32, 1)                # one page is in ascending order
        out = put_header(out, 1, LIST)
        out = put_byte(out, 1 << 4 | I64)
        out = put_zigzag(out, page.entries - page.present)
        if self.counted_levels:
            out = put_header(out, 2, LIST)              # definition_level_histograms
            out = put_level_counts(out, writer, self.counted_levels)
        if self.is_float:
            out = put_header(out, 1 if self.counted_levels else 3, LIST)
            out = put_byte(out, 1 << 4 | I64)
            out = put_zigzag(out, page.nans)
        out = put_byte(out, STOP)
        return PyBytes_FromStringAndSize(<const char*>begin, out - begin)


@cython.final
@cython.no_gc
cdef class PlainEntry(EncodedStruct):
    """A ColumnChunk in the footer that encodes itself. It has the attributes of the struct, and of its ColumnMetaData, that
    fastpq.write.row_groups asks for.

    Attributes:
        column_index, offset_index: the chunk's encoded page index, or None.
    """

    cdef bytes metadata             # the encoded ColumnMetaData
    cdef Py_ssize_t visible_size    # size of its first fields, which any reader may see
    cdef Py_ssize_t shown_size      # how many of its bytes are in the entry
    cdef bytes protection           # the encoded fields behind the places of the indexes, or None if the chunk is plaintext
    cdef readonly object column_index
    cdef readonly object offset_index
    cdef readonly int64_t total_uncompressed_size
    cdef readonly int64_t total_compressed_size
    cdef readonly int64_t data_page_offset
    cdef readonly object dictionary_page_offset
    cdef public object offset_index_offset
    cdef public object offset_index_length
    cdef public object column_index_offset
    cdef public object column_index_length

    def protect(self, bytes crypto_metadata not None, str shown not None, ModuleCipher cipher not None):
        """Enter the crypto metadata, and encrypt the metadata unless all of them are shown.

        Args:
            crypto_metadata: the encoded ColumnCryptoMetaData.
            shown: ``"all"`` metadata, the fields that are ``"visible"`` to readers without the key, or ``"none"``.
            cipher: the chunk's cipher.
        """
        cdef uint8_t[16] room
        cdef uint8_t* out
        if shown == "all":
            self.protection = crypto_metadata
            return
        self.shown_size = self.visible_size if shown == "visible" else 0
        module = <bytes>cipher.seal(COLUMN_METADATA, NO_PAGE, self.metadata)
        out = write_varint(put_header(&room[0], 1, BINARY), <uint64_t>len(module))      # encrypted_column_metadata
        self.protection = crypto_metadata + PyBytes_FromStringAndSize(<const char*>&room[0], out - &room[0]) + module

    cdef bytes encoded(self):
        cdef Py_ssize_t protection_size = 0 if self.protection is None else len(self.protection)
        cdef bytes room = PyBytes_FromStringAndSize(NULL, ROOM + self.shown_size + protection_size)
        cdef uint8_t* begin = <uint8_t*>PyBytes_AS_STRING(room)
        cdef uint8_t* out = put_number(begin, 2, I64, 0)        # file_offset
        cdef int last = 2
        if self.shown_size:
            out = put_header(out, 1, STRUCT)                    # meta_data
            out = put_bytes(out, PyBytes_AS_STRING(self.metadata), self.shown_size)
            if self.shown_size == self.visible_size:
                out = put_byte(out, STOP)
            last = 3
        if self.offset_index_offset is not None:
            out = put_number(out, 4 - last, I64, self.offset_index_offset)
            out = put_number(out, 1, I32, self.offset_index_length)
            last = 5
        if self.column_index_offset is not None:
            out = put_number(out, 6 - last, I64, self.column_index_offset)
            out = put_number(out, 1, I32, self.column_index_length)
            last = 7
        if self.protection is not None:
            out = put_header(out, 8 - last, STRUCT)             # crypto_metadata
            out = put_bytes(out, PyBytes_AS_STRING(self.protection), protection_size)
        out = put_byte(out, STOP)
        return PyBytes_FromStringAndSize(<const char*>begin, out - begin)


cdef inline uint8_t* put_byte(uint8_t* out, int value) noexcept nogil:
    out[0] = <uint8_t>value
    return out + 1


cdef inline uint8_t* put_header(uint8_t* out, int step, int wire) noexcept nogil:
    """Write the header of a field whose id is the last field's id plus ``step``, at most 15."""
    return put_byte(out, step << 4 | wire)


cdef inline uint8_t* put_zigzag(uint8_t* out, int64_t value) noexcept nogil:
    return write_varint(out, (<uint64_t>value << 1) ^ <uint64_t>(value >> 63))


cdef inline uint8_t* put_number(uint8_t* out, int step, int wire, int64_t value) noexcept nogil:
    return put_zigzag(put_header(out, step, wire), value)


cdef inline uint8_t* put_bytes(uint8_t* out, const void* data, int64_t size) noexcept nogil:
    if size:                # no bytes may have no address
        memcpy(out, data, <size_t>size)
    return out + size


cdef inline uint8_t* put_binary(uint8_t* out, const uint8_t* data, int64_t size) noexcept nogil:
    return put_bytes(write_varint(out, <uint64_t>size), data, size)


cdef uint8_t* put_list(uint8_t* out, int count, int wire) noexcept nogil:
    """Write the header of a list with at most 127 elements."""
    if count < 15:
        return put_byte(out, count << 4 | wire)
    return put_byte(put_byte(out, 15 << 4 | wire), count)


cdef uint8_t* put_level_counts(uint8_t* out, ChunkWriter writer, int levels) noexcept nogil:
    """Write the list that says how often the only page has each definition level. A count of repetition levels is before them."""
    cdef const int64_t* counts = <const int64_t*>writer.pages.histograms.data + 1
    cdef int level
    out = put_list(out, levels, I64)
    for level in range(levels):
        out = put_zigzag(out, counts[level])
    return out


cdef uint8_t* put_encodings(uint8_t* out, PageWriter pages, bint has_levels) noexcept nogil:
    """Write the list of all encodings in the pages, in ascending order. Levels are RLE."""
    cdef int type, encoding, count = 0
    cdef bint[ENCODINGS] used
    for encoding in range(ENCODINGS):
        used[encoding] = has_levels and encoding == RLE
        for type in range(PAGE_TYPES):
            used[encoding] |= pages.counts[type][encoding] > 0
        count += used[encoding]
    out = put_list(out, count, I32)
    for encoding in range(ENCODINGS):
        if used[encoding]:
            out = put_zigzag(out, encoding)
    return out


cdef uint8_t* put_encoding_stats(uint8_t* out, PageWriter pages) noexcept nogil:
    """Write the list of PageEncodingStats, by page type and encoding."""
    cdef int type, encoding, count = 0
    for type in range(PAGE_TYPES):
        for encoding in range(ENCODINGS):
            count += pages.counts[type][encoding] > 0
    out = put_list(out, count, STRUCT)
    for type in range(PAGE_TYPES):
        for encoding in range(ENCODINGS):
            if pages.counts[type][encoding]:
                out = put_number(out, 1, I32, type)
                out = put_number(out, 1, I32, encoding)
                out = put_number(out, 1, I32, pages.counts[type][encoding])
                out = put_byte(out, STOP)
    return out
