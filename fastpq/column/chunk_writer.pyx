"""Encodes columns into stored pages.

A ChunkWriter makes one column chunk: it cuts the rows into pages and encodes these. Its PageWriter compresses and encrypts them.
The caller writes the chunk's pieces to the file, in order.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastpq.arrays.slices cimport array_start
from fastpq.codecs.codec cimport Codec, Streams
from fastpq.column.chunk_settings cimport ChunkSettings
from fastpq.column.stored_values cimport BOOLEAN
from fastpq.column.input cimport ColumnInput
from fastpq.column.leaf_entries cimport Entries
from fastpq.column.page_log cimport PageLog
from fastpq.column.page_writer cimport PageWriter, check_page_size
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.value_writer cimport ValueWriter
from fastpq.encodings.dictionary cimport DictionaryEncoder, seldom_repeats
from fastpq.encodings.levels cimport (
    bitmap_to_levels, bytes_to_levels, constant_levels, level_width, levels_bound, list_levels, put_length,
)
from fastpq.encodings.numbers cimport PLAIN, PLAIN_DICTIONARY, RLE
from fastpq.encodings.plain cimport invalid_utf8_place, is_ascii
from fastpq.encodings.rle cimport hybrid_bound, hybrid_encode
from fastpq.encodings.views cimport Slice, slices_size
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.page_header cimport TYPE_DATA_PAGE, TYPE_DATA_PAGE_V2, TYPE_DICTIONARY_PAGE, PageHeader
from fastpq.index.bloom_filter cimport SplitBlockBloomFilter

from fastpq.arrays.valid_text import refuse_invalid_text
from fastpq.column.content_chunks import content_cuts
from fastpq.errors import LimitError, SchemaError


cdef enum:
    # An AAD has 16 bits for the page ordinal, and they are signed (Encryption.md, 4.4.2). Plaintext files keep the bound too, so
    # that encrypt_file can encrypt them.
    LARGEST_PAGE_ORDINAL = 32767


@cython.no_gc          # no instance can be part of a cycle
cdef class ChunkWriter:
    """Encodes one column's rows as a column chunk.

    Args:
        input: the column.
        codec: the chunk's Codec.
        cipher: the chunk's ModuleCipher.
        settings: the column's ChunkSettings.
        give: function that is called with lists of stored pages, in order, while rows are written. The last pages wait in
            ``pieces``. If it is None, all pages wait there.
        cuts: shape (cuts,), int64, ascending: rows at which a new page begins, whatever the size of the page before. None
            cuts pages by their size alone.
    """

    def __cinit__(self, ColumnInput input not None, Codec codec not None, ModuleCipher cipher not None,
                  ChunkSettings settings not None, give=None, cuts=None):
        cdef size_t width = 0 if input.variable else input.stored_width
        self.input = input
        self.compresses = codec.number != 0
        self.settings = settings
        self.has_bloom_filter = settings.bloom_filter_fpp is not None
        self.values = ValueWriter(settings.value_encoding, input.variable, input.conversion == BOOLEAN, input.stored_width)
        self.dictionary = input.new_dictionary() if settings.dictionary else None
        self.pages = PageLog(settings.order, width, settings.total_order, settings.truncation)
        self.distinct_count = -1
        self.page_writer = PageWriter(input, codec, cipher, settings, give)
        if cuts is not None and len(cuts):
            self.cuts = cuts
            self.cut_count = len(cuts)

    def __dealloc__(self):
        with nogil:             # because it takes long to return large blocks to the operating system
            self._free()

    @property
    def stored_size(self):
        """Stored bytes in all pages, with their headers."""
        return self.page_writer.pieces.size

    @property
    def pieces(self):
        """The stored pages with their headers."""
        return self.page_writer.pieces

    @property
    def uncompressed_size(self):
        """Bytes in all pages before compression, with their headers."""
        return self.page_writer.uncompressed_size

    @property
    def num_data_pages(self):
        """Number of data pages."""
        return self.pages.count()

    @property
    def page_counts(self):
        """Page counts by page type and encoding."""
        return self.page_writer.page_counts()

    cdef void _free(self) noexcept nogil:
        """Free scratch memory."""
        scratch_free(&self.codes)
        scratch_free(&self.body)

    def begin_dictionary(self, ColumnInput entries not None):
        """Fill the dictionary page with entries in their order, whether a row uses them or not.

        Does nothing if the entries are too large for a dictionary page. If the input's rows are codes for these entries, the rows
        are written from the codes.
        """
        if self.dictionary is None:
            return
        cdef DictionaryEncoder dictionary = self.input.new_dictionary()
        mapping = entries.codes(dictionary)
        if dictionary.plain_size <= self.settings.dictionary_page_size:
            self.dictionary = dictionary
            self.has_entries = True
            if self.input.reader is not None and self.input.reader.entries() == len(mapping):
                self.mapping_owner = mapping
                self.mapping = <const uint32_t*>array_start(mapping)

    def write(self, int64_t start, int64_t stop):
        """Encode the rows [start, stop) into pieces, and set the counters. A second call is an error.

        Raises:
            LimitError: a page is larger than 2^31 - 1 bytes, or the chunk has more than 32768 data pages.
            SchemaError: a value does not fit the column type, or text is not UTF-8.
        """
        if self.input is None:
            raise ValueError("the rows of the chunk were already written")
        if not 0 <= start <= stop <= self.input.rows:
            raise ValueError(f"rows {start} to {stop} of a column with {self.input.rows} rows")
        if self.settings.content_chunks is not None:
            self.cuts = content_cuts(self.input, start, stop, self.settings.max_definition_level, self.settings.content_chunks)
            self.cut_count = len(self.cuts)
        with nogil:
            self._write_rows(start, stop)
            self._free()        # not later, so that the next chunk can use the memory while this one waits to be written
            self.page_writer.free()
            self.input.free()
        self.input = self.page_writer.column = self.mapping_owner = None
        self._end()

    cdef int _end(self) except -1:
        """Finish the bloom filter and the last piece, and free the dictionary and the function that takes pieces."""
        if self.bloom_filter is not None and self.settings.bloom_filter_ndv is None:
            self.bloom_filter = self.bloom_filter.folded(self.settings.bloom_filter_fpp)
        self.page_writer.pieces.finish()
        # the function may be part of a cycle, for example with an error that the caller's file keeps
        self.dictionary = self.page_writer.pieces.give = None

    cdef int _count_rows(self, int64_t start, int64_t stop) except -1 nogil:
        """Count the values and nulls in rows. Nulls in a required column are an error."""
        cdef int64_t entries = self._entries(start, stop - start)
        self.input.places_in = NULL
        self.num_values += entries
        self.null_count += entries - self.input.count_present(start, stop - start)
        if self.null_count and not self.settings.max_definition_level:
            with gil:
                raise SchemaError(f"{self.null_count} nulls in a required column")
        return 0

    cdef int _write_rows(self, int64_t start, int64_t stop) except -1 nogil:
        """Write all pages. The GIL is needed only to give stored pages away, and for errors."""
        cdef int64_t row = start, rows
        self._count_rows(start, stop)
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
        """Make an empty filter for this many distinct values, or for bloom_filter_ndv if the settings have it."""
        with gil:
            self.bloom_filter = SplitBlockBloomFilter(self.settings.bloom_filter_bytes(distinct))
        return 0

    cdef int64_t _most_rows(self, int64_t start, int64_t stop) noexcept nogil:
        """Return how many rows the page that begins at a row may have. Calls come with ascending rows, page after page."""
        cdef int64_t most = min(self.settings.data_page_rows, stop - start)
        while self.next_cut < self.cut_count and self.cuts[self.next_cut] <= start:
            self.next_cut += 1
        if self.next_cut < self.cut_count:
            most = min(most, self.cuts[self.next_cut] - start)
        return most

    cdef int _add_page(self, int64_t start, int64_t rows, int64_t present) except -1 nogil:
        """Begin the next page in the log. The caller then lets the log observe the values."""
        self.pages.add(rows, self._entries(start, rows), present)
        return 0

    cdef int _log_codes(self, int64_t start, int64_t rows, int64_t present, const uint32_t* codes, const Slice* slices,
                        const uint8_t* values) except -1 nogil:
        """Log a dictionary-encoded page. slices is NULL if only the codes are known."""
        self._add_page(start, rows, present)
        if self.input.has_integers:
            return self.pages.observe_integers(values, present)
        if not self.input.variable:
            return self.pages.observe_fixed(values, present)
        self.pages.last().unencoded = (
            self.dictionary.slices_size(codes, present) if slices == NULL else slices_size(slices, present))
        return self.pages.observe_codes(codes, present, self.dictionary.slice_values(), self.dictionary.table.count)

    cdef int64_t _entries(self, int64_t start, int64_t rows) noexcept nogil:
        """Return how many values rows have. Nulls and empty lists count too."""
        if self.input.levels is None:
            return rows
        return self.input.levels.entry_start(start + rows) - self.input.levels.entry_start(start)

    cdef int64_t _rows_within(self, int64_t start, int64_t most, int64_t entries) noexcept nogil:
        """Return how many of the next rows have at most so many entries together: at least 1, and at most `most`."""
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

    cdef int64_t _rows_of_codes(self, int64_t start, int64_t stop) noexcept nogil:
        """Return how many rows the next page has, if its values are codes."""
        return self._rows_within(start, self._most_rows(start, stop), self.settings.data_page_size // <int64_t>sizeof(uint32_t))

    cdef int64_t _dictionary_rows(self, int64_t start, int64_t stop) except -1 nogil:
        """Write rows as dictionary-encoded pages, and return the row behind the last one.

        It stops when the dictionary is full. It writes nothing if the first page is smaller with plain values.
        """
        cdef int64_t row = start, rows = 0, present = 0, encoded = 0, page
        cdef uint32_t* codes
        if self._is_mostly_distinct(start, stop):
            return start
        codes = <uint32_t*>scratch_reserve(&self.codes, <size_t>self.num_values * sizeof(uint32_t))
        while row < stop and not self.dictionary_has_ended:
            rows = self._encode_page(row, stop, codes + encoded, &present)
            encoded += present
            row += rows
        if self.pages.count() == 0:
            return start
        if not self.dictionary_has_ended and not self.has_entries:
            self.distinct_count = self.dictionary.table.count
        if self.has_bloom_filter:
            self._begin_bloom_filter(
                self.num_values - self.null_count if self.dictionary_has_ended else self.dictionary.table.count)
        self._write_dictionary()
        row = start
        for page in range(self.pages.count()):
            rows, present = self.pages.page(page).rows, self.pages.page(page).present
            self._write_indices(row, rows, codes, present)
            row += rows
            codes += present
        return row

    cdef int64_t _encode_page(self, int64_t start, int64_t stop, uint32_t* codes, int64_t* present) except -1 nogil:
        """Encode the values of the next page to codes, log the page, and return how many rows it has.

        If the dictionary gets full, these are fewer rows. If the chunk's first page is smaller with plain values, there are none.
        """
        cdef const uint8_t* values = NULL
        cdef Slice* slices = NULL
        cdef int64_t rows = self._rows_of_codes(start, stop)
        cdef int64_t done = self._encode(start, rows, codes, present, &values, &slices)
        if self.pages.count() == 0 and not (
                self.has_entries or self.settings.keep_dictionary or self._dictionary_pays(done, present[0], codes)):
            self.dictionary_has_ended = True
            return 0
        if done < present[0]:
            self.dictionary_has_ended = True
            rows = self.input.rows_of(start, rows, done)
            present[0] = self.input.count_present(start, rows)
        if rows:
            self._log_codes(start, rows, present[0], codes, slices, values)
        return rows

    cdef int64_t _encode(self, int64_t start, int64_t rows, uint32_t* codes, int64_t* present, const uint8_t** values,
                         Slice** slices) except -1 nogil:
        """Encode the values in rows to codes. Returns the code count, which is below present if the dictionary is full."""
        cdef int64_t limit = self.settings.dictionary_page_size, done
        if self.mapping != NULL:
            present[0] = self.input.mapped(start, rows, self.mapping, codes)
            return present[0]
        if self.input.variable:
            done = self.input.encode(start, rows, self.dictionary, limit, codes, present, slices)
        else:
            present[0] = self._keys(start, rows, values)
            done = self.dictionary.encode_fixed(values[0], present[0], limit, codes)
        if done < 0:
            with gil:
                raise MemoryError("the dictionary's hash table")
        return done

    cdef int64_t _keys(self, int64_t start, int64_t rows, const uint8_t** values) except -1 nogil:
        """Set values to the fixed-width values in rows as the dictionary compares them, and return how many there are."""
        return self.input.integers(start, rows, values) if self.input.has_integers else self.input.fixed(start, rows, values)

    cdef bint _is_mostly_distinct(self, int64_t start, int64_t stop) except -1 nogil:
        """Return whether a sample from the first page shows that a dictionary does not pay, so that none has to be tried."""
        cdef const uint8_t* values = NULL
        cdef int64_t rows = self._rows_of_codes(start, stop), present
        if self.has_entries or self.settings.keep_dictionary or self.input.variable or rows == 0:
            return False
        present = self._keys(start, rows, &values)
        return seldom_repeats(values, present, sizeof(int64_t) if self.input.has_integers else self.input.stored_width)

    cdef bint _dictionary_pays(self, int64_t done, int64_t present, const uint32_t* codes) noexcept nogil:
        """Return whether the dictionary and the first page's indices together are smaller than its plain values."""
        cdef int64_t bits = self.dictionary.code_width(), plain_size = present * <int64_t>self.input.stored_width
        if done < present or present == 0:
            return present == 0
        if self.input.variable:
            plain_size = 4 * present + self.dictionary.slices_size(codes, present)
        return self.dictionary.plain_size + done * bits // 8 < plain_size

    cdef int64_t _page_rows(self, int64_t start, int64_t stop) except -1 nogil:
        """Return how many rows the next page has, if its values are plain: at least one."""
        cdef int64_t rows = self._most_rows(start, stop)
        cdef int64_t size, bound = self.settings.data_page_size, present
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

    cdef int _check_text(self, const Slice* values, int64_t count) except -1 nogil:
        """Refuse text that is not UTF-8. The values are those that are about to be stored."""
        if self.input.text and invalid_utf8_place(values, count) >= 0:
            with gil:
                refuse_invalid_text(self.input.readers)
        return 0

    cdef int _write_dictionary(self) except -1 nogil:
        cdef PageHeader header
        cdef Streams streams
        cdef int64_t size = self.dictionary.plain_size
        cdef const uint8_t* body = self.dictionary.fixed_values()
        self.dictionary.end()
        if self.input.variable:
            self._check_text(self.dictionary.slice_values(), self.dictionary.table.count)
            body = scratch_reserve(&self.body, <size_t>size)
            self.dictionary.write_plain(<uint8_t*>body)
        elif self.input.has_integers:
            body = self.input.stored_integers(body, self.dictionary.table.count)
        if self.bloom_filter is not None:
            if self.input.variable:
                self.bloom_filter.insert_slices(self.dictionary.slice_values(), self.dictionary.table.count)
            else:
                self.bloom_filter.insert_fixed(body, self.input.stored_width, self.dictionary.table.count)
        header.type = TYPE_DICTIONARY_PAGE
        header.num_values = <int32_t>self.dictionary.table.count
        header.encoding = PLAIN_DICTIONARY if self.settings.index_encoding == PLAIN_DICTIONARY else PLAIN
        header.uncompressed_page_size = <int32_t>size
        header.is_sorted = False
        memset(&streams, 0, sizeof(streams))
        self.dictionary_page_size = self.page_writer.write(&header, 0, body, size, 0, streams, NULL)
        return 0

    cdef int _write_indices(self, int64_t start, int64_t rows, const uint32_t* codes, int64_t present) except -1 nogil:
        cdef int width = self.dictionary.code_width()
        cdef int64_t size
        cdef PageLevels levels
        cdef Streams streams
        cdef uint8_t* body = self._body(start, rows, present, 1 + hybrid_bound(present, width), &levels)
        memset(&streams, 0, sizeof(streams))
        body[levels.size] = <uint8_t>width
        size = levels.size + 1 + hybrid_encode(codes, present, width, body + levels.size + 1)
        return self._write_data_page(self.settings.index_encoding, start, rows, present, body, size, levels, streams, NULL)

    cdef int _write_values(self, int64_t start, int64_t rows) except -1 nogil:
        cdef const uint8_t* values = NULL
        cdef const uint8_t* integers = NULL
        cdef Slice* slices = NULL
        cdef uint8_t* body
        cdef int64_t present, size = 0
        cdef PageLevels levels
        cdef Streams streams
        memset(&streams, 0, sizeof(streams))
        if self.input.variable:
            present = self.input.slices(start, rows, &slices)
            size = 4 * present + slices_size(slices, present)
            if self.bloom_filter is not None:
                self.bloom_filter.insert_slices(slices, present)
        else:
            if self.input.has_integers:
                present = self.input.integers(start, rows, &integers)
                values = self.input.stored_integers(integers, present)
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
        elif integers != NULL:
            self.pages.observe_integers(integers, present)
        else:
            self.pages.observe_fixed(values, present)
        if self.input.dense_in_place and self.values.encoding == PLAIN and (
                not self.settings.max_definition_level or self.page_writer.stores_parts()):
            body = self._body(start, rows, present, 0, &levels)
            return self._write_data_page(PLAIN, start, rows, present, body, levels.size + size, levels, streams, values)
        body = self._body(start, rows, present, self.values.bound(present, size), &levels)
        size = self.values.write(values, slices, present, body + levels.size)
        if self.input.text and not is_ascii(body + levels.size, <uint64_t>size):    # one fast pass over the text and its lengths
            self._check_text(slices, present)
        streams = self.values.streams(size)
        return self._write_data_page(self.values.encoding, start, rows, present, body, levels.size + size, levels, streams, NULL)

    cdef int _log_levels(self, Entries* entries) except -1 nogil:
        """Count the next page's repetition levels, then its definition levels."""
        if self.settings.max_repetition_level == 0:
            self.pages.observe_constant_levels(entries.count, 0)
        elif entries.repetition == NULL:
            self.pages.observe_list_levels(entries.rows, entries.count)
        else:
            self.pages.observe_levels(entries.repetition, entries.count, self.settings.max_repetition_level)
        if entries.definition == NULL:
            self.pages.observe_constant_levels(entries.count, self.settings.max_definition_level)
        else:
            self.pages.observe_levels(entries.definition, entries.count, self.settings.max_definition_level)
        return 0

    cdef uint8_t* _body(self, int64_t start, int64_t rows, int64_t present, int64_t bound, PageLevels* levels) except NULL nogil:
        """Return memory for a page body. It starts with the levels, which are logged too. bound bytes for the values follow."""
        cdef int64_t entries = self._entries(start, rows), room = 0
        cdef int64_t prefix = 0 if self.settings.version_2 else 4
        cdef Entries nested
        cdef uint8_t* body
        if self.input.levels is not None:
            self.input.levels.make(start, rows, &nested)
            self._log_levels(&nested)
        elif self.settings.max_definition_level > 1:        # a leaf of structs, without nulls
            self.pages.observe_constant_levels(entries, 0)
            self.pages.observe_constant_levels(entries, self.settings.max_definition_level)
        if self.settings.max_definition_level:
            room = 8 + hybrid_bound(entries, level_width(self.settings.max_definition_level)) + levels_bound(entries)
            room += hybrid_bound(entries, level_width(self.settings.max_repetition_level))
        body = scratch_reserve(&self.body, <size_t>(room + bound))
        memset(levels, 0, sizeof(PageLevels))
        if self.settings.max_repetition_level:
            if nested.repetition == NULL:
                levels.repetition = list_levels(rows, nested.length, body + prefix)
            else:
                levels.repetition = bytes_to_levels(nested.repetition, entries, self.settings.max_repetition_level, body + prefix)
            levels.size = put_length(body, prefix, levels.repetition)
        if self.settings.max_definition_level:
            if self.input.levels is not None and nested.definition == NULL:
                levels.definition = constant_levels(entries, self.settings.max_definition_level, body + levels.size + prefix)
            elif self.input.levels is not None:
                levels.definition = bytes_to_levels(
                    nested.definition, entries, self.settings.max_definition_level, body + levels.size + prefix)
            elif present == rows:
                levels.definition = constant_levels(rows, self.settings.max_definition_level, body + prefix)
            else:
                levels.definition = bitmap_to_levels(self.input.bits, start, rows, body + prefix)
            levels.size += put_length(body + levels.size, prefix, levels.definition)
        return body

    cdef int _write_data_page(self, int encoding, int64_t start, int64_t rows, int64_t present, const uint8_t* body,
                              int64_t size, PageLevels levels, Streams streams, const uint8_t* in_column) except -1 nogil:
        """Write a page with size bytes. The body has the levels. It also has the values, if in_column is NULL.

        in_column: the values in the column's memory.
        """
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
        if self.settings.version_2:
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
        self.pages.page(self.ordinal).size = self.page_writer.write(
            &header, <int>self.ordinal, body, size, levels.size, streams, in_column)
        self.ordinal += 1
        return 0
