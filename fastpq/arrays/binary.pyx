"""Functions over layouts for variable-length values: conversion, comparison and checks. All read through SliceReader."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

cimport numpy as cnp
from fastpq.encodings.dictionary cimport DictionaryEncoder
from fastpq.encodings.plain cimport invalid_utf8_place, is_ascii
from fastpq.encodings.status cimport BAD_INDEX, Status
from fastpq.encodings.views cimport Slice, View
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, array_start, checked_array, raise_status

import numpy as np

from fastpq.arrays import memory
from fastpq.errors import LimitError, SchemaError

cnp.import_array()

cdef extern from "c/bitpack.h" nogil:
    uint32_t largest(const uint32_t* values, int64_t count) noexcept

cdef extern from "c/gather.h" nogil:
    int64_t sum_at(const int32_t* places, int64_t count, const int32_t* values) noexcept

cdef int64_t MAX_INT32 = 0x7FFFFFFF
cdef int64_t NO_LIMIT = 0x7FFFFFFFFFFFFFFF


def total_size(SliceReader reader not None):
    """Return the total size of all values in bytes."""
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
    """Return the total size in bytes of the values that views have.

    Args:
        words: the views, four words each. The first word is the value's length.
    """
    cdef Py_ssize_t i
    cdef int64_t total = 0
    with nogil:
        for i in range(words.shape[0] // 4):
            total += words[4 * i]
    return total


def size_of_codes(const int32_t[::1] codes, const int32_t[::1] sizes):
    """Return the total size in bytes of the values that codes stand for.

    Args:
        codes: shape (n,).
        sizes: size of each dictionary entry in bytes, shape (entries,).

    Raises:
        FormatError: a code is outside the entries.
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
    """Copy values into contiguous bytes, one after another.

    Args:
        reader: the values. A null takes no bytes.
        wide: whether the offsets are int64 instead of int32.
        size: ``total_size(reader)``.

    Returns:
        The offsets, shape (n + 1,), and the data, shape (size,), uint8.
    """
    if not wide and size > MAX_INT32:
        raise LimitError(f"{size} bytes of values are too many for int32 offsets")
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
            if <int64_t> block[i].size > size - at:     # the values changed after they were measured
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


def views_of_offsets(values, validity):
    """Return views over the data that offsets refer to. The data is not copied.

    A view's offset has 31 bits. Longer data is cut between two values into several buffers.

    Args:
        values: BinaryOffsets.
        validity: bitmap, or None if no value is null.

    Returns:
        The views, shape (n,), dtype V16, and the list of buffers.

    Raises:
        LimitError: a value has 2^31 bytes or more.
    """
    cdef SliceReader reader = SliceReader(values, validity)
    offsets, data = values.offsets, values.data
    cdef int64_t start = 0, stop = 0, base = 0, status = 0
    cdef int32_t buffer = 0
    views = memory.zeros(reader.count * sizeof(View)).view("V16")
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
    """Return where the values that fit into one buffer end, from value start on. A buffer has at most 2^31 - 1 bytes."""
    if int(offsets[count]) - base <= MAX_INT32:
        return count
    # Offsets that decrease give a wrong end here. The reader refuses them later.
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
            at = block[i].data - reader.source.data - base
            if at < 0 or at > MAX_INT32 or block[i].size > <size_t> MAX_INT32:
                return Status.BAD_LENGTH
            memcpy(out[start + i].prefix, block[i].data, 4)
            out[start + i].buffer = buffer
            out[start + i].offset = <int32_t> at
        start += n
    return stop


def shift_buffers(views, int32_t shift):
    """Add a number to each view's buffer number, in place. Views with inline bytes do not change.

    Args:
        views: shape (n,), dtype V16. The values are already checked.
        shift: the number to add.
    """
    checked_array(views, np.dtype("V16"), "views")
    cdef View* view = <View*> array_start(views)
    cdef int64_t count = len(views), i
    with nogil:
        for i in range(count):          # an inline value has bytes where a longer one has its buffer number
            view[i].buffer += shift if view[i].length > 12 else 0


