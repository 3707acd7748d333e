"""parquet.thrift's PageHeader as a C struct, which is read from and written in the compact protocol without Python objects."""

from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from fastpq.format.cursor cimport (
    Cursor, FALSE, I32, STOP, STRUCT, TRUE, cursor_at, skip_value, take_field, take_zigzag,
)
from fastpq.format.varint cimport write_varint

cdef enum:
    DATA_PAGE_HEADER = 5        # field ids in PageHeader
    DICTIONARY_PAGE_HEADER = 7
    DATA_PAGE_HEADER_V2 = 8

# The compiled code's page types, by their names in parquet.thrift. A test compares them with fastpq.format.PageType.
PAGE_TYPES = {
    "DATA_PAGE": TYPE_DATA_PAGE,
    "INDEX_PAGE": TYPE_INDEX_PAGE,
    "DICTIONARY_PAGE": TYPE_DICTIONARY_PAGE,
    "DATA_PAGE_V2": TYPE_DATA_PAGE_V2,
}


cdef inline int32_t take_i32(Cursor* cursor, int wire) noexcept nogil:
    cdef int64_t value
    if wire != I32:
        cursor.failed = True
        return 0
    value = take_zigzag(cursor)
    if value < INT32_MIN or value > INT32_MAX:
        cursor.failed = True
    return <int32_t>value


cdef inline bint take_bool(Cursor* cursor, int wire) noexcept nogil:
    if wire != TRUE and wire != FALSE:
        cursor.failed = True
    return wire == TRUE


cdef uint32_t read_members(Cursor* cursor, int32_t** members, int64_t count, uint32_t flags) noexcept nogil:
    """Read a struct into members[field id], and return the set of field ids that were read, as bits.

    A field whose bit is set in flags is a bool. Other fields are 32-bit integers.
    """
    cdef int64_t id = 0
    cdef uint32_t seen_ids = 0
    cdef int wire = take_field(cursor, &id)
    while wire != STOP and not cursor.failed:
        if 0 < id < count:
            members[id][0] = take_bool(cursor, wire) if flags >> id & 1 else take_i32(cursor, wire)
            seen_ids |= <uint32_t>1 << id
        else:
            skip_value(cursor, wire, 1, False)
        wire = take_field(cursor, &id)
    return seen_ids


cdef uint32_t read_data_page(Cursor* cursor, PageHeader* header) noexcept nogil:
    """Read a DataPageHeader, and return a bit mask: bit i is set if the field with id i is there."""
    cdef int32_t* members[5]
    members[1] = &header.num_values
    members[2] = &header.encoding
    members[3] = &header.definition_level_encoding
    members[4] = &header.repetition_level_encoding
    return read_members(cursor, members, 5, 0)


cdef uint32_t read_data_page_v2(Cursor* cursor, PageHeader* header) noexcept nogil:
    """Read a DataPageHeaderV2, and return a bit mask: bit i is set if the field with id i is there."""
    cdef int32_t* members[8]
    members[1] = &header.num_values
    members[2] = &header.num_nulls
    members[3] = &header.num_rows
    members[4] = &header.encoding
    members[5] = &header.definition_levels_byte_length
    members[6] = &header.repetition_levels_byte_length
    members[7] = <int32_t*>&header.is_compressed
    return read_members(cursor, members, 8, 1 << 7)


cdef uint32_t read_dictionary_page(Cursor* cursor, PageHeader* header) noexcept nogil:
    """Read a DictionaryPageHeader, and return a bit mask: bit i is set if the field with id i is there."""
    cdef int32_t* members[4]
    members[1] = &header.num_values
    members[2] = &header.encoding
    members[3] = <int32_t*>&header.is_sorted
    return read_members(cursor, members, 4, 1 << 3)


cdef inline bint has_all(uint32_t seen_ids, uint32_t required) noexcept nogil:
    return seen_ids & required == required


cdef bint is_complete(const PageHeader* header, uint32_t seen_ids, uint32_t inner_ids) noexcept nogil:
    """Return whether the header has all fields that its page type requires, and no negative size or count."""
    if not has_all(seen_ids, 1 << 1 | 1 << 2 | 1 << 3):
        return False
    if header.uncompressed_page_size < 0 or header.compressed_page_size < 0 or header.num_values < 0:
        return False
    if header.type == TYPE_DATA_PAGE:
        return has_all(seen_ids, 1 << DATA_PAGE_HEADER) and has_all(inner_ids, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4)
    if header.type == TYPE_DICTIONARY_PAGE:
        return has_all(seen_ids, 1 << DICTIONARY_PAGE_HEADER) and has_all(inner_ids, 1 << 1 | 1 << 2)
    if header.type == TYPE_DATA_PAGE_V2:
        return (has_all(seen_ids, 1 << DATA_PAGE_HEADER_V2) and has_all(inner_ids, 0x7E)
                and header.num_rows >= 0 and header.definition_levels_byte_length >= 0
                and header.repetition_levels_byte_length >= 0)
    return True


