"""ColumnChunk of parquet.thrift as a C struct, for chunks in the clear and in the file of their footer, without Python objects.

A file may have a million chunks, and a read of all its rows needs six numbers of each.
"""

from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memset

from fastpq.format.cursor cimport Cursor, I32, I64, LIST, STOP, STRUCT, skip_value, take_field, take_zigzag
from fastpq.format.list_offsets cimport StructList
from fastpq.format.varint cimport write_varint

cdef enum:
    FILE_PATH = 1               # field ids of ColumnChunk
    FILE_OFFSET = 2
    META_DATA = 3
    CRYPTO_METADATA = 8
    ENCRYPTED_COLUMN_METADATA = 9

cdef enum:
    TYPE = 1                    # field ids of ColumnMetaData
    ENCODINGS = 2
    PATH_IN_SCHEMA = 3
    CODEC = 4
    NUM_VALUES = 5
    TOTAL_UNCOMPRESSED_SIZE = 6
    TOTAL_COMPRESSED_SIZE = 7
    DATA_PAGE_OFFSET = 9
    DICTIONARY_PAGE_OFFSET = 11

cdef enum:
    BINARY_ELEMENT = 8          # wire type of a text in the header of a list
    LONG_LIST = 15              # in place of a list's length: the length follows

cdef uint32_t CHUNK_NEEDS = 1 << FILE_OFFSET | 1 << META_DATA
cdef uint32_t METADATA_NEEDS = (
    1 << TYPE | 1 << ENCODINGS | 1 << PATH_IN_SCHEMA | 1 << CODEC | 1 << NUM_VALUES | 1 << TOTAL_UNCOMPRESSED_SIZE
    | 1 << TOTAL_COMPRESSED_SIZE | 1 << DATA_PAGE_OFFSET)


def stored_path(names):
    """The serialized path_in_schema of a column.

    Args:
        names: of the groups and of the leaf; bytes that are no UTF-8 as surrogates.
    """
    cdef list texts = [name.encode("utf-8", "surrogateescape") for name in names]
    cdef bytes head = varint(len(texts)) if len(texts) >= LONG_LIST else b""
    cdef int first = min(<int>len(texts), <int>LONG_LIST) << 4 | BINARY_ELEMENT
    return bytes([first]) + head + b"".join([varint(len(text)) + text for text in texts])


cdef bytes varint(size_t value):
    cdef uint8_t[10] room
    return room[:write_varint(room, value) - room]


cdef bint read_plain_chunk(const uint8_t* data, size_t size, const uint8_t* path, size_t path_size,
                           PlainChunk* chunk) noexcept nogil:
    cdef Cursor cursor
    cdef int64_t id = 0
    cdef uint32_t seen = 0
    cdef int wire
    memset(chunk, 0, sizeof(PlainChunk))
    cursor.start = cursor.pos = data
    cursor.end = data + size
    cursor.failed = False
    wire = take_field(&cursor, &id)
    while wire != STOP:
        if id == FILE_PATH or id == CRYPTO_METADATA or id == ENCRYPTED_COLUMN_METADATA:
            return False
        if id == META_DATA:
            if wire != STRUCT or not read_metadata(&cursor, path, path_size, chunk):
                return False
        elif id == FILE_OFFSET and wire != I64:
            return False
        else:
            skip_value(&cursor, wire, 0, False)
        if 0 < id < 32:
            seen |= <uint32_t>1 << id
        wire = take_field(&cursor, &id)
    return not cursor.failed and seen & CHUNK_NEEDS == CHUNK_NEEDS


cdef bint read_metadata(Cursor* cursor, const uint8_t* path, size_t path_size, PlainChunk* chunk) noexcept nogil:
    """Read a ColumnMetaData; False for one of another path, and for broken bytes."""
    cdef int64_t id = 0, value
    cdef uint32_t seen = 0
    cdef int wire = take_field(cursor, &id)
    while wire != STOP:
        if id == TYPE or id == CODEC:
            value = take_zigzag(cursor)
            if wire != I32 or value < INT32_MIN or value > INT32_MAX:
                return False
            if id == TYPE:
                chunk.type = <int32_t>value
            else:
                chunk.codec = <int32_t>value
        elif id == PATH_IN_SCHEMA:
            if wire != LIST or path_size > <size_t>(cursor.end - cursor.pos) or memcmp(cursor.pos, path, path_size) != 0:
                return False
            cursor.pos += path_size
        elif NUM_VALUES <= id <= TOTAL_COMPRESSED_SIZE or id == DATA_PAGE_OFFSET or id == DICTIONARY_PAGE_OFFSET:
            if wire != I64:
                return False
            value = take_zigzag(cursor)
            if id == NUM_VALUES:
                chunk.num_values = value
            elif id == TOTAL_COMPRESSED_SIZE:
                chunk.total_compressed_size = value
            elif id == DATA_PAGE_OFFSET:
                chunk.data_page_offset = value
            elif id == DICTIONARY_PAGE_OFFSET:
                chunk.dictionary_page_offset = value
        elif id == ENCODINGS and wire != LIST:
            return False
        else:
            skip_value(cursor, wire, 1, False)
        if 0 < id < 32:
            seen |= <uint32_t>1 << id
        wire = take_field(cursor, &id)
    return not cursor.failed and seen & METADATA_NEEDS == METADATA_NEEDS


cdef class ChunkEntries:
    """The entries of column chunks in a footer, found by their places.

    Args:
        footer: the serialized FileMetaData.
        row_groups: list of row groups in the footer, with the places of the chunks' entries.
    """

    def __init__(self, const uint8_t[::1] footer not None, StructList row_groups not None):
        self.footer = footer
        self.row_groups = row_groups

    cdef bint read(self, int64_t row_group, int64_t column, const uint8_t* path, size_t path_size, PlainChunk* chunk) noexcept:
        cdef int64_t place = self.row_groups.place(row_group, column)
        if not 0 <= place < self.footer.shape[0]:
            return False
        return read_plain_chunk(&self.footer[place], <size_t>(self.footer.shape[0] - place), path, path_size, chunk)
