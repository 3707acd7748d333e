"""Readers that decode values to dictionary codes, or to verdicts. Both profit from dictionary pages.

A code is an index into one dictionary for all chunks, and stands for a variable-length value. This dictionary has all entries
from the dictionary pages, used or not, and all values from pages in other encodings. It keeps the order in which they first
appear. A verdict is one byte that a function returns for a value. The function judges each entry in a dictionary page once.
"""

from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fastpq.column.page cimport Page
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.value_reader cimport ValueReader
from fastpq.encodings.dictionary cimport DictionaryEncoder, dictionary_decode_bits
from fastpq.encodings.levels cimport compact
from fastpq.encodings.plain cimport read_views
from fastpq.encodings.rle cimport hybrid_of
from fastpq.encodings.status cimport raise_status
from fastpq.encodings.views cimport Slice, View, view_start

from fastpq.arrays import memory
from fastpq.errors import LimitError

cdef const char* CODES = b"values"

cdef enum:
    BLOCK = 1024                # values encoded at a time
    BYTES_AN_ENTRY = 48         # most bytes that the hash table needs for an entry, besides its value
    MOST_BITS = 64              # most entries whose verdicts fit into one word

cdef int64_t NO_LIMIT = 0x7FFFFFFFFFFFFFFF


cdef class SubstituteReader(ValueReader):
    """Decodes values to something else: numbers with result_width bytes. The values themselves stay in the reader."""

    cdef int attach(self, list buffers) except -1:
        if self.buffers is None:        # an own list, because nobody else sees the views
            self.buffers = []
        return 0

    cdef int read_chosen(self, uint8_t* out, const uint8_t* bits, int64_t offset, int64_t count, int64_t chosen) except -1 nogil:
        cdef uint8_t* results
        if chosen == 0 or self.decoder.uses_dictionary:
            return ValueReader.read_chosen(self, out, bits, offset, count, chosen)
        results = scratch_reserve(&self.passed, <size_t>count * self.result_width)
        self.read(results, count)
        compact(bits, offset, count, results, out, self.result_width)
        return 0


cdef class CodeReader(SubstituteReader):
    """Decodes the values in one or more chunks to codes (int32).

    Args:
        pages: the chunk's PageReader.
        layout: the Layout for a variable-length column type.
    """

    def __init__(self, pages, layout):
        ValueReader.__init__(self, pages, layout)
        self.dictionary_of_codes = DictionaryEncoder(0)
        self.result_width = sizeof(uint32_t)
        self.width = sizeof(View)       # bytes of a decoded entry in the dictionary page

    def __dealloc__(self):
        scratch_free(&self.numbers)

    cdef int load_dictionary(self, const Page* page) except -1 nogil:
        cdef int64_t status
        self._decode_dictionary(page)
        scratch_reserve(&self.numbers, <size_t>self.dictionary_size * sizeof(uint32_t))
        status = self._encode(<const View*>self.dictionary.data, self.dictionary_size, self.numbers.data)
        if status < 0:
            self._fail(status, CODES)
        if self._size() > self.counted_bytes or page.retained:
            with gil:
                self._count()
                self.dictionary_owner = None        # the dictionary has copies
                del self.buffers[:]
        self._use_entries(self.numbers.data, sizeof(uint32_t))
        return 0

    cdef int read(self, uint8_t* out, int64_t count) except -1 nogil:
        cdef View* views
        cdef int64_t status
        if count == 0 or self.decoder.uses_dictionary:
            return ValueReader.read(self, out, count)
        views = <View*>scratch_reserve(&self.views, <size_t>count * sizeof(View))
        status = self._decode(<uint8_t*>views, count)
        if status >= 0:
            status = self._encode(views, count, out)
        if status < 0:
            self._fail(status, CODES)
        self.page.position += count
        with gil:
            self._count()
            if self.page.position == self.count:        # at the page's end, no view needs its bytes any more
                del self.buffers[:]
        return 0

    cdef int64_t _encode(self, const View* views, int64_t count, uint8_t* out) noexcept nogil:
        cdef uint32_t* codes = <uint32_t*>out
        cdef Slice block[BLOCK]
        cdef int64_t start = 0, n, i, status
        while start < count:
            n = min(count - start, <int64_t>BLOCK)
            for i in range(n):
                block[i].size = <size_t>views[start + i].length
                block[i].data = view_start(&views[start + i], self.page.base)
            status = self.dictionary_of_codes.encode_slices(block, n, NO_LIMIT, codes + start)
            if status < 0:
                return status
            start += n
        return count

    cdef int64_t _size(self) noexcept nogil:
        return self.dictionary_of_codes.plain_size + <int64_t>self.dictionary_of_codes.table.count * BYTES_AN_ENTRY

    cdef int _count(self) except -1:
        cdef int64_t bytes_ = self._size()
        if bytes_ > self.counted_bytes:
            try:
                if self.dictionary_of_codes.count > INT32_MAX or self.dictionary_of_codes.plain_size > INT32_MAX:
                    raise LimitError("over 2 GiB of distinct values, or as many values as int32 has codes: "
                                     "strings=\"offsets\" reads them")
                self.pages.allowance.keep(bytes_ - self.counted_bytes)
            except LimitError as error:
                raise error.at(page=self.pages.ordinal)
            self.counted_bytes = bytes_
        return 0

    cdef tuple entries(self):
        cdef int64_t count = self.dictionary_of_codes.count, size = self.dictionary_of_codes.plain_size
        cdef uint8_t[::1] views = memory.empty(count * sizeof(View) + 1)
        cdef uint8_t* data = NULL
        self.pages.allowance.give(self.counted_bytes)
        self.counted_bytes = 0
        values_memory = self.pages.allowance.empty(size, &data)
        self.dictionary_of_codes.write_plain(data)
        raise_status(read_views(data, <size_t>size, count, &views[0], 0, 0), "dictionary")
        return views.base[:count * sizeof(View)], [values_memory]


