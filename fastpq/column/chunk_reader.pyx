"""Decoding of column chunks into the caller's memory.

One ChunkReader decodes one chunk in any number of calls, or one chunk after the other for a ChunkRun. Chunks of one column write
into one ColumnOutput at different offsets, from several threads at the same time.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from fastpq.column.code_reader cimport CodeReader, VerdictReader
from fastpq.column.stored_values cimport BOOLEAN, COPY
from fastpq.column.column_output cimport ColumnOutput, Output
from fastpq.column.page cimport DICTIONARY, NO_PAGE, PASSED, PageReader
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.value_reader cimport ValueReader
from fastpq.encodings.levels cimport (
    CLEAR_STRETCH, SET_STRETCH, bit_packed_levels_to_bitmap, bitmap_copy, bitmap_count, bitmap_merge, bitmap_pick,
    bitmap_set_range, bitmap_stretch, expand, levels_count, levels_to_bitmap,
)
from fastpq.encodings.numbers cimport DELTA_BYTE_ARRAY, PLAIN
from fastpq.index.ranges cimport RowRanges

from fastpq.errors import FormatError, LimitError


cdef enum:
    # python -m benchmarks.filters judges the first two.
    MOST_IDLE_ROWS = 32         # between two ranges, decoded and dropped: passing over rows costs a new start of the decoders
    LONG_RANGE = 256            # rows of a range decoded to its place at once; shorter ones with short gaps are decoded together
    PIECE = 1 << 16             # bytes decoded at a time, before chosen values are copied; few enough to stay in the cache


cdef class ChunkReader:
    """Decodes one column chunk of a flat column; NestedReader decodes chunks of nested columns.

    Args:
        pages: the PageReader of the chunk.
        layout: the Layout of the column type.
        num_values: number of values, nulls included.
        judge: for verdicts of one byte in place of values; an attribute of VerdictReader.
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
        """Let the values of several pages stay in one array, for chunks read to the end before anybody sees the output.

        After an error nobody may see the output: an array may hold memory that the broken page did not fill.

        Args:
            size: bytes of all pages, as the footer claims; more have arrays of their own.
        """
        if not isinstance(self.values, (CodeReader, VerdictReader)):
            self.pages.to_retain = max(size, <int64_t>0)

    def read(self, ColumnOutput output not None, int64_t offset, int64_t count):
        """Decode the next count values into output at row offset; returns how many are null.

        Raises:
            FormatError: the chunk's bytes break the specification.
            UnsupportedError: an encoding unknown to fastpq.
        """
        if not 0 <= count <= self.remaining:
            raise ValueError(f"rows 0 to {count}, with {self.remaining} left in the chunk")
        self._check(output, offset, count)
        return self._decode(output, offset, count, None, NULL)

    def read_ranges(self, ColumnOutput output not None, int64_t offset, const int64_t[:, ::1] ranges not None):
        """Decode ranges of the next values into output, without gaps from row offset on.

        Args:
            output: the target.
            offset: row of the output.
            ranges: shape (n, 2), ascending: start and stop of each range, counted from the next value.

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
            raise ValueError(f"ranges that do not ascend, or end at row {position}, with {self.remaining} left in the chunk")
        self._check(output, offset, count)
        return self._decode(output, offset, count, ranges, NULL)

    def read_chosen(self, ColumnOutput output not None, int64_t offset, RowRanges rows not None):
        """Decode chosen rows of the next rows.num_rows values into output, without gaps from row offset on.

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
            raise ValueError(f"rows of {rows.num_rows}, with {self.remaining} left in the chunk")
        self._check(output, offset, count)
        return self._decode(output, offset, rows.num_rows, None, &bits[0]) if count else 0

    def left_over(self):
        """Bytes behind the last value of the page read last, if the page is PLAIN; 0 in other encodings."""
        if self.values.encoding != PLAIN or self.page_row < self.page_rows or self.values.conversion == BOOLEAN:
            return 0
        return self.values.cursor_size

    def dictionary(self):
        """The values of the dictionary page at the begin of the chunk, as a ColumnOutput; to be called before any read.

        Raises:
            FormatError: no dictionary page, or bytes that break the specification.
            UnsupportedError: an encoding unknown to fastpq.
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
        """The dictionary of the codes read, for a layout with codes.

        Returns:
            views of the entries, uint8 of 16 bytes each; and the buffers of the views.
        """
        return (<CodeReader?>self.values).entries()

    def view(self):
        """All values of the chunk as a uint8 array over the stored bytes, if the chunk is one plain, uncompressed page of aligned
        values in memory; otherwise None, and ``read`` still reads every value."""
        cdef int64_t size = self.remaining * <int64_t>self.width
        if self.pages.source is not None or self.pages.compressed:
            return None
        if self.values.conversion != COPY or self.pages.max_definition_level:
            return None
        with nogil:
            while self.page_row == self.page_rows:
                self._load_page()
        start = self.values.cursor - self.pages.data
        in_chunk = 0 <= start <= self.pages.size - size
        if (not in_chunk or self.page.encoding != PLAIN or self.page_rows != self.remaining
                or self.values.cursor_size < size or <size_t>self.values.cursor % min(self.width, 8)):
            return None
        self.values.check_values(self.values.cursor, self.remaining)
        return self.pages.owner[start:start + size]

    cdef int _check(self, ColumnOutput output, int64_t offset, int64_t count) except -1:
        """Refuse an output without count rows at an offset, of another width, or read-only."""
        if offset < 0 or offset > output.rows - count:
            raise ValueError(f"{count} rows at {offset} of {output.rows}")
        if output.width != <int64_t>self.width:
            raise ValueError(f"an output of width {output.width} for values of {self.width} bytes")
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
        """Decode ranges of the next rows, or the rows at the set bits among the next count rows, or all of these."""
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
        """Decode ranges of rows; short ranges with short gaps between them are decoded together."""
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
        """The rows of ranges as bits; the first row has the first bit."""
        cdef int64_t size = ranges[2 * count - 1] - ranges[0], i
        cdef uint8_t* bits = scratch_reserve(&self.chosen, <size_t>(size + 7) // 8)
        memset(bits, 0, <size_t>(size + 7) // 8)
        for i in range(count):
            bitmap_set_range(bits, ranges[2 * i] - ranges[0], ranges[2 * i + 1] - ranges[2 * i])
        return bits

    cdef int64_t _read_bits(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t count) except -1 nogil:
        """Decode the rows at the set bits among the next count rows; returns the number of nulls among them."""
        cdef int64_t place = 0, nulls = 0, rows, kept
        cdef int kind
        while place < count:
            rows = bitmap_stretch(bits, place, count - place, MOST_IDLE_ROWS, LONG_RANGE, &kind)
            if kind == CLEAR_STRETCH:
                self._skip(rows)
            elif kind == SET_STRETCH:
                nulls += self._read(output, offset, rows)
                offset += rows
            else:
                kept = bitmap_count(bits, place, rows)
                nulls += self._read_mixed(output, offset, bits, place, rows)
                offset += kept
            place += rows
        return nulls

    cdef int64_t _read_mixed(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t place,
                             int64_t count) except -1 nogil:
        """Decode the next count rows, piece by piece, and keep the rows at the set bits from bit place on; returns the nulls."""
        cdef int64_t nulls = 0, rows, kept
        cdef int kind
        while count:
            if self.page_row == self.page_rows:
                rows = bitmap_stretch(bits, place, count, 1, 1, &kind)
                if kind == SET_STRETCH:
                    self._load_page()
                else:                   # the page may have no row to read
                    self._skip(rows)
                    place += rows
                    count -= rows
                continue
            rows = min(min(count, self.page_rows - self.page_row), max(<int64_t>1, PIECE // max(self.width, 1)))
            kept = bitmap_count(bits, place, rows)
            nulls += self._chosen(output, offset, bits, place, rows, kept)
            self.page_row += rows
            self.remaining -= rows
            place += rows
            count -= rows
            offset += kept
        return nulls

    cdef int64_t _chosen(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t place, int64_t rows,
                         int64_t kept) except -1 nogil:
        """Decode rows of the current page, and keep those at the set bits from bit place on; returns the number of nulls kept."""
        cdef uint8_t* out = output.data + offset * <int64_t>self.width
        cdef int64_t present, wanted
        cdef const uint8_t* valid
        cdef uint8_t* chosen
        cdef uint8_t* kept_valid
        if self.page_nulls == 0:
            self.values.read_chosen(out, bits, place, rows, kept)
            if output.bits != NULL:
                bitmap_set_range(output.bits, offset, kept)
            return 0
        valid = self._bits(rows)
        chosen = scratch_reserve(&self.valid, 2 * (<size_t>(rows + 7) // 8))
        kept_valid = chosen + (rows + 7) // 8
        bitmap_pick(valid, 0, bits, place, rows, kept_valid)
        present = bitmap_pick(bits, place, valid, 0, rows, chosen)
        wanted = bitmap_count(chosen, 0, present)
        self.values.read_chosen(scratch_reserve(&self.dense, <size_t>wanted * self.width), chosen, 0, present, wanted)
        expand(kept_valid, kept, self.dense.data, out, self.width)
        if output.bits != NULL:
            bitmap_merge(output.bits, offset, kept_valid, kept)
        return kept - wanted

    cdef int _skip(self, int64_t count) except -1 nogil:
        """Pass over count rows; pages without a row to read are not opened."""
        cdef int64_t rows, present
        while count:
            if self.page_row == self.page_rows:
                count -= self._pass(count)
                continue
            rows = min(count, self.page_rows - self.page_row)
            if rows < self.page_rows - self.page_row or self.values.encoding == DELTA_BYTE_ARRAY:
                present = rows if self.page_nulls == 0 else bitmap_count(self.bitmap.data, self.page_row, rows)
                self.values.skip(present)
            self.page_row += rows
            self.remaining -= rows
            count -= rows
        return 0

    cdef int64_t _pass(self, int64_t count) except -1 nogil:
        """Pass over the next page, if it has at most count rows, or else open it; returns the number of rows passed."""
        self.pages.next(&self.page, count)
        if self.page.kind != PASSED:
            self._open_page()
            return 0
        self.remaining -= self.page.num_values
        return self.page.num_values

    cdef int64_t _rows(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil:
        """Decode count rows of the current page; returns the number of nulls."""
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
        """Decode the values of the next count rows to their places; returns the number of values."""
        cdef int64_t present = bitmap_count(bits, 0, count)
        self.values.read(scratch_reserve(&self.dense, <size_t>present * self.width), present)
        expand(bits, count, self.dense.data, out, self.width)
        return present

    cdef const uint8_t* _bits(self, int64_t count) except NULL nogil:
        """The validity of the next count rows of the page, from bit 0."""
        if self.page_row == 0:
            return self.bitmap.data
        scratch_reserve(&self.part, <size_t>(count + 7) // 8)
        bitmap_copy(self.bitmap.data, self.page_row, count, self.part.data)
        return self.part.data

    cdef int _load_page(self, int64_t at_once=0) except -1 nogil:
        """Open the next page; the caller reads a page of at most at_once values in one call (PageReader.next)."""
        self.pages.next(&self.page, 0, at_once)
        self._open_page()
        return 0

    cdef int _open_page(self) except -1 nogil:
        """Take up the page at hand: its levels and values, or its dictionary."""
        if self.page.kind == NO_PAGE:
            with gil:
                raise FormatError(f"the chunk ends {self.remaining} values early", page=self.pages.ordinal)
        if self.page.kind == DICTIONARY:
            self.values.load_dictionary(&self.page)
            return 0
        self.page_row = self.page_rows = 0      # no row is left to read if the page turns out broken
        self._load_levels()
        self.values.load(&self.page, self.page.num_values - self.page_nulls)
        self.page_rows = min(<int64_t>self.page.num_values, self.remaining)
        return 0

    cdef int _load_levels(self) except -1 nogil:
        # a page may claim more values than its chunk has: no bit is kept for these
        cdef int64_t count = min(<int64_t>self.page.num_values, self.remaining), present, left
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
                left = levels_count(
                    self.page.definition.data, <size_t>self.page.definition.size, self.page.num_values,
                    self.pages.max_definition_level)
                present = min(present, left)
        if present < 0:
            self.pages.fail(present, b"definition levels")
        self.page_nulls = count - present
        return 0
