"""Layouts of variable-length values: one into another, compared and checked, all through slices."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

cimport numpy as cnp
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.status cimport BAD_INDEX, Status
from fastpq.encodings.views cimport Slice, View
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, array_start, held, raise_status

import numpy as np

from fastpq.arrays import memory
from fastpq.errors import LimitError, SchemaError
from fastpq.arrays.layouts import BinaryOffsets

cnp.import_array()

cdef extern from "c/bitpack.h" nogil:
    uint32_t largest(const uint32_t* values, int64_t count) noexcept

cdef extern from "c/gather.h" nogil:
    int64_t sum_at(const int32_t* places, int64_t count, const int32_t* values) noexcept

cdef extern from "c/utf8.h" nogil:
    int utf8_is_valid(const uint8_t* data, size_t size)

cdef int64_t MAX_INT32 = 0x7FFFFFFF
cdef int64_t NO_LIMIT = 0x7FFFFFFFFFFFFFFF


def total_size(SliceReader reader not None):
    """Bytes of all values together."""
    cdef Slice block[SLICE_BLOCK]
    cdef int64_t start = 0, n = 0, i, status = 0
    cdef int64_t total = 0
    with nogil:
        while start < reader.count:
            n = min(<int64_t> SLICE_BLOCK, reader.count - start)
            status = reader.read(start, n, block)
            if status < 0:
                break
            for i in range(n):
                total += block[i].size
            start += n
    raise_status(status)
    return total


def size_of_views(const int32_t[::1] words):
    """Bytes of all values of views together; words are the views, four words each, the lengths first."""
    cdef Py_ssize_t i
    cdef int64_t total = 0
    with nogil:
        for i in range(words.shape[0] // 4):
            total += words[4 * i]
    return total


def size_of_codes(const int32_t[::1] codes, const int32_t[::1] sizes):
    """Bytes of all values of codes together.

    Args:
        codes: shape (n,).
        sizes: shape (entries,), the bytes of each entry.

    Raises:
        FormatError: a code lies outside of the entries.
    """
    cdef int64_t count = codes.shape[0], entries = sizes.shape[0], total = 0
    cdef bint outside = count > 0
    if count and entries:
        with nogil:
            outside = largest(<const uint32_t*>&codes[0], count) >= entries
            if not outside:
                total = sum_at(&codes[0], count, &sizes[0])
    if outside:
        raise_status(BAD_INDEX)
    return total


def to_offsets(SliceReader reader not None, bint wide, int64_t size):
    """Copy values into one run of bytes.

    Args:
        reader: the values; a null takes no bytes.
        wide: int64 offsets instead of int32.
        size: ``total_size(reader)``.

    Returns:
        offsets, shape (n + 1,), and data, shape (size,), uint8.
    """
    if not wide and size > MAX_INT32:
        raise LimitError(f"{size} bytes of values are beyond int32 offsets")
    offsets = np.zeros(reader.count + 1, np.int64 if wide else np.int32)
    data = memory.empty(size)
    cdef uint8_t* ends = <uint8_t*> cnp.PyArray_DATA(offsets)
    cdef uint8_t* out = <uint8_t*> cnp.PyArray_DATA(data)
    cdef int64_t status
    with nogil:
        status = _copy(reader, wide, ends, out, size)
    raise_status(status)
    return offsets, data


cdef int64_t _copy(SliceReader reader, bint wide, uint8_t* offsets, uint8_t* out, int64_t size) noexcept nogil:
    cdef Slice block[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status, at = 0
    while start < reader.count:
        n = min(<int64_t> SLICE_BLOCK, reader.count - start)
        status = reader.read(start, n, block)
        if status < 0:
            return status
        for i in range(n):
            if <int64_t> block[i].size > size - at:     # the values changed since they were measured
                return Status.BAD_LENGTH
            if block[i].size:
                memcpy(out + at, block[i].data, block[i].size)
            at += block[i].size
            if wide:
                (<int64_t*> offsets)[start + i + 1] = at
            else:
                (<int32_t*> offsets)[start + i + 1] = <int32_t> at
        start += n
    return start


def views_of_offsets(offsets, data, validity):
    """Views over the data of offsets, without a copy of the data.

    A view's offset has 31 bits, so longer data is cut into several buffers between two values.

    Returns:
        views, shape (n,), dtype V16, and the list of buffers.

    Raises:
        LimitError: a value of 2^31 bytes or more.
    """
    cdef SliceReader reader = SliceReader(BinaryOffsets(offsets, data), validity)
    cdef int64_t start = 0, stop = 0, base = 0, status = 0
    cdef int32_t buffer = 0
    views = np.zeros(reader.count, np.dtype("V16"))
    buffers = []
    cdef View* out = <View*> cnp.PyArray_DATA(views)
    cdef int64_t count = reader.count
    while start < count:
        base = int(offsets[start])
        stop = _window(offsets, start, count, base)
        if stop == start:
            raise LimitError(f"value {start} has 2^31 bytes or more, which a view cannot hold")
        if not 0 <= base <= int(offsets[stop]) <= len(data):
            raise_status(Status.BAD_LENGTH)
        with nogil:
            status = _fill_views(reader, start, stop, base, buffer, out)
        raise_status(status)
        buffers.append(data[base : int(offsets[stop])])
        buffer += 1
        start = stop
    return views, buffers


cdef int64_t _window(offsets, int64_t start, int64_t count, int64_t base) except -1:
    """End of the values in a buffer from value start on: at most 2^31 - 1 bytes."""
    if int(offsets[count]) - base <= MAX_INT32:
        return count
    # Falling offsets give a wrong cut here; the reader refuses them.
    stop = start + int(np.searchsorted(offsets[start : count + 1], base + MAX_INT32, side="right")) - 1
    return max(start, min(count, stop))


cdef int64_t _fill_views(
    SliceReader reader, int64_t start, int64_t stop, int64_t base, int32_t buffer, View* out
) noexcept nogil:
    cdef Slice block[SLICE_BLOCK]
    cdef int64_t n, i, status, at
    while start < stop:
        n = min(<int64_t> SLICE_BLOCK, stop - start)
        status = reader.read(start, n, block)
        if status < 0:
            return status
        for i in range(n):
            if block[i].data == NULL:
                continue
            out[start + i].length = <int32_t> block[i].size
            if block[i].size <= 12:
                memcpy(out[start + i].prefix, block[i].data, block[i].size)
                continue
            at = block[i].data - reader.data - base
            if at < 0 or at > MAX_INT32 or block[i].size > <size_t> MAX_INT32:
                return Status.BAD_LENGTH
            memcpy(out[start + i].prefix, block[i].data, 4)
            out[start + i].buffer = buffer
            out[start + i].offset = <int32_t> at
        start += n
    return stop


def shift_buffers(views, int32_t shift):
    """Raise the number of the buffer of each view that has one, in place.

    Args:
        views: shape (n,), dtype V16, of values that have been checked.
        shift: the difference.
    """
    held(views, np.dtype("V16"), "views")
    cdef View* view = <View*> array_start(views)
    cdef int64_t count = len(views), i
    with nogil:
        for i in range(count):          # inline values have bytes where longer ones have the number of their buffer
            view[i].buffer += shift if view[i].length > 12 else 0


def gather_views(views, codes, validity):
    """Views of dictionary codes: ``views[codes]``, and zero where null.

    Args:
        views: of the dictionary, shape (size,), dtype V16.
        codes: shape (n,), int32.
        validity: bitmap, or None without nulls.
    """
    held(views, np.dtype("V16"), "views")
    held(codes, np.int32, "dictionary codes")
    cdef const View* dictionary = <const View*> array_start(views)
    cdef const int32_t* code = <const int32_t*> array_start(codes)
    cdef int64_t count = len(codes), size = len(views), i
    cdef int64_t largest = -1
    cdef const uint8_t* valid = NULL
    cdef View* out
    if validity is not None:
        held(validity, np.uint8, "validity bits")
        if len(validity) < (count + 7) // 8:
            raise SchemaError(f"{len(validity)} bytes of validity bits for {count} values")
        valid = array_start(validity)
    gathered = memory.empty(count * sizeof(View))
    out = <View*> array_start(gathered)
    with nogil:
        for i in range(count):
            if valid == NULL or (valid[i >> 3] >> (i & 7)) & 1:
                largest = max(largest, <int64_t> <uint32_t> code[i])
        if largest < size:
            for i in range(count):
                if valid == NULL or (valid[i >> 3] >> (i & 7)) & 1:
                    out[i] = dictionary[code[i]]
                else:
                    memset(&out[i], 0, sizeof(View))
    if largest >= size:
        raise_status(Status.BAD_INDEX)
    return gathered.view(np.dtype("V16"))


def encode_dictionary(SliceReader reader not None):
    """Codes in order of first appearance.

    Returns:
        codes, shape (n,), int32, 0 where null; and the first row of each distinct value, int64.
    """
    if reader.count > MAX_INT32:
        raise LimitError(f"{reader.count} values are beyond int32 dictionary codes")
    codes = np.zeros(reader.count, np.int32)
    firsts = np.empty(reader.count, np.int64)
    cdef DictionaryEncoder encoder = DictionaryEncoder(0, borrows=True)
    cdef int32_t* out = <int32_t*> cnp.PyArray_DATA(codes)
    cdef int64_t* rows = <int64_t*> cnp.PyArray_DATA(firsts)
    cdef int64_t distinct
    with nogil:
        distinct = _encode(reader, encoder, out, rows)
    raise_status(distinct)
    return codes, firsts[:distinct].copy()


cdef int64_t _encode(SliceReader reader, DictionaryEncoder encoder, int32_t* codes, int64_t* rows) noexcept nogil:
    cdef Slice block[SLICE_BLOCK]
    cdef int32_t places[SLICE_BLOCK]
    cdef uint32_t found[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, present, status, distinct = 0
    while start < reader.count:
        n = min(<int64_t> SLICE_BLOCK, reader.count - start)
        status = reader.read(start, n, block)
        if status < 0:
            return status
        present = 0
        for i in range(n):
            if block[i].data != NULL:
                block[present] = block[i]
                places[present] = <int32_t> i
                present += 1
        status = encoder.encode_slices(block, present, NO_LIMIT, found)
        if status < 0:
            return status
        for i in range(present):
            if found[i] == distinct:
                rows[distinct] = start + places[i]
                distinct += 1
            codes[start + places[i]] = <int32_t> found[i]
        start += n
    return distinct


def first_difference(SliceReader left not None, SliceReader right not None):
    """Number of the first value with a difference between two columns of equal length; -1 without one. Null equals null only."""
    cdef Slice ours[SLICE_BLOCK]
    cdef Slice theirs[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status = 0, found = -1
    if left.count != right.count:
        raise SchemaError(f"{left.count} values compared with {right.count}")
    with nogil:
        while start < left.count and found < 0:
            n = min(<int64_t> SLICE_BLOCK, left.count - start)
            status = left.read(start, n, ours)
            if status >= 0:
                status = right.read(start, n, theirs)
            if status < 0:
                break
            for i in range(n):
                if not _same(&ours[i], &theirs[i]):
                    found = start + i
                    break
            start += n
    raise_status(status)
    return found


cdef inline bint _same(const Slice* a, const Slice* b) noexcept nogil:
    if a.data == NULL or b.data == NULL:
        return a.data == b.data
    return a.size == b.size and memcmp(a.data, b.data, a.size) == 0


def first_invalid_utf8(SliceReader reader not None):
    """Number of the first value in another encoding than UTF-8; -1 without one."""
    cdef Slice block[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status = 0, found = -1
    with nogil:
        while start < reader.count and found < 0:
            n = min(<int64_t> SLICE_BLOCK, reader.count - start)
            status = reader.read(start, n, block)
            if status < 0:
                break
            for i in range(n):
                if block[i].data != NULL and not utf8_is_valid(block[i].data, block[i].size):
                    found = start + i
                    break
            start += n
    raise_status(status)
    return found
