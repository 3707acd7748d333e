"""Decodes column chunks that belong to nested columns.

An entry is a definition level and a repetition level. It stands for a value, a null, or an empty or missing list above the leaf.
A row begins with the repetition level 0, and may continue in the next page.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from fastpq.column.assembly cimport NestedOutput
from fastpq.column.page cimport LevelStream
from fastpq.column.chunk_reader cimport ChunkReader
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.levels cimport bit_packed_levels_to_bytes, bytes_to_bitmap, expand, levels_count, levels_to_bytes

from fastpq.errors import FormatError, LimitError

cdef extern from "c/assembly.h" nogil:
    int64_t entries_of_rows(const uint8_t* repetition, int64_t count, int64_t rows, int64_t* begun) noexcept
    int64_t count_equal(const uint8_t* levels, int64_t count, uint8_t level) noexcept


cdef class NestedReader(ChunkReader):
    """Decodes one column chunk of a nested column. The arguments are a ChunkReader's. num_values also counts empty lists."""

    def __dealloc__(self):
        scratch_free(&self.definition)
        scratch_free(&self.repetition)
        scratch_free(&self.slot_bits)

    def read_rows(self, NestedOutput output not None, int64_t count):
        """Append the next rows to output. Returns how many rows: fewer than count at the chunk's end.

        Raises:
            FormatError: the chunk's bytes break the specification.
            UnsupportedError: a page has an encoding that fastpq does not know.
            LimitError: there is not enough memory, or there are too many elements for 32-bit offsets.
        """
        return self._read_chosen_rows(output, None, count)

    def read_row_ranges(self, NestedOutput output not None, const int64_t[:, ::1] ranges not None):
        """Append some of the next rows to output.

        Args:
            output: the target.
            ranges: shape (n, 2), ascending: each range's start and stop, counted from the next row.

        Returns:
            The row count: fewer than requested at the chunk's end.

        Raises:
            FormatError, UnsupportedError, LimitError: as ``read_rows``.
        """
        cdef int64_t position = 0, i
        for i in range(ranges.shape[0]):
            if not position <= ranges[i, 0] <= ranges[i, 1]:
                raise ValueError(f"the ranges must ascend: rows {ranges[i, 0]} to {ranges[i, 1]} follow row {position}")
            position = ranges[i, 1]
        return self._read_chosen_rows(output, ranges, 0)

    cdef int64_t _read_chosen_rows(self, NestedOutput output, const int64_t[:, ::1] ranges, int64_t count) except -1:
        """Append the next ``count`` rows to output, or the rows in ranges that are not None. Return the number of rows."""
        cdef int64_t rows = 0, position = 0, i
        try:
            self._attach(output)
            with nogil:
                if ranges is None:
                    rows = self._read_rows(output, count, False)
                else:
                    for i in range(ranges.shape[0]):
                        if ranges[i, 0] > position:
                            self._read_rows(output, ranges[i, 0] - position, True)
                        rows += self._read_rows(output, ranges[i, 1] - ranges[i, 0], False)
                        position = ranges[i, 1]
        except MemoryError as error:
            if isinstance(error, LimitError):
                raise
            raise LimitError("no memory for a page") from error
        return rows

    cdef int64_t _read_rows(self, NestedOutput output, int64_t count, bint skip) except -1 nogil:
        """Append the next rows to the output, or skip them."""
        cdef int64_t rows = 0, begun, entries, page_rest
        while True:
            while self.page_row == self.page_rows:
                if self.remaining == 0:
                    return rows
                self._load_page()
            page_rest = self.page_rows - self.page_row
            entries = entries_of_rows(self.repetition.data + self.page_row, page_rest, count - rows, &begun)
            if not self.has_begun and self.repetition.data[0] != 0:
                with gil:
                    text = "the chunk begins in the middle of a row: its first repetition level is not 0"
                    raise FormatError(text, page=self.pages.ordinal)
            self.has_begun = True
            if skip:
                self._skip_entries(entries, entries < page_rest)
            else:
                self._entries(output, entries)
            rows += begun
            self.page_row += entries
            self.remaining -= entries
            if entries < page_rest:
                return rows

    cdef int _entries(self, NestedOutput output, int64_t count) except -1 nogil:
        """Append the page's next count entries to the output."""
        cdef const uint8_t* definition = self.definition.data + self.page_row
        cdef int64_t slots, present
        cdef uint8_t* out
        if count == 0:
            return 0
        slots = output.append(definition, self.repetition.data + self.page_row, count)
        present = count_equal(definition, count, output.max_definition)
        out = output.values.room(<size_t>slots * self.width + 64)
        if present == slots:
            self.values.read(out, present)
        else:
            self.values.read(scratch_reserve(&self.dense, <size_t>present * self.width), present)
            scratch_reserve(&self.slot_bits, <size_t>(slots + 7) // 8)
            bytes_to_bitmap(output.flags.room(<size_t>slots), slots, self.slot_bits.data)
            expand(self.slot_bits.data, slots, self.dense.data, out, self.width)
        output.values.size += <size_t>slots * self.width
        output.flags.size += <size_t>slots
        output.slots += slots
        return 0

    cdef int _skip_entries(self, int64_t count, bint more) except -1 nogil:
        """Skip the page's next count entries. Their values are decoded only if more entries follow."""
        cdef int64_t present
        if more:
            present = count_equal(self.definition.data + self.page_row, count, <uint8_t>self.pages.max_definition_level)
            self.values.read(scratch_reserve(&self.dense, <size_t>present * self.width), present)
        return 0

    cdef int _check_rows(self, int64_t count) except -1 nogil:
        """Check a page against the offset index. A page must begin with a row, and have as many rows as the index says."""
        cdef int64_t rows, rows_in_index
        if self.pages.listed_pages < 0 or count == 0:
            return 0
        rows_in_index = self.pages.directory[self.pages.next_listed - 1, 3]
        if rows_in_index < 0:
            return 0
        rows = count_equal(self.repetition.data, count, 0)
        if rows != rows_in_index or self.repetition.data[0] != 0:
            with gil:
                raise FormatError(f"a page of {rows} rows, or that begins within one, where the offset index has {rows_in_index} "
                                  "rows", page=self.pages.directory[self.pages.next_listed - 1, 0])
        return 0

    cdef int _load_levels(self) except -1 nogil:
        cdef int64_t count = min(<int64_t>self.page.num_values, self.remaining)
        scratch_reserve(&self.definition, <size_t>count)
        scratch_reserve(&self.repetition, <size_t>count)
        self._decode_levels(True, self.repetition.data, count)
        self._decode_levels(False, self.definition.data, count)
        self._check_rows(count)
        self.page_nulls = self.page.num_values - count_equal(
            self.definition.data, count, <uint8_t>self.pages.max_definition_level)
        return 0

    cdef int _decode_levels(self, bint repetition, uint8_t* out, int64_t count) except -1 nogil:
        cdef LevelStream* stream = &self.page.repetition if repetition else &self.page.definition
        cdef int max_level = self.pages.max_repetition_level if repetition else self.pages.max_definition_level
        cdef int64_t status
        if max_level == 0:
            memset(out, 0, <size_t>count)
            return 0
        if stream.bit_packed:
            status = bit_packed_levels_to_bytes(stream.data, <size_t>stream.size, count, max_level, out)
        else:
            status = levels_to_bytes(stream.data, <size_t>stream.size, count, max_level, out)
            if status >= 0 and self.page.num_values > count:        # the chunk ends within the page
                status = levels_count(stream.data, <size_t>stream.size, self.page.num_values, max_level)
        if status < 0:
            self.pages.fail(status, b"repetition levels" if repetition else b"definition levels")
        return 0


cdef class StructLeafReader(NestedReader):
    """Decodes a column chunk as if it were flat. It belongs to a leaf with structs above it, but no lists.

    A value is null if the leaf or a struct above it is null.
    """

    cdef int _load_levels(self) except -1 nogil:
        cdef int64_t count = min(<int64_t>self.page.num_values, self.remaining), present = 0, i
        cdef int max_level = self.pages.max_definition_level, lowest = self.lowest_level
        cdef uint8_t* levels = scratch_reserve(&self.definition, <size_t>count)
        self.page_nulls = 0
        if count == 0:
            return 0
        self._decode_levels(False, levels, count)
        for i in range(count):
            lowest = min(lowest, <int>levels[i])
            levels[i] = levels[i] == max_level
            present += levels[i]
        self.lowest_level = lowest
        bytes_to_bitmap(levels, count, scratch_reserve(&self.bitmap, <size_t>(count + 7) // 8))
        self.page_nulls = count - present
        return 0
