"""Indices of dictionary pages in other forms than the values of their entries.

Codes stand for values of variable length, as indices into one dictionary of all chunks read: the entries of each dictionary
page, used or not, and the values that pages in other encodings hold besides, in the order of their first appearance. Verdicts are
one byte a value: an entry of the dictionary page is judged once.
"""

from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fastpq.column.page cimport Page
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.value_reader cimport ValueReader
from fastpq.encodings.dictionary cimport (
    DictionaryEncoder, dictionary_decode, dictionary_decode_bits, dictionary_decode_chosen,
)
from fastpq.encodings.levels cimport compact
from fastpq.encodings.numbers cimport PLAIN_DICTIONARY, RLE_DICTIONARY
from fastpq.encodings.plain cimport plain_decode_views
from fastpq.encodings.status cimport raise_status
from fastpq.encodings.views cimport Slice, View

from fastpq.arrays import memory
from fastpq.errors import LimitError

cdef const char* CODES = b"values"

cdef enum:
    BLOCK = 1024                # values encoded at a time
    BYTES_AN_ENTRY = 48         # of the tables for an entry, besides its value, at most
    MOST_BITS = 64              # entries of a dictionary with verdicts in one word

cdef int64_t NO_LIMIT = 0x7FFFFFFFFFFFFFFF


cdef class CodeReader(ValueReader):
    """Decodes the values of the pages of one chunk or of several into codes (int32).

    Args:
        pages: the PageReader of the chunk.
        layout: the Layout of a column type of variable length.
    """

    def __init__(self, pages, layout):
        ValueReader.__init__(self, pages, layout)
        self.known = DictionaryEncoder(0)
        self.width = sizeof(View)       # of the entries of the dictionary page

    def __dealloc__(self):
        scratch_free(&self.numbers)

    cdef int attach(self, list buffers) except -1:
        if self.buffers is None:        # of its own: no view leaves but those of entries
            self.buffers = []
        return 0

    cdef int load_dictionary(self, const Page* page) except -1 nogil:
        cdef int64_t status
        ValueReader.load_dictionary(self, page)
        scratch_reserve(&self.numbers, <size_t>self.dictionary_size * sizeof(uint32_t))
        status = self._encode(<const View*>self.dictionary.data, self.dictionary_size, self.numbers.data)
        if status < 0:
            self._fail(status, CODES)
        if self._size() > self.counted or page.retained:
            with gil:
                self._count()
                self.dictionary_owner = None        # the entries are copied
                del self.buffers[:]
        return 0

    cdef int read(self, uint8_t* out, int64_t count) except -1 nogil:
        cdef View* views
        cdef int64_t status
        if count == 0:
            return 0
        if self.encoding == PLAIN_DICTIONARY or self.encoding == RLE_DICTIONARY:
            status = dictionary_decode(
                &self.hybrid, self.numbers.data, self.dictionary_size, sizeof(uint32_t), out, count)
            if status < 0:
                self._fail(status, CODES)
            self.done += count
            return 0
        views = <View*>scratch_reserve(&self.views, <size_t>count * sizeof(View))
        status = self._decode(<uint8_t*>views, count)
        if status >= 0:
            status = self._encode(views, count, out)
        if status < 0:
            self._fail(status, CODES)
        self.done += count
        with gil:
            self._count()
            if self.done == self.count:         # of the page; no view is left that needs its bytes
                del self.buffers[:]
        return 0

    cdef int read_chosen(self, uint8_t* out, const uint8_t* bits, int64_t offset, int64_t count, int64_t kept) except -1 nogil:
        cdef int64_t status
        cdef uint8_t* codes
        if kept and (self.encoding == PLAIN_DICTIONARY or self.encoding == RLE_DICTIONARY):
            status = dictionary_decode_chosen(
                &self.hybrid, self.numbers.data, self.dictionary_size, sizeof(uint32_t), bits, offset, out, count)
            if status < 0:
                self._fail(status, CODES)
            self.done += count
        elif kept:
            codes = scratch_reserve(&self.passed, <size_t>count * sizeof(uint32_t))
            self.read(codes, count)
            compact(bits, offset, count, codes, out, sizeof(uint32_t))
        else:
            self.skip(count)
        return 0

    cdef int64_t _encode(self, const View* views, int64_t count, uint8_t* out) noexcept nogil:
        cdef uint32_t* codes = <uint32_t*>out
        cdef Slice block[BLOCK]
        cdef int64_t start = 0, n, i, status
        while start < count:
            n = min(count - start, <int64_t>BLOCK)
            for i in range(n):
                block[i].size = <size_t>views[start + i].length
                if views[start + i].length <= 12:
                    block[i].data = <const uint8_t*>&views[start + i].prefix[0]
                else:
                    block[i].data = self.base + views[start + i].offset
            status = self.known.encode_slices(block, n, NO_LIMIT, codes + start)
            if status < 0:
                return status
            start += n
        return count

    cdef int64_t _size(self) noexcept nogil:
        return self.known.plain_size + <int64_t>self.known.table.count * BYTES_AN_ENTRY

    cdef int _count(self) except -1:
        cdef int64_t bytes_ = self._size()
        if bytes_ > self.counted:
            try:
                if self.known.count > INT32_MAX or self.known.plain_size > INT32_MAX:
                    raise LimitError("over 2 GiB of distinct values, or as many values as int32 has codes: "
                                     "strings=\"offsets\" reads them")
                self.pages.allowance.keep(bytes_ - self.counted)
            except LimitError as error:
                raise error.at(page=self.pages.ordinal)
            self.counted = bytes_
        return 0

    cdef tuple entries(self):
        cdef int64_t count = self.known.count, size = self.known.plain_size
        cdef uint8_t[::1] views = memory.empty(count * sizeof(View) + 1)
        cdef uint8_t* data = NULL
        self.pages.allowance.give(self.counted)
        self.counted = 0
        held = self.pages.allowance.empty(size, &data)
        self.known.write_plain(data)
        raise_status(plain_decode_views(data, <size_t>size, count, <View*>&views[0], 0, 0), "dictionary")
        return views.base[:count * sizeof(View)], [held]


