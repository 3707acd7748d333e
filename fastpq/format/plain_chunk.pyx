"""PlainChunk: parquet.thrift's ColumnChunk as a C struct, for chunks with plaintext metadata that are in the footer's file.

It needs no Python objects. A file may have a million chunks, and reading all rows needs only six numbers from each.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from fastpq.format.cursor cimport (
    BINARY, Cursor, I32, I64, LIST, STOP, STRUCT, cursor_at, skip_value, take_byte, take_field, take_varint, take_zigzag,
)
from fastpq.format.list_offsets cimport StructList
from fastpq.format.varint cimport write_varint

cdef enum:
    FILE_PATH = 1               # field ids in ColumnChunk
    FILE_OFFSET = 2
    META_DATA = 3
    CRYPTO_METADATA = 8
    ENCRYPTED_COLUMN_METADATA = 9

cdef enum:
    TYPE = 1                    # field ids in ColumnMetaData
    ENCODINGS = 2
    PATH_IN_SCHEMA = 3
    CODEC = 4
    NUM_VALUES = 5
    TOTAL_UNCOMPRESSED_SIZE = 6
    TOTAL_COMPRESSED_SIZE = 7
    DATA_PAGE_OFFSET = 9
    DICTIONARY_PAGE_OFFSET = 11

cdef enum:
    OWN_KEY = 2                 # field id in ColumnCryptoMetaData
    OWN_PATH = 1                # field ids in EncryptionWithColumnKey
    KEY_METADATA = 2

cdef enum:
    BINARY_ELEMENT = 8          # wire type for texts in a list header
    LONG_LIST = 15              # stands in place of a list's length. The length follows
    SHORT_NAME = 128            # a text with fewer bytes has a varint of one byte as its length

# A ColumnCryptoMetaData whose member is ENCRYPTION_WITH_FOOTER_KEY, an empty struct.
cdef uint8_t[3] FOOTER_KEY = [1 << 4 | STRUCT, STOP, STOP]

cdef uint32_t CHUNK_NEEDS = 1 << FILE_OFFSET | 1 << META_DATA
cdef uint32_t METADATA_NEEDS = (
    1 << TYPE | 1 << ENCODINGS | 1 << CODEC | 1 << NUM_VALUES | 1 << TOTAL_UNCOMPRESSED_SIZE | 1 << TOTAL_COMPRESSED_SIZE
    | 1 << DATA_PAGE_OFFSET)


def stored_path(names):
    """Return a column's serialized path_in_schema.

    Args:
        names: the groups' names, then the leaf's name. Bytes that are not UTF-8 are given as surrogates.
    """
    cdef bytes text
    if type(names) is tuple and len(names) == 1:
        text = (<str?>names[0]).encode("utf-8", "surrogateescape")
        return bytes([1 << 4 | BINARY_ELEMENT]) + varint(len(text)) + text
    cdef list texts = [name.encode("utf-8", "surrogateescape") for name in names]
    cdef bytes head = varint(len(texts)) if len(texts) >= LONG_LIST else b""
    cdef int first = min(<int>len(texts), <int>LONG_LIST) << 4 | BINARY_ELEMENT
    return bytes([first]) + head + b"".join([varint(len(text)) + text for text in texts])


cdef bytes varint(size_t value):
    cdef uint8_t[10] room
    return room[:write_varint(room, value) - room]


cdef bint read_plain_chunk(const uint8_t* data, size_t size, const uint8_t* path, size_t path_size,
                           PlainChunk* chunk) noexcept nogil:
    cdef Cursor cursor = cursor_at(data, size)
    cdef int64_t id = 0
    cdef uint32_t seen_ids = 0
    cdef int wire
    memset(chunk, 0, sizeof(PlainChunk))
    wire = take_field(&cursor, &id)
    while wire != STOP:
        if id == FILE_PATH or 0 < id < 32 and seen_ids >> id & 1:
            return False
        if id == CRYPTO_METADATA:
            if wire != STRUCT or cursor.end - cursor.pos < <int64_t>sizeof(FOOTER_KEY):
                return False
            if memcmp(cursor.pos, FOOTER_KEY, sizeof(FOOTER_KEY)) == 0:
                cursor.pos += sizeof(FOOTER_KEY)
                chunk.under_footer_key = True
            elif not read_own_key(&cursor, path, path_size, chunk):
                return False
        elif id == ENCRYPTED_COLUMN_METADATA:
            chunk.sealed_metadata = take_bytes(&cursor, wire, &chunk.sealed_metadata_size)
        elif id == META_DATA:
            if wire != STRUCT or not read_metadata(&cursor, path, path_size, chunk):
                return False
        elif id == FILE_OFFSET and wire != I64:
            return False
        else:
            skip_value(&cursor, wire, 0, False)
        if 0 < id < 32:
            seen_ids |= <uint32_t>1 << id
        wire = take_field(&cursor, &id)
    if cursor.failed:
        return False
    chunk.is_sealed = chunk.under_own_key and chunk.sealed_metadata != NULL and seen_ids >> FILE_OFFSET & 1
    return not chunk.under_own_key and chunk.sealed_metadata == NULL and seen_ids & CHUNK_NEEDS == CHUNK_NEEDS


cdef bint read_opened_metadata(const uint8_t* data, size_t size, const uint8_t* path, size_t path_size,
                               PlainChunk* chunk) noexcept nogil:
    cdef Cursor cursor = cursor_at(data, size)
    memset(chunk, 0, sizeof(PlainChunk))        # a plaintext footer shows some fields: only the encrypted ones count
    return read_metadata(&cursor, path, path_size, chunk)


cdef const uint8_t* take_bytes(Cursor* cursor, int wire, size_t* size) noexcept nogil:
    """Return where a BINARY field's bytes are, and set their number. For other fields the cursor fails."""
    cdef const uint8_t* place
    size[0] = <size_t>take_varint(cursor) if wire == BINARY else 0
    if wire != BINARY or cursor.failed or size[0] > <size_t>(cursor.end - cursor.pos):
        cursor.failed = True
        size[0] = 0
    place = cursor.pos
    cursor.pos += size[0]
    return place


