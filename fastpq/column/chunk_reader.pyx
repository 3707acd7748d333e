"""Decodes column chunks into the caller's memory.

A ChunkReader decodes one chunk in one or more calls. For a ChunkRun, it decodes one chunk after the other. Several threads decode
a column's chunks into one ColumnOutput at the same time, each chunk at its own offset.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from fastpq.column.code_reader cimport CodeReader, SubstituteReader, VerdictReader
from fastpq.column.stored_values cimport BOOLEAN, COPY
from fastpq.column.column_output cimport ColumnOutput, Output
from fastpq.column.page cimport DICTIONARY, NO_PAGE, PASSED, PageReader
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.value_reader cimport ValueReader
from fastpq.encodings.levels cimport (
    CLEAR_STRETCH, SET_STRETCH, bit_packed_levels_to_bitmap, bitmap_copy, bitmap_count, bitmap_merge, bitmap_pick,
    bitmap_set_range, bitmap_stretch, expand, levels_count, levels_to_bitmap,
)
from fastpq.index.ranges cimport RowRanges

from fastpq.errors import FormatError, LimitError


cdef enum:
    # python -m benchmarks.filters measures the first two.
    MOST_IDLE_ROWS = 32         # a gap of at most this many rows is decoded and dropped: a decoder that skips has to start anew
    LONG_RANGE = 256            # a range of at least this many rows is decoded to its place. Shorter ranges are decoded together.
    PIECE = 1 << 16             # bytes to decode before the chosen values are copied: few enough to stay in the cache


cdef class ChunkReader:
    """Decodes one column chunk of a flat column. A NestedReader decodes the chunks of nested columns.

    Args:
        pages: the chunk's PageReader.
        layout: the column type's Layout.
        num_values: number of values, nulls included.
        judge: decode to verdicts (one byte each) instead of values. See VerdictReader.
    """

    def __init__(self, PageReader pages not None, object layout, int64_t num_values, judge=None):
        self.pages = pages
        self.remaining = num_values
        self.width = layout.width if judge is None else 1
        if judge is None:
            self.values = CodeReader(pages, layout) if layout.codes else ValueReader(pages, layout)
            self.defers_values = self.values.conversion == COPY
        else:
            self.values = VerdictReader(pages, layout)
            (<VerdictReader>self.values).judge = judge

    def __dealloc__(self):
        scratch_free(&self.bitmap)
        scratch_free(&self.part)
        scratch_free(&self.dense)
        scratch_free(&self.chosen)
        scratch_free(&self.valid)

    cdef int begin(self, ColumnOutput output, int64_t offset, int64_t count) except -1:
        self._check(output, offset, count)
        return self._attach(output)

    cdef int64_t read_chunk(self, ColumnOutput output, int64_t offset, int64_t base, int64_t size, bint expect_dictionary,
                            int64_t num_values) except -1 nogil:
        self.pages.move_to(base, size, expect_dictionary)
        self.values.restart()
        self.remaining = num_values
        self.page_row = self.page_rows = self.page_nulls = 0
        return self._read(output, offset, num_values)

    def share_arrays(self, int64_t size):
        """Let several pages share one array for their values.

        The chunk must be read to its end before anybody sees the output. After an error nobody may see it, because the broken
        page may have left a part of the array unfilled.

        Args:
            size: bytes in all pages, as the footer claims. Pages beyond this size have their own arrays.
        """
        if not isinstance(self.values, SubstituteReader):
            self.pages.to_retain = max(size, <int64_t>0)

    def read(self, ColumnOutput output not None, int64_t offset, int64_t count):
        """Decode the next count values into output at row offset. Returns the null count.

        Raises:
            FormatError: the chunk's bytes break the specification.
            UnsupportedError: a page has an encoding that fastpq does not know.
        """
        if not 0 <= count <= self.remaining:
            raise ValueError(f"{count} rows were requested, and the chunk has {self.remaining} more")
        self._check(output, offset, count)
        return self._decode(output, offset, count, None, NULL)

    def read_ranges(self, ColumnOutput output not None, int64_t offset, const int64_t[:, ::1] ranges not None):
        """Decode ranges of the next values into output, without gaps, from row offset on.

        Args:
            output: the target.
            offset: row in the output.
            ranges: shape (n, 2), ascending: each range's start and stop, counted from the next value.

        Returns:
            The number of nulls among the values.

        Raises:
            FormatError, UnsupportedError: as ``read``.
        """
        cdef int64_t position = 0, count = 0, i
        cdef bint ascend = True
        with nogil:
            for i in range(ranges.shape[0]):
                ascend &= (ranges[i, 0] >= position) & (ranges[i, 1] >= ranges[i, 0])
                position = ranges[i, 1]
                count += position - ranges[i, 0]
        if not ascend or position > self.remaining:
            raise ValueError(f"the ranges must ascend, and end within {self.remaining} rows: the last one ends at {position}")
        self._check(output, offset, count)
        return self._decode(output, offset, count, ranges, NULL)

    def read_chosen(self, ColumnOutput output not None, int64_t offset, RowRanges rows not None):
        """Decode the chosen ones among the next rows.num_rows rows into output, without gaps, from row offset on.

        Returns:
            The number of nulls among the values.

        Raises:
            FormatError, UnsupportedError: as ``read``.
        """
        cdef int64_t count = rows.count_rows()
        cdef const uint8_t[::1] bits
        if rows.bits is None:
            return self.read_ranges(output, offset, rows.bounds)
        bits = rows.bits
        if rows.num_rows > self.remaining:
            raise ValueError(f"a choice among {rows.num_rows} rows, and the chunk has {self.remaining} more")
        self._check(output, offset, count)
        return self._decode(output, offset, rows.num_rows, None, &bits[0]) if count else 0

    def left_over(self):
        """Return how many bytes the current page has behind its last value; 0 for booleans and for pages that are not PLAIN."""
        if not self.values.decoder.stores_plain or self.page_row < self.page_rows or self.values.conversion == BOOLEAN:
            return 0
        return self.values.page.size

    def dictionary(self):
        """Return the values in the dictionary page, as a ColumnOutput. This must come before the first read.

        Raises:
            FormatError: the chunk does not begin with a dictionary page, or its bytes break the specification.
            UnsupportedError: the page has an encoding that fastpq does not know.
        """
        cdef ColumnOutput output, none = ColumnOutput(0, self.width, False)
        self._attach(none)
        with nogil:
            self.pages.next(&self.page)
        if self.page.kind != DICTIONARY:
            raise FormatError("no dictionary page where the metadata say that there is one")
        self.values.load_dictionary(&self.page)
        output = ColumnOutput(self.values.dictionary_size, self.width, False)
        if output.data != NULL:
            memcpy(output.data, self.values.dictionary.data, <size_t>output.rows * self.width)
        output.buffers = none.buffers
        return output

    def entries(self):
        """Return the dictionary for the codes that were read, if the layout has codes.

        Returns:
            A view of each entry (uint8, 16 bytes each), and the views' buffers.
        """
        return (<CodeReader?>self.values).entries()

    def view(self):
        """Return all values as a uint8 array over the stored bytes, without a copy.

        Returns None unless the chunk is one PLAIN, uncompressed page in memory with aligned values. ``read`` then still reads
        every value.
        """
        cdef int64_t size = self.remaining * <int64_t>self.width
        if self.pages.source is not None or self.pages.compressed:
            return None
        if self.values.conversion != COPY or self.pages.max_definition_level:
            return None
        with nogil:
            while self.page_row == self.page_rows:
                self._load_page()
        start = self.values.page.data - self.pages.data
        in_chunk = 0 <= start <= self.pages.size - size
        if (not in_chunk or not self.values.decoder.stores_plain or self.page_rows != self.remaining
                or self.values.page.size < size or <size_t>self.values.page.data % min(self.width, 8)):
            return None
        self.values.check_values(self.values.page.data, self.remaining)
        return self.pages.owner[start:start + size]

    cdef int _check(self, ColumnOutput output, int64_t offset, int64_t count) except -1:
        """Check that an output has count rows at an offset, has the right width, and can be written."""
        if offset < 0 or offset > output.rows - count:
            raise ValueError(f"{count} rows at row {offset} of an output with {output.rows}")
        if output.width != <int64_t>self.width:
            raise ValueError(f"an output for values with {output.width} bytes, but the values have {self.width}")
        if output.data == NULL and count and self.width:
            raise ValueError("the output is read-only")
        return 0

    cdef int _attach(self, Output output) except -1:
        if self.output is not output:
            self.output = output
            self.values.attach(output.buffers)
        return 0

    cdef int64_t _decode(self, ColumnOutput output, int64_t offset, int64_t count, const int64_t[:, ::1] ranges,
                         const uint8_t* bits) except -1:
        """Decode the rows at the set bits. Without bits, decode the ranges. Without both, decode the next count rows."""
        cdef bint in_ranges = ranges is not None
        try:
            self._attach(output)
            with nogil:
                if bits != NULL:
                    return self._read_bits(output, offset, bits, count)
                return self._read_ranges(output, offset, ranges) if in_ranges else self._read(output, offset, count)
        except MemoryError as error:
            if isinstance(error, LimitError):
                raise
            raise LimitError("no memory for a page") from error

    cdef int64_t _read(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil:
        cdef int64_t rows, nulls = 0
        while count:
            while self.page_row == self.page_rows:
                self._load_page(count if self.defers_values else 0)
            rows = min(count, self.page_rows - self.page_row)
            nulls += self._rows(output, offset, rows)
            self.page_row += rows
            self.remaining -= rows
            offset += rows
            count -= rows
        return nulls

    cdef int64_t _read_ranges(self, ColumnOutput output, int64_t offset, const int64_t[:, ::1] ranges) except -1 nogil:
        """Decode row ranges. Short ranges with short gaps between them are decoded together."""
        cdef int64_t position = 0, nulls = 0, first = 0, last, count
        cdef const uint8_t* bits
        while first < ranges.shape[0]:
            self._skip(ranges[first, 0] - position)
            last = first
            count = ranges[first, 1] - ranges[first, 0]
            if count < LONG_RANGE:
                while last + 1 < ranges.shape[0] and ranges[last + 1, 0] - ranges[last, 1] <= MOST_IDLE_ROWS \
                        and ranges[last + 1, 1] - ranges[last + 1, 0] < LONG_RANGE:
                    last += 1
                    count += ranges[last, 1] - ranges[last, 0]
            if last == first:
                nulls += self._read(output, offset, count)
            else:
                bits = self._bits_of(&ranges[first, 0], last + 1 - first)
                nulls += self._read_bits(output, offset, bits, ranges[last, 1] - ranges[first, 0])
            offset += count
            position = ranges[last, 1]
            first = last + 1
        return nulls

    cdef const uint8_t* _bits_of(self, const int64_t* ranges, int64_t count) except NULL nogil:
        """Return ranges as bits, one a row. The first bit is for the first range's first row."""
        cdef int64_t size = ranges[2 * count - 1] - ranges[0], i
        cdef uint8_t* bits = scratch_reserve(&self.chosen, <size_t>(size + 7) // 8)
        memset(bits, 0, <size_t>(size + 7) // 8)
        for i in range(count):
            bitmap_set_range(bits, ranges[2 * i] - ranges[0], ranges[2 * i + 1] - ranges[2 * i])
        return bits

    cdef int64_t _read_bits(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t count) except -1 nogil:
        """Decode the rows at the set bits among the next count rows. Returns their null count."""
        cdef int64_t place = 0, nulls = 0, rows, chosen_rows
        cdef int kind
        while place < count:
            rows = bitmap_stretch(bits, place, count - place, MOST_IDLE_ROWS, LONG_RANGE, &kind)
            if kind == CLEAR_STRETCH:
                self._skip(rows)
            elif kind == SET_STRETCH:
                nulls += self._read(output, offset, rows)
                offset += rows
            else:
                chosen_rows = bitmap_count(bits, place, rows)
                nulls += self._read_mixed(output, offset, bits, place, rows)
                offset += chosen_rows
            place += rows
        return nulls

    cdef int64_t _read_mixed(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t place,
                             int64_t count) except -1 nogil:
        """Decode the next count rows in pieces, and keep those whose bit, from bit place on, is set. Returns their null count."""
        cdef int64_t nulls = 0, rows, chosen_rows
        cdef int kind
        while count:
            if self.page_row == self.page_rows:
                rows = bitmap_stretch(bits, place, count, 1, 1, &kind)
                if kind == SET_STRETCH:
                    self._load_page()
                else:                   # perhaps the page has no chosen row
                    self._skip(rows)
                    place += rows
                    count -= rows
                continue
            rows = min(min(count, self.page_rows - self.page_row), max(<int64_t>1, PIECE // max(self.width, 1)))
            chosen_rows = bitmap_count(bits, place, rows)
            nulls += self._chosen(output, offset, bits, place, rows, chosen_rows)
            self.page_row += rows
            self.remaining -= rows
            place += rows
            count -= rows
            offset += chosen_rows
        return nulls

    cdef int64_t _chosen(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t place, int64_t rows,
                         int64_t chosen_rows) except -1 nogil:
        """Decode the page's next rows, and keep those whose bit, from bit place on, is set. Returns their null count."""
        cdef uint8_t* out = output.data + offset * <int64_t>self.width
        cdef int64_t present, chosen_values
        cdef const uint8_t* valid
        cdef uint8_t* chosen
        cdef uint8_t* chosen_valid
        if self.page_nulls == 0:
            self.values.read_chosen(out, bits, place, rows, chosen_rows)
            if output.bits != NULL:
                bitmap_set_range(output.bits, offset, chosen_rows)
            return 0
        valid = self._bits(rows)
        chosen = scratch_reserve(&self.valid, 2 * (<size_t>(rows + 7) // 8))
        chosen_valid = chosen + (rows + 7) // 8
        bitmap_pick(valid, 0, bits, place, rows, chosen_valid)
        present = bitmap_pick(bits, place, valid, 0, rows, chosen)
        chosen_values = bitmap_count(chosen, 0, present)
        scratch_reserve(&self.dense, <size_t>chosen_values * self.width)
        self.values.read_chosen(self.dense.data, chosen, 0, present, chosen_values)
        expand(chosen_valid, chosen_rows, self.dense.data, out, self.width)
        if output.bits != NULL:
            bitmap_merge(output.bits, offset, chosen_valid, chosen_rows)
        return chosen_rows - chosen_values

    cdef int _skip(self, int64_t count) except -1 nogil:
        """Skip count rows. A page whose rows are all skipped is not opened."""
        cdef int64_t rows, present
        while count:
            if self.page_row == self.page_rows:
                count -= self._pass(count)
                continue
            rows = min(count, self.page_rows - self.page_row)
            if rows < self.page_rows - self.page_row or self.values.decoder.shares_prefixes:
                present = rows if self.page_nulls == 0 else bitmap_count(self.bitmap.data, self.page_row, rows)
                self.values.skip(present)
            self.page_row += rows
            self.remaining -= rows
            count -= rows
        return 0

    cdef int64_t _pass(self, int64_t count) except -1 nogil:
        """Skip the next page and return its row count, if it has at most count rows. Otherwise open it and return 0."""
        self.pages.next(&self.page, count)
        if self.page.kind != PASSED:
            self._open_page()
            return 0
        self.remaining -= self.page.num_values
        return self.page.num_values

    cdef int64_t _rows(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil:
        """Decode count rows from the current page. Returns the null count."""
        cdef uint8_t* out = output.data + offset * <int64_t>self.width
        cdef const uint8_t* bits
        cdef int64_t present
        if self.page_nulls == 0:
            self.values.read(out, count)
            if output.bits != NULL:
                bitmap_set_range(output.bits, offset, count)
            return 0
        bits = self._bits(count)
        present = self._expand(bits, count, out)
        if output.bits != NULL:
            bitmap_merge(output.bits, offset, bits, count)
        return count - present

    cdef int64_t _expand(self, const uint8_t* bits, int64_t count, uint8_t* out) except -1 nogil:
        """Decode the values for the next count rows, and put them where rows are not null. Returns how many values there are."""
        cdef int64_t present = bitmap_count(bits, 0, count)
        self.values.read(scratch_reserve(&self.dense, <size_t>present * self.width), present)
        expand(bits, count, self.dense.data, out, self.width)
        return present

    cdef const uint8_t* _bits(self, int64_t count) except NULL nogil:
        """Return the next count rows' validity. The first row has bit 0."""
        if self.page_row == 0:
            return self.bitmap.data
        scratch_reserve(&self.part, <size_t>(count + 7) // 8)
        bitmap_copy(self.bitmap.data, self.page_row, count, self.part.data)
        return self.part.data

    cdef int _load_page(self, int64_t at_once=0) except -1 nogil:
        """Open the next page. The caller reads a page with at most at_once values in one call (PageReader.next)."""
        self.pages.next(&self.page, 0, at_once)
        self._open_page()
        return 0

    cdef int _open_page(self) except -1 nogil:
        """Prepare the current page: load its levels and start its values, or decode its dictionary."""
        if self.page.kind == NO_PAGE:
            with gil:
                raise FormatError(f"the chunk ends {self.remaining} values early", page=self.pages.ordinal)
        if self.page.kind == DICTIONARY:
            self.values.load_dictionary(&self.page)
            return 0
        self.page_row = self.page_rows = 0      # nothing to read if the page is broken
        self._load_levels()
        self.values.load(&self.page, self.page.num_values - self.page_nulls)
        self.page_rows = min(<int64_t>self.page.num_values, self.remaining)
        return 0

    cdef int _load_levels(self) except -1 nogil:
        # A page may claim more values than its chunk has. The others get no bit.
        cdef int64_t count = min(<int64_t>self.page.num_values, self.remaining), present, claimed_present
        cdef uint8_t* bitmap
        self.page_nulls = 0
        if self.pages.max_definition_level == 0 or count == 0:
            return 0
        bitmap = scratch_reserve(&self.bitmap, <size_t>(count + 7) // 8)
        if self.page.definition.bit_packed:
            present = bit_packed_levels_to_bitmap(self.page.definition.data, <size_t>self.page.definition.size, count, bitmap)
        else:
            present = levels_to_bitmap(self.page.definition.data, <size_t>self.page.definition.size, count, bitmap)
            if present >= 0 and self.page.num_values > count:
                claimed_present = levels_count(
                    self.page.definition.data, <size_t>self.page.definition.size, self.page.num_values,
                    self.pages.max_definition_level)
                present = min(present, claimed_present)
        if present < 0:
            self.pages.fail(present, b"definition levels")
        self.page_nulls = count - present
        return 0
