"""Encoding of columns into stored pages: encode, compress, encrypt.

One ChunkWriter makes one column chunk; the caller writes its pieces to the file, in order.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from fastpq.arrays.slices cimport array_start
from fastpq.codecs.codec cimport Codec
from fastpq.column.stored_values cimport BOOLEAN
from fastpq.column.input cimport ColumnInput
from fastpq.column.page_log cimport PageLog
from fastpq.column.page_writer cimport PageWriter, check_page_size
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.value_writer cimport ValueWriter
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.levels cimport bitmap_to_levels, bytes_to_levels, level_width, levels_all_valid, levels_bound
from fastpq.encodings.numbers cimport PLAIN, PLAIN_DICTIONARY, RLE
from fastpq.encodings.rle cimport hybrid_bound, hybrid_encode
from fastpq.encodings.views cimport Slice, slices_size
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.page_header cimport TYPE_DATA_PAGE, TYPE_DATA_PAGE_V2, TYPE_DICTIONARY_PAGE, PageHeader
from fastpq.index.bloom_filter cimport SplitBlockBloomFilter

from fastpq.errors import LimitError, SchemaError
from fastpq.index.bloom_size import bytes_for


cdef enum:
    LARGEST_PAGE_ORDINAL = 32767        # of an AAD (Encryption.md, 4.4.2); the bound of plaintext files too, for encrypt_file


cdef class ChunkWriter:
    """Encodes rows of one column as a column chunk.

    Args:
        input: the column.
        codec: the Codec of the chunk.
        cipher: the ModuleCipher of the chunk.
        settings: the ChunkSettings of the column.
        give: taker of stored pages while rows are written, as for Pieces; the last pages wait in ``pieces``.
    """

    def __cinit__(self, ColumnInput input not None, Codec codec not None, ModuleCipher cipher not None, settings, give=None):
        cdef size_t width = 0 if input.variable else input.stored_width
        self.input = input
        self.compresses = codec.number != 0
        self.settings = settings
        self.max_definition_level = settings.max_definition_level
        self.max_repetition_level = settings.max_repetition_level
        self.data_page_size = settings.data_page_size
        self.data_page_rows = settings.data_page_rows
        self.most_dictionary_size = settings.dictionary_page_size
        self.keep_dictionary = settings.keep_dictionary
        self.has_bloom_filter = settings.bloom_filter_fpp is not None
        self.version_2 = settings.version_2
        self.values = ValueWriter(settings.value_encoding, input.variable, input.conversion == BOOLEAN, input.stored_width)
        self.index_encoding = settings.index_encoding
        self.dictionary = input.new_dictionary() if settings.dictionary else None
        self.pages = PageLog(settings.order, width, settings.total_order)
        self.distinct_count = -1
        self.stored = PageWriter(input, codec, cipher, settings, give)

    def __dealloc__(self):
        with nogil:             # the operating system takes long to take large blocks back
            self._free()

    @property
    def stored_size(self):
        """Bytes of the stored pages with their headers."""
        return self.stored.pieces.size

    @property
    def pieces(self):
        """The stored pages with their headers."""
        return self.stored.pieces

    @property
    def uncompressed_size(self):
        """Bytes of the pages with their headers, before compression."""
        return self.stored.uncompressed_size

    @property
    def page_counts(self):
        """Number of pages by page type and encoding."""
        return self.stored.page_counts()

    cdef void _free(self) noexcept nogil:
        """Free scratch memory."""
        scratch_free(&self.codes)
        scratch_free(&self.body)

    def begin_dictionary(self, ColumnInput entries not None):
        """Begin the dictionary page with given entries, used or not, in their order; without effect above its greatest size.

        Rows whose codes are numbers of these entries are written from the codes.
        """
        if self.dictionary is None:
            return
        cdef DictionaryEncoder dictionary = self.input.new_dictionary()
        mapping = entries.codes(dictionary)
        if dictionary.plain_size <= self.most_dictionary_size:
            self.dictionary = dictionary
            self.is_begun = True
            if self.input.reader is not None and self.input.reader.entries() == len(mapping):
                self.mapping_owner = mapping
                self.mapping = <const uint32_t*>array_start(mapping)

    def write(self, int64_t start, int64_t stop):
        """Encode the rows [start, stop) into pieces, and set the counters; no other rows can be written.

        Raises:
            LimitError: a page over 2^31 - 1 bytes, or an ordinal over 32767.
            SchemaError: a value does not fit the column's type.
        """
        if self.input is None:
            raise ValueError("rows were written before")
        if not 0 <= start <= stop <= self.input.rows:
            raise ValueError(f"rows {start} to {stop} of {self.input.rows}")
        with nogil:
            self._write_rows(start, stop)
            self._free()        # for the next chunk: this one may wait for others before it is written
            self.stored.free()
            self.input.free()
        self.input = self.stored.column = self.mapping_owner = None
        if self.bloom_filter is not None and self.settings.bloom_filter_ndv is None:
            self.bloom_filter = self.bloom_filter.folded(self.settings.bloom_filter_fpp)
        self.dictionary = None
        self.stored.pieces.finish()

    cdef int _write_rows(self, int64_t start, int64_t stop) except -1 nogil:
        """All pages of the chunk; the interpreter is asked to take stored pages alone, and for errors."""
        cdef int64_t row = start, rows
        self.input.places_in = NULL
        self.num_values = self._entries(start, stop - start)
        self.null_count = self.num_values - self.input.count_present(start, stop - start)
        if self.null_count and not self.max_definition_level:
            with gil:
                raise SchemaError(f"{self.null_count} nulls in a required column")
        if self.dictionary is not None:
            row = self._dictionary_rows(start, stop)
        if self.has_bloom_filter and self.bloom_filter is None:
            self._begin_bloom_filter(self.num_values - self.null_count)
        while row < stop:
            rows = self._page_rows(row, stop)
            self._write_values(row, rows)
            row += rows
        return 0

    cdef int _begin_bloom_filter(self, int64_t distinct) except -1 nogil:
        """Make an empty filter for a number of distinct values; bloom_filter_ndv of the settings takes precedence."""
        with gil:
            ndv = self.settings.bloom_filter_ndv
            size = bytes_for(distinct if ndv is None else ndv, self.settings.bloom_filter_fpp)
            self.bloom_filter = SplitBlockBloomFilter(size)
        return 0

    cdef int _add_page(self, int64_t start, int64_t rows, int64_t present) except -1 nogil:
        """Begin the next page of the log; the caller observes the values next."""
        self.pages.add(rows, self._entries(start, rows), present)
        if self.input.levels is not None:
            self._add_levels(start, rows)
        return 0

    cdef int _add_levels(self, int64_t start, int64_t rows) except -1 nogil:
        cdef int64_t first = self.input.levels.entry_starts[start], entries = self._entries(start, rows)
        self.pages.observe_levels(self.input.levels.repetition.data + first, entries, self.max_repetition_level)
        self.pages.observe_levels(self.input.levels.definition.data + first, entries, self.max_definition_level)
        return 0

    cdef int _log_codes(self, int64_t start, int64_t rows, int64_t present, const uint32_t* codes, const Slice* slices,
                        const uint8_t* values) except -1 nogil:
        """Log a dictionary-encoded page; slices are NULL for values that are known by their codes alone."""
        self._add_page(start, rows, present)
        if not self.input.variable:
            return self.pages.observe_fixed(values, present)
        self.pages.last().unencoded = (
            self.dictionary.slices_size(codes, present) if slices == NULL else slices_size(slices, present))
        return self.pages.observe_codes(codes, present, self.dictionary.slice_values(), self.dictionary.table.count)

    cdef int64_t _entries(self, int64_t start, int64_t rows) noexcept nogil:
        """The number of values in rows, nulls and empty lists included."""
        if self.input.levels is None:
            return rows
        return self.input.levels.entry_starts[start + rows] - self.input.levels.entry_starts[start]

    cdef int64_t _rows_within(self, int64_t start, int64_t most, int64_t entries) noexcept nogil:
        """The largest number of rows, from one to most, with at most so many entries; one if the first row has more."""
        cdef int64_t low = 1, high = most, middle
        if self.input.levels is None:
            return max(<int64_t>1, min(most, entries))
        while low < high:
            middle = (low + high + 1) // 2
            if self._entries(start, middle) <= entries:
                low = middle
            else:
                high = middle - 1
        return low

    cdef int64_t _dictionary_rows(self, int64_t start, int64_t stop) except -1 nogil:
        """Write the leading rows as dictionary-encoded pages; returns the row behind the last one.

        The dictionary ends when full, or after the first page if plain values are smaller.
        """
        cdef int64_t row = start, rows = 0, present = 0, done = 0, taken = 0, page
        cdef int64_t most_entries = self.data_page_size // 4        # an index takes at most four bytes
        cdef const uint8_t* values = NULL
        cdef Slice* slices = NULL
        cdef uint32_t* codes
        cdef bint full = False
        codes = <uint32_t*>scratch_reserve(&self.codes, <size_t>self.num_values * sizeof(uint32_t))
        while row < stop:
            rows = self._rows_within(row, min(self.data_page_rows, stop - row), most_entries)
            done = self._encode(row, rows, codes + taken, &present, &values, &slices)
            if row == start and not (self.is_begun or self.keep_dictionary or self._dictionary_pays(done, present, codes)):
                return start
            full = done < present
            if full:
                rows = self.input.rows_of(row, rows, done)
                present = self.input.count_present(row, rows)
            if rows:
                self._log_codes(row, rows, present, codes + taken, slices, values)
            taken += present
            row += rows
            if full:
                break
        if self.pages.count() == 0:
            return start
        if not full and not self.is_begun:
            self.distinct_count = self.dictionary.table.count
        if self.has_bloom_filter:
            self._begin_bloom_filter(self.num_values - self.null_count if full else self.dictionary.table.count)
        self._write_dictionary()
        row = start
        for page in range(self.pages.count()):
            rows, present = self.pages.page(page).rows, self.pages.page(page).present
            self._write_indices(row, rows, codes, present)
            row += rows
            codes += present
        return row

    cdef int64_t _encode(self, int64_t start, int64_t rows, uint32_t* codes, int64_t* present, const uint8_t** values,
                         Slice** slices) except -1 nogil:
        """Codes of the values in rows; returns the number of encoded values, fewer than present where the dictionary is full."""
        cdef int64_t limit = self.most_dictionary_size, done
        if self.mapping != NULL:
            present[0] = self.input.mapped(start, rows, self.mapping, codes)
            return present[0]
        if self.input.variable:
            done = self.input.encode(start, rows, self.dictionary, limit, codes, present, slices)
        else:
            present[0] = self.input.fixed(start, rows, values)
            done = self.dictionary.encode_fixed(values[0], present[0], limit, codes)
        if done < 0:
            with gil:
                raise MemoryError("the dictionary's hash table")
        return done

    cdef bint _dictionary_pays(self, int64_t done, int64_t present, const uint32_t* codes) noexcept nogil:
        """Whether dictionary and indices of the first page are smaller than the plain values of the page."""
        cdef int64_t bits = self.dictionary.code_width(), plain_size = present * <int64_t>self.input.stored_width
        if done < present or present == 0:
            return present == 0
        if self.input.variable:
            plain_size = 4 * present + self.dictionary.slices_size(codes, present)
        return self.dictionary.plain_size + done * bits // 8 < plain_size

    cdef int64_t _page_rows(self, int64_t start, int64_t stop) except -1 nogil:
        """The number of rows of the next page of plain values, at least one."""
        cdef int64_t rows = min(self.data_page_rows, stop - start)
        cdef int64_t size, bound = self.data_page_size, present
        cdef Slice* slices
        if not self.input.variable:
            return self._rows_within(start, rows, bound // <int64_t>max(self.input.stored_width, <size_t>1))
        rows = self._rows_within(start, rows, bound)
        while True:
            present = self.input.slices(start, rows, &slices)
            size = 4 * present + slices_size(slices, present)
            if size <= bound or rows <= 1:
                return rows
            rows = max(1, min(rows - 1, rows * bound // size))

    cdef int _write_dictionary(self) except -1 nogil:
        cdef PageHeader header
        cdef int64_t size = self.dictionary.plain_size
        cdef const uint8_t* body = self.dictionary.fixed_values()
        self.dictionary.end()
        if self.input.variable:
            body = scratch_reserve(&self.body, <size_t>size)
            self.dictionary.write_plain(<uint8_t*>body)
        if self.bloom_filter is not None:
            if self.input.variable:
                self.bloom_filter.insert_slices(self.dictionary.slice_values(), self.dictionary.table.count)
            else:
                self.bloom_filter.insert_fixed(
                    self.dictionary.fixed_values(), self.input.stored_width, self.dictionary.table.count)
        header.type = TYPE_DICTIONARY_PAGE
        header.num_values = <int32_t>self.dictionary.table.count
        header.encoding = PLAIN_DICTIONARY if self.index_encoding == PLAIN_DICTIONARY else PLAIN
        header.uncompressed_page_size = <int32_t>size
        header.is_sorted = False
        self.dictionary_page_size = self.stored.write(&header, 0, body, size, 0, False)
        return 0

    cdef int _write_indices(self, int64_t start, int64_t rows, const uint32_t* codes, int64_t present) except -1 nogil:
        cdef int width = self.dictionary.code_width()
        cdef int64_t size
        cdef PageLevels levels
        cdef uint8_t* body = self._body(start, rows, present, 1 + hybrid_bound(present, width), &levels)
        body[levels.size] = <uint8_t>width
        size = levels.size + 1 + hybrid_encode(codes, present, width, body + levels.size + 1)
        return self._write_data_page(self.index_encoding, start, rows, present, body, size, levels, False)

    cdef int _write_values(self, int64_t start, int64_t rows) except -1 nogil:
        cdef const uint8_t* values = NULL
        cdef Slice* slices = NULL
        cdef uint8_t* body
        cdef int64_t present, size = 0
        cdef PageLevels levels
        if self.input.variable:
            present = self.input.slices(start, rows, &slices)
            size = 4 * present + slices_size(slices, present)
            if self.bloom_filter is not None:
                self.bloom_filter.insert_slices(slices, present)
        else:
            present = self.input.fixed(start, rows, &values)
            size = present * <int64_t>self.input.stored_width
            if self.bloom_filter is not None:
                self.bloom_filter.insert_fixed(values, self.input.stored_width, present)
        check_page_size(size)
        self._add_page(start, rows, present)
        if self.input.variable:
            self.pages.last().unencoded = size - 4 * present
            self.pages.observe_slices(slices, present)
        else:
            self.pages.observe_fixed(values, present)
        if self.input.dense_in_place and not self.max_definition_level and self.values.encoding == PLAIN:
            memset(&levels, 0, sizeof(levels))
            return self._write_data_page(PLAIN, start, rows, present, values, size, levels, True)
        body = self._body(start, rows, present, self.values.bound(present, size), &levels)
        size = levels.size + self.values.write(values, slices, present, body + levels.size)
        return self._write_data_page(self.values.encoding, start, rows, present, body, size, levels, False)

    cdef uint8_t* _body(self, int64_t start, int64_t rows, int64_t present, int64_t bound, PageLevels* levels) except NULL nogil:
        """Memory for a page body: the written levels, and room for bound bytes of values."""
        cdef int64_t entries = self._entries(start, rows), room = 0
        cdef int64_t prefix = 0 if self.version_2 else 4
        cdef uint8_t* body
        if self.max_definition_level:
            room = 8 + hybrid_bound(entries, level_width(self.max_definition_level)) + levels_bound(entries)
            room += hybrid_bound(entries, level_width(self.max_repetition_level))
        body = scratch_reserve(&self.body, <size_t>(room + bound))
        memset(levels, 0, sizeof(PageLevels))
        if self.max_repetition_level:
            levels.repetition = self._nested_levels(
                self.input.levels.repetition.data, start, entries, self.max_repetition_level, body + prefix)
            levels.size = put_length(body, prefix, levels.repetition)
        if self.max_definition_level:
            if self.input.levels is not None:
                levels.definition = self._nested_levels(
                    self.input.levels.definition.data, start, entries, self.max_definition_level, body + levels.size + prefix)
            elif present == rows:
                levels.definition = levels_all_valid(rows, body + prefix)
            else:
                levels.definition = bitmap_to_levels(self.input.bits, start, rows, body + prefix)
            levels.size += put_length(body + levels.size, prefix, levels.definition)
        return body

    cdef int64_t _nested_levels(self, const uint8_t* levels, int64_t start, int64_t entries, int max_level,
                                uint8_t* out) noexcept nogil:
        return bytes_to_levels(levels + self.input.levels.entry_starts[start], entries, max_level, out)

    cdef int _write_data_page(self, int encoding, int64_t start, int64_t rows, int64_t present, const uint8_t* body,
                              int64_t size, PageLevels levels, bint in_column) except -1 nogil:
        """Write a page of a body of levels and values; in_column: the body is the column's own memory, not to be copied."""
        cdef PageHeader header
        cdef int64_t entries = self._entries(start, rows)
        if self.ordinal > LARGEST_PAGE_ORDINAL:
            with gil:
                raise LimitError(
                    f"more than {LARGEST_PAGE_ORDINAL + 1} pages in a column chunk: use larger pages or row groups")
        check_page_size(size)
        header.num_values = <int32_t>entries
        header.encoding = encoding
        header.uncompressed_page_size = <int32_t>size
        if self.version_2:
            header.type = TYPE_DATA_PAGE_V2
            header.num_nulls = <int32_t>(entries - present)
            header.num_rows = <int32_t>rows
            header.definition_levels_byte_length = <int32_t>levels.definition
            header.repetition_levels_byte_length = <int32_t>levels.repetition
            header.is_compressed = self.compresses
        else:
            header.type = TYPE_DATA_PAGE
            header.definition_level_encoding = RLE
            header.repetition_level_encoding = RLE
        self.pages.page(self.ordinal).size = self.stored.write(
            &header, <int>self.ordinal, body, size, levels.size, in_column)
        self.ordinal += 1
        return 0


cdef int64_t put_length(uint8_t* out, int64_t prefix, int64_t size) noexcept nogil:
    """Write the length of a level stream in prefix bytes (V2 pages have none); returns the size of prefix and stream."""
    cdef uint32_t length = <uint32_t>size
    memcpy(out, &length, <size_t>prefix)
    return prefix + size
