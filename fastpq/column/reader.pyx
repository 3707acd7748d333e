"""The way of a column chunk from stored pages into the caller's memory.

One ChunkReader decodes one chunk; it can stop at any row and go on later. Chunks of one column write into one
ColumnOutput at their own offsets, from different threads at the same time.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from fastpq.column.convert cimport (
    BOOLEAN, COPY, TIMESTAMP96, VARIABLE, VARIABLE_DECIMAL, decimals_from_views, from_stored,
)
from fastpq.column.page cimport DICTIONARY, NO_PAGE, PageReader
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.dictionary cimport dictionary_decode
from fastpq.encodings.levels cimport (
    bit_packed_levels_to_bitmap, bitmap_count, bitmap_merge, bitmap_set_range, bitmap_to_bytes, bytes_to_bitmap, expand,
    levels_to_bitmap,
)
from fastpq.encodings.plain cimport all_ascii, plain_decode_booleans, plain_decode_views, slices_check_utf8
from fastpq.encodings.rle cimport hybrid_next_bytes, hybrid_start
from fastpq.encodings.status cimport BAD_LENGTH, BAD_RUN, OUT_OF_RANGE, TRUNCATED, raise_status
from fastpq.encodings.views cimport Slice, View

from fastpq import memory
from fastpq.encodings.registry import check_readable
from fastpq.errors import FormatError, LimitError, UnsupportedError

# parquet.thrift: Encoding
cdef enum:
    ENCODING_PLAIN = 0
    ENCODING_PLAIN_DICTIONARY = 2
    ENCODING_RLE = 3
    ENCODING_RLE_DICTIONARY = 8

cdef class Output:
    """What a chunk is read into; views point into its buffers."""

    cdef int32_t add_buffer(self, object buffer) except -1:
        self.buffers.append(buffer)
        return <int32_t>(len(self.buffers) - 1)


cdef class ColumnOutput(Output):
    """The memory that one column is read into.

    Args:
        rows: number of rows.
        width: bytes of one value in memory.
        nullable: whether to keep a validity bitmap.
        values: uint8 array of rows * width bytes, to fill or filled already; None to allocate it.
    """

    def __cinit__(self, int64_t rows, int64_t width, bint nullable, object values=None):
        cdef const uint8_t[::1] view
        self.rows = rows
        self.width = width
        try:
            self.values = memory.empty(rows * width) if values is None else values
            self.validity = np.zeros((rows + 7) // 8, dtype=np.uint8) if nullable else None
        except (MemoryError, ValueError) as error:
            raise LimitError(f"no memory for {rows} values of {width} bytes") from error
        self.buffers = []
        view = self.values
        if view.shape[0] != rows * width:
            raise ValueError(f"an output of {view.shape[0]} bytes for {rows} values of {width}")
        if rows * width and self.values.flags.writeable:
            self.data = <uint8_t*>&view[0]
        if nullable and rows:
            view = self.validity
            self.bits = <uint8_t*>&view[0]


cdef class ChunkReader:
    """Decodes one column chunk; by itself that of a flat column.

    Args:
        pages: its PageReader.
        layout: the Layout of its column type.
        num_values: number of values, nulls included.
    """

    def __cinit__(self, PageReader pages not None, object layout, int64_t num_values):
        self.pages = pages
        self.remaining = num_values
        self.conversion = layout.conversion
        self.stored_width = layout.stored_width
        self.width = layout.width
        self.units = layout.units
        self.text = layout.text
        self.dictionary_size = -1

    def __dealloc__(self):
        scratch_free(&self.dictionary)
        scratch_free(&self.bitmap)
        scratch_free(&self.part)
        scratch_free(&self.dense)
        scratch_free(&self.views)

    def read(self, ColumnOutput output not None, int64_t offset, int64_t count):
        """Decode the next count values into output at row offset; returns how many are null.

        Raises:
            FormatError: the chunk's bytes break the specification.
            UnsupportedError: an encoding that fastpq does not read.
        """
        cdef int64_t nulls
        if count < 0 or count > self.remaining or offset < 0 or offset > output.rows - count:
            raise ValueError(f"{count} rows at {offset} of {output.rows}, with {self.remaining} left in the chunk")
        if output.width != <int64_t>self.width:
            raise ValueError(f"an output of width {output.width} for values of {self.width} bytes")
        if output.data == NULL and count and self.width:
            raise ValueError("the output is read-only")
        try:
            if self.output is not output:
                self._attach(output)
            with nogil:
                nulls = self._read(output, offset, count)
        except MemoryError as error:
            if isinstance(error, LimitError):
                raise
            raise LimitError("no memory for a page") from error
        return nulls

    def view(self):
        """All values of the chunk as a uint8 array over its stored bytes, where one plain, uncompressed page holds them
        aligned; otherwise None, and ``read`` goes on as if nothing had happened."""
        cdef int64_t size = self.remaining * <int64_t>self.width
        if self.conversion != COPY or self.pages.max_definition_level or self.pages.compressed:
            return None
        with nogil:
            while self.page_row == self.page_rows:
                self._load_page()
        start = self.cursor - self.pages.data
        in_chunk = 0 <= start <= self.pages.size - size
        if (not in_chunk or self.page.encoding != ENCODING_PLAIN or self.page_rows != self.remaining
                or self.cursor_size < size or <size_t>self.cursor % min(self.width, 8)):
            return None
        return self.pages.owner[start:start + size]

    cdef int _attach(self, Output output) except -1:
        """Number the buffers that views point into anew: each output has a list of its own."""
        self.output = output
        if self.conversion == VARIABLE and self.dictionary_size >= 0:
            self._number_dictionary()
        if self.conversion == VARIABLE and self.page_row < self.page_rows and self.page.encoding == ENCODING_PLAIN:
            self.page_buffer = output.add_buffer(self.pages.retained)

    cdef int64_t _read(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil:
        cdef int64_t rows, nulls = 0
        while count:
            while self.page_row == self.page_rows:
                self._load_page()
            rows = min(count, self.page_rows - self.page_row)
            nulls += self._rows(output, offset, rows)
            self.page_row += rows
            self.remaining -= rows
            offset += rows
            count -= rows
        return nulls

    cdef int64_t _rows(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil:
        """count rows of the current page; returns how many are null."""
        cdef uint8_t* out = output.data + offset * <int64_t>self.width
        cdef const uint8_t* bits
        cdef int64_t present
        if self.page_nulls == 0:
            self._values(out, count)
            if output.bits != NULL:
                bitmap_set_range(output.bits, offset, count)
            return 0
        bits = self._bits(count)
        present = bitmap_count(bits, 0, count)
        self._values(scratch_reserve(&self.dense, <size_t>present * self.width), present)
        expand(bits, count, self.dense.data, out, self.width)
        if output.bits != NULL:
            bitmap_merge(output.bits, offset, bits, count)
        return count - present

    cdef const uint8_t* _bits(self, int64_t count) except NULL nogil:
        """The validity of the next count rows of the page, from bit 0."""
        cdef uint8_t* flags
        if self.page_row == 0:
            return self.bitmap.data
        flags = scratch_reserve(&self.dense, <size_t>count)
        bitmap_to_bytes(self.bitmap.data, self.page_row, count, flags)
        scratch_reserve(&self.part, <size_t>(count + 7) // 8)
        bytes_to_bitmap(flags, count, self.part.data)
        return self.part.data

    cdef int _load_page(self) except -1 nogil:
        self.pages.next(&self.page)
        if self.page.kind == NO_PAGE:
            with gil:
                raise FormatError(f"the chunk ends {self.remaining} values early", page=self.pages.ordinal)
        if self.page.kind == DICTIONARY:
            with gil:
                self._load_dictionary()
            return 0
        self.page_row = self.page_rows = 0      # nothing to read, should the page turn out broken
        self.page_value = 0
        self._load_levels()
        self._load_values()
        self.page_rows = min(<int64_t>self.page.num_values, self.remaining)
        return 0

    cdef int _load_levels(self) except -1 nogil:
        cdef int64_t count = self.page.num_values, present
        cdef uint8_t* bitmap
        self.page_nulls = 0
        if self.pages.max_definition_level == 0 or count == 0:
            return 0
        bitmap = scratch_reserve(&self.bitmap, <size_t>(count + 7) // 8)
        if self.page.definition.bit_packed:
            present = bit_packed_levels_to_bitmap(self.page.definition.data, <size_t>self.page.definition.size, count, bitmap)
        else:
            present = levels_to_bitmap(self.page.definition.data, <size_t>self.page.definition.size, count, bitmap)
        if present < 0:
            self._raise(present, "definition levels")
        self.page_nulls = count - present
        return 0

    cdef int _load_values(self) except -1 nogil:
        """Stand before the first value of the page."""
        cdef int64_t present = self.page.num_values - self.page_nulls
        cdef uint32_t size
        self.cursor = self.page.values
        self.cursor_size = self.page.values_size
        if self.page.encoding == ENCODING_PLAIN:
            if self.conversion == VARIABLE:
                with gil:
                    self.page_buffer = self.output.add_buffer(self.pages.retained)
        elif self.page.encoding == ENCODING_RLE_DICTIONARY or self.page.encoding == ENCODING_PLAIN_DICTIONARY:
            if present and (self.dictionary_size < 0 or self.cursor_size < 1):
                self._raise(TRUNCATED, "dictionary indices (no dictionary page or no bit width)")
            elif present and hybrid_start(&self.hybrid, self.cursor + 1, <size_t>self.cursor_size - 1, self.cursor[0]) < 0:
                self._raise(BAD_RUN, "dictionary indices")
        elif self.page.encoding == ENCODING_RLE and self.conversion == BOOLEAN:
            if present:
                if self.cursor_size < 4:
                    self._raise(TRUNCATED, "RLE booleans")
                memcpy(&size, self.cursor, 4)
                if size > self.cursor_size - 4:
                    self._raise(BAD_LENGTH, "RLE booleans")
                hybrid_start(&self.hybrid, self.cursor + 4, size, 1)
        else:
            with gil:
                check_readable(self.page.encoding)
                raise FormatError(f"encoding {self.page.encoding} does not fit the column's type", page=self.pages.ordinal)
        return 0

    cdef int _load_dictionary(self) except -1:
        """Decode the dictionary page once, into values as they are in memory."""
        cdef int64_t count = self.page.num_values, done
        if self.dictionary_size >= 0:
            raise FormatError("a second dictionary page", page=self.pages.ordinal)
        if self.page.encoding not in (ENCODING_PLAIN, ENCODING_PLAIN_DICTIONARY):
            raise UnsupportedError(f"a dictionary page in encoding {self.page.encoding}")
        if self.stored_width and count > self.page.values_size // <int64_t>self.stored_width:
            if self.conversion != BOOLEAN:
                self._raise(TRUNCATED, "dictionary page")
        elif not self.stored_width and count > self.page.values_size // 4:
            self._raise(TRUNCATED, "dictionary page")
        self.cursor = self.page.values
        self.cursor_size = self.page.values_size
        self.page_value = 0
        self.dictionary_owner = self.pages.retained if self.page.retained else None
        scratch_reserve(&self.dictionary, <size_t>count * self.width)
        if self.conversion == VARIABLE:
            self.page_buffer = self.output.add_buffer(self.dictionary_owner)
        done = self._plain(self.dictionary.data, count)
        if done < 0:
            self._raise(done, "dictionary page")
        self.dictionary_size = count

    def _number_dictionary(self):
        cdef View* views = <View*>self.dictionary.data
        cdef int32_t number = self.output.add_buffer(self.dictionary_owner)
        cdef int64_t i
        for i in range(self.dictionary_size):
            if views[i].length > 12:
                views[i].buffer = number

    cdef int _values(self, uint8_t* out, int64_t count) except -1 nogil:
        """The next count values of the page, without nulls between them."""
        cdef int64_t done
        if count == 0:
            return 0
        if self.page.encoding == ENCODING_PLAIN:
            done = self._plain(out, count)
        elif self.page.encoding == ENCODING_RLE:
            done = hybrid_next_bytes(&self.hybrid, out, count)
        else:
            done = dictionary_decode(&self.hybrid, self.dictionary.data, self.dictionary_size, self.width, out, count)
        if done < 0:
            self._raise(done, "values")
        self.page_value += count
        return 0

    cdef int64_t _plain(self, uint8_t* out, int64_t count) except? -100 nogil:
        """count PLAIN values from the cursor on; returns a negative Status where the bytes are wrong."""
        cdef int64_t done
        cdef View* views
        cdef const uint8_t* base
        if self.conversion == BOOLEAN:
            return plain_decode_booleans(self.cursor, <size_t>self.cursor_size, self.page_value, count, out)
        if self.stored_width:
            done = count * <int64_t>self.stored_width
            if done > self.cursor_size:
                return TRUNCATED
            if from_stored(self.conversion, self.cursor, self.stored_width, count, out, self.width, self.units) < 0:
                return OUT_OF_RANGE
        else:
            base = self.cursor
            if self.conversion == VARIABLE:
                base = self.pages.retained_data
                views = <View*>out
            else:
                views = <View*>scratch_reserve(&self.views, <size_t>count * sizeof(View))
            done = plain_decode_views(self.cursor, <size_t>self.cursor_size, count, views, self.page_buffer, self.cursor - base)
            if done < 0:
                return done
            if self.conversion == VARIABLE_DECIMAL:
                if decimals_from_views(views, count, base, out, self.width) < 0:
                    return OUT_OF_RANGE
            elif self.text and not all_ascii(self.cursor, <size_t>done):
                self._check_text(views, count, base)
        self.cursor += done
        self.cursor_size -= done
        return count

    cdef int _check_text(self, const View* views, int64_t count, const uint8_t* buffer) except -1 nogil:
        cdef int64_t i, where
        cdef Slice value
        for i in range(count):
            value.size = <size_t>views[i].length
            value.data = <const uint8_t*>&views[i].prefix[0] if views[i].length <= 12 else buffer + views[i].offset
            if slices_check_utf8(&value, 1, &where) < 0:
                with gil:
                    raise FormatError(f"value {self.page_value + i} of the page is not UTF-8", page=self.pages.ordinal)
        return 0

    cdef int _raise(self, int64_t status, const char* what) except -1 nogil:
        with gil:
            if status == OUT_OF_RANGE and self.conversion == TIMESTAMP96:
                raise UnsupportedError("an INT96 timestamp outside datetime64[ns]: read it with "
                                       "coerce_int96_timestamp_unit='us' or 'ms'", page=self.pages.ordinal)
            try:
                raise_status(status, what.decode("ascii"))
            except FormatError as error:
                error.at(page=self.pages.ordinal)
                raise