cdef class VerdictReader(ValueReader):
    """Decodes the values of one chunk's pages into verdicts.

    Args:
        pages: the PageReader of the chunk.
        layout: the Layout of the column type.

    Attributes:
        judge: called with values (uint8, layout.width bytes each) and the buffers of their views; returns a uint8 for each value.
    """

    def __dealloc__(self):
        scratch_free(&self.verdicts)

    cdef int attach(self, list buffers) except -1:
        if self.buffers is None:        # of its own: no view leaves the reader
            self.buffers = []
        return 0

    cdef int load_dictionary(self, const Page* page) except -1 nogil:
        ValueReader.load_dictionary(self, page)
        scratch_reserve(&self.verdicts, <size_t>self.dictionary_size)
        with gil:
            self._judge_entries()
        return 0

    cdef int _judge_entries(self) except -1:
        held = memory.empty(self.dictionary_size * <int64_t>self.width)
        cdef uint8_t[::1] values = held
        cdef const uint8_t[::1] found
        cdef int64_t i
        self.bits = 0
        self.in_word = self.dictionary_size <= MOST_BITS
        if self.dictionary_size == 0:
            return 0
        if values.shape[0]:
            memcpy(&values[0], self.dictionary.data, <size_t>values.shape[0])
        found = self._judged(held, self.dictionary_size)
        memcpy(self.verdicts.data, &found[0], <size_t>self.dictionary_size)
        for i in range(self.dictionary_size):
            self.in_word = self.in_word and found[i] < 2
            if self.in_word:
                self.bits |= <uint64_t>found[i] << i
        return 0

    cdef const uint8_t[::1] _judged(self, values, int64_t count):
        cdef const uint8_t[::1] found = self.judge(values, self.buffers)
        if found.shape[0] != count:
            raise ValueError(f"{found.shape[0]} verdicts on {count} values")
        return found

    cdef int read(self, uint8_t* out, int64_t count) except -1 nogil:
        cdef int64_t status
        if count == 0:
            return 0
        if self.encoding != PLAIN_DICTIONARY and self.encoding != RLE_DICTIONARY:
            with gil:
                self._judge_page(out, count)
            return 0
        if self.in_word:
            status = dictionary_decode_bits(&self.hybrid, self.bits, self.dictionary_size, out, count)
        else:
            status = dictionary_decode(&self.hybrid, self.verdicts.data, self.dictionary_size, 1, out, count)
        if status < 0:
            self._fail(status, CODES)
        self.done += count
        return 0

    cdef int _judge_page(self, uint8_t* out, int64_t count) except -1:
        """Judge the next count values of a page in another encoding."""
        held = memory.empty(count * <int64_t>self.width)
        cdef uint8_t[::1] values = held
        cdef const uint8_t[::1] found
        cdef uint8_t* data = &values[0] if values.shape[0] else NULL
        with nogil:
            ValueReader.read(self, data, count)
        found = self._judged(held, count)
        memcpy(out, &found[0], <size_t>count)
        if self.done == self.count:         # of the page; no view is left that needs its bytes
            del self.buffers[1 if self.dictionary_owner is not None else 0:]
        return 0

    cdef int read_chosen(self, uint8_t* out, const uint8_t* bits, int64_t offset, int64_t count, int64_t kept) except -1 nogil:
        cdef int64_t status
        cdef uint8_t* verdicts
        if kept == 0:
            return self.skip(count)
        if self.encoding == PLAIN_DICTIONARY or self.encoding == RLE_DICTIONARY:
            status = dictionary_decode_chosen(
                &self.hybrid, self.verdicts.data, self.dictionary_size, 1, bits, offset, out, count)
            if status < 0:
                self._fail(status, CODES)
            self.done += count
            return 0
        verdicts = scratch_reserve(&self.passed, <size_t>count)
        self.read(verdicts, count)
        compact(bits, offset, count, verdicts, out, 1)
        return 0
