"""Decodes page values from any encoding to their form in memory.

A page is loaded, then read in one or more steps. The decoder for its encoding (fastpq.encodings.interface) makes views, or
fixed-width values in stored form, which are then converted.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

cimport cython

from fastpq.column.stored_values cimport (
    BOOLEAN, COPY, TIMESTAMP96, VARIABLE, VARIABLE_DECIMAL, WIDE_DECIMAL, check_decoded, check_text, decimals_from_views,
    from_stored, refuse_decimal, value_checks,
)
from fastpq.column.page cimport Page, PageReader
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.interface cimport BOOLEANS, BYTE_ARRAYS, FIXED_WIDTH
from fastpq.encodings.levels cimport compact
from fastpq.encodings.numbers cimport PLAIN, PLAIN_DICTIONARY
from fastpq.encodings.plain cimport is_ascii, pack_views
from fastpq.encodings.status cimport OUT_OF_RANGE, TRUNCATED
from fastpq.encodings.encoding_table cimport decoder_of
from fastpq.encodings.views cimport View, view_start

from fastpq.column.layout import OutsideUnitError
from fastpq.encodings.registry import check_readable
from fastpq.errors import FormatError, LimitError, ParquetError, UnsupportedError

cdef const char* VALUES = b"values"
cdef cython.pymutex lock            # for buffer lists, because all chunks of a column append to the same list

cdef enum:
    MICROSECONDS = 1000000      # in a second
    NO_BUFFER = -1              # the current page is not among the output's buffers


cdef class ValueReader:
    """Decodes the values in one chunk's pages.

    Args:
        pages: the chunk's PageReader.
        layout: the column type's Layout.
    """

    def __cinit__(self, *_):
        self.decoder = decoder_of(PLAIN)
        self.dictionary_size = self.page.entries.count = -1

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
        self.page.form = BYTE_ARRAYS if self.variable else BOOLEANS if self.conversion == BOOLEAN else FIXED_WIDTH
        self.page.width = self.stored_width

    cdef void restart(self) noexcept nogil:
        self.dictionary_size = self.page.entries.count = -1
        self.count = self.page.position = 0
        self.ordinal = 0
        self.page.previous.size = 0
        self.page.buffer = NO_BUFFER

    def __dealloc__(self):
        scratch_free(&self.previous)
        scratch_free(&self.dictionary)
        scratch_free(&self.stored)
        scratch_free(&self.views)
        scratch_free(&self.decoding)
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
        self.page.buffer = NO_BUFFER
        return 0

    cdef int32_t _add_buffer(self, object buffer) except -1:
        with lock:
            self.buffers.append(buffer)
            return <int32_t>(len(self.buffers) - 1)

    cdef int32_t _retained_buffer(self) except -1 nogil:
        """Return the buffer number for the array that has the current page's bytes. Pages may share an array."""
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
        self._open(page, count)
        if self.deferred and count == 0:
            self._load_deferred()       # only to check it like other pages
        if self.pages.ordinal != self.ordinal:      # pages were skipped: the value before this page is unknown
            self.page.previous.size = 0
        self.ordinal = self.pages.ordinal + 1
        if count:
            status = self.decoder.start(&self.page)
            if status < 0:
                self.count = 0
                self._fail(status, VALUES)
        return 0

    cdef void _open(self, const Page* page, int64_t count) noexcept nogil:
        """Begin with a page's values."""
        self.decoder = decoder_of(page.encoding)
        self.page.data = page.values
        self.page.size = page.values_size
        self.page.position = 0
        self.page.buffer = NO_BUFFER
        self.deferred = page.deferred
        self.count = count

    cdef int _load_deferred(self) except -1 nogil:
        """Read the page's values to memory, if they are deferred."""
        cdef int64_t size = self.page.size
        if self.deferred:
            self.deferred = False
            self.page.size = 0          # nothing to read if the page is broken
            self.page.data = self.pages.load_deferred()
            self.page.size = size
        return 0

    def _refuse(self, int encoding):
        """Raise the error for an encoding that fastpq does not read for the type."""
        try:
            check_readable(encoding, self.physical)
        except ParquetError as error:
            raise error.at(page=self.pages.ordinal)
        raise AssertionError(f"encoding {encoding} is read")

    cdef int load_dictionary(self, const Page* page) except -1 nogil:
        self._decode_dictionary(page)
        self._use_entries(self.dictionary.data, self.width)
        return 0

    cdef int _decode_dictionary(self, const Page* page) except -1 nogil:
        """Decode the dictionary page to the form in memory."""
        cdef int64_t status, smallest = 4 if self.variable else <int64_t>self.stored_width
        if self.dictionary_size >= 0:
            with gil:
                raise FormatError("a second dictionary page", page=self.pages.ordinal)
        if page.encoding != PLAIN and page.encoding != PLAIN_DICTIONARY:
            with gil:
                raise UnsupportedError(f"a dictionary page in encoding {page.encoding}")
        if self.conversion != BOOLEAN and smallest and page.num_values > page.values_size // smallest:
            self._fail(TRUNCATED, b"dictionary page")
        self._open(page, page.num_values)
        self.decoder = decoder_of(PLAIN)            # PLAIN_DICTIONARY is another name for PLAIN here
        scratch_reserve(&self.dictionary, <size_t>self.count * self.width)
        if page.retained:
            with gil:
                self.dictionary_owner = self.pages.retained
        status = self._decode(self.dictionary.data, self.count)
        if status < 0:
            self._fail(status, b"dictionary page")
        self.check_values(self.dictionary.data, self.count)
        self.dictionary_size = self.page.position = self.count
        return 0

    cdef void _use_entries(self, const uint8_t* data, size_t width) noexcept nogil:
        """Set what indices stand for: entries with width bytes, one for each value in the dictionary page."""
        self.page.entries.data = data
        self.page.entries.count = self.dictionary_size
        self.page.entries.width = width

    cdef int read(self, uint8_t* out, int64_t count) except -1 nogil:
        cdef int64_t status
        if count == 0:
            return 0
        if self.decoder.uses_dictionary:
            status = self.decoder.next(&self.page, count, out)
        else:
            status = self._decode(out, count)
            if status >= 0:
                self.check_values(out, count)
        if status < 0:
            self._fail(status, VALUES)
        self.page.position += count
        return 0

    cdef int read_chosen(self, uint8_t* out, const uint8_t* bits, int64_t offset, int64_t count, int64_t chosen) except -1 nogil:
        cdef int64_t status
        cdef const uint8_t* values
        if chosen == 0:
            return self.skip(count)
        if self.decoder.next_chosen != NULL:
            status = self.decoder.next_chosen(&self.page, count, bits, offset, out)
        elif self.decoder.stores_plain and self.conversion == COPY:
            values = self.page.data
            status = self.decoder.skip(&self.page, count)
            if status >= 0:
                compact(bits, offset, count, values, out, self.width)
                self.check_values(out, chosen)
        else:
            values = scratch_reserve(&self.passed, <size_t>count * self.width)
            status = self._decode(self.passed.data, count)
            if status >= 0:
                self.check_values(values, count)
                compact(bits, offset, count, values, out, self.width)
        if status < 0:
            self._fail(status, VALUES)
        self.page.position += count
        return 0

    cdef int skip(self, int64_t count) except -1 nogil:
        cdef int64_t status
        if count == 0:
            return 0
        if self.decoder.skip != NULL:
            status = self.decoder.skip(&self.page, count)
        else:
            status = self._decode(scratch_reserve(&self.passed, <size_t>count * max(self.width, sizeof(View))), count)
        if status < 0:
            self._fail(status, VALUES)
        self.page.position += count
        return 0

    cdef int check_values(self, const uint8_t* values, int64_t count) except -1 nogil:
        if self.conversion == WIDE_DECIMAL:     # from_stored has checked them
            return 0
        return check_decoded(&self.checks, values, self.width, count, self.pages.ordinal)

    cdef int64_t _decode(self, uint8_t* out, int64_t count) except? -100 nogil:
        """Decode count values that are not dictionary indices. Returns a negative Status for broken bytes."""
        if self.conversion == BOOLEAN:
            return self.decoder.next(&self.page, count, out)
        return self._variable(out, count) if self.variable else self._fixed(out, count)

    cdef int64_t _fixed(self, uint8_t* out, int64_t count) except? -100 nogil:
        cdef int64_t size = count * <int64_t>self.stored_width, status
        cdef const uint8_t* stored
        if self.deferred and size <= self.page.size:
            if size == self.page.size:
                self.deferred = False
                self.page.size = 0
                self.pages.read_deferred(out, size)
                return count
            self._load_deferred()
        if self.conversion == COPY:
            return self._stored(out, count)
        if self.decoder.stores_plain:
            stored = self.page.data
            status = self.decoder.skip(&self.page, count)
        else:
            stored = scratch_reserve(&self.stored, <size_t>size)
            status = self._stored(self.stored.data, count)
        if status < 0:
            return status
        status = from_stored(self.conversion, stored, self.stored_width, count, out, self.width, self.units, &self.checks)
        if status == OUT_OF_RANGE and self.conversion == WIDE_DECIMAL:
            refuse_decimal(&self.checks, self.pages.ordinal)
        if status == OUT_OF_RANGE and self.conversion == TIMESTAMP96:
            self.fits_microseconds = 0 <= from_stored(
                TIMESTAMP96, stored, self.stored_width, count, out, self.width, MICROSECONDS, &self.checks)
        return status

    cdef int64_t _stored(self, uint8_t* out, int64_t count) except? -100 nogil:
        """Decode count fixed-width values into PLAIN form."""
        cdef int64_t status
        self._reserve_scratch(count)
        status = self.decoder.next(&self.page, count, out)
        if status >= 0 and self.decoder.shares_prefixes:
            self._keep(out + <size_t>(count - 1) * self.stored_width, <int64_t>self.stored_width)
        return status

    cdef int64_t _variable(self, uint8_t* out, int64_t count) except? -100 nogil:
        """Decode count variable-length values, to views or decimals."""
        cdef View* views = <View*>out
        cdef const uint8_t* body = self.page.data
        cdef int64_t status
        if self.conversion == VARIABLE_DECIMAL:
            views = <View*>scratch_reserve(&self.views, <size_t>count * sizeof(View))
        status = self._next_views(views, count)
        if status < 0:
            return status
        if self.conversion == VARIABLE_DECIMAL:
            return decimals_from_views(views, count, self.page.base, out, self.width)
        if self.decoder.views_into_page and self.pages.extended is not None:
            if self.page.position == 0 and count == self.count and self.pages.to_retain > 0:    # the whole page, and not the last
                self.pages.keep_to(pack_views(
                    views, count, <int64_t>self.page.bytes.size, <uint8_t*>self.page.base, <uint8_t*>body))
        return count

    cdef int64_t _next_views(self, View* views, int64_t count) except? -100 nogil:
        """Decode count values to views into the page, or into new memory: page.base. Check that text is UTF-8."""
        cdef int64_t status
        cdef bint ascii_before = True
        if self.decoder.measure != NULL:
            self._reserve_scratch(count)
            status = self.decoder.measure(&self.page, count)
            if status < 0:
                return status
            self._reserve_memory(status)
            ascii_before = not self.text or is_ascii(self.page.previous.data, self.page.previous.size)
        elif self.conversion == VARIABLE_DECIMAL:
            self.page.base = self.page.data
        else:
            if self.page.buffer == NO_BUFFER:       # only now, so that a page without a value to read is not kept
                self.page.buffer = self._retained_buffer()
            self.page.base = self.pages.retained_data
        status = self.decoder.next(&self.page, count, <uint8_t*>views)
        if status < 0:
            return status
        if self.text and not (ascii_before and is_ascii(self.page.bytes.data, self.page.bytes.size)):
            check_text(views, count, self.page.base, self.page.position, self.pages.ordinal)
        if self.decoder.shares_prefixes:
            self._keep(view_start(&views[count - 1], self.page.base), views[count - 1].length)
        return count

    cdef int _reserve_scratch(self, int64_t count) except -1 nogil:
        """Reserve the scratch memory that the decoder needs for the next count values."""
        if self.decoder.scratch:
            self.page.scratch = scratch_reserve(&self.decoding, <size_t>count * self.decoder.scratch)
            self.page.previous.data = scratch_reserve(&self.previous, self.stored_width)
        return 0

    cdef int _reserve_memory(self, int64_t size) except -1 nogil:
        """Reserve memory for the bytes that views point to: a new buffer for the output, or scratch memory for decimals.

        Shared prefixes can make the values much larger than the page, so the page size does not bound them.
        """
        cdef uint8_t* data = NULL
        if size > min(self.pages.max_page_size, <int64_t>INT32_MAX):
            with gil:
                raise LimitError(f"{size} bytes of DELTA_BYTE_ARRAY values are over max_page_size", page=self.pages.ordinal)
        if self.conversion == VARIABLE_DECIMAL:
            data = scratch_reserve(&self.stored, <size_t>size)
        else:
            with gil:
                try:
                    memory = self.pages.allowance.empty(size, &data)
                except LimitError as error:
                    raise error.at(page=self.pages.ordinal)
                self.page.buffer = self._add_buffer(memory)
        self.page.memory = data
        self.page.base = data
        return 0

    cdef int _keep(self, const uint8_t* value, int64_t size) except -1 nogil:
        """Keep the last decoded value, because the next one may share a prefix with it.

        In files from old writers, this is also true for the next page's first value (PARQUET-246).
        """
        self.page.previous.data = scratch_reserve(&self.previous, <size_t>size)
        self.page.previous.size = <size_t>size
        memcpy(self.previous.data, value, <size_t>size)
        return 0

    cdef int _fail(self, int64_t status, const char* what) except -1 nogil:
        if status == OUT_OF_RANGE and self.conversion == TIMESTAMP96:
            with gil:
                unit = {MICROSECONDS: "us"}.get(self.units, "ns")
                fitting = "'us' or 'ms'" if self.fits_microseconds else "'ms'"
                raise OutsideUnitError(f"an INT96 timestamp outside datetime64[{unit}]: read it with "
                                       f"coerce_int96_timestamp_unit={fitting}", page=self.pages.ordinal)
        return self.pages.fail(status, what)
