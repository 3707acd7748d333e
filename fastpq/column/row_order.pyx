"""Compares and sorts rows by some columns, in the order that statistics have.

Rows are sorted by codes. A code is a number with 8 bytes, and codes have the same order as the values (``c/row_codes.h``). Long
byte strings have a code for every 8 bytes. Byte strings are compared one by one only if they are few or have many equal bytes.
Decimals with different lengths are compared one by one, too.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from fastpq.column.input cimport ColumnInput
from fastpq.encodings.views cimport Slice
from fastpq.stats.statistics cimport (
    ORDER_BOOLEAN, ORDER_BYTES, ORDER_DOUBLE, ORDER_FLOAT, ORDER_FLOAT16, ORDER_INT32, ORDER_INT64, ORDER_SIGNED_BYTES,
    ORDER_UINT32, ORDER_UINT64, compare_fixed, compare_slices, count_nans,
)

cdef extern from "c/row_codes.h" nogil:
    ctypedef struct CodedRow:
        uint64_t code
        int64_t row
    uint64_t code_of_int32(const uint8_t* value)
    uint64_t code_of_uint32(const uint8_t* value)
    uint64_t code_of_int64(const uint8_t* value)
    uint64_t code_of_uint64(const uint8_t* value)
    uint64_t code_of_float16(const uint8_t* value)
    uint64_t code_of_float(const uint8_t* value)
    uint64_t code_of_double(const uint8_t* value)
    void sort_coded_rows(CodedRow* rows, CodedRow* room, int64_t count)

cdef extern from "../stats/c/min_max.h" nogil:
    uint64_t prefix_key(const uint8_t* data, size_t size)

cdef enum:
    RUN = 16            # rows: runs with this length are sorted by insertion, and then merged
    FEWEST_CODED = 128  # rows. Fewer byte strings are compared, because codes would not pay
    MOST_WORDS = 16     # words. Byte strings that are equal in so many words are compared
    WORD = 8            # bytes


cdef inline uint64_t word_of(Slice value, int64_t word) noexcept nogil:
    """Return a word in a byte string as a big-endian number. Bytes behind the string's end are 0."""
    cdef size_t start = <size_t>word * WORD
    return prefix_key(value.data + start, value.size - start) if start < value.size else 0