cdef bint read_own_key(Cursor* cursor, const uint8_t* path, size_t path_size, PlainChunk* chunk) noexcept nogil:
    """Read a ColumnCryptoMetaData that names a column's own key. Return False if it names another path, or is not as usual."""
    cdef int64_t id = 0
    cdef int wire = take_field(cursor, &id)
    if id != OWN_KEY or wire != STRUCT:
        return False
    id = 0
    wire = take_field(cursor, &id)
    if id != OWN_PATH or wire != LIST or path_size > <size_t>(cursor.end - cursor.pos):
        return False
    if memcmp(cursor.pos, path, path_size) != 0:
        return False
    cursor.pos += path_size
    wire = take_field(cursor, &id)
    if wire != STOP and id == KEY_METADATA:
        chunk.key_metadata = take_bytes(cursor, wire, &chunk.key_metadata_size)
        wire = take_field(cursor, &id)
    if wire != STOP or take_byte(cursor) != STOP or cursor.failed:      # the ends of both structs
        return False
    chunk.under_own_key = True
    return True


cdef bint read_metadata(Cursor* cursor, const uint8_t* path, size_t path_size, PlainChunk* chunk) noexcept nogil:
    """Read a ColumnMetaData. Return False if it has another path, or its bytes are broken."""
    cdef int64_t id = 0, value
    cdef uint32_t seen_ids = 0
    cdef int wire = take_field(cursor, &id)
    while wire != STOP:
        if 0 < id < 32 and seen_ids >> id & 1:
            return False
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
            elif id == TOTAL_UNCOMPRESSED_SIZE:
                chunk.total_uncompressed_size = value
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
            seen_ids |= <uint32_t>1 << id
        wire = take_field(cursor, &id)
    return not cursor.failed and seen_ids & METADATA_NEEDS == METADATA_NEEDS


cdef class ChunkEntries:
    """The column chunk entries in a footer, looked up by row group and column.

    Args:
        footer: the serialized FileMetaData.
        row_groups: the footer's row group list, which knows where each chunk's entry begins.
    """

    def __init__(self, const uint8_t[::1] footer not None, StructList row_groups not None):
        self.footer = footer
        self.row_groups = row_groups
        self.paths = {}

    cdef bytes path_of(self, column):
        cdef object name
        cdef const char* text
        cdef Py_ssize_t size = 0
        cdef bytes path
        if column.is_flat:
            name = column.element.name
            if type(name) is str and (<str>name).isascii():
                text = PyUnicode_AsUTF8AndSize(name, &size)
                if size < SHORT_NAME:
                    path = PyBytes_FromStringAndSize(NULL, size + 2)
                    PyBytes_AS_STRING(path)[0] = 1 << 4 | BINARY_ELEMENT
                    PyBytes_AS_STRING(path)[1] = <char>size
                    memcpy(PyBytes_AS_STRING(path) + 2, text, <size_t>size)
                    return path
        path = self.paths.get(column.index)
        if path is None:
            path = self.paths[column.index] = stored_path(column.path)
        return path

    cdef bint read(self, int64_t row_group, int64_t column, bytes path, PlainChunk* chunk):
        cdef int64_t place = self.row_groups.place(row_group, column)
        chunk.is_sealed = False
        if not 0 <= place < self.footer.shape[0]:
            return False
        return read_plain_chunk(
            &self.footer[place], <size_t>(self.footer.shape[0] - place), <const uint8_t*>PyBytes_AS_STRING(path),
            <size_t>PyBytes_GET_SIZE(path), chunk)