cdef class VerdictReader(SubstituteReader):
    """Decodes the values in one chunk to verdicts.

    Args:
        pages: the chunk's PageReader.
        layout: the column type's Layout.

    Attributes:
        judge: returns a verdict (uint8) for each value. Its arguments are the values (uint8, layout.width bytes each) and the
            buffers that their views point into.
    """

    def __init__(self, pages, layout):
        ValueReader.__init__(self, pages, layout)
        self.result_width = 1

    def __dealloc__(self):
        scratch_free(&self.verdicts)

    cdef int load_dictionary(self, const Page* page) except -1 nogil:
        self._decode_dictionary(page)
        scratch_reserve(&self.verdicts, <size_t>self.dictionary_size)
        with gil:
            self._judge_entries()
        self._use_entries(self.verdicts.data, 1)
        return 0

    cdef int _judge_entries(self) except -1:
        values_memory = memory.empty(self.dictionary_size * <int64_t>self.width)
        cdef uint8_t[::1] values = values_memory
        cdef const uint8_t[::1] verdicts
        cdef int64_t i
        self.bits = 0
        self.in_word = self.dictionary_size <= MOST_BITS
        if self.dictionary_size == 0:
            return 0
        if values.shape[0]:
            memcpy(&values[0], self.dictionary.data, <size_t>values.shape[0])
        verdicts = self._verdicts_on(values_memory, self.dictionary_size)
        memcpy(self.verdicts.data, &verdicts[0], <size_t>self.dictionary_size)
        for i in range(self.dictionary_size):
            self.in_word = self.in_word and verdicts[i] < 2
            if self.in_word:
                self.bits |= <uint64_t>verdicts[i] << i
        return 0

    cdef const uint8_t[::1] _verdicts_on(self, values, int64_t count):
        cdef const uint8_t[::1] verdicts = self.judge(values, self.buffers)
        if verdicts.shape[0] != count:
            raise ValueError(f"judge returned {verdicts.shape[0]} verdicts for {count} values")
        return verdicts

    cdef int read(self, uint8_t* out, int64_t count) except -1 nogil:
        cdef int64_t status
        if count == 0:
            return 0
        if not self.decoder.uses_dictionary:
            with gil:
                self._judge_page(out, count)
            return 0
        if not self.in_word:
            return ValueReader.read(self, out, count)
        status = dictionary_decode_bits(hybrid_of(&self.page), self.bits, self.dictionary_size, out, count)
        if status < 0:
            self._fail(status, CODES)
        self.page.position += count
        return 0

    cdef int _judge_page(self, uint8_t* out, int64_t count) except -1:
        """Decode the next count values in a page without dictionary, and write their verdicts to out."""
        values_memory = memory.empty(count * <int64_t>self.width)
        cdef uint8_t[::1] values = values_memory
        cdef const uint8_t[::1] verdicts
        cdef uint8_t* data = &values[0] if values.shape[0] else NULL
        with nogil:
            ValueReader.read(self, data, count)
        verdicts = self._verdicts_on(values_memory, count)
        memcpy(out, &verdicts[0], <size_t>count)
        if self.page.position == self.count:        # at the page's end, no view needs its bytes any more
            del self.buffers[1 if self.dictionary_owner is not None else 0:]
        return 0