cdef class SortKey:
    """A column that rows are compared by. NaNs are equal to each other, and larger than all numbers.

    Args:
        input: a column with at most one value in each row. The key uses the input's scratch memory, so nobody else may call the
            input while the key lives.
        order: a value of ``Order`` in fastpq.stats.statistics.
        descending: whether larger values come first. It does not change where nulls come.
        nulls_first: whether nulls come before all values.
    """

    cdef ColumnInput input
    cdef int order
    cdef bint descending
    cdef bint nulls_first
    cdef size_t width
    cdef const uint8_t* values
    cdef Slice* slices
    cdef object _places
    cdef object _nans
    cdef int64_t null_count
    cdef int64_t num_words              # words in a fixed-width value
    cdef const int64_t* places          # for each row the index of its value; -1 for a null
    cdef const uint8_t* nans            # whether each value is NaN; NULL without NaNs

    def __cinit__(self, ColumnInput input not None, int order, bint descending, bint nulls_first):
        cdef int64_t count
        cdef bint is_bytes = order == ORDER_BYTES or order == ORDER_SIGNED_BYTES
        self.input = input
        self.order = order
        self.descending = descending
        self.nulls_first = nulls_first
        self.width = input.stored_width
        with nogil:
            if input.variable:
                count = input.slices(0, input.rows, &self.slices)
            else:
                count = input.fixed(0, input.rows, &self.values)
        self.null_count = input.rows - count
        self.num_words = <int64_t>((self.width + WORD - 1) // WORD) if is_bytes else 1
        self._place()
        if not input.variable and count_nans(order, self.values, count):
            self._mark_nans(count)

    cdef int _place(self) except -1:
        cdef int64_t row, place = 0, is_present
        if self.null_count == 0:
            self.places = NULL
            return 0
        cdef int64_t[::1] places = np.empty(self.input.rows + 1, np.int64)
        with nogil:
            for row in range(self.input.rows):
                is_present = self.input.count_present(row, 1)
                places[row] = place if is_present else -1
                place += is_present
        self._places = places
        self.places = &places[0]
        return 0

    cdef int _mark_nans(self, int64_t count) except -1:
        cdef int64_t i
        cdef uint8_t[::1] nans = np.empty(count, np.uint8)
        with nogil:
            for i in range(count):
                nans[i] = count_nans(self.order, self.values + <size_t>i * self.width, 1) > 0
        self._nans = nans
        self.nans = &nans[0]
        return 0

    cdef inline int64_t place(self, int64_t row) noexcept nogil:
        return row if self.places == NULL else self.places[row]

    cdef inline uint64_t code(self, int64_t row, int64_t word) noexcept nogil:
        """Return the code for one word in a row's value, which is not null."""
        cdef int64_t place = self.place(row)
        cdef uint64_t code
        if self.input.variable:
            code = word_of(self.slices[place], word)
        else:
            code = self.code_of_fixed(self.values + <size_t>place * self.width, word)
        return ~code if self.descending else code

    cdef inline uint64_t code_of_fixed(self, const uint8_t* value, int64_t word) noexcept nogil:
        cdef int order = self.order
        cdef uint64_t code
        if order == ORDER_INT64:
            return code_of_int64(value)
        if order == ORDER_INT32:
            return code_of_int32(value)
        if order == ORDER_DOUBLE:
            return code_of_double(value)
        if order == ORDER_FLOAT:
            return code_of_float(value)
        if order == ORDER_UINT64:
            return code_of_uint64(value)
        if order == ORDER_UINT32:
            return code_of_uint32(value)
        if order == ORDER_FLOAT16:
            return code_of_float16(value)
        if order == ORDER_BOOLEAN:
            return value[0]
        code = word_of(Slice(value, self.width), word)
        return code ^ (<uint64_t>1 << 63) if order == ORDER_SIGNED_BYTES and word == 0 else code

    cdef int compare(self, int64_t left, int64_t right) noexcept nogil:
        cdef int64_t a = self.place(left), b = self.place(right)
        cdef int comparison
        if a < 0 or b < 0:
            comparison = (a >= 0) - (b >= 0)
            return comparison if self.nulls_first else -comparison
        if self.nans != NULL and (self.nans[a] or self.nans[b]):
            comparison = self.nans[a] - self.nans[b]
        elif self.input.variable:
            comparison = compare_slices(self.order, self.slices[a], self.slices[b])
        else:
            comparison = compare_fixed(
                self.order, self.values + <size_t>a * self.width, self.values + <size_t>b * self.width, self.width)
        return -comparison if self.descending else comparison


cdef int compare_rows(list keys, Py_ssize_t count, int64_t left, int64_t right) except? -2:
    cdef Py_ssize_t i
    cdef int comparison
    for i in range(count):
        comparison = (<SortKey>keys[i]).compare(left, right)
        if comparison:
            return comparison
    return 0


def first_unsorted(list keys not None, int64_t rows):
    """Return the first row that is smaller than the row before it; -1 if the rows are sorted.

    Args:
        keys: SortKeys, the most important first.
        rows: how many rows each key's input has.
    """
    cdef Py_ssize_t count = len(keys)
    cdef int64_t row
    for row in range(1, rows):
        if compare_rows(keys, count, row - 1, row) > 0:
            return row
    return -1


def sorted_rows(list keys not None, int64_t rows):
    """Return the row numbers in sorted order: int64, shape (rows,). Equal rows keep their order.

    Args: as for first_unsorted.
    """
    cdef int64_t[::1] order = np.arange(rows + 1)
    cdef uint64_t[::1] memory = np.empty(4 * (rows + 1), np.uint64)
    cdef CodedRow* coded = <CodedRow*>&memory[0]
    cdef CodedRow* room = coded + rows + 1
    cdef SortKey key
    # The least important key comes first. Each later pass keeps the order that equal rows have from the passes before.
    for key in reversed(keys):
        with nogil:
            _sort_by(key, &order[0], rows, coded, room)
    return np.asarray(order)[:rows]


cdef void _sort_by(SortKey key, int64_t* order, int64_t rows, CodedRow* coded, CodedRow* room) noexcept nogil:
    """Sort row numbers by one key. The arrays coded and room are scratch memory for all rows."""
    cdef int64_t values = rows - key.null_count, with_value = 0, null = values, i
    cdef int64_t* unsorted = <int64_t*>room
    if key.null_count:
        memcpy(unsorted, order, <size_t>rows * sizeof(int64_t))
        if key.nulls_first:
            with_value, null = key.null_count, 0
        for i in range(rows):
            if key.places[unsorted[i]] < 0:
                order[null] = unsorted[i]
                null += 1
            else:
                order[with_value] = unsorted[i]
                with_value += 1
        if key.nulls_first:
            order += key.null_count
    if not key.input.variable:
        for i in range(key.num_words):
            _sort_by_word(key, key.num_words - 1 - i, order, values, coded, room)
    elif key.order == ORDER_BYTES:
        _sort_strings(key, 0, order, values, coded, room)
    else:
        _sort_by_comparison(key, order, values, room)


cdef void _sort_by_word(
    SortKey key, int64_t word, int64_t* order, int64_t rows, CodedRow* coded, CodedRow* room,
) noexcept nogil:
    """Sort rows without nulls by one word in their values. Afterwards coded has the sorted rows and their codes."""
    cdef int64_t i
    for i in range(rows):
        coded[i].row = order[i]
        coded[i].code = key.code(order[i], word)
    sort_coded_rows(coded, room, rows)
    for i in range(rows):
        order[i] = coded[i].row


cdef void _sort_strings(
    SortKey key, int64_t word, int64_t* order, int64_t rows, CodedRow* coded, CodedRow* room,
) noexcept nogil:
    """Sort rows by their byte strings, which are equal in all words before this one."""
    cdef int64_t start = 0, stop
    if rows < FEWEST_CODED or word >= MOST_WORDS or _is_sorted(key, order, rows):
        _sort_by_comparison(key, order, rows, room)
        return
    _sort_by_word(key, word, order, rows, coded, room)
    while start < rows:
        stop = start + 1
        while stop < rows and coded[stop].code == coded[start].code:
            stop += 1
        if stop - start > 1:
            _sort_strings(key, word + 1, order + start, stop - start, coded + start, room + start)
        start = stop


cdef void _sort_by_comparison(SortKey key, int64_t* order, int64_t rows, CodedRow* room) noexcept nogil:
    cdef int64_t* unsorted = <int64_t*>room
    if _is_sorted(key, order, rows):
        return
    memcpy(unsorted, order, <size_t>rows * sizeof(int64_t))
    _merge_sort(key, rows, unsorted, order)


cdef bint _is_sorted(SortKey key, const int64_t* order, int64_t rows) noexcept nogil:
    cdef int64_t i
    for i in range(1, rows):
        if key.compare(order[i - 1], order[i]) > 0:
            return False
    return True


cdef void _merge_sort(SortKey key, int64_t rows, int64_t* unsorted, int64_t* out) noexcept nogil:
    """Sort the row numbers in unsorted into out. The memory of unsorted is overwritten."""
    cdef int64_t* source = unsorted
    cdef int64_t* target = out
    cdef int64_t width = RUN, start = 0
    while start < rows:
        _insertion_sort(key, unsorted + start, min(width, rows - start))
        start += width
    while width < rows:
        start = 0
        while start < rows:
            _merge(key, source, start, min(start + width, rows), min(start + 2 * width, rows), target)
            start += 2 * width
        source, target = target, source
        width *= 2
    if source != out:
        memcpy(out, source, <size_t>rows * sizeof(int64_t))


cdef void _insertion_sort(SortKey key, int64_t* rows, int64_t count) noexcept nogil:
    cdef int64_t i, j, row
    for i in range(1, count):
        row = rows[i]
        j = i
        while j > 0 and key.compare(rows[j - 1], row) > 0:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


cdef void _merge(SortKey key, const int64_t* source, int64_t start, int64_t middle, int64_t stop, int64_t* target) noexcept nogil:
    cdef int64_t left = start, right = middle, i
    for i in range(start, stop):
        if left < middle and (right >= stop or key.compare(source[left], source[right]) <= 0):
            target[i] = source[left]
            left += 1
        else:
            target[i] = source[right]
            right += 1
