"""Decoding of page values, from any encoding into memory form.

A page is loaded, then read in any number of steps. An encoding gives views, or fixed-width values in stored form to be converted.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

cimport cython

from fastpq.column.stored_values cimport (
    BOOLEAN, COPY, TIMESTAMP96, VARIABLE, VARIABLE_DECIMAL, check_decoded, check_text, decimals_from_views, from_stored,
    value_checks,
)
from fastpq.column.page cimport Page, PageReader
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.alp cimport alp_decode
from fastpq.encodings.byte_stream_split cimport split_decode
from fastpq.encodings.delta cimport delta_next, delta_start
from fastpq.encodings.delta_strings cimport (
    delta_lengths_next, delta_lengths_start, delta_strings_measure, delta_strings_next, delta_strings_next_fixed,
    delta_strings_start,
)
from fastpq.encodings.dictionary cimport dictionary_decode, dictionary_decode_chosen
from fastpq.encodings.levels cimport compact
from fastpq.encodings.numbers cimport (
    ALP, BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, PLAIN, PLAIN_DICTIONARY, RLE,
    RLE_DICTIONARY,
)
from fastpq.encodings.plain cimport all_ascii, pack_views, plain_decode_booleans, plain_decode_views
from fastpq.encodings.rle cimport hybrid_next_bytes, hybrid_skip, hybrid_start
from fastpq.encodings.status cimport BAD_LENGTH, OUT_OF_RANGE, TRUNCATED
from fastpq.encodings.views cimport Slice, View

from fastpq.column.layout import OutsideUnitError
from fastpq.encodings.registry import check_readable
from fastpq.errors import FormatError, LimitError, ParquetError, UnsupportedError

cdef const char* VALUES = b"values"
cdef cython.pymutex lock            # over the lists of buffers: the chunks of a column add to one list

cdef enum:
    MICROSECONDS = 1000000      # in a second
    NO_BUFFER = -1      # the page at hand is not among the output's buffers


cdef class ValueReader:
    """Decodes the values of one chunk's pages.

    Args:
        pages: the PageReader of the chunk.
        layout: the Layout of the column type.
    """

    def __cinit__(self, *_):
        self.dictionary_size = -1

    def __init__(self, PageReader pages not None, object layout):
        self.pages = pages
        self.physical = layout.physical
        self.conversion = layout.conversion
        self.variable = self.conversion == VARIABLE or self.conversion == VARIABLE_DECIMAL
        self.stored_width = layout.stored_width
        self.width = layout.width
        self.units = layout.units
        self.text = layout.text
        self.checks = value_checks(layout.digits if pages.verify_decimals else 0, layout.ticks)
        self.encodings = layout.encodings

    cdef void restart(self) noexcept nogil:
        self.dictionary_size = -1
        self.count = self.done = 0
        self.ordinal = self.previous_size = 0
        self.page_buffer = NO_BUFFER

    def __dealloc__(self):
        scratch_free(&self.previous)
        scratch_free(&self.dictionary)
        scratch_free(&self.stored)
        scratch_free(&self.views)
        scratch_free(&self.sizes)
        scratch_free(&self.passed)

    cdef int attach(self, list buffers) except -1:
        cdef View* views = <View*>self.dictionary.data
        cdef int64_t i
        self.buffers = buffers
        self.extended = None
        if self.conversion != VARIABLE:
            return 0
        if self.dictionary_size >= 0:
            number = self._add_buffer(self.dictionary_owner)
            for i in range(self.dictionary_size):
                if views[i].length > 12:
                    views[i].buffer = number
        self.page_buffer = NO_BUFFER
        return 0

    cdef int32_t _add_buffer(self, object buffer) except -1:
        with lock:
            self.buffers.append(buffer)
            return <int32_t>(len(self.buffers) - 1)

    cdef int32_t _retained_buffer(self) except -1 nogil:
        """The number of the array with the bytes of the page at hand; pages share the array and its number."""
        if self.pages.extended is None or self.pages.extended is not self.extended:
            with gil:
                self.extended_buffer = self._add_buffer(self.pages.retained)
                self.extended = self.pages.extended
        return self.extended_buffer

    cdef int load(self, const Page* page, int64_t count) except -1 nogil:
        cdef int64_t status
        if not 0 <= page.encoding < 64 or not self.encodings >> page.encoding & 1:
            with gil:
                self._refuse(page.encoding)
        self.encoding = page.encoding
        self.cursor = page.values
        self.cursor_size = page.values_size
        self.deferred = page.deferred
        self.count = count
        self.done = 0
        if self.deferred and count == 0:
            self._load_deferred()       # to be checked like other pages
        if self.pages.ordinal != self.ordinal:      # pages were left out: the last value before the page is unknown
            self.previous_size = 0
        self.ordinal = self.pages.ordinal + 1
        if count:
            status = self._start()
            if status < 0:
                self.count = 0
                self._fail(status, VALUES)
        return 0

    cdef int _load_deferred(self) except -1 nogil:
        """Read deferred values of the page to memory."""
        cdef int64_t size = self.cursor_size
        if self.deferred:
            self.deferred = False
            self.cursor_size = 0        # no value to read if the page turns out broken
            self.cursor = self.pages.load_deferred()
            self.cursor_size = size
        return 0

    def _refuse(self, int encoding):
        """Raise the error of an encoding that is not read for the type."""
        try:
            check_readable(encoding, self.physical)
        except ParquetError as error:
            raise error.at(page=self.pages.ordinal)
        raise AssertionError(f"encoding {encoding} is read")

    cdef int64_t _start(self) except? -100 nogil:
        """Move to the first value of a page with values; returns 0 or a negative Status."""
        if self.encoding == PLAIN_DICTIONARY or self.encoding == RLE_DICTIONARY:
            return self._start_indices()
        if self.encoding == RLE:
            return self._start_booleans()
        if self.encoding == DELTA_BINARY_PACKED:
            return delta_start(&self.delta, self.cursor, <size_t>self.cursor_size)
        if self.encoding == DELTA_BYTE_ARRAY:
            return delta_strings_start(&self.strings, self.cursor, <size_t>self.cursor_size)
        self.page_buffer = NO_BUFFER
        if self.encoding == DELTA_LENGTH_BYTE_ARRAY:
            return delta_lengths_start(&self.lengths, self.cursor, <size_t>self.cursor_size)
        return 0

    cdef int64_t _start_indices(self) noexcept nogil:
        if self.dictionary_size < 0 or self.cursor_size < 1:
            return TRUNCATED
        return hybrid_start(&self.hybrid, self.cursor + 1, <size_t>self.cursor_size - 1, self.cursor[0])

    cdef int64_t _start_booleans(self) noexcept nogil:
        cdef uint32_t size
        if self.cursor_size < 4:
            return TRUNCATED
        memcpy(&size, self.cursor, 4)
        if size > self.cursor_size - 4:
            return BAD_LENGTH
        return hybrid_start(&self.hybrid, self.cursor + 4, size, 1)

    cdef int load_dictionary(self, const Page* page) except -1 nogil:
        """Decode the dictionary page once, into memory form."""
        cdef int64_t status, smallest = 4 if self.variable else <int64_t>self.stored_width
        if self.dictionary_size >= 0:
            with gil:
                raise FormatError("a second dictionary page", page=self.pages.ordinal)
        if page.encoding != PLAIN and page.encoding != PLAIN_DICTIONARY:
            with gil:
                raise UnsupportedError(f"a dictionary page in encoding {page.encoding}")
        if self.conversion != BOOLEAN and smallest and page.num_values > page.values_size // smallest:
            self._fail(TRUNCATED, b"dictionary page")
        self.encoding = PLAIN
        self.cursor = page.values
        self.cursor_size = page.values_size
        self.deferred = False
        self.count = page.num_values
        self.done = 0
        scratch_reserve(&self.dictionary, <size_t>self.count * self.width)
        if page.retained:
            with gil:
                self.dictionary_owner = self.pages.retained
            if self.conversion == VARIABLE:
                self.page_buffer = self._retained_buffer()
        status = self._decode(self.dictionary.data, self.count)
        if status < 0:
            self._fail(status, b"dictionary page")
        self.check_values(self.dictionary.data, self.count)
        self.dictionary_size = self.done = self.count
        return 0

    cdef int read(self, uint8_t* out, int64_t count) except -1 nogil:
        cdef int64_t status
        if count == 0:
            return 0
        if self.encoding == PLAIN_DICTIONARY or self.encoding == RLE_DICTIONARY:
            status = dictionary_decode(&self.hybrid, self.dictionary.data, self.dictionary_size, self.width, out, count)
        else:
            status = self._decode(out, count)
            if status >= 0:
                self.check_values(out, count)
        if status < 0:
            self._fail(status, VALUES)
        self.done += count
        return 0

    cdef int read_chosen(self, uint8_t* out, const uint8_t* bits, int64_t offset, int64_t count, int64_t kept) except -1 nogil:
        cdef int64_t status, size = count * <int64_t>self.stored_width
        cdef uint8_t* values
        if kept == 0:
            return self.skip(count)
        if self.encoding == PLAIN_DICTIONARY or self.encoding == RLE_DICTIONARY:
            status = dictionary_decode_chosen(
                &self.hybrid, self.dictionary.data, self.dictionary_size, self.width, bits, offset, out, count)
        elif self.encoding == PLAIN and self.conversion == COPY:
            status = TRUNCATED if size > self.cursor_size else 0
            if status == 0:
                compact(bits, offset, count, self.cursor, out, self.width)
                self.cursor += size
                self.cursor_size -= size
                self.check_values(out, kept)
        else:
            values = scratch_reserve(&self.passed, <size_t>count * self.width)
            status = self._decode(values, count)
            if status >= 0:
                self.check_values(values, count)
                compact(bits, offset, count, values, out, self.width)
        if status < 0:
            self._fail(status, VALUES)
        self.done += count
        return 0

    cdef int skip(self, int64_t count) except -1 nogil:
        cdef int64_t status
        if count == 0:
            return 0
        status = self._skip(count)
        if status < 0:
            self._fail(status, VALUES)
        self.done += count
        return 0

    cdef int64_t _skip(self, int64_t count) except? -100 nogil:
        """Pass over count values of the page; returns a negative Status for broken bytes."""
        if self.encoding == PLAIN_DICTIONARY or self.encoding == RLE_DICTIONARY or self.encoding == RLE:
            return hybrid_skip(&self.hybrid, count)
        if self.encoding == BYTE_STREAM_SPLIT or self.encoding == ALP:
            return count                    # decoded by the number of the value
        if self.encoding == PLAIN:
            return count if self.conversion == BOOLEAN else self._skip_plain(count)
        return self._decode(scratch_reserve(&self.passed, <size_t>count * max(self.width, sizeof(View))), count)

    cdef int64_t _skip_plain(self, int64_t count) noexcept nogil:
        cdef int64_t size = count * <int64_t>self.stored_width, _i
        cdef uint32_t length
        if self.variable:
            size = 0
            for _i in range(count):
                if self.cursor_size - size < 4:
                    return TRUNCATED
                memcpy(&length, self.cursor + size, 4)
                size += 4 + <int64_t>length
        if size > self.cursor_size:
            return TRUNCATED
        self.cursor += size
        self.cursor_size -= size
        return count

    cdef int check_values(self, const uint8_t* values, int64_t count) except -1 nogil:
        return check_decoded(&self.checks, values, self.width, count, self.pages.ordinal)

    cdef int64_t _decode(self, uint8_t* out, int64_t count) except? -100 nogil:
        """Decode count values of an encoding without dictionary; returns a negative Status for broken bytes."""
        if self.variable:
            return self._variable(out, count)
        if self.conversion != BOOLEAN:
            return self._fixed(out, count)
        if self.encoding == PLAIN:
            return plain_decode_booleans(self.cursor, <size_t>self.cursor_size, self.done, count, out)
        return hybrid_next_bytes(&self.hybrid, out, count)

    cdef int64_t _fixed(self, uint8_t* out, int64_t count) except? -100 nogil:
        cdef int64_t size = count * <int64_t>self.stored_width, status
        cdef const uint8_t* stored = self.cursor
        if self.encoding == PLAIN:
            if size > self.cursor_size:
                return TRUNCATED
            if self.deferred and size == self.cursor_size:
                self.deferred = False
                self.cursor_size = 0
                self.pages.read_deferred(out, size)
                return count
            self._load_deferred()
            stored = self.cursor
            self.cursor += size
            self.cursor_size -= size
        elif self.conversion == COPY:
            return self._stored(out, count)
        else:
            stored = scratch_reserve(&self.stored, <size_t>size)
            status = self._stored(self.stored.data, count)
            if status < 0:
                return status
        status = from_stored(self.conversion, stored, self.stored_width, count, out, self.width, self.units)
        if status == OUT_OF_RANGE and self.conversion == TIMESTAMP96:
            self.fits_microseconds = 0 <= from_stored(
                TIMESTAMP96, stored, self.stored_width, count, out, self.width, MICROSECONDS)
        return status

    cdef int64_t _stored(self, uint8_t* out, int64_t count) except? -100 nogil:
        """Decode count fixed-width values of an encoding other than PLAIN, into PLAIN form."""
        if self.encoding == DELTA_BINARY_PACKED:
            return delta_next(&self.delta, out, count, self.stored_width)
        if self.encoding == BYTE_STREAM_SPLIT:
            return split_decode(self.cursor, self.cursor_size, self.done, count, self.stored_width, out)
        if self.encoding == ALP:
            return alp_decode(self.cursor, self.cursor_size, self.done, count, self.stored_width, out)
        return self._fixed_strings(out, count)

    cdef int64_t _fixed_strings(self, uint8_t* out, int64_t count) except? -100 nogil:
        cdef Slice previous
        cdef int32_t* lengths = <int32_t*>scratch_reserve(&self.sizes, <size_t>count * 2 * sizeof(int32_t))
        cdef int64_t status
        previous.data = scratch_reserve(&self.previous, self.stored_width)
        previous.size = <size_t>self.previous_size
        status = delta_strings_next_fixed(&self.strings, count, previous, lengths, self.stored_width, out)
        if status >= 0:
            self._keep(out + <size_t>(count - 1) * self.stored_width, <int64_t>self.stored_width)
        return status

    cdef int64_t _variable(self, uint8_t* out, int64_t count) except? -100 nogil:
        cdef View* views = <View*>out
        cdef const uint8_t* base = self.pages.retained_data
        cdef const uint8_t* body = self.cursor
        cdef const uint8_t* start               # the bytes of all values, for one ASCII check
        cdef int64_t size, status
        cdef bint ascii_before = True
        if self.conversion == VARIABLE_DECIMAL:
            views = <View*>scratch_reserve(&self.views, <size_t>count * sizeof(View))
            base = self.cursor
        elif self.page_buffer == NO_BUFFER and (self.encoding == PLAIN or self.encoding == DELTA_LENGTH_BYTE_ARRAY):
            self.page_buffer = self._retained_buffer()      # only now: a page without a value to read is not kept
        if self.encoding == PLAIN:
            start = self.cursor
            size = plain_decode_views(start, <size_t>self.cursor_size, count, views, self.page_buffer, start - base)
            if size < 0:
                return size
            self.cursor += size
            self.cursor_size -= size
        elif self.encoding == DELTA_LENGTH_BYTE_ARRAY:
            start = self.lengths.data + self.lengths.position
            status = delta_lengths_next(&self.lengths, views, count, self.page_buffer, self.lengths.data - base)
            if status < 0:
                return status
            size = self.lengths.data + self.lengths.position - start
        else:
            start = self.strings.suffixes.data + self.strings.suffixes.position
            ascii_before = not self.text or all_ascii(self.previous.data, <size_t>self.previous_size)
            status = self._string_views(views, count, &base)
            if status < 0:
                return status
            size = self.strings.suffixes.data + self.strings.suffixes.position - start
        self.base = base
        if self.conversion == VARIABLE_DECIMAL:
            return decimals_from_views(views, count, base, out, self.width)
        if self.text and not (ascii_before and all_ascii(start, <size_t>size)):
            check_text(views, count, base, self.done, self.pages.ordinal)
        if self.page_buffer != NO_BUFFER and base == self.pages.retained_data and self.pages.extended is not None:
            if self.done == 0 and count == self.count and self.pages.to_retain > 0:     # the whole page, and not the last
                self.pages.keep_to(pack_views(views, count, size, <uint8_t*>base, <uint8_t*>body))
        return count

    cdef int64_t _string_views(self, View* views, int64_t count, const uint8_t** base) except? -100 nogil:
        """Decode count DELTA_BYTE_ARRAY values as views into new memory, from base on.

        Old writers let the first value of a page share a prefix with the last value of the page before (PARQUET-246). The last
        value is kept for files of any writer.
        """
        cdef int32_t* lengths = <int32_t*>scratch_reserve(&self.sizes, <size_t>count * 2 * sizeof(int32_t))
        cdef const View* last = views + count - 1
        cdef uint8_t* bytes_
        cdef int64_t size
        scratch_reserve(&self.previous, 0)
        size = delta_strings_measure(&self.strings, count, self.previous_size, lengths, lengths + count)
        if size < 0:
            return size
        bytes_ = self._string_memory(size)
        delta_strings_next(&self.strings, count, self.previous.data, lengths, lengths + count, views, bytes_, self.page_buffer)
        self._keep(<const uint8_t*>&last.prefix[0] if last.length <= 12 else bytes_ + last.offset, last.length)
        base[0] = bytes_
        return count

    cdef uint8_t* _string_memory(self, int64_t size) except NULL nogil:
        """Memory for DELTA_BYTE_ARRAY values: a new buffer of the output, or scratch. Shared prefixes make the values larger than
        the page, without a bound by the page's size."""
        cdef uint8_t* data = NULL
        if size > min(self.pages.max_page_size, <int64_t>INT32_MAX):
            with gil:
                raise LimitError(f"{size} bytes of DELTA_BYTE_ARRAY values are over max_page_size", page=self.pages.ordinal)
        if self.conversion == VARIABLE_DECIMAL:
            return scratch_reserve(&self.stored, <size_t>size)
        with gil:
            try:
                kept = self.pages.allowance.empty(size, &data)
            except LimitError as error:
                raise error.at(page=self.pages.ordinal)
            self.page_buffer = self._add_buffer(kept)
        return data

    cdef int _keep(self, const uint8_t* value, int64_t size) except -1 nogil:
        scratch_reserve(&self.previous, <size_t>size)
        memcpy(self.previous.data, value, <size_t>size)
        self.previous_size = size
        return 0

    cdef int _fail(self, int64_t status, const char* what) except -1 nogil:
        if status == OUT_OF_RANGE and self.conversion == TIMESTAMP96:
            with gil:
                unit = {MICROSECONDS: "us"}.get(self.units, "ns")
                fitting = "'us' or 'ms'" if self.fits_microseconds else "'ms'"
                raise OutsideUnitError(f"an INT96 timestamp outside datetime64[{unit}]: read it with "
                                       f"coerce_int96_timestamp_unit={fitting}", page=self.pages.ordinal)
        return self.pages.fail(status, what)