cdef int64_t read_page_header(const uint8_t* data, size_t size, PageHeader* header, int64_t* walked) noexcept nogil:
    cdef Cursor cursor = cursor_at(data, size)
    cdef int64_t id = 0
    cdef uint32_t seen_ids = 0, inner_ids = 0
    cdef int wire
    memset(header, 0, sizeof(PageHeader))
    header.is_compressed = True
    wire = take_field(&cursor, &id)
    while wire != STOP and not cursor.failed:
        if id == 1:
            header.type = take_i32(&cursor, wire)
        elif id == 2:
            header.uncompressed_page_size = take_i32(&cursor, wire)
        elif id == 3:
            header.compressed_page_size = take_i32(&cursor, wire)
        elif id == 4:
            header.crc = take_i32(&cursor, wire)
            header.has_crc = True
        elif id == DATA_PAGE_HEADER and wire == STRUCT:
            inner_ids = read_data_page(&cursor, header)
        elif id == DICTIONARY_PAGE_HEADER and wire == STRUCT:
            inner_ids = read_dictionary_page(&cursor, header)
        elif id == DATA_PAGE_HEADER_V2 and wire == STRUCT:
            inner_ids = read_data_page_v2(&cursor, header)
        else:
            skip_value(&cursor, wire, 0, False)
        if 0 < id < 32:
            seen_ids |= <uint32_t>1 << id
        wire = take_field(&cursor, &id)
    walked[0] = cursor.pos - cursor.start
    if cursor.failed:
        return PAGE_HEADER_TRUNCATED if cursor.pos == cursor.end else PAGE_HEADER_INVALID
    return walked[0] if is_complete(header, seen_ids, inner_ids) else PAGE_HEADER_INVALID


cdef inline uint8_t* put_i32(uint8_t* out, int delta, int32_t value) noexcept nogil:
    """Write an i32 field. Its id is the previous field's id plus `delta`."""
    cdef uint32_t zigzag = (<uint32_t>value << 1) ^ <uint32_t>(value >> 31)
    out[0] = <uint8_t>(delta << 4 | I32)
    return write_varint(out + 1, zigzag)


cdef inline uint8_t* put_byte(uint8_t* out, int byte) noexcept nogil:
    out[0] = <uint8_t>byte
    return out + 1


cdef int64_t write_page_header(const PageHeader* header, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    cdef int id = 4 if header.has_crc else 3
    out = put_i32(out, 1, header.type)
    out = put_i32(out, 1, header.uncompressed_page_size)
    out = put_i32(out, 1, header.compressed_page_size)
    if header.has_crc:
        out = put_i32(out, 1, header.crc)
    if header.type == TYPE_DATA_PAGE:
        out = put_byte(out, (DATA_PAGE_HEADER - id) << 4 | STRUCT)
        out = put_i32(out, 1, header.num_values)
        out = put_i32(out, 1, header.encoding)
        out = put_i32(out, 1, header.definition_level_encoding)
        out = put_i32(out, 1, header.repetition_level_encoding)
    elif header.type == TYPE_DICTIONARY_PAGE:
        out = put_byte(out, (DICTIONARY_PAGE_HEADER - id) << 4 | STRUCT)
        out = put_i32(out, 1, header.num_values)
        out = put_i32(out, 1, header.encoding)
        if header.is_sorted:
            out = put_byte(out, 1 << 4 | TRUE)
    else:
        out = put_byte(out, (DATA_PAGE_HEADER_V2 - id) << 4 | STRUCT)
        out = put_i32(out, 1, header.num_values)
        out = put_i32(out, 1, header.num_nulls)
        out = put_i32(out, 1, header.num_rows)
        out = put_i32(out, 1, header.encoding)
        out = put_i32(out, 1, header.definition_levels_byte_length)
        out = put_i32(out, 1, header.repetition_levels_byte_length)
        out = put_byte(out, 1 << 4 | (TRUE if header.is_compressed else FALSE))
    out = put_byte(out, STOP)
    out = put_byte(out, STOP)
    return out - start
