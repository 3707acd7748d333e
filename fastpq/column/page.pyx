"""Opens the pages in a column chunk: checks and decrypts them, decompresses them and splits them into levels and values.

V1, V2 and dictionary pages have different headers, and their levels in different places. ``PageReader.next`` gives its callers
the same struct for all of them (README.md of parquet-format, "Data Pages").
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

cimport numpy as cnp
from fastpq.arrays.allowance cimport Allowance, Counted
from fastpq.codecs.checksum cimport crc32_of
from fastpq.codecs.codec cimport Codec
from fastpq.column.page_walker cimport PIECE, USUAL_HEADER, PageWalker, StoredPage, wrong_checksum
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.interface cimport ValueDecoder
from fastpq.encodings.levels cimport level_width
from fastpq.encodings.numbers cimport BIT_PACKED, RLE
from fastpq.encodings.status cimport TRUNCATED, raise_status
from fastpq.encodings.encoding_table cimport decoder_of
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.modules cimport DATA_PAGE, DICTIONARY_PAGE
from fastpq.format.page_header cimport TYPE_DATA_PAGE_V2, PageHeader, levels_size

from fastpq.codecs.catalogue import check_claimed_size
from fastpq.errors import FormatError, LimitError, UnsupportedError


cdef enum:
    # Largest size, in bytes, for an array that several pages share for their retained values. A few large blocks are allocated
    # faster, and waste little memory at their ends. A footer may claim any size, so the array is also at most SHARED_PAGES times
    # as large as its first page.
    SHARED = (32 << 20) - 64
    SHARED_PAGES = 64
    SMALLEST_DEFERRED = 64 << 10    # bytes in a body: to copy a smaller one takes less time than a system call


cdef class PageReader(PageWalker):
    """Reads the data and dictionary pages in one column chunk.

    Args:
        chunk, cipher, expect_dictionary, properties, directory: as for PageWalker.
        codec: the chunk's Codec.
        max_definition_level, max_repetition_level: the column's highest levels. If one is 0, pages do not store such levels.
        retain_values: whether the values' bytes outlive the page, for encodings whose views point into it.
        allowance: the memory that the read may take. Pages that views keep are counted.
        counts_chunk: whether such pages also count if they are in the chunk's memory. They do if it was allocated for the read.
        v2_is_compressed: whether the values in V2 pages are compressed even if their headers deny it.
    """

    def __init__(self, chunk, ModuleCipher cipher not None, Codec codec not None, int max_definition_level,
                 int max_repetition_level, bint retain_values, bint expect_dictionary, object properties,
                 Allowance allowance not None, bint counts_chunk, object directory=None, bint v2_is_compressed=False):
        PageWalker.__init__(self, chunk, cipher, expect_dictionary, properties, directory)
        self.codec = codec
        self.compressed = codec.number != 0
        self.max_definition_level = max_definition_level
        self.max_repetition_level = max_repetition_level
        self.retain_values = retain_values
        self.verify_decimals = properties.verify_decimals
        self.allowance = allowance
        self.counts_chunk = counts_chunk
        self.v2_is_compressed = v2_is_compressed

    def __dealloc__(self):
        scratch_free(&self.body)

    cdef int next(self, Page* page, int64_t unwanted=0, int64_t at_once=0) except -1 nogil:
        cdef StoredPage stored
        cdef const uint8_t* sealed
        cdef int64_t deferred_levels
        cdef bint whole
        while self.step(&stored):
            if not (stored.is_data or stored.is_dictionary):
                continue            # index pages and unknown page types have no values
            # the next page may need this page's last value
            whole = not decoder_of(stored.header.encoding).shares_prefixes
            if stored.is_data and 0 < stored.header.num_values <= unwanted and whole:
                page.kind = PASSED
                page.num_values = stored.header.num_values
                return 0
            deferred_levels = self._levels_of_deferred(&stored, at_once)
            page.deferred = deferred_levels >= 0
            self.piece = USUAL_HEADER if page.deferred else PIECE
            sealed = self.at(stored.body, deferred_levels) if page.deferred else self._stored_body(&stored)
            if not self.cipher.authenticates and not page.deferred:     # a tag proves more than a CRC-32
                self.check_crc(&stored, sealed)
            if stored.header.type == TYPE_DATA_PAGE_V2:
                self._split_v2(&stored, sealed, page)
            else:
                self._split_v1(&stored, sealed, page)
            if page.deferred:
                self._defer(&stored, sealed, deferred_levels, page)
            return 0
        page.kind = NO_PAGE
        return 0

    cdef int64_t _levels_of_deferred(self, const StoredPage* stored, int64_t at_once) except -2 nogil:
        """Return how many bytes the levels have in a page whose values can be deferred; -1 for other pages."""
        cdef const PageHeader* header = &stored.header
        cdef int64_t size = stored.body_size
        cdef uint32_t level_bytes
        if (not 0 < header.num_values <= at_once or size < SMALLEST_DEFERRED or not stored.is_data
                or not decoder_of(header.encoding).stores_plain or self.source is None or self.max_repetition_level
                or self._is_compressed(stored)
                or self.cipher.sealed_size(DATA_PAGE, size) != size):
            return -1
        if header.type == TYPE_DATA_PAGE_V2:
            size = levels_size(header)
        elif self.max_definition_level == 0:
            size = 0
        elif header.definition_level_encoding == RLE:
            memcpy(&level_bytes, self.at(stored.body, sizeof(level_bytes)), sizeof(level_bytes))
            size = <int64_t>sizeof(level_bytes) + level_bytes
        return size if size < stored.body_size else -1

    cdef int _defer(self, const StoredPage* stored, const uint8_t* levels, int64_t level_bytes, Page* page) except -1 nogil:
        """Remember a page whose values stay in the file for now."""
        self.deferred = stored[0]
        self.deferred_levels = level_bytes
        page.values = NULL
        if self._checks_crc(stored):
            self.deferred_crc = <uint32_t>crc32_of(levels, level_bytes)
        return 0

    cdef int read_deferred(self, uint8_t* out, int64_t size) except -1 nogil:
        if size != self.deferred.body_size - self.deferred_levels:
            self.fail(TRUNCATED, b"values")
        self.copy_to(self.deferred.body + self.deferred_levels, size, out)
        if self._checks_crc(&self.deferred) and crc32_of(out, size, self.deferred_crc) != <uint32_t>self.deferred.header.crc:
            with gil:
                raise wrong_checksum(&self.deferred)
        return 0

    cdef const uint8_t* load_deferred(self) except NULL nogil:
        cdef const uint8_t* body = self.at(self.deferred.body, self.deferred.body_size)
        self.check_crc(&self.deferred, body)
        return body + self.deferred_levels

    cdef const uint8_t* _stored_body(self, const StoredPage* stored) except NULL nogil:
        """Return a page's stored body. A large body that is retained unchanged is read right into the array."""
        cdef int64_t size = stored.body_size
        cdef uint8_t* place
        self.in_place = False
        if (self.source is None or size <= PIECE or not self._retains(stored) or self._is_compressed(stored)
                or self.cipher.sealed_size(DATA_PAGE, size) != size):
            return self.at(stored.body, size)
        place = self._retain(stored, size)
        self.copy_to(stored.body, size, place)
        self.in_place = True
        return place

    cdef bint _retains(self, const StoredPage* stored) noexcept nogil:
        """Return whether views may point into the page."""
        cdef const ValueDecoder* decoder = decoder_of(stored.header.encoding)
        return self.retain_values and (stored.is_dictionary or decoder.views_into_page)

    cdef bint _is_compressed(self, const StoredPage* stored) noexcept nogil:
        return self.compressed and (
            stored.header.type != TYPE_DATA_PAGE_V2 or stored.header.is_compressed or self.v2_is_compressed)

    cdef int _split_v1(self, const StoredPage* stored, const uint8_t* sealed, Page* page) except -1 nogil:
        """Open a V1 data page or a dictionary page. V1 levels are compressed with the values. A dictionary page has no levels."""
        cdef const PageHeader* header = &stored.header
        cdef bint dictionary = stored.is_dictionary
        cdef bint retain = self._retains(stored)
        cdef int64_t plain_size = 0, size = header.uncompressed_page_size
        cdef const uint8_t* plain = self.cipher.open_sized(
            DICTIONARY_PAGE if dictionary else DATA_PAGE, <int>stored.ordinal, sealed, stored.body_size, &plain_size)
        cdef const uint8_t* body = self._inflate(stored, plain, plain_size, size, self.compressed, retain,
                                                 plain == sealed and self.source is None)
        page.kind = DICTIONARY if dictionary else DATA
        page.num_values = header.num_values
        page.encoding = header.encoding
        page.null_count = -1
        page.retained = retain
        page.repetition.size = page.definition.size = 0
        if not dictionary:
            self._take_levels(stored, &body, &size, self.max_repetition_level, header.repetition_level_encoding,
                              &page.repetition)
            self._take_levels(stored, &body, &size, self.max_definition_level, header.definition_level_encoding,
                              &page.definition)
        page.values = body
        page.values_size = size
        return 0

    cdef int _take_levels(self, const StoredPage* stored, const uint8_t** body, int64_t* size, int max_level, int encoding,
                          LevelStream* levels) except -1 nogil:
        """Split the repetition or definition levels off from a V1 body, which begins with them."""
        cdef int64_t count = stored.header.num_values
        cdef uint32_t level_bytes
        if max_level == 0:
            return 0
        levels.bit_packed = encoding == BIT_PACKED
        if levels.bit_packed:
            levels.size = (count * level_width(max_level) + 7) // 8
        elif encoding != RLE:
            self._levels_encoding(stored, encoding)
        elif size[0] >= 4:
            memcpy(&level_bytes, body[0], 4)
            body[0] += 4
            size[0] -= 4
            levels.size = level_bytes
        elif count:
            levels.size = size[0] + 1
        if levels.size > size[0]:
            self._levels_overrun(stored, levels.size, size[0])
        levels.data = body[0]
        body[0] += levels.size
        size[0] -= levels.size
        return 0

    cdef int _split_v2(self, const StoredPage* stored, const uint8_t* sealed, Page* page) except -1 nogil:
        """Open a V2 data page. Its levels come first, and are never compressed."""
        cdef const PageHeader* header = &stored.header
        cdef bint retain = self._retains(stored)
        cdef int64_t values_size = 0
        cdef int64_t level_bytes = levels_size(header)
        cdef const uint8_t* levels = NULL
        cdef const uint8_t* values = self.cipher.open_v2(
            <int>stored.ordinal, sealed, stored.body_size, level_bytes, &levels, &values_size)
        if levels == sealed and self.cipher.authenticates:      # parquet-java's layout, where no tag covers the levels
            self.check_crc(stored, sealed)
        if values_size < 0 or level_bytes > header.uncompressed_page_size:
            self._levels_overrun(stored, level_bytes, min(level_bytes + values_size, <int64_t>header.uncompressed_page_size))
        page.kind = DATA
        page.num_values = header.num_values
        page.encoding = header.encoding
        page.null_count = header.num_nulls
        page.repetition.data = levels
        page.repetition.size = header.repetition_levels_byte_length
        page.definition.data = levels + header.repetition_levels_byte_length
        page.definition.size = header.definition_levels_byte_length
        page.repetition.bit_packed = page.definition.bit_packed = False
        page.values_size = header.uncompressed_page_size - level_bytes
        page.retained = retain
        page.values = self._inflate(stored, values, values_size, page.values_size, self._is_compressed(stored), retain,
                                    values == sealed + level_bytes and self.source is None)
        return 0

    cdef const uint8_t* _inflate(self, const StoredPage* stored, const uint8_t* plain, int64_t plain_size, int64_t size,
                                 bint compressed, bint retain, bint in_chunk) except NULL nogil:
        """Return a page's uncompressed bytes: plain itself, or decompressed memory. size is the size that the header has.

        Values that outlive the page are copied or decompressed into an array (self.retained).
        """
        cdef uint8_t* out
        if not compressed or (plain_size == 0 and size == 0):
            if plain_size != size:
                with gil:
                    raise FormatError(f"{plain_size} bytes in an uncompressed page of {size}", page=stored.ordinal,
                                      offset=stored.start)
            if not retain or self.in_place:
                return plain
            if in_chunk:
                with gil:
                    try:
                        self._retain_chunk(plain, size)
                    except LimitError as error:
                        raise error.at(page=stored.ordinal, offset=stored.start)
                return plain
            out = self._retain(stored, size)
            memcpy(out, plain, <size_t>size)
            return out
        if size * self.codec.consumed > plain_size * self.codec.produced:       # both below 2^31
            with gil:
                try:
                    check_claimed_size(self.codec.number, plain_size, size)
                except (FormatError, LimitError) as error:
                    raise error.at(page=stored.ordinal, offset=stored.start)
        if retain:
            out = self._retain(stored, size)
        else:
            out = scratch_reserve(&self.body, <size_t>size)
        self.codec.decompress_to(plain, plain_size, out, size, stored.ordinal, stored.start)
        return out

    cdef uint8_t* _retain(self, const StoredPage* stored, int64_t size) except NULL nogil:
        """Return memory for values that outlive their page: behind the values from the page before, or in a new array."""
        cdef uint8_t* data = NULL if self.extended is None else self.allowance.extend(self.extended, size)
        if data == NULL:
            with gil:
                try:
                    data = self._new_retained(size)
                except LimitError as error:
                    raise error.at(page=stored.ordinal, offset=stored.start)
        self.to_retain -= size
        return data

    cdef uint8_t* _new_retained(self, int64_t size) except NULL:
        cdef uint8_t* data = NULL
        self._forget_retained()
        self.retained = self.allowance.empty(size, &data, min(min(self.to_retain, SHARED_PAGES * size), <int64_t>SHARED))
        self.retained_data = data
        if self.to_retain > size:
            self.extended = <Counted>cnp.get_array_base(self.retained)
        return data

    cdef void keep_to(self, const uint8_t* end) noexcept nogil:
        if end != NULL:
            self.allowance.shorten(self.extended, self.retained_data + self.extended.size - end)

    cdef void _forget_retained(self) noexcept:
        self.extended = None
        self.retained = None        # from now on, only views keep the earlier pages alive

    cdef int _retain_chunk(self, const uint8_t* plain, int64_t size) except -1:
        cdef int64_t start = plain - self.data
        self._forget_retained()
        self.retained = self.owner[start:start + size]
        if self.counts_chunk:
            self.retained = self.allowance.hold(self.retained)
        self.retained_data = plain
        return 0

    cdef int fail(self, int64_t status, const char* part) except -1 nogil:
        with gil:
            try:
                raise_status(status, part.decode("ascii"))
            except FormatError as error:
                raise error.at(page=self.ordinal)

    cdef int _levels_overrun(self, const StoredPage* stored, int64_t claimed, int64_t size) except -1 nogil:
        with gil:
            raise FormatError(f"{claimed} bytes of levels in a page that has {size}", page=stored.ordinal, offset=stored.start)

    cdef int _levels_encoding(self, const StoredPage* stored, int encoding) except -1 nogil:
        with gil:
            raise UnsupportedError(f"levels in encoding {encoding}", page=stored.ordinal, offset=stored.start)
