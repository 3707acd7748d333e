"""Pages of a column chunk: read, checked, decrypted, decompressed and split once into (levels, values, encoding).

V1, V2 and dictionary pages differ in their headers and in where their levels stand; behind ``PageReader.next`` nothing
knows the difference (README.md of parquet-format, "Data Pages").
"""

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.numbers cimport BIT_PACKED, DELTA_LENGTH_BYTE_ARRAY, PLAIN, RLE
from fastpq.encodings.status cimport raise_status
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.modules cimport DATA_PAGE, DICTIONARY_PAGE
from fastpq.format.page_header cimport PAGE_HEADER_TRUNCATED, PageHeader, read_page_header

from fastpq.arrays import memory
from fastpq.codecs.checksum import crc32
from fastpq.codecs.catalogue import check_claimed_size
from fastpq.errors import FormatError, LimitError, ParquetError, UnsupportedError

# parquet.thrift: PageType
cdef enum:
    TYPE_DATA_PAGE = 0
    TYPE_DICTIONARY_PAGE = 2
    TYPE_DATA_PAGE_V2 = 3

# No header is longer than this, unless its statistics are absurd; it bounds what the null cipher lets the parser see.
cdef int64_t HEADER_BOUND = 16 << 20


cdef class PageReader:
    """Walks the pages of one column chunk.

    Args:
        chunk: the stored bytes of the chunk, from its first page.
        cipher: the ModuleCipher of the chunk.
        codec: a fastpq.codecs.codec.Codec.
        max_definition_level, max_repetition_level: of the column; pages carry no levels of a maximum of 0.
        retain_values: whether the bytes of values are referred to after the page is done, where its encoding leaves each
            value in one piece.
        expect_dictionary: whether the metadata says that the first page is a dictionary page, which an encrypted
            chunk must know before the header can be read (Encryption.md, 4.4).
        properties: ReaderProperties, for its bounds.
        directory: where chunk holds some of the data pages alone (behind its dictionary page): shape (pages, 4), int64, of
            each its ordinal, its stored size, its number of values and its number of rows (-1 where one is not known), all of
            which are checked, the rows by who reads the levels.
        v2_is_compressed: whether the values of V2 pages are compressed, whatever their headers say.
    """

    def __cinit__(self, chunk, ModuleCipher cipher not None, object codec, int max_definition_level,
                  int max_repetition_level, bint retain_values, bint expect_dictionary, object properties,
                  object directory=None, bint v2_is_compressed=False):
        cdef const uint8_t[::1] view = chunk
        cdef int64_t page
        self.owner = np.asarray(chunk)
        self.size = view.shape[0]
        self.data = &view[0] if self.size else NULL
        self.cipher = cipher
        self.codec = codec
        self.compressed = codec.number != 0
        self.decompress_into = codec.decompress_into
        self.produced, self.consumed = codec.most_expansion
        self.max_definition_level = max_definition_level
        self.max_repetition_level = max_repetition_level
        self.retain_values = retain_values
        self.expect_dictionary = expect_dictionary
        self.verify_checksums = properties.verify_checksums
        self.verify_decimals = properties.verify_decimals
        self.v2_is_compressed = v2_is_compressed
        self.listed = -1
        if directory is not None:
            self.directory = directory
            self.listed = self.directory.shape[0]
            self.listed_start = self.size
            for page in range(self.listed):
                self.listed_start -= self.directory[page, 1]
        self.max_page_size = properties.max_page_size
        self.max_dictionary_size = properties.max_dictionary_size
        self.max_allocation = properties.max_allocation

    def __dealloc__(self):
        scratch_free(&self.body)

    cdef int next(self, Page* page) except -1 nogil:
        """The next data or dictionary page; page.kind is NO_PAGE at the end of the chunk."""
        cdef PageHeader header
        cdef const uint8_t* stored
        cdef int64_t start
        while self.position < self.size:
            start = self.position
            self._enter_listed()
            self._read_header(&header)
            stored = self.data + self.position
            self.position += header.compressed_page_size
            self._check_listed(&header, start)
            if header.type == TYPE_DATA_PAGE or header.type == TYPE_DICTIONARY_PAGE:
                self._split_v1(&header, stored, page)
            elif header.type == TYPE_DATA_PAGE_V2:
                self._split_v2(&header, stored, page)
            else:
                continue            # index pages and page types of the future hold nothing that a reader must see
            if page.kind == DATA:
                self.ordinal += 1
            return 0
        page.kind = NO_PAGE
        return 0

    def require_values(self, int64_t count):
        """Read the page headers alone and check that they promise count values.

        Raises:
            FormatError: they promise fewer.
        """
        cdef PageHeader header
        cdef int64_t found = 0, start
        with nogil:
            while self.position < self.size and found < count:
                start = self.position
                self._enter_listed()
                self._read_header(&header)
                self.position += header.compressed_page_size
                self._check_listed(&header, start)
                if header.type == TYPE_DATA_PAGE or header.type == TYPE_DATA_PAGE_V2:
                    found += header.num_values
                    self.ordinal += 1
        if found < count:
            raise FormatError(f"the pages hold {found} of the {count} values that the metadata claim")

    def count_values(self):
        """Read the page headers alone, and return how many values they promise."""
        cdef PageHeader header
        cdef int64_t found = 0, start
        with nogil:
            while self.position < self.size:
                start = self.position
                self._enter_listed()
                self._read_header(&header)
                self.position += header.compressed_page_size
                self._check_listed(&header, start)
                if header.type == TYPE_DATA_PAGE or header.type == TYPE_DATA_PAGE_V2:
                    found += header.num_values
                    self.ordinal += 1
        return found

    def locate_pages(self, int64_t count):
        """Read the page headers alone, as far as they can be read; bodies and their checksums are not looked at.

        Args:
            count: how many values there should be; what stands behind them is no page of the chunk.

        Returns:
            The data pages, int64 of shape (n, 4): position in the chunk, stored size with header, values, and rows (-1 where a
            header of V1 does not tell); and the ParquetError of the first broken header, behind which nothing is known, or None.
        """
        cdef PageHeader header
        cdef int64_t found = 0, start = 0
        cdef list pages = []
        self.verify_checksums = False
        try:
            while self.position < self.size and found < count:
                start = self.position
                self._read_header(&header)
                self.position += header.compressed_page_size
                if header.type == TYPE_DATA_PAGE or header.type == TYPE_DATA_PAGE_V2:
                    found += header.num_values
                    self.ordinal += 1
                    rows = header.num_rows if header.type == TYPE_DATA_PAGE_V2 else -1
                    pages.append((start, self.position - start, header.num_values, rows))
        except ParquetError as error:
            return np.array(pages, dtype=np.int64).reshape(-1, 4), error
        return np.array(pages, dtype=np.int64).reshape(-1, 4), None

    cdef int _enter_listed(self) except -1 nogil:
        """Take the ordinal of the next data page from the directory: pages before it may not be there."""
        if self.listed < 0 or self.expect_dictionary:
            return 0
        if self.next_listed < self.listed:
            self.ordinal = self.directory[self.next_listed, 0]
        return 0

    cdef int _check_listed(self, const PageHeader* header, int64_t start) except -1 nogil:
        """Whether the data page that ends here is the one that the directory says is there."""
        cdef int64_t size = self.position - start, listed_size, rows
        if self.listed < 0 or (header.type != TYPE_DATA_PAGE and header.type != TYPE_DATA_PAGE_V2):
            return 0
        if self.next_listed >= self.listed:
            with gil:
                raise FormatError("more data pages than the offset index has", offset=start)
        if self.next_listed == 0 and start != self.listed_start:
            with gil:
                raise FormatError("a data page before the first one that the offset index has", offset=start)
        listed_size = self.directory[self.next_listed, 1]
        rows = self.directory[self.next_listed, 2]
        if size != listed_size or (rows >= 0 and header.num_values != rows):
            with gil:
                raise FormatError(
                    f"a page of {header.num_values} values in {size} bytes where the offset index has {rows} in {listed_size}",
                    page=self.directory[self.next_listed, 0])
        self.next_listed += 1
        return 0

    cdef int64_t _read_header(self, PageHeader* header) except -1 nogil:
        cdef int64_t available = self.size - self.position
        cdef int64_t plain_size = 0, stored_size = 0, parsed
        cdef bint dictionary = self.expect_dictionary and self.ordinal == 0
        cdef const uint8_t* plain = self.cipher.open_header(
            &dictionary, <int>self.ordinal, self.data + self.position, available, &plain_size, &stored_size)
        parsed = read_page_header(plain, <size_t>min(plain_size, HEADER_BOUND), header)
        if parsed < 0:
            with gil:
                what = "the page header is cut off" if parsed == PAGE_HEADER_TRUNCATED else "no valid page header"
                raise FormatError(what, page=self.ordinal, offset=self.position)
        self.expect_dictionary = self.expect_dictionary and self.ordinal == 0 and header.type != TYPE_DICTIONARY_PAGE
        self.position += parsed if stored_size < 0 else stored_size
        if header.compressed_page_size > self.size - self.position - self.cipher.uncounted:
            with gil:
                raise FormatError(
                    f"a page of {header.compressed_page_size} bytes in a chunk that has {self.size - self.position} left",
                    page=self.ordinal, offset=self.position)
        header.compressed_page_size += <int32_t>self.cipher.uncounted
        self._check_header(header)
        return 0

    cdef int _check_header(self, const PageHeader* header) except -1 nogil:
        cdef int64_t bound = self.max_page_size
        if header.type == TYPE_DICTIONARY_PAGE:
            bound = min(bound, self.max_dictionary_size)
        if header.uncompressed_page_size > bound or header.compressed_page_size > self.max_page_size:
            with gil:
                name = "max_dictionary_size" if header.type == TYPE_DICTIONARY_PAGE else "max_page_size"
                raise LimitError(
                    f"a page of {header.uncompressed_page_size} bytes ({header.compressed_page_size} stored) is over {name}",
                    page=self.ordinal, offset=self.position)
        if not self.cipher.authenticates:       # else the tag says more, and says it as TagVerificationError
            self._check_crc(header, self.position)
        return 0

    cdef int _check_crc(self, const PageHeader* header, int64_t start) except -1 nogil:
        """Whether the stored page body at start has the CRC-32 of its header."""
        if not (header.has_crc and self.verify_checksums):
            return 0
        with gil:
            body = PyMemoryView_FromMemory(<char*>self.data + start, header.compressed_page_size, PyBUF_READ)
            if crc32(body) != <uint32_t>header.crc:
                raise FormatError("the page's CRC-32 does not match", page=self.ordinal, offset=start)
        return 0

    cdef int _split_v1(self, const PageHeader* header, const uint8_t* stored, Page* page) except -1 nogil:
        """A V1 data page (levels and values compressed together) or a dictionary page (values alone)."""
        cdef bint dictionary = header.type == TYPE_DICTIONARY_PAGE
        cdef bint retain = self.retain_values and (dictionary or holds_values_whole(header.encoding))
        cdef int64_t plain_size = 0, size = header.uncompressed_page_size
        cdef const uint8_t* plain = self.cipher.open_sized(
            DICTIONARY_PAGE if dictionary else DATA_PAGE, <int>self.ordinal, stored, header.compressed_page_size, &plain_size)
        cdef const uint8_t* body = self._inflate(header, plain, plain_size, size, self.compressed, retain, plain == stored)
        page.kind = DICTIONARY if dictionary else DATA
        page.num_values = header.num_values
        page.encoding = header.encoding
        page.null_count = -1
        page.retained = retain
        page.repetition.size = page.definition.size = 0
        if not dictionary:
            self._take_levels(&body, &size, header.num_values, self.max_repetition_level,
                              header.repetition_level_encoding, &page.repetition)
            self._take_levels(&body, &size, header.num_values, self.max_definition_level,
                              header.definition_level_encoding, &page.definition)
        page.values = body
        page.values_size = size
        return 0

    cdef int _take_levels(self, const uint8_t** body, int64_t* size, int64_t count, int max_level, int encoding,
                          LevelStream* levels) except -1 nogil:
        """Split the levels of one kind off the front of a V1 page's body."""
        cdef uint32_t level_bytes
        cdef int width = 0
        if max_level == 0:
            return 0
        while max_level >> width:
            width += 1
        levels.bit_packed = encoding == BIT_PACKED
        if levels.bit_packed:
            levels.size = (count * width + 7) // 8
        elif encoding != RLE:
            self._levels_encoding(encoding)
        elif size[0] >= 4:
            memcpy(&level_bytes, body[0], 4)
            body[0] += 4
            size[0] -= 4
            levels.size = level_bytes
        elif count:
            levels.size = size[0] + 1
        if levels.size > size[0]:
            self._levels_overrun(levels.size, size[0])
        levels.data = body[0]
        body[0] += levels.size
        size[0] -= levels.size
        return 0

    cdef int _split_v2(self, const PageHeader* header, const uint8_t* stored, Page* page) except -1 nogil:
        """A V2 data page: levels first and never compressed, then the values."""
        cdef bint retain = self.retain_values and holds_values_whole(header.encoding), compressed
        cdef int64_t values_size = 0
        cdef int64_t levels_size = <int64_t>header.repetition_levels_byte_length + header.definition_levels_byte_length
        cdef const uint8_t* levels = NULL
        cdef const uint8_t* values = self.cipher.open_v2(
            <int>self.ordinal, stored, header.compressed_page_size, levels_size, &levels, &values_size)
        if levels == stored and self.cipher.authenticates:      # parquet-java's layout: no tag covers the levels
            self._check_crc(header, stored - self.data)
        if values_size < 0 or levels_size > header.uncompressed_page_size:
            self._levels_overrun(levels_size, min(levels_size + values_size, <int64_t>header.uncompressed_page_size))
        page.kind = DATA
        page.num_values = header.num_values
        page.encoding = header.encoding
        page.null_count = header.num_nulls
        page.repetition.data = levels
        page.repetition.size = header.repetition_levels_byte_length
        page.definition.data = levels + header.repetition_levels_byte_length
        page.definition.size = header.definition_levels_byte_length
        page.repetition.bit_packed = page.definition.bit_packed = False
        page.values_size = header.uncompressed_page_size - levels_size
        page.retained = retain
        compressed = self.compressed and (header.is_compressed or self.v2_is_compressed)
        page.values = self._inflate(header, values, values_size, page.values_size, compressed, retain,
                                    values == stored + levels_size)
        return 0

    cdef const uint8_t* _inflate(self, const PageHeader* header, const uint8_t* plain, int64_t plain_size, int64_t size,
                                 bint compressed, bint retain, bint in_chunk) except NULL nogil:
        """size bytes of values: plain itself where it is stored as it is, else decompressed into scratch or, where the
        values outlive the page, into an array of their own (self.retained)."""
        cdef uint8_t* out
        if not compressed or (plain_size == 0 and size == 0):
            if plain_size != size:
                with gil:
                    raise FormatError(f"{plain_size} bytes in an uncompressed page of {size}", page=self.ordinal,
                                      offset=self.position)
            if not retain:
                return plain
            with gil:
                if in_chunk:
                    start = plain - self.data
                    self.retained = self.owner[start:start + size]
                    self.retained_data = plain
                else:
                    memcpy(self._retain(size), plain, <size_t>size)
            return self.retained_data
        with gil:
            source = PyMemoryView_FromMemory(<char*>plain, plain_size, PyBUF_READ)
            try:
                if size * self.consumed > plain_size * self.produced:       # both below 2^31
                    check_claimed_size(self.codec.number, plain_size, size)
                out = self._retain(size) if retain else scratch_reserve(&self.body, <size_t>size)
                self.decompress_into(source, PyMemoryView_FromMemory(<char*>out, size, PyBUF_WRITE))
            except (FormatError, LimitError) as error:
                raise error.at(page=self.ordinal, offset=self.position - header.compressed_page_size)
        return out

    cdef uint8_t* _retain(self, int64_t size) except NULL:
        cdef uint8_t[::1] kept = memory.empty(size + 1)      # never empty, so that it has an address
        self.retained = np.asarray(kept)[:size]
        self.retained_data = &kept[0]
        return &kept[0]

    cdef int fail(self, int64_t status, const char* what) except -1 nogil:
        with gil:
            try:
                raise_status(status, what.decode("ascii"))
            except FormatError as error:
                raise error.at(page=self.ordinal)

    cdef int _levels_overrun(self, int64_t claimed, int64_t size) except -1 nogil:
        with gil:
            raise FormatError(f"{claimed} bytes of levels in a page that has {size}", page=self.ordinal, offset=self.position)

    cdef int _levels_encoding(self, int encoding) except -1 nogil:
        with gil:
            raise UnsupportedError(f"levels in encoding {encoding}", page=self.ordinal, offset=self.position)


cdef inline bint holds_values_whole(int encoding) noexcept nogil:
    """Whether each BYTE_ARRAY value is one run of bytes in the page."""
    return encoding == PLAIN or encoding == DELTA_LENGTH_BYTE_ARRAY