def gather_views(views, codes, validity):
    """Return the views for dictionary codes: ``views[codes]``, and zero where null.

    Args:
        views: the dictionary's views, shape (size,), dtype V16.
        codes: shape (n,), int32.
        validity: bitmap, or None if no value is null.

    Raises:
        FormatError: a value's code is outside the dictionary.
    """
    checked_array(views, np.dtype("V16"), "views")
    checked_array(codes, np.int32, "dictionary codes")
    cdef const View* dictionary = <const View*> array_start(views)
    cdef const int32_t* code = <const int32_t*> array_start(codes)
    cdef int64_t count = len(codes), size = len(views), i
    cdef int64_t largest = -1
    cdef const uint8_t* valid = NULL
    cdef View* out
    if validity is not None:
        checked_array(validity, np.uint8, "validity bits")
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
    """Number the distinct values in the order in which they first appear.

    Returns:
        The codes, shape (n,), int32, 0 where null, and the first row of each distinct value, int64.

    Raises:
        LimitError: there are 2^31 values or more.
    """
    if reader.count > MAX_INT32:
        raise LimitError(f"{reader.count} values are too many for int32 dictionary codes")
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
    cdef uint32_t numbers[SLICE_BLOCK]
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
        status = encoder.encode_slices(block, present, NO_LIMIT, numbers)
        if status < 0:
            return status
        for i in range(present):
            if numbers[i] == distinct:
                rows[distinct] = start + places[i]
                distinct += 1
            codes[start + places[i]] = <int32_t> numbers[i]
        start += n
    return distinct


def first_difference(SliceReader left not None, SliceReader right not None):
    """Return the index of the first value that differs between two columns of one length. -1 if none does.

    A null equals only a null.
    """
    cdef Slice ours[SLICE_BLOCK]
    cdef Slice theirs[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status = 0, place = -1
    if left.count != right.count:
        raise SchemaError(f"{left.count} values compared with {right.count}")
    with nogil:
        while start < left.count and place < 0:
            n = min(<int64_t> SLICE_BLOCK, left.count - start)
            status = left.read(start, n, ours)
            if status >= 0:
                status = right.read(start, n, theirs)
            if status < 0:
                break
            for i in range(n):
                if not _same(&ours[i], &theirs[i]):
                    place = start + i
                    break
            start += n
    raise_status(status)
    return place


cdef inline bint _same(const Slice* a, const Slice* b) noexcept nogil:
    if a.data == NULL or b.data == NULL:
        return a.data == b.data
    return a.size == b.size and memcmp(a.data, b.data, a.size) == 0


cdef bint _is_ascii_block(SliceReader reader, int64_t start, int64_t count) noexcept nogil:
    """Return whether values in the offsets layout, whose bytes are consecutive, are certainly ASCII."""
    cdef Slice first, last
    cdef int64_t end = start + count - 1
    if reader.read(start, 1, &first) < 0 or reader.read(end, 1, &last) < 0:
        return False
    while first.data == NULL and start < end:       # nulls
        start += 1
        if reader.read(start, 1, &first) < 0:
            return False
    while last.data == NULL and start < end:
        end -= 1
        if reader.read(end, 1, &last) < 0:
            return False
    if first.data == NULL or last.data == NULL:
        return first.data == last.data
    return first.data <= last.data + last.size and is_ascii(first.data, <size_t> (last.data + last.size - first.data))


def first_invalid_utf8(SliceReader reader not None):
    """Return the index of the first value that is not valid UTF-8, or -1."""
    cdef Slice block[SLICE_BLOCK]
    cdef int64_t start = 0, n, i, status = 0, place = -1
    with nogil:
        if reader.entries() >= 0 and invalid_utf8_place(reader.source.dictionary, reader.entries()) < 0:
            start = reader.count
        while start < reader.count and place < 0:
            n = min(<int64_t> SLICE_BLOCK, reader.count - start)
            if reader.source.offsets != NULL and _is_ascii_block(reader, start, n):
                start += n
                continue
            status = reader.read(start, n, block)
            if status < 0:
                break
            i = invalid_utf8_place(block, n)
            if i >= 0:
                place = start + i
            start += n
    raise_status(status)
    return place
