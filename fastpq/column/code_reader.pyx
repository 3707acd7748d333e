"""Values of variable length as codes into a dictionary of their chunk: indices of dictionary pages are taken as they are stored.

Entries are those of the dictionary page, used or not, then the values that pages in other encodings hold besides.
"""

from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from fastpq.column.page cimport Page
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.value_reader cimport ValueReader
from fastpq.encodings.dictionary cimport DictionaryEncoder, dictionary_decode, dictionary_decode_chosen
from fastpq.encodings.levels cimport compact
from fastpq.encodings.numbers cimport PLAIN_DICTIONARY, RLE_DICTIONARY
from fastpq.encodings.plain cimport plain_decode_views
from fastpq.encodings.status cimport raise_status
from fastpq.encodings.views cimport Slice, View

from fastpq.arrays import memory
from fastpq.errors import FormatError, LimitError

cdef const char* CODES = b"values"

cdef enum:
    BLOCK = 1024                # values encoded at a time
    BYTES_AN_ENTRY = 48         # of the tables for an entry, besides its value, at most

cdef int64_t NO_LIMIT = 0x7FFFFFFFFFFFFFFF


cdef class CodeReader(ValueReader):
    """Decodes the values of one chunk's pages into codes (int32).

    Args:
        pages: the PageReader of the chunk.
        layout: the Layout of a column type of variable length.
    """

    def __cinit__(self, pages, layout):
        self.others = DictionaryEncoder(0)
        self.width = sizeof(View)       # of the entries of the dictionary page

    def __dealloc__(self):
        scratch_free(&self.numbers)

    cdef int attach(self, list buffers) except -1:
        if self.buffers is None:        # of its own: no view leaves but those of entries
            self.buffers = []
        return 0

    cdef int load_dictionary(self, const Page* page) except -1 nogil:
        cdef uint32_t* numbers
        cdef int64_t i
        if self.counted:            # codes of values before it would be those of its entries
            with gil:
                raise FormatError("a dictionary page behind pages of values", page=self.pages.ordinal)
        ValueReader.load_dictionary(self, page)
        numbers = <uint32_t*>scratch_reserve(&self.numbers, <size_t>self.dictionary_size * sizeof(uint32_t))
        for i in range(self.dictionary_size):
            numbers[i] = <uint32_t>i
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
            self._count_others()
            if self.done == self.count:         # of the page; no view is left that needs its bytes
                del self.buffers[1 if self.dictionary_owner is not None else 0:]
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
        cdef Slice block[BLOCK]
        cdef uint32_t codes[BLOCK]
        cdef uint32_t first = <uint32_t>max(self.dictionary_size, 0)
        cdef int64_t start = 0, n, i, status
        while start < count:
            n = min(count - start, <int64_t>BLOCK)
            for i in range(n):
                block[i].size = <size_t>views[start + i].length
                if views[start + i].length <= 12:
                    block[i].data = <const uint8_t*>&views[start + i].prefix[0]
                else:
                    block[i].data = self.base + views[start + i].offset
            status = self.others.encode_slices(block, n, NO_LIMIT, codes)
            if status < 0:
                return status
            for i in range(n):
                codes[i] += first
            memcpy(out + <size_t>start * sizeof(uint32_t), codes, <size_t>n * sizeof(uint32_t))
            start += n
        return count

    cdef int _count_others(self) except -1:
        cdef int64_t bytes_ = self.others.plain_size + self.others.count * BYTES_AN_ENTRY
        if bytes_ > self.counted:
            try:
                if max(self.dictionary_size, 0) + self.others.count > INT32_MAX or self.others.plain_size > INT32_MAX:
                    raise LimitError("over 2 GiB of distinct values in a chunk, or as many values as int32 has codes: "
                                     "strings=\"views\" reads them")
                self.pages.allowance.keep(bytes_ - self.counted)
            except LimitError as error:
                raise error.at(page=self.pages.ordinal)
            self.counted = bytes_
        return 0

    cdef tuple entries(self):
        cdef int64_t known = max(self.dictionary_size, 0), total = known + self.others.count
        cdef int64_t size = self.others.plain_size
        cdef uint8_t[::1] views = memory.empty(total * sizeof(View) + 1), bytes_
        cdef list buffers = [] if self.dictionary_owner is None else [self.dictionary_owner]
        if known:
            memcpy(&views[0], self.dictionary.data, <size_t>known * sizeof(View))
        if self.others.count:
            bytes_ = memory.empty(size)
            self.others.write_plain(&bytes_[0])
            raise_status(plain_decode_views(&bytes_[0], <size_t>size, self.others.count, <View*>&views[0] + known,
                                            <int>len(buffers), 0), "dictionary")
            buffers.append(bytes_.base)
        return views.base[:total * sizeof(View)], buffers
